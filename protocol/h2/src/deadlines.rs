//! The times at which something must have happened, found in a fixed number of steps.

use std::time::Instant;

pub(crate) use bolide_semantics::Earliest;
use bolide_semantics::{BodiesPace, Clock, Deadline};

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
    pub(crate) bodies: BodiesPace,
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
            bodies: BodiesPace::default(),
            received_ms: 0,
            trimmed: true,
        }
    }

    /// Returns whether the deadline that was reported last has passed.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::test_time::start;

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
