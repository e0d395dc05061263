//! The intended times of an open loop.
//!
//! They depend on nothing but the plan: whether a connection is free does not move them. Two copies of
//! one generator walk the same times: one follows the clock and counts what is due, the other follows
//! what has been handed to connections. What is between them waits, and takes no memory.

use std::sync::Arc;

use fastrand::Rng;

use crate::plan::Arrivals;

/// Nanoseconds in a second.
const SECOND_NS: f64 = 1e9;

/// State on which the next intended time depends.
#[derive(Debug, Clone)]
enum Gaps {
    Constant,
    Poisson(Rng),
    /// Every so many of these times, which are counted from the start.
    Recorded {
        times: Arc<[u64]>,
        next: usize,
        step: usize,
    },
}

/// Walks the intended times of one thread.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    gaps: Gaps,
    start_ns: u64,
    /// Between two requests, on average.
    distance_ns: f64,
    /// The next one, after the start.
    next_ns: f64,
    /// How many have been walked past.
    count: u64,
}

impl Schedule {
    /// The times from `start_ns` on, at `rate` per second. `offset` is the share of a distance by which
    /// they are shifted, so that threads take turns.
    pub(super) fn new(
        arrivals: Arrivals,
        rate: f64,
        start_ns: u64,
        offset: f64,
        random: Rng,
    ) -> Self {
        let distance_ns = SECOND_NS / rate;
        let next_ns = distance_ns * offset;
        match arrivals {
            Arrivals::Constant => {
                Self { gaps: Gaps::Constant, start_ns, distance_ns, next_ns, count: 0 }
            }
            Arrivals::Poisson => {
                let gaps = Gaps::Poisson(random);
                let mut schedule = Self { gaps, start_ns, distance_ns, next_ns: 0.0, count: 0 };
                schedule.step();
                schedule
            }
        }
    }

    /// Every `step`th of `times` from `first` on, which are counted from `start_ns`.
    pub(super) fn recorded(
        times: Arc<[u64]>,
        (first, step): (usize, usize),
        start_ns: u64,
    ) -> Self {
        let next_ns = times.get(first).map_or(f64::MAX, |ns| *ns as f64);
        let gaps = Gaps::Recorded { times, next: first, step };
        Self { gaps, start_ns, distance_ns: 0.0, next_ns, count: 0 }
    }

    fn step(&mut self) {
        match &mut self.gaps {
            Gaps::Constant => self.next_ns += self.distance_ns,
            Gaps::Poisson(random) => self.next_ns += -(1.0 - random.f64()).ln() * self.distance_ns,
            Gaps::Recorded { times, next, step } => {
                *next = next.saturating_add(*step);
                self.next_ns = times.get(*next).map_or(f64::MAX, |ns| *ns as f64);
            }
        }
    }

    /// The next intended time.
    #[inline]
    pub(super) fn peek(&self) -> u64 {
        self.start_ns.saturating_add(self.next_ns as u64)
    }

    /// Walks past the next one.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.count += 1;
        self.step();
    }

    /// How many have been walked past.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, rate: f64, offset: f64, count: u64) -> Vec<u64> {
        let random = Rng::with_seed(3);
        let mut schedule = Schedule::new(arrivals, rate, 1000, offset, random);
        let mut times = Vec::new();
        while schedule.count() < count {
            times.push(schedule.peek());
            schedule.advance();
        }
        times
    }

    #[test]
    fn constant_arrivals_are_at_equal_distances() {
        let expected: Vec<u64> = (0..5).map(|index| 1000 + index * 2_000_000).collect();
        assert_eq!(times(Arrivals::Constant, 500.0, 0.0, 5), expected);
        assert_eq!(times(Arrivals::Constant, 500.0, 0.5, 1), [1_001_000]);
    }

    #[test]
    fn a_rate_is_kept_for_an_hour() {
        let last = times(Arrivals::Constant, 1000.0 / 3.0, 0.0, 1_200_001).pop();
        let error = last.unwrap().abs_diff(1000 + 3_600_000_000_000);
        assert!(error < 1000, "{error} ns");
    }

    #[test]
    fn poisson_arrivals_keep_the_rate_and_vary() {
        let times = times(Arrivals::Poisson, 1000.0, 0.0, 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((0.98e6..1.02e6).contains(&mean), "{mean}");
        // An exponential distribution's deviation is its mean.
        assert!((0.97..1.03).contains(&(variance.sqrt() / mean)), "{}", variance.sqrt() / mean);
    }

    #[test]
    fn recorded_times_are_dealt_and_end() {
        let times: Arc<[u64]> = [5, 7, 7, 20].into();
        let walk = |first| {
            let mut schedule = Schedule::recorded(Arc::clone(&times), (first, 3), 100);
            [(); 3].map(|()| {
                let at = schedule.peek();
                schedule.advance();
                at
            })
        };
        assert_eq!(walk(0), [105, 120, u64::MAX]);
        assert_eq!(walk(1), [107, u64::MAX, u64::MAX]);
        assert_eq!(walk(9), [u64::MAX; 3]);
    }

    #[test]
    fn two_copies_walk_the_same_times() {
        let random = Rng::with_seed(9);
        let mut due = Schedule::new(Arrivals::Poisson, 50.0, 0, 0.0, random);
        let mut handed = due.clone();
        for _ in 0..100 {
            assert_eq!(due.peek(), handed.peek());
            due.advance();
            handed.advance();
        }
        assert_eq!(due.count(), 100);
    }
}
