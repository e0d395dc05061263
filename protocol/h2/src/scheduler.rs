//! RFC 9218 §10: whose turn it is to send.
//!
//! Streams that have something to send wait in rings, two for each urgency: in one of them streams are
//! served in the order of their arrival, each to its end; in the other they share, frame by frame.
//! Between the two rings of an urgency the turns alternate. A stream that waits for its own window
//! is in no ring.

use crate::priority::EarlyPriorities;
use crate::stream::{NO_SLOT, Place, Stream};
use crate::unanswered::Unanswered;

/// Two rings for each of eight urgencies.
const RINGS: usize = 16;

/// The rings, and the connection's send window.
#[derive(Debug)]
pub(crate) struct Scheduler {
    /// The stream whose turn it is, in each ring; in a box, for idle connections have none.
    first: Option<Box<[u32; RINGS]>>,
    /// A bit for each ring that is not empty.
    used: u16,
    /// Turn between the two rings of one urgency.
    shared_turn: bool,
    /// Bytes that the peer lets us send on the connection.
    pub(crate) window: i32,
    /// Bytes that were sent and not answered by a WINDOW_UPDATE for the connection.
    pub(crate) unanswered: Unanswered,
    /// The peer has enlarged the connection's window before.
    pub(crate) updated: bool,
    /// Since when streams have waited for the connection's window, and what the peer took since.
    pub(crate) blocked_ms: Option<u32>,
    pub(crate) taken_bytes: u32,
    /// Priorities of streams that are not open yet.
    pub(crate) early: EarlyPriorities,
}

#[inline]
fn ring(stream: &Stream) -> usize {
    usize::from(stream.sending.priority.urgency & 7) * 2
        + usize::from(stream.sending.priority.incremental)
}

impl Scheduler {
    pub(crate) fn new() -> Self {
        Self {
            first: None,
            used: 0,
            shared_turn: false,
            window: crate::settings::INITIAL_WINDOW_BYTES as i32,
            unanswered: Unanswered::default(),
            updated: false,
            blocked_ms: None,
            taken_bytes: 0,
            early: EarlyPriorities::default(),
        }
    }

    /// Returns whether no stream waits for its turn.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// So many bytes of a body were framed: both windows have shrunk.
    #[inline]
    pub(crate) fn sent(&mut self, stream: &mut Stream, bytes: u32) {
        stream.sending.window -= bytes as i32;
        stream.sending.unanswered.sent(bytes);
        stream.sending.taken_bytes = stream.sending.taken_bytes.saturating_add(bytes);
        self.window -= bytes as i32;
        self.unanswered.sent(bytes);
        self.taken_bytes = self.taken_bytes.saturating_add(bytes);
    }

    /// Puts a stream at the end of its ring.
    pub(crate) fn push(&mut self, slots: &mut [Stream], slot: u32) {
        let stream = &mut slots[slot as usize];
        debug_assert!(stream.sending.place != Place::Listed, "a stream waits in one place");
        stream.sending.place = Place::Listed;
        let ring = ring(stream);
        let all = self.first.get_or_insert_with(|| Box::new([NO_SLOT; RINGS]));
        let first = all[ring];
        if first == NO_SLOT {
            stream.sending.next = slot;
            stream.sending.previous = slot;
            all[ring] = slot;
            self.used |= 1 << ring;
            return;
        }
        let last = slots[first as usize].sending.previous;
        slots[last as usize].sending.next = slot;
        slots[first as usize].sending.previous = slot;
        let stream = &mut slots[slot as usize];
        stream.sending.previous = last;
        stream.sending.next = first;
    }

    /// Takes a stream out of its ring.
    pub(crate) fn remove(&mut self, slots: &mut [Stream], slot: u32) {
        let stream = &mut slots[slot as usize];
        debug_assert!(stream.sending.place == Place::Listed, "a stream waits in its ring");
        stream.sending.place = Place::Nowhere;
        let ring = ring(stream);
        let (previous, next) = (stream.sending.previous, stream.sending.next);
        stream.sending.next = NO_SLOT;
        stream.sending.previous = NO_SLOT;
        let Some(all) = &mut self.first else { return };
        if next == slot {
            all[ring] = NO_SLOT;
            self.used &= !(1 << ring);
            return;
        }
        slots[previous as usize].sending.next = next;
        slots[next as usize].sending.previous = previous;
        if all[ring] == slot {
            all[ring] = next;
        }
    }

