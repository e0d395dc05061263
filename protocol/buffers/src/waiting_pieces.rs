//! Pieces that wait to be sent, in order.

use std::collections::VecDeque;

use crate::chunk::{Chunk, settle};
use crate::receive_buffer::DETACH_BELOW_BYTES;

/// Pieces that wait to be sent, in order, and which of them are ready to wait beyond the turn.
#[derive(Debug)]
pub struct WaitingPieces<T> {
    pieces: VecDeque<T>,
    /// How many of the pieces, from the first on, were settled.
    settled_count: usize,
    /// The first of these, or a part of it, has left since.
    is_begun: bool,
}

impl<T> Default for WaitingPieces<T> {
    fn default() -> Self {
        Self { pieces: VecDeque::new(), settled_count: 0, is_begun: false }
    }
}

impl<T: AsRef<Chunk> + AsMut<Chunk>> WaitingPieces<T> {
    /// The number of pieces.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns whether no piece waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Appends a piece.
    #[inline]
    pub fn push(&mut self, piece: T) {
        self.pieces.push_back(piece);
    }

    /// The first piece.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<&T> {
        self.pieces.front()
    }

    /// The first piece, of which a part is about to leave.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.is_begun = true;
        self.pieces.front_mut()
    }

    /// Takes the first piece.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.is_begun = true;
        self.settled_count = self.settled_count.saturating_sub(1);
        self.pieces.pop_front()
    }

    /// The pieces, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter()
    }

    /// The pieces, in order, to be changed in all but their bytes.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.pieces.iter_mut()
    }

    /// For how many pieces there is memory.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.pieces.capacity()
    }

    /// Settles the pieces that were pushed since the last call, and the rest of a run of which a part has left. Returns how many pieces
    /// it looked at: over any number of calls, a constant number for each piece.
    pub fn settle(&mut self) -> usize {
        let begun = if std::mem::take(&mut self.is_begun) { self.first_run() } else { 0 };
        let (first, second) = self.pieces.as_mut_slices();
        let rest = begun.min(first.len());
        settle(&mut first[..rest]);
        let new = self.settled_count.min(first.len());
        settle(&mut first[new..]);
        settle(&mut second[self.settled_count - new..]);
        let new_count = self.pieces.len() - self.settled_count;
        self.settled_count = self.pieces.len();
        begun + new_count
    }

    /// How many settled pieces are lent from the first on, up to a run that is worth its block.
    fn first_run(&self) -> usize {
        let mut bytes = 0;
        let lent = self.pieces.iter().take(self.settled_count).take_while(|piece| {
            let chunk = piece.as_ref();
            let counts = chunk.is_lent() && bytes < DETACH_BELOW_BYTES;
            bytes += chunk.bytes.len();
            counts
        });
        lent.count()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn what_waits_is_looked_at_once_however_much_joins_it_and_copied_once_at_most() {
        let lent = Bytes::from(vec![7; 16 * 1024]);
        let mut waiting = WaitingPieces::<Chunk>::default();
        let mut looked_at = 0;
        for count in 1..=1000 {
            waiting.push(lent.clone().into());
            looked_at += waiting.settle();
            assert!(looked_at <= count, "{looked_at} for {count}");
        }
        let address = |waiting: &WaitingPieces<Chunk>| waiting.front().unwrap().bytes.as_ptr();
        let copy = address(&waiting);
        assert_ne!(copy, lent.as_ptr());
        waiting.settle();
        assert_eq!(address(&waiting), copy);
    }

    #[test]
    fn what_leaves_makes_only_the_rest_of_its_run_be_looked_at() {
        let block = Bytes::from(vec![7; 512 * 1024]);
        let mut waiting = WaitingPieces::<Chunk>::default();
        for start in (0..block.len()).step_by(1024) {
            waiting.push(block.slice(start + 9..start + 1024).into());
        }
        assert_eq!(waiting.settle(), 512);
        let mut looked_at = 0;
        while waiting.pop().is_some() {
            looked_at = looked_at.max(waiting.settle());
        }
        assert!(looked_at <= 66, "{looked_at}");
    }
}
