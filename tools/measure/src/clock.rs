//! Times as nanoseconds since a measurement began.

use std::time::{Duration, Instant};

/// How often a thread that waits looks whether the measurement is to end.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

/// Origin of times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    /// Counts from now.
    pub(crate) fn start() -> Self {
        Self { epoch: Instant::now() }
    }

    /// A time in nanoseconds.
    pub(crate) fn nanoseconds(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.epoch);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Now, in nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.nanoseconds(Instant::now())
    }

    /// The other way round.
    pub(crate) fn instant(&self, ns: u64) -> Instant {
        self.epoch + Duration::from_nanos(ns)
    }
}

/// A duration in nanoseconds.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
