//! The share of one load that an engine has, where several carry it out together.

use fastrand::Rng;

/// Which of how many engines this is: together, they carry out one schedule.
///
/// Arrival `k` of an open loop belongs to the engine whose number is the remainder of `k` by their count. Connections
/// and counted requests are dealt the same way, and connection numbers in templates too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    number: usize,
    count: usize,
}

impl Share {
    /// Everything.
    pub const WHOLE: Self = Self { number: 0, count: 1 };

    /// Of the engine with this number, from 0, of so many.
    ///
    /// # Panics
    ///
    /// When there is no such engine.
    pub fn new(number: usize, count: usize) -> Self {
        assert!(number < count, "engine {number} of {count}");
        Self { number, count }
    }

    /// The number of the engine, from 0.
    pub fn number(self) -> usize {
        self.number
    }

    /// How many engines there are.
    pub fn count(self) -> usize {
        self.count
    }

    /// Its part of `whole` things: none is lost, and no two parts differ by more than one.
    pub fn of(self, whole: u64) -> u64 {
        let (count, number) = (self.count as u64, self.number as u64);
        whole / count + u64::from(number < whole % count)
    }

    /// Its part of a rate.
    pub(super) fn of_rate(self, rate: f64) -> f64 {
        rate / self.count as f64
    }

    /// By how much its intended times are shifted, relative to the distance between two of its own.
    pub(super) fn offset(self) -> f64 {
        self.number as f64 / self.count as f64
    }

    /// The number among all engines of its thing with this number: threads, connections.
    pub(super) fn among_all(self, number: usize) -> usize {
        number * self.count + self.number
    }

    /// A seed of its own. The first engine's is the seed itself.
    pub(super) fn seed(self, seed: u64) -> u64 {
        /// Far from the numbers of threads, which are streams of a seed, too.
        const STREAMS: u64 = 1 << 32;
        match self.number as u64 {
            0 => seed,
            number => stream(seed, STREAMS + number).u64(..),
        }
    }
}

/// The random numbers of one of the streams that a seed has: each thread has its own.
pub(super) fn stream(seed: u64, number: u64) -> Rng {
    Rng::with_seed(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93)).fork()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::arrivals::Schedule;
    use crate::plan::Arrivals;

    fn shares(count: usize) -> impl Iterator<Item = Share> {
        (0..count).map(move |number| Share::new(number, count))
    }

    #[test]
    fn nothing_is_lost_in_dealing() {
        for (whole, count) in [(10, 3), (1, 1), (7, 7), (1000, 16), (3, 5)] {
            let parts: Vec<u64> = shares(count).map(|share| share.of(whole)).collect();
            assert_eq!(parts.iter().sum::<u64>(), whole);
            assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
        }
        let mut numbers: Vec<usize> =
            shares(3).flat_map(|share| (0..4).map(move |number| share.among_all(number))).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, Vec::from_iter(0..12));
    }

    #[test]
    fn seeds_differ_and_repeat() {
        let seeds: std::collections::BTreeSet<u64> =
            shares(64).map(|share| share.seed(1)).collect();
        assert_eq!(seeds.len(), 64);
        assert_eq!(Share::WHOLE.seed(7), 7);
        assert_eq!(Share::new(3, 4).seed(7), Share::new(3, 4).seed(7));
    }

    #[test]
    fn the_shares_of_a_schedule_are_the_schedule() {
        const RATE: f64 = 30_000.0;
        let random = || Rng::with_seed(1);
        let mut whole = Schedule::new(Arrivals::Constant, RATE, 0, 0.0, random());
        let mut parts: Vec<Schedule> = shares(4)
            .map(|share| {
                let rate = share.of_rate(RATE);
                Schedule::new(Arrivals::Constant, rate, 0, share.offset(), random())
            })
            .collect();
        for arrival in 0..120_000 {
            let part = &mut parts[arrival % 4];
            assert!(whole.peek().abs_diff(part.peek()) <= 1, "arrival {arrival}");
            whole.advance();
            part.advance();
        }
    }
}
