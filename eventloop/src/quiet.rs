//! When nothing happens for a while: the moment to give memory back.

use std::time::{Duration, Instant};

use crate::limits::QUIET_TIME;

/// Allocators keep pages that have become free for a while, and look at them when something is freed later. When a
/// crowd of connections has become idle, nothing is.
#[derive(Debug)]
pub(crate) struct Quiet {
    /// Counts what sockets had to say.
    events: u64,
    /// When they said something last, unless memory was given back since.
    since: Option<Instant>,
}

impl Quiet {
    pub(crate) fn new() -> Self {
        Self { events: 0, since: None }
    }

    /// How long the next wait may be.
    #[inline]
    pub(crate) fn at_most(&self, now: Instant) -> Option<Duration> {
        self.since.map(|since| (since + QUIET_TIME).saturating_duration_since(now))
    }

    /// A turn has ended, after so many events in all. Whether it is time to give memory back, once.
    #[inline]
    pub(crate) fn begins(&mut self, events: u64, now: Instant) -> bool {
        if events != self.events {
            (self.events, self.since) = (events, Some(now));
            return false;
        }
        let is_quiet = self.since.is_some_and(|since| now >= since + QUIET_TIME);
        if is_quiet {
            self.since = None;
        }
        is_quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_begins_once_after_the_last_event() {
        let (mut quiet, start) = (Quiet::new(), Instant::now());
        assert_eq!(quiet.at_most(start), None);
        assert!(!quiet.begins(0, start + QUIET_TIME), "nothing has happened yet");
        assert!(!quiet.begins(3, start));
        let later = start + QUIET_TIME / 2;
        assert!(!quiet.begins(4, later));
        assert!(!quiet.begins(4, start + QUIET_TIME));
        assert_eq!(quiet.at_most(start + QUIET_TIME), Some(QUIET_TIME / 2));
        assert!(quiet.begins(4, later + QUIET_TIME));
        assert_eq!(quiet.at_most(later + QUIET_TIME), None);
        assert!(!quiet.begins(4, later + 2 * QUIET_TIME));
        assert!(!quiet.begins(5, later + 2 * QUIET_TIME));
        assert!(quiet.begins(5, later + 3 * QUIET_TIME));
    }
}
