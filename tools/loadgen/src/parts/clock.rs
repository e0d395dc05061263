//! Clocks of several hosts: how far they are apart, and within what bound that is known.

use std::time::{Duration, Instant};

/// How often a clock is asked for.
pub(super) const PINGS_COUNT: usize = 16;

/// The monotonic clock of this process, in nanoseconds since it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    /// Begins now.
    pub(super) fn begin() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now_ns(self) -> u64 {
        self.at(Instant::now())
    }

    pub(super) fn at(self, instant: Instant) -> u64 {
        let passed = instant.saturating_duration_since(self.0);
        u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The other way round. `None`: the system can't count so far.
    pub(super) fn instant(self, ns: u64) -> Option<Instant> {
        self.0.checked_add(Duration::from_nanos(ns))
    }
}

/// One look at another clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ping {
    /// When the question left, by our clock.
    pub(super) sent_ns: u64,
    /// Time of the other clock.
    pub(super) theirs_ns: u64,
    /// When the reply came, by our clock.
    pub(super) received_ns: u64,
}

impl Ping {
    fn round_trip_ns(&self) -> u64 {
        self.received_ns.saturating_sub(self.sent_ns)
    }
}

/// How far another clock is ahead of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    ns: i128,
    /// The offset is off by at most this: either way of the round trip may have taken all of its time.
    pub(super) bound_ns: u64,
}

impl Offset {
    /// From the fastest of several looks. `None`: there was none.
    pub(super) fn of_fastest(pings: &[Ping]) -> Option<Self> {
        let fastest = pings.iter().min_by_key(|ping| ping.round_trip_ns())?;
        let half_ns = fastest.round_trip_ns().div_ceil(2);
        let middle_ns = i128::from(fastest.sent_ns) + i128::from(half_ns);
        Some(Self { ns: i128::from(fastest.theirs_ns) - middle_ns, bound_ns: half_ns })
    }

    /// Returns what the other clock says when ours says `ns`.
    pub(super) fn theirs(self, ns: u64) -> u64 {
        u64::try_from((i128::from(ns) + self.ns).max(0)).unwrap_or(u64::MAX)
    }

    /// How much the other clock has gained on ours since an offset before.
    pub(super) fn gained_ns(self, before: Self) -> i64 {
        i64::try_from(self.ns - before.ns).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Looks at a clock that is ahead by `ahead_ns`, over a path with these delays there and back.
    fn pings(ahead_ns: i64, delays_ns: &[(u64, u64)]) -> Vec<Ping> {
        let mut now_ns = 5_000_000_000;
        let mut pings = Vec::new();
        for (there_ns, back_ns) in delays_ns {
            let theirs_ns = (now_ns + there_ns).checked_add_signed(ahead_ns).unwrap();
            let received_ns = now_ns + there_ns + back_ns;
            pings.push(Ping { sent_ns: now_ns, theirs_ns, received_ns });
            now_ns = received_ns;
        }
        pings
    }

    #[test]
    fn a_clock_three_seconds_ahead_is_corrected() {
        let delays = [(9_000_000, 1_000_000), (200_000, 300_000), (40_000_000, 200_000)];
        for ahead_ns in [3_000_000_000, -3_000_000_000, 0] {
            let offset = Offset::of_fastest(&pings(ahead_ns, &delays)).unwrap();
            assert_eq!(offset.bound_ns, 250_000);
            let start_ns = 9_000_000_000;
            let theirs = offset.theirs(start_ns).checked_add_signed(-ahead_ns).unwrap();
            assert!(theirs.abs_diff(start_ns) <= offset.bound_ns, "{theirs}");
        }
    }

    #[test]
    fn what_a_clock_gained_shows() {
        let before = Offset::of_fastest(&pings(1_000_000, &[(100, 100)])).unwrap();
        let after = Offset::of_fastest(&pings(1_004_000, &[(100, 100)])).unwrap();
        assert_eq!(after.gained_ns(before), 4_000);
        assert_eq!(before.gained_ns(after), -4_000);
        assert_eq!(Offset::of_fastest(&[]), None);
    }

    #[test]
    fn our_clock_counts_on() {
        let clock = Clock::begin();
        let now_ns = clock.now_ns();
        assert_eq!(clock.at(clock.instant(now_ns).unwrap()), now_ns);
        assert!(clock.now_ns() >= now_ns);
    }

    proptest! {
        #[test]
        fn the_bound_holds_whatever_the_path_does(
            ahead_ns in -4_000_000_000_i64..4_000_000_000,
            delays in prop::collection::vec((0..50_000_000_u64, 0..50_000_000_u64), 1..16),
        ) {
            let offset = Offset::of_fastest(&pings(ahead_ns, &delays)).unwrap();
            let error = offset.ns - i128::from(ahead_ns);
            prop_assert!(error.unsigned_abs() <= u128::from(offset.bound_ns));
        }
    }
}
