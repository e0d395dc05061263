//! A worker's time as a count: what its deadlines are kept in, for an `Instant` takes twice the memory.

use std::time::{Duration, Instant};

/// The resolution of deadlines: they are met up to this much late, in nanoseconds (1 ms). QUIC sends every 8 ms of a path, and what is sent later
/// than that is lost to it.
const TICK_NANOS: u32 = 1_000_000;

/// Ticks in a second.
const TICKS_PER_SECOND: u64 = (1_000_000_000 / TICK_NANOS) as u64;

/// Counts ticks from the time at which the worker began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    epoch: Instant,
}

impl Ticks {
    pub(crate) fn new(epoch: Instant) -> Self {
        Self { epoch }
    }

    /// Whole ticks until `at`.
    #[inline]
    pub(crate) fn until(self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.epoch);
        since.as_secs() * TICKS_PER_SECOND + u64::from(since.subsec_nanos() / TICK_NANOS)
    }

    /// The first tick by which `deadline` has certainly come: it is never met early.
    #[inline]
    pub(crate) fn meeting(self, deadline: Instant) -> u64 {
        self.until(deadline) + 1
    }

    /// When a tick begins.
    pub(crate) fn instant_of(self, tick: u64) -> Instant {
        let nanos = (tick % TICKS_PER_SECOND) as u32 * TICK_NANOS;
        self.epoch + Duration::new(tick / TICKS_PER_SECOND, nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_met_within_a_tick_and_never_early() {
        let epoch = Instant::now();
        let ticks = Ticks::new(epoch);
        for micros in [0, 1, 999, 1_000, 1_001, 999_999, 1_000_000, 86_400_000_001] {
            let deadline = epoch + Duration::from_micros(micros);
            let met = ticks.instant_of(ticks.meeting(deadline));
            assert!(met > deadline, "{micros}");
            assert!(met - deadline <= Duration::from_nanos(TICK_NANOS.into()), "{micros}");
            assert_eq!(ticks.until(met), ticks.meeting(deadline));
        }
    }
}
