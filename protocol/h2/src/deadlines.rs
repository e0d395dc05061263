//! The times at which something must have happened, found in a fixed number of steps.

use std::time::{Duration, Instant};

use bolide_semantics::{Deadline, DeadlineReason};

use crate::clock::{Clock, millis};

/// The connection's clock, and since when it waits for what. Streams have times of their own, which
/// are looked at every few seconds.
#[derive(Debug)]
pub(crate) struct Deadlines {
    pub(crate) clock: Clock,
    /// When [`due`](Self::is_due) next.
    due: Option<Instant>,
    /// Since when a part of a frame has waited for its rest, and the count of frames then.
    partial: Option<(u32, u32)>,
    /// Since when no stream has been open.
    pub(crate) idle_ms: u32,
    /// When open streams were last looked through.
    pub(crate) scan_ms: u32,
    /// When a frame last came.
    pub(crate) received_ms: u32,
    /// Memory has been given back since the last stream.
    pub(crate) trimmed: bool,
}

impl Deadlines {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            clock: Clock::new(now),
            due: None,
            partial: None,
            idle_ms: 0,
            scan_ms: 0,
            received_ms: 0,
            trimmed: true,
        }
    }

    /// Whether the deadline that was reported last has passed.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| now >= due)
    }

    pub(crate) fn set_due(&mut self, deadline: Option<Deadline>) {
        self.due = deadline.map(|deadline| deadline.at);
    }

    /// A turn ends with an incomplete frame in the input, or without.
    #[inline]
    pub(crate) fn partial(&mut self, is_partial: bool, frames: u32) {
        match self.partial {
            _ if !is_partial => self.partial = None,
            Some((_, before)) if before == frames => {}
            _ => self.partial = Some((self.clock.ms, frames)),
        }
    }

    /// Since when a frame has been incomplete.
    pub(crate) fn partial_since(&self) -> Option<u32> {
        self.partial.map(|(since_ms, _)| since_ms)
    }
}

/// Finds the earliest of several deadlines.
#[derive(Debug)]
pub(crate) struct Earliest<'a> {
    clock: &'a Clock,
    left_ms: u32,
    reason: DeadlineReason,
}

impl<'a> Earliest<'a> {
    pub(crate) fn new(clock: &'a Clock) -> Self {
        Self { clock, left_ms: u32::MAX, reason: DeadlineReason::Idle }
    }

    /// Something must have happened `limit` after `since_ms`.
    #[inline]
    pub(crate) fn consider(&mut self, since_ms: u32, limit: Duration, reason: DeadlineReason) {
        let limit_ms = millis(limit);
        let left_ms = limit_ms.saturating_sub(self.clock.elapsed_ms(since_ms));
        if limit_ms != u32::MAX && left_ms < self.left_ms {
            self.left_ms = left_ms;
            self.reason = reason;
        }
    }

    pub(crate) fn deadline(&self, now: Instant) -> Option<Deadline> {
        let at = now + Duration::from_millis(u64::from(self.left_ms));
        (self.left_ms != u32::MAX).then_some(Deadline { at, reason: self.reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_time::start;

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

    #[test]
    fn a_partial_frame_is_timed_in_all() {
        let mut deadlines = Deadlines::new(start());
        deadlines.partial(true, 1);
        deadlines.clock.advance(start() + Duration::from_millis(10));
        deadlines.partial(true, 1);
        assert_eq!(deadlines.partial_since(), Some(0));
        deadlines.partial(true, 2);
        assert_eq!(deadlines.partial_since(), Some(10));
        deadlines.partial(false, 2);
        assert_eq!(deadlines.partial_since(), None);
    }
}
