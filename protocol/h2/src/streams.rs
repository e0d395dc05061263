//! RFC 9113 §5.1: the streams that are open, found by their numbers.

use crate::closed::ResetStreams;
use crate::stream::{NO_SLOT, Opening, State, Stream, Waiting};

/// A free place in the index.
const EMPTY: u32 = u32::MAX;

/// The smallest index, in places; a power of two.
const INDEX_PLACES_MIN: usize = 8;

/// Open streams in slots, and an open-addressed index from number to slot.
///
/// Numbers come in order, so half of a number is as good as a hash: streams of about the same age
/// never collide.
#[derive(Debug)]
pub(crate) struct Streams {
    slots: Vec<Stream>,
    free: u32,
    index: Vec<u32>,
    /// Entries of the index that are not where half of their number points to.
    displaced: u32,
    open: u32,
    /// The memory of what streams were given and wait to send, in bytes.
    pub(crate) waiting_bytes: usize,
    /// The highest number of a stream that the peer opened.
    pub(crate) highest_peer: u32,
    /// The number of the next stream that we open.
    pub(crate) next_own: u32,
    pub(crate) reset: ResetStreams,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NO_SLOT,
            index: Vec::new(),
            displaced: 0,
            open: 0,
            waiting_bytes: 0,
            highest_peer: 0,
            next_own: 1,
            reset: ResetStreams::default(),
        }
    }

    /// How many streams are open.
    #[inline]
    pub(crate) fn open(&self) -> u32 {
        self.open
    }

    /// The open streams.
    pub(crate) fn open_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slots.iter_mut().filter(|stream| stream.state != State::Closed)
    }

    #[inline]
    pub(crate) fn slots_mut(&mut self) -> &mut [Stream] {
        &mut self.slots
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Stream {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Stream {
        &mut self.slots[slot as usize]
    }

    /// The slot of an open stream.
    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<u32> {
        let mask = self.index.len().wrapping_sub(1);
        let mut place = (id >> 1) as usize & mask;
        loop {
            let slot = *self.index.get(place)?;
            if slot == EMPTY {
                return None;
            }
            if self.slots[slot as usize].id == id {
                return Some(slot);
            }
            place = (place + 1) & mask;
        }
    }

    /// Opens a stream whose number is not in use.
    #[inline]
    pub(crate) fn insert(&mut self, opening: Opening) -> u32 {
        debug_assert!(self.find(opening.id).is_none(), "a stream is opened once");
        if (self.open as usize + 1) * 2 > self.index.len() {
            self.grow_index();
        }
        let slot = if self.free == NO_SLOT {
            self.slots.push(Stream::new(opening));
            self.slots.len() as u32 - 1
        } else {
            let slot = self.free;
            let place = &mut self.slots[slot as usize];
            self.free = place.sending.next;
            *place = Stream::new(opening);
            slot
        };
        self.open += 1;
        self.place(opening.id, slot);
        slot
    }

    /// Lets a stream wait with what is left of a chunk.
    #[inline]
    pub(crate) fn keep(&mut self, slot: u32, waiting: Waiting) {
        self.waiting_bytes += waiting.held_bytes();
        self.slots[slot as usize].sending.waiting = Some(waiting);
    }

    /// Forgets a stream.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        let id = self.slots[slot as usize].id;
        self.unplace(id);
        let stream = &mut self.slots[slot as usize];
        stream.state = State::Closed;
        let waiting = stream.sending.waiting.take();
        self.waiting_bytes -= waiting.map_or(0, |waiting| waiting.held_bytes());
        stream.sending.next = self.free;
        self.free = slot;
        self.open -= 1;
    }

    /// The slots of the open streams.
    pub(crate) fn open_slots(&self) -> impl Iterator<Item = u32> {
        let slots = self.slots.iter().enumerate();
        let open = slots.filter(|(_, stream)| stream.state != State::Closed);
        open.map(|(slot, _)| slot as u32)
    }

    /// Gives memory back, when no stream is open.
    pub(crate) fn trim(&mut self) {
        if self.open == 0 {
            self.slots = Vec::new();
            self.free = NO_SLOT;
            self.index = Vec::new();
            self.displaced = 0;
            self.reset.trim();
        }
    }

    /// The memory of the streams themselves, in bytes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Stream>() + self.index.capacity() * size_of::<u32>()
    }

    #[inline]
    fn place(&mut self, id: u32, slot: u32) {
        let mask = self.index.len() - 1;
        let wanted = (id >> 1) as usize & mask;
        let mut place = wanted;
        while self.index[place] != EMPTY {
            place = (place + 1) & mask;
        }
        self.displaced += u32::from(place != wanted);
        self.index[place] = slot;
    }

    /// Frees a place.
    #[inline]
    fn unplace(&mut self, id: u32) {
        let mask = self.index.len() - 1;
        let wanted = (id >> 1) as usize & mask;
        let mut gap = wanted;
        while self.slots[self.index[gap] as usize].id != id {
            gap = (gap + 1) & mask;
        }
        self.displaced -= u32::from(gap != wanted);
        if self.displaced > 0 {
            gap = self.close_gap(gap);
        }
        self.index[gap] = EMPTY;
    }

    /// Moves entries up, so that no run of places is broken by the gap. Returns the place that is free
    /// then.
    #[cold]
    fn close_gap(&mut self, mut gap: usize) -> usize {
        let mask = self.index.len() - 1;
        let mut place = gap;
        loop {
            place = (place + 1) & mask;
            let slot = self.index[place];
            if slot == EMPTY {
                return gap;
            }
            let wanted = (self.slots[slot as usize].id >> 1) as usize & mask;
            // The entry may move up when its wanted place is not between the gap and itself.
            if place.wrapping_sub(wanted) & mask >= place.wrapping_sub(gap) & mask {
                self.displaced -= u32::from(gap == wanted);
                self.index[gap] = slot;
                gap = place;
            }
        }
    }

    #[cold]
    fn grow_index(&mut self) {
        let places = (self.index.len() * 2).max(INDEX_PLACES_MIN);
        self.index = vec![EMPTY; places];
        self.displaced = 0;
        for slot in 0..self.slots.len() {
            if self.slots[slot].state != State::Closed {
                self.place(self.slots[slot].id, slot as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stream::test_opening as opening;

    #[test]
    fn an_empty_store_finds_nothing() {
        let streams = Streams::new();
        assert_eq!(streams.find(1), None);
        assert_eq!(streams.allocated_bytes(), 0);
    }

    #[test]
    fn slots_are_used_again() {
        let mut streams = Streams::new();
        for id in (1..2001).step_by(2) {
            let slot = streams.insert(opening(id));
            assert_eq!(streams.find(id), Some(slot));
            streams.remove(slot);
            assert_eq!(streams.find(id), None);
        }
        assert_eq!(streams.slots.len(), 1);
        streams.trim();
        assert_eq!(streams.allocated_bytes(), 0);
    }

    proptest! {
        #[test]
        fn every_open_stream_is_found_and_no_other(
            steps in prop::collection::vec((any::<bool>(), 0usize..64), 1..300),
        ) {
            let mut streams = Streams::new();
            let mut open: Vec<u32> = Vec::new();
            let mut next = 1;
            for (opens, pick) in steps {
                if opens || open.is_empty() {
                    streams.insert(opening(next));
                    open.push(next);
                    next += 2 + 2 * (pick as u32 % 5);
                } else {
                    let id = open.swap_remove(pick % open.len());
                    let slot = streams.find(id).unwrap();
                    streams.remove(slot);
                }
                prop_assert_eq!(streams.open() as usize, open.len());
                let mask = streams.index.len() - 1;
                let displaced = streams.index.iter().enumerate().filter(|(place, slot)| {
                    **slot != EMPTY
                        && (streams.slots[**slot as usize].id >> 1) as usize & mask != *place
                });
                prop_assert_eq!(streams.displaced as usize, displaced.count());
                for id in (1..next).step_by(2) {
                    let found = streams.find(id).map(|slot| streams.get(slot).id);
                    prop_assert_eq!(found, open.contains(&id).then_some(id));
                }
            }
        }
    }
}
