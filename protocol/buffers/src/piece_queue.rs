//! Received bytes that wait for their reader.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::receive_buffer::DETACH_BELOW_BYTES;

/// The largest block that small pieces are copied into, in bytes.
const BLOCK_BYTES: usize = 16 * 1024;

/// The smallest block that the second of several small pieces is copied into, in bytes.
const BLOCK_BYTES_MIN: usize = 256;

/// So many pieces share the block that they were received in before they are [kept](PieceQueue::keep), and so much room
/// for pieces is held while there is none.
const FRESH_COUNT: usize = 64;

/// Received pieces, in order, until they are used.
///
/// A piece is a slice of the block that it was received in, which pieces that wait beyond the turn must not hold. [`Self::keep`]
/// copies them, each byte once however many more pieces join, and small neighbours into one block: a piece of one byte costs
/// about one byte.
#[derive(Debug, Default)]
pub struct PieceQueue {
    /// Pieces in memory of their own.
    kept: VecDeque<Bytes>,
    /// The newest small pieces, joined. Follows `kept`.
    tail: BytesMut,
    /// The size of the block that `tail` is in, in bytes.
    block_bytes: usize,
    /// Pieces that share the block that they were received in. Follows `tail`.
    fresh: VecDeque<Bytes>,
}

impl PieceQueue {
    /// An empty queue that owns no memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether no piece waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.tail.is_empty() && self.kept.is_empty()
    }

    /// Appends a piece. An empty one is dropped.
    #[inline]
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.fresh.push_back(piece);
            if self.fresh.len() >= FRESH_COUNT {
                self.keep();
            }
        }
    }

    /// The first piece, whose reader may take bytes from its front. It stays, even when it is empty, until it is
    /// [popped](Self::pop).
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut Bytes> {
        self.seal_front();
        self.kept.front_mut().or_else(|| self.fresh.front_mut())
    }

    /// Takes the first piece.
    #[inline]
    pub fn pop(&mut self) -> Option<Bytes> {
        self.seal_front();
        self.kept.pop_front().or_else(|| self.fresh.pop_front())
    }

    /// Prepares what is left for waiting beyond the turn. Takes time for the pieces that were pushed since the last call.
    pub fn keep(&mut self) {
        if self.kept.is_empty() && self.tail.is_empty() {
            self.tail = BytesMut::new();
            self.block_bytes = 0;
        }
        while let Some(piece) = self.fresh.pop_front() {
            if piece.is_empty() || piece.len() >= DETACH_BELOW_BYTES {
                self.seal();
                self.kept.push_back(piece);
            } else {
                self.join(&piece);
            }
        }
        if self.fresh.capacity() > FRESH_COUNT {
            self.fresh = VecDeque::new();
        }
    }

    /// The number of bytes that wait.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let pieces = self.kept.iter().chain(&self.fresh);
        pieces.map(Bytes::len).sum::<usize>() + self.tail.len()
    }

    /// Copies a small piece behind the others. A block that has no room for it is not moved: a larger one follows.
    fn join(&mut self, piece: &[u8]) {
        if self.tail.capacity() - self.tail.len() < piece.len() {
            self.seal();
            self.block_bytes = match self.block_bytes {
                0 => piece.len(),
                before => (2 * before).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES).max(piece.len()),
            };
            self.tail = BytesMut::with_capacity(self.block_bytes);
        }
        self.tail.extend_from_slice(piece);
    }

    /// Makes a piece of what was joined so far.
    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.kept.push_back(self.tail.split().freeze());
        }
    }

    #[inline]
    fn seal_front(&mut self) {
        if self.kept.is_empty() {
            self.seal();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_come_one_by_one_are_copied_once_and_share_blocks() {
        let byte = Bytes::from(vec![7]);
        let mut queue = PieceQueue::new();
        let mut places = Vec::new();
        for _ in 0..100_000 {
            queue.push(byte.clone());
            queue.keep();
            places.push(&raw const queue.tail[queue.tail.len() - 1]);
        }
        assert!(queue.kept.len() <= 100_000 / BLOCK_BYTES + 8, "{} pieces", queue.kept.len());
        assert_eq!(queue.bytes(), 100_000);
        let mut at = places.iter();
        while let Some(piece) = queue.pop() {
            let is_where_it_was = |byte: &u8| at.next().is_some_and(|at| *at == &raw const *byte);
            assert!(piece.iter().all(is_where_it_was), "a byte was moved");
        }
        assert!(at.next().is_none() && queue.is_empty());
    }

    #[test]
    fn a_piece_that_is_used_in_its_turn_is_not_copied() {
        let mut queue = PieceQueue::new();
        let piece = Bytes::from(vec![7; 100]);
        queue.push(piece.clone());
        assert_eq!(queue.front_mut().unwrap().as_ptr(), piece.as_ptr());
        assert_eq!(queue.pop().unwrap().as_ptr(), piece.as_ptr());
        let large = Bytes::from(vec![7; DETACH_BELOW_BYTES]);
        queue.push(large.clone());
        queue.keep();
        assert_eq!(queue.pop().unwrap().as_ptr(), large.as_ptr());
        assert_eq!(queue.tail.capacity(), 0);
    }

    #[test]
    fn a_piece_that_was_used_up_stays_until_it_is_popped() {
        let mut queue = PieceQueue::new();
        queue.push(Bytes::from_static(b"ab"));
        queue.front_mut().unwrap().advance(2);
        queue.keep();
        queue.push(Bytes::from_static(b"c"));
        queue.keep();
        assert!(queue.front_mut().unwrap().is_empty());
        assert_eq!(queue.pop().unwrap(), "");
        assert_eq!(queue.pop().unwrap(), "c");
        assert!(queue.is_empty() && queue.pop().is_none());
    }

    proptest! {
        #[test]
        fn any_pieces_come_out_in_order(
            steps in proptest::collection::vec((0..4, 0_usize..70_000), 0..60),
        ) {
            let mut queue = PieceQueue::new();
            let (mut given, mut taken) = (Vec::new(), Vec::new());
            for (index, (kind, length)) in steps.into_iter().enumerate() {
                match kind {
                    0 => queue.keep(),
                    1 => taken.extend(queue.pop().unwrap_or_default()),
                    2 => {
                        if let Some(front) = queue.front_mut() {
                            let count = length.min(front.len());
                            taken.extend(front.split_to(count));
                        }
                    }
                    _ => {
                        let length = if index % 3 == 0 { length } else { length % 9 };
                        let piece = vec![index as u8; length];
                        given.extend_from_slice(&piece);
                        queue.push(piece.into());
                    }
                }
                prop_assert_eq!(taken.len() + queue.bytes(), given.len());
            }
            while let Some(piece) = queue.pop() {
                taken.extend(piece);
            }
            prop_assert_eq!(taken, given);
        }
    }
}
