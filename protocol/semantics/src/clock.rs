//! RFC 9113 §9.1, RFC 9114 §5.1 and limits of our own: the time since a connection began, in numbers that are cheap
//! to keep for each stream.

use std::time::{Duration, Instant};

use crate::{Deadline, DeadlineReason};

/// The time of a turn, since the connection began. The numbers wrap (milliseconds after 49 days,
/// microseconds after 71 minutes): only differences count.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    epoch: Instant,
    now: Instant,
    /// In milliseconds.
    pub ms: u32,
    /// In microseconds.
    pub us: u32,
}

impl Clock {
    /// A clock that begins at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { epoch: now, now, ms: 0, us: 0 }
    }

    /// Takes over the time of a turn.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        if now != self.now {
            self.now = now;
            let since = now.saturating_duration_since(self.epoch);
            self.ms = since.as_millis() as u32;
            self.us = since.as_micros() as u32;
        }
    }

    /// Milliseconds since an earlier [`ms`](Self::ms).
    #[inline]
    #[must_use]
    pub fn elapsed_ms(&self, since_ms: u32) -> u32 {
        self.ms.wrapping_sub(since_ms)
    }
}

/// A limit in milliseconds; what is too long to count is as good as for ever.
#[inline]
#[must_use]
pub fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// Finds the earliest of several deadlines.
#[derive(Debug)]
pub struct Earliest<'a> {
    clock: &'a Clock,
    left_ms: u32,
    reason: DeadlineReason,
}

impl<'a> Earliest<'a> {
    /// Nothing is waited for.
    #[must_use]
    pub fn new(clock: &'a Clock) -> Self {
        Self { clock, left_ms: u32::MAX, reason: DeadlineReason::Idle }
    }

    /// Something must have happened `limit` after `since_ms`.
    #[inline]
    pub fn consider(&mut self, since_ms: u32, limit: Duration, reason: DeadlineReason) {
        let limit_ms = millis(limit);
        let left_ms = limit_ms.saturating_sub(self.clock.elapsed_ms(since_ms));
        if limit_ms != u32::MAX && left_ms < self.left_ms {
            self.left_ms = left_ms;
            self.reason = reason;
        }
    }

    /// The earliest of what was considered.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Option<Deadline> {
        let at = now + Duration::from_millis(u64::from(self.left_ms));
        (self.left_ms != u32::MAX).then_some(Deadline { at, reason: self.reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::disallowed_methods, reason = "an Instant can't be made from a number")]
    fn start() -> Instant {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *START.get_or_init(Instant::now)
    }

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

    #[test]
    fn the_earliest_is_found() {
        let mut clock = Clock::new(start());
        clock.advance(start() + Duration::from_millis(100));
        let mut earliest = Earliest::new(&clock);
        assert_eq!(earliest.deadline(start()), None);
        earliest.consider(0, Duration::MAX, DeadlineReason::Head);
        assert_eq!(earliest.deadline(start()), None);
        earliest.consider(0, Duration::from_millis(300), DeadlineReason::Idle);
        earliest.consider(50, Duration::from_millis(150), DeadlineReason::Write);
        earliest.consider(50, Duration::from_millis(900), DeadlineReason::Drain);
        let at = start() + Duration::from_millis(100);
        assert_eq!(
            earliest.deadline(start()),
            Some(Deadline { at, reason: DeadlineReason::Write })
        );
    }
}
