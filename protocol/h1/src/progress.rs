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
    /// The position up to which everything had been written when the measurement began; [`NOTHING`] if nothing waited.
    waited: u64,
    /// When it began.
    since: Instant,
}

/// Result of [`WriteProgress::look`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing waits to be written.
    Drained,
    /// The peer has until then to take enough.
    Until(Instant),
    /// The peer took too little for too long.
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

    /// Nothing waits: what comes next is measured from its own beginning.
    #[inline]
    pub(crate) fn drained(&mut self) {
        self.waited = NOTHING;
    }

    /// Looks at the queue, of which the peer has to take so many bytes per second on average over each `timeout`, and one at least.
    #[inline]
    pub(crate) fn look(
        &mut self,
        queued: usize,
        now: Instant,
        timeout: Duration,
        rate_bytes: u32,
    ) -> Progress {
        if queued == 0 {
            self.waited = NOTHING;
            return Progress::Drained;
        }
        let written = self.written(queued);
        if self.waited == NOTHING {
            (self.waited, self.since) = (written, now);
            return Progress::Until(after(now, timeout));
        }
        let passed = now.saturating_duration_since(self.since).max(timeout);
        let least = (passed.as_millis() * u128::from(rate_bytes) / 1000).max(1);
        if u128::from(written - self.waited) >= least {
            (self.waited, self.since) = (written, now);
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
        assert_eq!(progress.look(0, at(0), TIMEOUT, 0), Progress::Drained);
        progress.queued(100);
        assert_eq!(progress.look(100, at(50), TIMEOUT, 0), Progress::Until(at(80)));
        progress.queued(50);
        assert_eq!(progress.look(150, at(70), TIMEOUT, 0), Progress::Until(at(80)));
        assert_eq!(progress.look(150, at(80), TIMEOUT, 0), Progress::Stalled);
    }

    #[test]
    fn a_queue_of_which_a_byte_leaves_now_and_then_is_stalled() {
        let start = base();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut progress = WriteProgress::new(start);
        progress.queued(100_000);
        assert_eq!(progress.look(100_000, at(0), TIMEOUT, 500), Progress::Until(at(30)));
        assert_eq!(progress.look(99_999, at(29), TIMEOUT, 500), Progress::Until(at(30)));
        assert_eq!(progress.look(99_998, at(30), TIMEOUT, 500), Progress::Stalled);
    }

    #[test]
    fn a_queue_that_leaves_at_the_least_rate_is_not_stalled() {
        let start = base();
        let mut progress = WriteProgress::new(start);
        progress.queued(100_000);
        for second in 0..190_u32 {
            let now = start + Duration::from_secs(second.into());
            let left = 100_000 - 500 * second as usize;
            assert_ne!(progress.look(left, now, TIMEOUT, 500), Progress::Stalled, "{second}");
        }
    }

    #[test]
    fn a_queue_that_was_written_and_filled_again_has_moved() {
        let start = base();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut progress = WriteProgress::new(start);
        progress.queued(100);
        assert_eq!(progress.look(100, at(0), TIMEOUT, 0), Progress::Until(at(30)));
        progress.queued(100);
        assert_eq!(progress.look(100, at(20), TIMEOUT, 0), Progress::Until(at(50)));
        assert_eq!(progress.look(99, at(40), TIMEOUT, 0), Progress::Until(at(70)));
        assert_eq!(progress.look(0, at(90), TIMEOUT, 0), Progress::Drained);
        progress.queued(1);
        assert_eq!(progress.look(1, at(200), TIMEOUT, 0), Progress::Until(at(230)));
    }
}
