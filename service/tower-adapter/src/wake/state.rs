//! State of an exchange's wakes: the one atomic between its worker and its wakers.
//!
//! A wake while the exchange is polled is kept for the end of that poll, so none is lost; only the
//! first of many wakes of a resting exchange costs a mail.

use std::sync::atomic::Ordering;

use super::AtomicU8;

/// Nothing is to be done.
const RESTING: u8 = 0;
/// A mail to the worker is under way, or is about to be sent by the waker that rang.
const RUNG: u8 = 1;
/// The worker polls.
const POLLED: u8 = 2;
/// The worker polls, and was rung meanwhile.
const POLLED_AND_RUNG: u8 = 3;

/// The state of one exchange's bell.
#[derive(Debug)]
pub(crate) struct State(AtomicU8);

impl State {
    /// An exchange that is being polled.
    pub(crate) fn polled() -> Self {
        Self(AtomicU8::new(POLLED))
    }

    /// Becomes that of another exchange, which is being polled, when no waker can ring for the one before.
    pub(crate) fn reset(&self) {
        self.0.store(POLLED, Ordering::Release);
    }

    /// Wakes the exchange, from any thread. Whether a mail has to be sent.
    pub(crate) fn ring(&self) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let next = if seen >= POLLED { POLLED_AND_RUNG } else { RUNG };
            // Written even when nothing changes: the poll that follows sees what came before it.
            match self.0.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return seen == RESTING,
                Err(now) => seen = now,
            }
        }
    }

    /// The worker begins to poll. Whether it was rung.
    pub(crate) fn begin(&self) -> bool {
        self.0.swap(POLLED, Ordering::AcqRel) & 1 == RUNG
    }

    /// The worker has polled. Whether it has to poll again, because it was rung meanwhile: it is
    /// rung then, and without a mail.
    pub(crate) fn end(&self) -> bool {
        let rested =
            self.0.compare_exchange(POLLED, RESTING, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !rested {
            // A swap and no store: it also takes over what a ring in between has made visible.
            self.0.swap(RUNG, Ordering::AcqRel);
        }
        !rested
    }

    /// Returns whether a poll is due.
    pub(crate) fn is_rung(&self) -> bool {
        self.0.load(Ordering::Acquire) == RUNG
    }
}
