//! RFC 9112 §9.5: whether the peer takes what is sent to it.

use std::time::{Duration, Instant};

use crate::deadlines::after;

/// Watches the send queue from poll to poll: it moved if it is shorter than what was added explains.
#[derive(Debug)]
pub(crate) struct WriteProgress {
    /// How long the queue would be, had nothing been written since the last look.
    unmoved: u64,
    /// Whether anything waited at the last look.
    waiting: bool,
    /// When it last moved, or began to fill.
    since: Instant,
}

/// What [`WriteProgress::look`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing waits to be written.
    Drained,
    /// The peer has until then to take something.
    Until(Instant),
    /// The peer took nothing for too long.
    Stalled,
}

impl WriteProgress {
    pub(crate) fn new(now: Instant) -> Self {
        Self { unmoved: 0, waiting: false, since: now }
    }

    /// So many bytes were queued.
    #[inline]
    pub(crate) fn queued(&mut self, bytes: usize) {
        self.unmoved += bytes as u64;
    }

    /// Looks at the queue.
    #[inline]
    pub(crate) fn look(&mut self, queued: usize, now: Instant, timeout: Duration) -> Progress {
        let moved = (queued as u64) < self.unmoved;
        let was_waiting = std::mem::replace(&mut self.waiting, queued > 0);
        self.unmoved = queued as u64;
        if queued == 0 {
            return Progress::Drained;
        }
        if moved || !was_waiting {
            self.since = now;
        }
        let until = after(self.since, timeout);
        if now >= until { Progress::Stalled } else { Progress::Until(until) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the base of virtual time, read once a test")]
    fn base() -> Instant {
        Instant::now()
    }

    const TIMEOUT: Duration = Duration::from_secs(30);

    #[test]
    fn a_queue_that_grows_and_never_shrinks_is_stalled() {
        let start = base();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut progress = WriteProgress::new(start);
        assert_eq!(progress.look(0, at(0), TIMEOUT), Progress::Drained);
        progress.queued(100);
        assert_eq!(progress.look(100, at(50), TIMEOUT), Progress::Until(at(80)));
        progress.queued(50);
        assert_eq!(progress.look(150, at(70), TIMEOUT), Progress::Until(at(80)));
        assert_eq!(progress.look(150, at(80), TIMEOUT), Progress::Stalled);
    }

    #[test]
    fn a_queue_that_was_written_and_filled_again_has_moved() {
        let start = base();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut progress = WriteProgress::new(start);
        progress.queued(100);
        assert_eq!(progress.look(100, at(0), TIMEOUT), Progress::Until(at(30)));
        progress.queued(100);
        assert_eq!(progress.look(100, at(20), TIMEOUT), Progress::Until(at(50)));
        assert_eq!(progress.look(99, at(40), TIMEOUT), Progress::Until(at(70)));
        assert_eq!(progress.look(0, at(90), TIMEOUT), Progress::Drained);
        progress.queued(1);
        assert_eq!(progress.look(1, at(200), TIMEOUT), Progress::Until(at(230)));
    }
}
