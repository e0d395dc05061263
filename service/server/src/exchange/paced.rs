//! Content that is sent no faster than the exchange's policy says.

use std::cell::Cell;
use std::mem;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bolide_semantics::{Content, End};
use bytes::Bytes;

use super::{Io, Phase, State};
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
    /// Bytes that were given and may be sent later, and whether the content ends with them.
    rest: Option<(Bytes, End)>,
}

/// How much later an exchange is woken that has sent a piece than one that has not: they alternate.
const AFTER_OTHERS: Duration = Duration::from_millis(2);

impl Paced {
    pub(super) fn new(pace: Rc<dyn Pace>) -> Self {
        let (told, has_sent) = (Cell::new(0), Cell::new(false));
        let (until, since, rest) = Default::default();
        Self { pace, told, until, since, has_sent, rest }
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

    /// Returns whether content that was given is still to be sent.
    #[inline]
    pub(super) fn has_rest(&self) -> bool {
        self.paced.as_ref().is_some_and(|paced| paced.rest.is_some())
    }

    /// The bytes of it.
    pub(crate) fn rest_bytes(&self) -> usize {
        let rest = self.paced.as_ref().and_then(|paced| paced.rest.as_ref());
        rest.map_or(0, |(rest, _)| rest.len())
    }

    pub(super) fn take_rest(&mut self) -> Option<(Bytes, End)> {
        self.paced.as_mut()?.rest.take()
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
    /// Returns whether content may be sent now; if it has to wait for its time, the exchange is woken then.
    #[inline]
    pub(super) fn may_send(&self) -> bool {
        self.state.phase == Phase::Sendable
            && self.takes_more()
            && self.state.paced.as_ref().is_none_or(|paced| paced.is_in_time(self.cx.now))
    }

    /// How many bytes of content may be sent at once, at least one: other workers may have sent some since it was
    /// time.
    #[inline]
    pub(crate) fn allowance(&self) -> usize {
        let Some(paced) = &self.state.paced else { return usize::MAX };
        paced.pace.ready(self.cx.now).map_or(1, |bytes| bytes.max(1))
    }

    /// Sends as much of a piece as may be sent at once; [`Self::pull`] goes on with the rest.
    pub(super) fn send_piece(&mut self, mut data: Bytes, end: End) {
        let allowed = self.allowance();
        match &mut self.state.paced {
            Some(paced) if data.len() > allowed => {
                paced.rest = Some((data.split_off(allowed), end));
                self.send_at_once(data, End::No);
            }
            _ => self.send_at_once(data, end),
        }
    }

    /// Sends what is left before trailers, whatever its time is.
    pub(super) fn send_rest(&mut self) {
        if let Some((rest, _)) = self.state.take_rest() {
            self.send_at_once(rest, End::No);
        }
    }

    fn send_at_once(&mut self, data: Bytes, end: End) {
        self.state.record.sent_bytes += data.len() as u64;
        let sent = self.connection.send_data(&mut self.cx, self.id, data, end);
        self.settle(sent, end);
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
    pub(super) fn held_back<'c>(&self, content: Content<'c>) -> (Content<'c>, Option<Bytes>) {
        match content {
            Content::Whole(whole) if self.state.paced.is_some() => {
                (Content::Follows, Some(mem::take(whole).detach().bytes))
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
