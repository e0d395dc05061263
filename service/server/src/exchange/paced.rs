//! Content that is sent no faster than the exchange's policy says.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bolide_semantics::Content;
use bytes::Bytes;

use super::{Io, State};
use crate::policy::Pace;

/// How far the content of one exchange is.
#[derive(Debug)]
pub(crate) struct Paced {
    pace: Rc<dyn Pace>,
    /// Bytes that the pace knows of.
    told: Cell<u64>,
    /// When the next piece may be sent, if none may be sent now.
    until: Cell<Option<Instant>>,
    /// Since when it waits for that.
    since: Cell<Option<Instant>>,
    /// A piece was sent since it waited last.
    has_sent: Cell<bool>,
}

/// How much later an exchange is woken that has sent a piece than one that has not: they alternate.
const AFTER_OTHERS: Duration = Duration::from_millis(2);

impl Paced {
    pub(super) fn new(pace: Rc<dyn Pace>) -> Self {
        let (told, has_sent) = (Cell::new(0), Cell::new(false));
        Self { pace, told, until: Cell::default(), since: Cell::default(), has_sent }
    }

    fn is_in_time(&self, now: Instant) -> bool {
        if self.until.get().is_some_and(|until| until > now) {
            return false;
        }
        let ready = self.pace.ready(now);
        let until = ready.err().map(|at| if self.has_sent.take() { at + AFTER_OTHERS } else { at });
        self.until.set(until);
        self.since.set(until.map(|_| self.since.get().unwrap_or(now)));
        ready.is_ok()
    }
}

impl State {
    /// When the next piece may be sent, if it has to wait.
    #[inline]
    pub(crate) fn paced_until(&self) -> Option<Instant> {
        self.paced.as_ref()?.until.get()
    }

    /// Since when a piece has waited that may be sent now; it does not wait any more then.
    pub(crate) fn take_paced(&self, now: Instant) -> Option<Instant> {
        let paced = self.paced.as_ref()?;
        let is_due = paced.until.get().is_some_and(|until| until <= now);
        if !is_due {
            return None;
        }
        paced.until.set(None);
        paced.since.get()
    }
}

impl Io<'_> {
    /// Whether content may be sent now; if not, the exchange is woken when it may.
    #[inline]
    pub(super) fn is_in_time(&self) -> bool {
        self.state.paced.as_ref().is_none_or(|paced| paced.is_in_time(self.cx.now))
    }

    /// How many bytes of content may be sent at once, at least one: other workers may have sent some since it was
    /// [in time](Self::is_in_time).
    #[inline]
    pub(crate) fn allowance(&self) -> usize {
        let Some(paced) = &self.state.paced else { return usize::MAX };
        paced.pace.ready(self.cx.now).map_or(1, |bytes| bytes.max(1))
    }

    /// Tells the pace what was sent.
    #[inline]
    pub(super) fn note_pace(&self) {
        if let Some(paced) = &self.state.paced {
            let sent = self.state.record.sent_bytes;
            paced.pace.sent(sent - paced.told.replace(sent), self.cx.now);
            paced.has_sent.set(true);
        }
    }

    /// Content that is at hand becomes one that follows, where it is paced.
    pub(super) fn held_back(&self, content: Content) -> (Content, Option<Bytes>) {
        match content {
            Content::Whole(whole) if self.state.paced.is_some() => {
                (Content::Follows, Some(whole.detach().bytes))
            }
            content => (content, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ready at this time.
    #[derive(Debug)]
    struct At(Cell<Instant>);

    impl Pace for At {
        fn ready(&self, now: Instant) -> Result<usize, Instant> {
            if now < self.0.get() { Err(self.0.get()) } else { Ok(1) }
        }

        fn sent(&self, _: u64, _: Instant) {}
    }

    #[test]
    fn one_that_has_sent_a_piece_lets_others_go_first() {
        let start = Instant::now();
        let next = start + Duration::from_millis(10);
        let pace = Rc::new(At(Cell::new(start)));
        let paced = || Paced::new(pace.clone());
        let (one, other) = (paced(), paced());
        assert!(one.is_in_time(start));
        one.has_sent.set(true);
        pace.0.set(next);
        for _ in 0..2 {
            assert!(!one.is_in_time(start) && !other.is_in_time(start));
            assert_eq!(one.until.get(), Some(next + AFTER_OTHERS), "asked again or not");
            assert_eq!(other.until.get(), Some(next));
        }
        assert_eq!(one.since.get(), Some(start));
        assert!(other.is_in_time(next));
        assert_eq!((other.until.get(), other.since.get()), (None, None));
    }
}
