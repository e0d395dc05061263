//! Content that is sent no faster than the exchange's policy says.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

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
}

impl Paced {
    pub(super) fn new(pace: Rc<dyn Pace>) -> Self {
        Self { pace, told: Cell::new(0), until: Cell::new(None) }
    }
}

impl State {
    /// When the next piece may be sent, if it has to wait.
    #[inline]
    pub(crate) fn paced_until(&self) -> Option<Instant> {
        self.paced.as_ref()?.until.get()
    }

    /// Whether a piece that had to wait may be sent now; it does not wait any more then.
    pub(crate) fn is_paced_on(&self, now: Instant) -> bool {
        let is_due = self.paced_until().is_some_and(|until| until <= now);
        if let Some(paced) = self.paced.as_ref().filter(|_| is_due) {
            paced.until.set(None);
        }
        is_due
    }
}

impl Io<'_> {
    /// How many bytes of content may be sent now. 0: the exchange is woken when it is more.
    #[inline]
    pub(crate) fn allowance(&self) -> usize {
        let Some(paced) = &self.state.paced else { return usize::MAX };
        let ready = paced.pace.ready(self.cx.now);
        paced.until.set(ready.err());
        ready.unwrap_or_default()
    }

    /// Tells the pace what was sent.
    #[inline]
    pub(super) fn note_pace(&self) {
        if let Some(paced) = &self.state.paced {
            let sent = self.state.record.sent_bytes;
            paced.pace.sent(sent - paced.told.replace(sent), self.cx.now);
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
