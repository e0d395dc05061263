//! RFC 9112 §9.5: whether the peer takes what is sent to it.

use std::time::{Duration, Instant};

use crate::deadlines::after;

/// No position: that many bytes are never queued.
const NOTHING: u64 = u64::MAX;

/// Watches the send queue from poll to poll. Positions count all bytes that were ever queued.
#[derive(Debug)]
pub(crate) struct WriteProgress {
    /// The position of the next byte that is queued.
    queued: u64,
    /// The position up to which everything had been written at the last look; [`NOTHING`] if nothing waited.
    waited: u64,
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
        Self { queued: 0, waited: NOTHING, since: now }
    }

    /// So many bytes were queued.
    #[inline]
    pub(crate) fn queued(&mut self, bytes: usize) {
        self.queued += bytes as u64;
    }

    /// The position of the next byte that is queued.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.queued
    }

    /// The position up to which everything has been written while so many bytes are in the queue.
    #[inline]
    pub(crate) fn written(&self, queued: usize) -> u64 {
        self.queued.saturating_sub(queued as u64)
    }

    /// Looks at the queue.
    #[inline]
    pub(crate) fn look(&mut self, queued: usize, now: Instant, timeout: Duration) -> Progress {
        if queued == 0 {
            self.waited = NOTHING;
            return Progress::Drained;
        }
        let written = self.written(queued);
        if self.waited != written {
            self.waited = written;
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
