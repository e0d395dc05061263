//! The sockets of a worker, each in a place of its own.

use std::time::Instant;

use bolide_buffers::SendQueue;

use crate::service::{After, Token};
use crate::timer_wheel::{Timer, Timers};

/// Slots per chunk: growing adds a chunk, so that nothing is moved and no memory is doubled.
const CHUNK: usize = 64;

/// One socket and its session.
#[derive(Debug)]
pub(crate) struct Slot<Socket, Session> {
    pub(crate) socket: Socket,
    pub(crate) session: Session,
    /// Bytes that the session could not use yet.
    pub(crate) rest: Box<[u8]>,
    /// What the socket did not take; the worker's own queue serves otherwise.
    pub(crate) output: Option<Box<SendQueue>>,
    pub(crate) timer: Timer,
    /// When the socket was last used, for shedding the oldest.
    pub(crate) used: Instant,
    pub(crate) pace: crate::socket::Pace,
    /// The kernel has bytes that were not read.
    pub(crate) readable: bool,
    /// The peer has closed its side, or the socket has failed: reading goes on to the end.
    pub(crate) read_closed: bool,
    /// The end has been read.
    pub(crate) eof: bool,
    /// The socket takes no more for now.
    pub(crate) blocked: bool,
    /// In the run queue.
    pub(crate) queued: bool,
    /// Everything is sent; what still arrives is discarded until the timer fires.
    pub(crate) lingering: bool,
    pub(crate) after: After,
}

struct Place<T> {
    generation: u32,
    occupant: Option<T>,
}

/// Places for values, addressed by index and generation.
pub(crate) struct Slots<T> {
    chunks: Vec<Box<[Place<T>]>>,
    free: Vec<u32>,
    occupied: usize,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), occupied: 0 }
    }

    /// How many places are taken.
    pub(crate) fn len(&self) -> usize {
        self.occupied
    }

    /// The token that [`Self::insert`] will use.
    pub(crate) fn reserve(&mut self) -> Token {
        if self.free.is_empty() {
            let first = (self.chunks.len() * CHUNK) as u32;
            let chunk = (0..CHUNK).map(|_| Place { generation: 0, occupant: None });
            self.chunks.push(chunk.collect());
            self.free.extend((first..first + CHUNK as u32).rev());
        }
        let index = self.free.last().copied().unwrap_or_default();
        Token { index, generation: self.place(index).generation }
    }

    /// Fills the place that was reserved last.
    pub(crate) fn insert(&mut self, token: Token, value: T) {
        let popped = self.free.pop();
        debug_assert_eq!(popped, Some(token.index), "only the reserved place can be filled");
        self.place_mut(token.index).occupant = Some(value);
        self.occupied += 1;
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let place = self.place_mut(index);
        let value = place.occupant.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        self.occupied -= 1;
        Some(value)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(index as usize / CHUNK)?;
        chunk[index as usize % CHUNK].occupant.as_mut()
    }

    /// The index of a token whose occupant has not changed.
    #[inline]
    pub(crate) fn resolve(&self, token: Token) -> Option<u32> {
        let chunk = self.chunks.get(token.index as usize / CHUNK)?;
        let place = &chunk[token.index as usize % CHUNK];
        (place.generation == token.generation && place.occupant.is_some()).then_some(token.index)
    }

    pub(crate) fn token(&self, index: u32) -> Token {
        Token { index, generation: self.place(index).generation }
    }

    /// The indexes of all places that are taken.
    pub(crate) fn indexes(&self) -> Vec<u32> {
        let places = self.chunks.iter().flat_map(|chunk| chunk.iter());
        let taken = places.enumerate().filter(|(_, place)| place.occupant.is_some());
        taken.map(|(index, _)| index as u32).collect()
    }

    /// Every occupant with its index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let places = self.chunks.iter().flat_map(|chunk| chunk.iter()).enumerate();
        places.filter_map(|(index, place)| Some((index as u32, place.occupant.as_ref()?)))
    }

    fn place(&self, index: u32) -> &Place<T> {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    fn place_mut(&mut self, index: u32) -> &mut Place<T> {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}

impl<Socket, Session> Timers for Slots<Slot<Socket, Session>> {
    fn timer(&mut self, index: u32) -> Option<&mut Timer> {
        self.get_mut(index).map(|slot| &mut slot.timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_outlive_its_occupant() {
        let mut slots = Slots::new();
        let first = slots.reserve();
        slots.insert(first, "first");
        assert_eq!(slots.resolve(first), Some(first.index));
        assert_eq!(slots.remove(first.index), Some("first"));
        assert_eq!(slots.resolve(first), None);
        let second = slots.reserve();
        assert_eq!(second.index, first.index);
        slots.insert(second, "second");
        assert_eq!(slots.resolve(first), None);
        assert_eq!(slots.resolve(second), Some(second.index));
        assert_eq!(slots.len(), 1);
    }

    #[test]
    fn places_do_not_move_when_there_are_more() {
        let mut slots = Slots::new();
        let tokens: Vec<Token> = (0..1000)
            .map(|number| {
                let token = slots.reserve();
                slots.insert(token, number);
                token
            })
            .collect();
        for (number, token) in tokens.iter().enumerate() {
            let index = slots.resolve(*token).unwrap();
            assert_eq!(slots.get_mut(index), Some(&mut number.clone()));
        }
        assert_eq!(slots.indexes().len(), 1000);
        assert_eq!(slots.remove(500), Some(500));
        assert_eq!(slots.remove(500), None);
        assert_eq!(slots.iter().count(), 999);
    }
}
