//! Since when the connection waits, for what, and until when.

use std::time::{Duration, Instant};

use crate::Limits;

/// Event of the peer that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing: it is our turn.
    Busy,
    Idle,
    Head,
    Body,
}

/// A time later; one that no clock can tell is 50 days later, which is as good.
#[inline]
pub(crate) fn after(at: Instant, time: Duration) -> Instant {
    at.checked_add(time).unwrap_or_else(|| at + Duration::from_secs(50 * 86_400))
}

/// The clock of what is received.
#[derive(Debug)]
pub(crate) struct Clock {
    phase: Phase,
    /// True if bytes came since the last look.
    moved: bool,
    /// When the phase began, or a body last moved.
    since: Instant,
    /// When the averaging window of a body began.
    window: Instant,
    /// The body's bytes within this window.
    bytes: u64,
}

impl Clock {
    pub(crate) fn new(now: Instant) -> Self {
        Self { phase: Phase::Idle, moved: false, since: now, window: now, bytes: 0 }
    }

    /// Nothing is waited for.
    #[inline]
    pub(crate) fn busy(&mut self) {
        self.phase = Phase::Busy;
    }

    /// Returns whether a head has begun and is not complete.
    #[inline]
    pub(crate) fn is_in_head(&self) -> bool {
        self.phase == Phase::Head
    }

    #[inline]
    fn enter(&mut self, phase: Phase, now: Instant) {
        if self.phase != phase {
            *self = Self { phase, moved: false, since: now, window: now, bytes: 0 };
        }
    }

    /// No request has begun: until when that may last.
    #[inline]
    pub(crate) fn idle(&mut self, now: Instant, timeout: Duration) -> Instant {
        self.enter(Phase::Idle, now);
        after(self.since, timeout)
    }

    /// A head is not complete: until when it must be.
    pub(crate) fn head(&mut self, now: Instant, timeout: Duration) -> Instant {
        self.enter(Phase::Head, now);
        after(self.since, timeout)
    }

    /// Bytes of a body came.
    #[inline]
    pub(crate) fn received(&mut self, bytes: usize) {
        self.moved = true;
        self.bytes += bytes as u64;
    }

    /// More of a body is waited for: until when, or `None` when it is too late. `rated`: a least
    /// rate is asked for.
    pub(crate) fn body(&mut self, now: Instant, limits: &Limits, rated: bool) -> Option<Instant> {
        self.enter(Phase::Body, now);
        if std::mem::take(&mut self.moved) {
            self.since = now;
        }
        let still_until = after(self.since, limits.times.body_timeout);
        if now >= still_until {
            return None;
        }
        if !rated {
            return Some(still_until);
        }
        let mut window_until = after(self.window, limits.times.body_rate_window);
        if now >= window_until {
            let elapsed = now.duration_since(self.window).as_millis();
            let wanted = elapsed * u128::from(limits.times.body_rate_bytes) / 1000;
            if u128::from(self.bytes) < wanted {
                return None;
            }
            self.window = now;
            self.bytes = 0;
            window_until = after(now, limits.times.body_rate_window);
        }
        Some(still_until.min(window_until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the base of virtual time, read once a test")]
    fn base() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_limit_without_an_end_is_far_away() {
        let start = base();
        assert!(after(start, Duration::MAX) > start + seconds(86_400));
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_phase_counts_from_its_beginning() {
        let start = base();
        let limits = Limits::default();
        let mut clock = Clock::new(start);
        assert_eq!(clock.idle(start + seconds(5), limits.times.idle_timeout), start + seconds(60));
        assert_eq!(clock.head(start + seconds(7), limits.times.head_timeout), start + seconds(17));
        assert!(clock.is_in_head());
        assert_eq!(clock.head(start + seconds(9), limits.times.head_timeout), start + seconds(17));
        clock.busy();
        assert_eq!(clock.idle(start + seconds(9), limits.times.idle_timeout), start + seconds(69));
    }

    #[test]
    fn a_body_must_move() {
        let start = base();
        let limits = Limits::default();
        let mut clock = Clock::new(start);
        assert_eq!(clock.body(start, &limits, false), Some(start + seconds(30)));
        clock.received(1);
        assert_eq!(clock.body(start + seconds(29), &limits, false), Some(start + seconds(59)));
        assert_eq!(clock.body(start + seconds(59), &limits, false), None);
    }

    #[test]
    fn a_body_must_keep_its_rate() {
        let start = base();
        let limits = Limits::default();
        let mut clock = Clock::new(start);
        assert_eq!(clock.body(start, &limits, true), Some(start + seconds(10)));
        clock.received(5000);
        assert_eq!(clock.body(start + seconds(10), &limits, true), Some(start + seconds(20)));
        clock.received(4999);
        assert_eq!(clock.body(start + seconds(20), &limits, true), None);
    }

    #[test]
    fn a_pause_of_ours_is_not_the_peers() {
        let start = base();
        let limits = Limits::default();
        let mut clock = Clock::new(start);
        assert_eq!(clock.body(start, &limits, true), Some(start + seconds(10)));
        clock.busy();
        let later = start + seconds(100);
        assert_eq!(clock.body(later, &limits, true), Some(later + seconds(10)));
    }
}
