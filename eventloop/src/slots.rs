//! The places of a worker's sockets, by token and generation.
//!
//! Places stand in chunks: growing neither moves an open connection nor doubles the memory. A place
//! that is used again has another generation, so that an event or a mail for the connection before
//! it finds no connection.

use std::fmt;

/// Places that are allocated together, in number: some 30 KiB with a session of 300 bytes.
const CHUNK_COUNT: usize = 64;

/// Names one connection of one worker, and never another one after it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(u64);

impl Token {
    /// Names no connection, ever: mail to it goes to [`Service::undelivered`](crate::Service::undelivered),
    /// and so to the worker as a whole.
    pub const NOBODY: Self = Self(0);

    pub(crate) const fn new(generation: u32, index: u32) -> Self {
        Self((generation as u64) << 32 | index as u64)
    }

    /// The number that the kernel hands back with events.
    #[inline]
    #[must_use]
    pub const fn key(self) -> u64 {
        self.0
    }

    /// The token with this key.
    #[inline]
    #[must_use]
    pub const fn from_key(key: u64) -> Self {
        Self(key)
    }

    /// The place; several connections have it, one after the other.
    #[inline]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0 as u32
    }

    /// Which use of the place; 0 is the worker's own (listeners, waker).
    #[inline]
    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.index(), self.generation())
    }
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// A table of `T` by [`Token`].
#[derive(Debug)]
pub(crate) struct Slots<T> {
    chunks: Vec<Box<[Place<T>]>>,
    free: Vec<u32>,
    count: usize,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), count: 0 }
    }

    /// How many places are taken.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// How many places there are: every index is below.
    #[inline]
    pub(crate) fn places(&self) -> u32 {
        (self.chunks.len() * CHUNK_COUNT) as u32
    }

    /// The token that the next [`insert`](Self::insert) will use.
    pub(crate) fn vacant(&mut self) -> Token {
        if self.free.is_empty() {
            let first = self.places();
            self.chunks
                .push((0..CHUNK_COUNT).map(|_| Place { generation: 1, value: None }).collect());
            self.free.extend((first..first + CHUNK_COUNT as u32).rev());
        }
        let index = self.free[self.free.len() - 1];
        Token::new(self.place(index).generation, index)
    }

    /// Puts `value` in the place that [`vacant`](Self::vacant) named.
    pub(crate) fn insert(&mut self, value: T) -> &mut T {
        let token = self.vacant();
        self.free.pop();
        self.count += 1;
        self.place(token.index()).value.insert(value)
    }

    #[inline]
    fn place(&mut self, index: u32) -> &mut Place<T> {
        &mut self.chunks[index as usize / CHUNK_COUNT][index as usize % CHUNK_COUNT]
    }

    /// Returns what `token` names, if it is still there.
    #[inline]
    pub(crate) fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let index = token.index() as usize;
        let place = self.chunks.get_mut(index / CHUNK_COUNT)?.get_mut(index % CHUNK_COUNT)?;
        if place.generation == token.generation() { place.value.as_mut() } else { None }
    }

    /// The connection that has the place `index`.
    pub(crate) fn at(&mut self, index: u32) -> Option<(Token, &mut T)> {
        let place = self.chunks.get_mut(index as usize / CHUNK_COUNT)?;
        let place = &mut place[index as usize % CHUNK_COUNT];
        let token = Token::new(place.generation, index);
        place.value.as_mut().map(|value| (token, value))
    }

    /// Frees the place of `token` for another generation. After its last generation a place is never used again: a
    /// number that came back would let an old token name another connection.
    pub(crate) fn remove(&mut self, token: Token) -> Option<T> {
        self.get_mut(token)?;
        let place = self.place(token.index());
        let value = place.value.take();
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(token.index());
        }
        self.count -= 1;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_old_token_does_not_find_the_new_tenant() {
        let mut slots = Slots::new();
        let first = slots.vacant();
        slots.insert("first");
        assert_eq!(slots.remove(first), Some("first"));
        let second = slots.vacant();
        slots.insert("second");
        assert_eq!(first.index(), second.index());
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.get_mut(second), Some(&mut "second"));
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.len(), 1);
    }

    #[test]
    fn a_place_is_not_used_after_its_last_generation() {
        let mut slots = Slots::new();
        let index = slots.vacant().index();
        slots.place(index).generation = u32::MAX - 1;
        let tokens = [0, 1].map(|number| {
            let token = slots.vacant();
            slots.insert(number);
            assert_eq!(slots.remove(token), Some(number));
            token
        });
        assert_eq!(tokens.map(|token| token.index()), [index; 2]);
        assert_eq!(tokens[1].generation(), u32::MAX);
        let next = slots.vacant();
        slots.insert(2);
        assert_ne!(next.index(), index);
        assert!(tokens.iter().all(|token| slots.get_mut(*token).is_none()));
        assert_eq!(slots.len(), 1);
    }

    #[test]
    fn growing_moves_nobody() {
        let mut slots = Slots::new();
        let address = std::ptr::from_ref(slots.insert(0_u64));
        (1..1000).for_each(|value| {
            slots.insert(value);
        });
        let (_, first) = slots.at(0).expect("never removed");
        assert_eq!(std::ptr::from_ref(first), address);
    }

    proptest! {
        #[test]
        fn it_is_a_table(steps in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..400)) {
            let mut slots = Slots::new();
            let mut model: Vec<(Token, usize)> = Vec::new();
            let mut gone = Vec::new();
            for (number, (insert, which)) in steps.into_iter().enumerate() {
                if insert || model.is_empty() {
                    let token = slots.vacant();
                    slots.insert(number);
                    model.push((token, number));
                } else {
                    let (token, value) = model.swap_remove(which.index(model.len()));
                    prop_assert_eq!(slots.remove(token), Some(value));
                    gone.push(token);
                }
                prop_assert_eq!(slots.len(), model.len());
            }
            for (token, value) in model {
                prop_assert_eq!(slots.get_mut(token).copied(), Some(value));
            }
            for token in gone {
                prop_assert_eq!(slots.get_mut(token), None);
            }
        }
    }
}
