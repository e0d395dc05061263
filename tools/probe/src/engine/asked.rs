//! The requests of one connection that wait for their responses, found by number in one step.

use std::collections::VecDeque;

use bolide_semantics::ExchangeId;

use super::checks::Seen;
use super::events::Stream;

/// A request that was handed to a connection. Times are nanoseconds since the engine began.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Time from which latency counts.
    pub(super) begun_ns: u64,
    /// When it was handed to the connection, or its last event came: its timeout counts from here.
    pub(super) handed_ns: u64,
    /// Which request of the script.
    pub(super) request: u32,
    /// Which phase it belongs to.
    pub(super) number: u32,
    /// It began after the warm-up.
    pub(super) counted: bool,
    /// The head's status is wrong.
    pub(super) wrong_status: bool,
    /// The head lacks a field that is expected.
    pub(super) lacks_fields: bool,
    /// The response came before the request was written.
    pub(super) is_early: bool,
    /// How much of the request's content had not left when the response was complete, in bytes.
    pub(super) unsent_bytes: u64,
    /// The response's status; 0 before its head.
    pub(super) status: u16,
    /// Part of the body that has come.
    pub(super) seen: Seen,
    /// The events of the body, where these count.
    pub(super) stream: Option<Box<Stream>>,
    /// The step of a scenario that it is.
    pub(super) step: Option<Step>,
    /// The request's content, in bytes.
    pub(super) content_bytes: u64,
    /// Answered already, and kept for the order's sake.
    pub(super) vacant: bool,
}

/// A request as a step of a user.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) user: u32,
    /// When the step began: before the redirects that led here.
    pub(super) began_ns: u64,
    pub(super) redirect: Redirect,
    /// Mark: what must be in the head for the user to go on is not there.
    pub(super) lacks_capture: bool,
    /// Bytes that have come of a body that is looked into.
    pub(super) kept: Option<Vec<u8>>,
}

/// Redirect of the user by a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirect {
    /// Nowhere.
    None,
    /// To where the user goes next: the step is not over.
    Followed,
    /// Place where the user can't go.
    Astray,
}

/// The open requests, the oldest first.
#[derive(Debug, Default)]
pub(super) struct AskedQueue {
    /// Numbers rise by one per request (HTTP/1.1, HTTP/3) or by two (HTTP/2), in the order of asking.
    asked: VecDeque<Asked>,
    /// The place in that order of the front.
    first: u32,
    open: u32,
    /// By how many bits numbers are shifted to become places.
    shift: u8,
}

impl AskedQueue {
    /// Numbers rise by two.
    pub(super) fn count_by_two(&mut self) {
        self.shift = 1;
    }

    /// How many are open.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.open as usize
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Adds the newest.
    #[inline]
    pub(super) fn push(&mut self, id: ExchangeId, asked: Asked) {
        let place = id.0 >> self.shift;
        if self.asked.is_empty() {
            self.first = place;
        }
        debug_assert_eq!(place, self.first.wrapping_add(self.asked.len() as u32), "out of order");
        self.asked.push_back(asked);
        self.open += 1;
    }

    #[inline]
    fn index(&self, id: ExchangeId) -> usize {
        (id.0 >> self.shift).wrapping_sub(self.first) as usize
    }

    /// The open request with this number.
    #[inline]
    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut Asked> {
        let index = self.index(id);
        self.asked.get_mut(index).filter(|asked| !asked.vacant)
    }

    /// Takes the request with this number out.
    #[inline]
    pub(super) fn remove(&mut self, id: ExchangeId) -> Option<Asked> {
        let index = self.index(id);
        let place = self.asked.get_mut(index).filter(|asked| !asked.vacant)?;
        self.open -= 1;
        if index != 0 {
            return Some(std::mem::replace(place, Asked { vacant: true, ..Asked::default() }));
        }
        let asked = self.asked.pop_front();
        self.first = self.first.wrapping_add(1);
        while self.asked.front().is_some_and(|asked| asked.vacant) {
            self.asked.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        asked
    }

    /// The number and the beginning of the one that waits longest.
    #[inline]
    pub(super) fn oldest(&self) -> Option<(ExchangeId, u64)> {
        let asked = self.asked.front()?;
        let odd = u32::from(self.shift == 1);
        Some((ExchangeId(self.first << self.shift | odd), asked.handed_ns))
    }

    /// The number and the time of the one whose last event is longest ago.
    pub(super) fn quietest(&self) -> Option<(ExchangeId, u64)> {
        let odd = u32::from(self.shift == 1);
        let places = self.first..;
        let open = places.zip(&self.asked).filter(|(_, asked)| !asked.vacant);
        let (place, asked) = open.min_by_key(|(_, asked)| asked.handed_ns)?;
        Some((ExchangeId(place << self.shift | odd), asked.handed_ns))
    }

    /// Takes all that are open.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Asked> {
        self.open = 0;
        std::mem::take(&mut self.asked).into_iter().filter(|asked| !asked.vacant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(handed_ns: u64) -> Asked {
        Asked { handed_ns, ..Asked::default() }
    }

    #[test]
    fn responses_may_come_in_any_order() {
        let mut queue = AskedQueue::default();
        queue.count_by_two();
        for index in 0..5 {
            queue.push(ExchangeId(2 * index + 1), asked(u64::from(index)));
        }
        assert_eq!(queue.remove(ExchangeId(3)).unwrap().handed_ns, 1);
        assert!(queue.remove(ExchangeId(3)).is_none());
        assert!(queue.get_mut(ExchangeId(3)).is_none());
        assert_eq!(queue.oldest(), Some((ExchangeId(1), 0)));
        assert_eq!(queue.remove(ExchangeId(1)).unwrap().handed_ns, 0);
        assert_eq!(queue.oldest(), Some((ExchangeId(5), 2)));
        queue.push(ExchangeId(11), asked(5));
        assert_eq!(queue.get_mut(ExchangeId(11)).unwrap().handed_ns, 5);
        assert_eq!(queue.len(), 4);
        assert!(queue.get_mut(ExchangeId(13)).is_none());
        assert_eq!(queue.drain().map(|asked| asked.handed_ns).collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert!(queue.is_empty());
    }

    #[test]
    fn numbers_may_begin_anywhere_when_all_are_answered() {
        let mut queue = AskedQueue::default();
        queue.push(ExchangeId(1), asked(1));
        queue.remove(ExchangeId(1)).unwrap();
        queue.push(ExchangeId(2), asked(2));
        queue.push(ExchangeId(3), asked(3));
        assert_eq!(queue.oldest(), Some((ExchangeId(2), 2)));
        assert_eq!(queue.remove(ExchangeId(3)).unwrap().handed_ns, 3);
        assert_eq!(queue.remove(ExchangeId(2)).unwrap().handed_ns, 2);
        assert_eq!(queue.oldest(), None);
    }
}
