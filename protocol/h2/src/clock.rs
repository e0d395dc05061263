//! RFC 9113 §9.1 and limits of our own: the time since a connection began, in numbers that are cheap
//! to keep for each stream.

use std::time::{Duration, Instant};

/// The time of a turn, since the connection began. The numbers wrap (milliseconds after 49 days,
/// microseconds after 71 minutes): only differences count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Instant,
    now: Instant,
    pub(crate) ms: u32,
    pub(crate) us: u32,
}

impl Clock {
    pub(crate) fn new(now: Instant) -> Self {
        Self { epoch: now, now, ms: 0, us: 0 }
    }

    /// Takes over the time of a turn.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) {
        if now != self.now {
            self.now = now;
            let since = now.saturating_duration_since(self.epoch);
            self.ms = since.as_millis() as u32;
            self.us = since.as_micros() as u32;
        }
    }

    /// Milliseconds since an earlier [`ms`](Self::ms).
    #[inline]
    pub(crate) fn elapsed_ms(&self, since_ms: u32) -> u32 {
        self.ms.wrapping_sub(since_ms)
    }
}

/// A limit in milliseconds; what is too long to count is as good as for ever.
#[inline]
pub(crate) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_time::start;

    #[test]
    fn time_is_counted_from_the_beginning() {
        let mut clock = Clock::new(start());
        clock.advance(start() + Duration::from_micros(2500));
        assert_eq!((clock.ms, clock.us), (2, 2500));
        assert_eq!(clock.elapsed_ms(1), 1);
    }

    #[test]
    fn milliseconds_may_wrap() {
        let mut clock = Clock::new(start());
        clock.advance(start() + Duration::from_millis((1 << 32) + 5));
        assert_eq!(clock.elapsed_ms(u32::MAX), 6);
    }
}