    /// Returns whose turn it is.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        if self.used == 0 {
            return None;
        }
        let mut ring = self.used.trailing_zeros() as usize;
        if ring.is_multiple_of(2) && self.used & (2 << ring) != 0 {
            self.shared_turn = !self.shared_turn;
            ring += usize::from(self.shared_turn);
        }
        self.first.as_ref().map(|all| all[ring])
    }

    /// A stream has had its turn and stays: in a ring that shares, the next one follows.
    #[inline]
    pub(crate) fn turn(&mut self, slots: &[Stream], slot: u32) {
        let stream = &slots[slot as usize];
        if stream.sending.priority.incremental
            && let Some(all) = &mut self.first
        {
            all[ring(stream)] = stream.sending.next;
        }
    }

    /// No stream is open.
    pub(crate) fn trim(&mut self) {
        self.early.trim();
        if self.is_empty() {
            self.first = None;
        }
    }

    /// Adds what a WINDOW_UPDATE for the connection gives; false when the window becomes too large.
    pub(crate) fn open_window(&mut self, increment: u32) -> bool {
        match self.window.checked_add_unsigned(increment) {
            Some(window) => {
                self.window = window;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bolide_semantics::Priority;

    use crate::stream::{Opening, test_opening};

    fn streams(priorities: &[(u8, bool)]) -> Vec<Stream> {
        let opening = |index, (urgency, incremental)| Opening {
            priority: Priority { urgency, incremental },
            ..test_opening(index as u32 * 2 + 1)
        };
        let with_index = priorities.iter().copied().enumerate();
        with_index.map(|(index, priority)| Stream::new(opening(index, priority))).collect()
    }

    fn turns(scheduler: &mut Scheduler, slots: &[Stream], count: usize) -> Vec<u32> {
        let mut turns = Vec::new();
        for _ in 0..count {
            let slot = scheduler.next().unwrap();
            scheduler.turn(slots, slot);
            turns.push(slot);
        }
        turns
    }

    #[test]
    fn the_urgent_come_first_and_equals_share() {
        let mut slots = streams(&[(3, true), (3, true), (1, true), (3, true)]);
        let mut scheduler = Scheduler::new();
        for slot in 0..4 {
            scheduler.push(&mut slots, slot);
        }
        assert_eq!(turns(&mut scheduler, &slots, 3), [2, 2, 2]);
        scheduler.remove(&mut slots, 2);
        assert_eq!(turns(&mut scheduler, &slots, 5), [0, 1, 3, 0, 1]);
        scheduler.remove(&mut slots, 3);
        assert_eq!(turns(&mut scheduler, &slots, 3), [0, 1, 0]);
        scheduler.remove(&mut slots, 0);
        scheduler.remove(&mut slots, 1);
        assert!(scheduler.is_empty() && scheduler.next().is_none());
    }

    #[test]
    fn what_is_useless_in_parts_is_sent_whole() {
        let mut slots = streams(&[(3, false), (3, false)]);
        let mut scheduler = Scheduler::new();
        scheduler.push(&mut slots, 0);
        scheduler.push(&mut slots, 1);
        assert_eq!(turns(&mut scheduler, &slots, 3), [0, 0, 0]);
        scheduler.remove(&mut slots, 0);
        assert_eq!(turns(&mut scheduler, &slots, 2), [1, 1]);
    }

    #[test]
    fn the_two_kinds_alternate() {
        let mut slots = streams(&[(3, false), (3, true), (3, true)]);
        let mut scheduler = Scheduler::new();
        for slot in 0..3 {
            scheduler.push(&mut slots, slot);
        }
        assert_eq!(turns(&mut scheduler, &slots, 6), [1, 0, 2, 0, 1, 0]);
    }

    #[test]
    fn a_window_has_an_upper_end() {
        let mut scheduler = Scheduler::new();
        assert!(scheduler.open_window(0x7fff_ffff - 65_535));
        assert!(!scheduler.open_window(1));
    }
}
