//! RFC 9113 §5.4: what is to be reported or done before the next frame is read.

use std::collections::VecDeque;

use bolide_semantics::AbortReason;

use crate::stream_list::StreamList;

/// Something to report that no single frame caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A stream may be given more to send.
    Sendable(u32),
    /// A stream ended before its time.
    Aborted(u32, AbortReason),
    /// The peer allows this many streams.
    Concurrency(u32),
    /// The peer leaves; the last stream that it serves.
    Draining(u32),
}

/// Events that wait to be reported, and streams whose response was complete before the request was.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    events: VecDeque<Event>,
    /// These streams are reset at the end of the turn, unless the request's end arrives before.
    pub(crate) refused_rests: StreamList,
}

impl Pending {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    pub(crate) fn trim(&mut self) {
        self.events = VecDeque::new();
        self.refused_rests.trim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_keep_their_order() {
        let mut pending = Pending::default();
        pending.push(Event::Sendable(1));
        pending.push(Event::Draining(3));
        assert_eq!(pending.pop(), Some(Event::Sendable(1)));
        assert_eq!(pending.pop(), Some(Event::Draining(3)));
        assert!(pending.is_empty());
    }
}
