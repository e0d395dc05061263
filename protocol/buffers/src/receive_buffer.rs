//! A block that is filled at its end and consumed at its front.

use bytes::{Bytes, BytesMut};

/// Bytes that arrived and have not been parsed.
///
/// One block serves every connection of a worker, one after the other. A parser either
/// [consumes](Self::consume) bytes, or [takes](Self::take) them as a reference-counted slice of the
/// block. What it leaves is an incomplete rest, which the caller keeps aside with
/// [`take_rest`](Self::take_rest) until the next read and puts back with [`start`](Self::start).
///
/// Slices that are dropped before the next [`start`](Self::start) cost nothing; a slice that lives
/// on keeps its whole block alive, so one that is held for longer is passed through [`detach`].
#[derive(Debug)]
pub struct ReceiveBuffer {
    block: BytesMut,
    /// How many bytes at the front of the block are consumed. Not all of them, so that a drained block begins anew.
    consumed: usize,
    block_bytes: usize,
}

impl ReceiveBuffer {
    /// A buffer whose blocks hold `block_bytes` bytes.
    #[must_use]
    pub fn new(block_bytes: usize) -> Self {
        Self { block: BytesMut::with_capacity(block_bytes), consumed: 0, block_bytes }
    }

    /// The same without a block until the first [`start`](Self::start).
    #[must_use]
    pub fn unallocated(block_bytes: usize) -> Self {
        Self { block: BytesMut::new(), consumed: 0, block_bytes }
    }

    /// Returns whether no slices of the block are held: it is empty then, and as large as at first.
    #[must_use]
    pub fn is_free(&mut self) -> bool {
        self.block.is_empty() && self.block.try_reclaim(self.block_bytes)
    }

    /// Begins a turn: the block is empty again, or fresh while slices are still held of more than half of it,
    /// and starts with `rest`, the bytes that an earlier turn left.
    #[inline]
    pub fn start(&mut self, rest: &[u8]) {
        if rest.is_empty() && self.block.is_empty() && self.block.capacity() >= self.block_bytes {
            return;
        }
        self.start_anew(rest);
    }

    fn start_anew(&mut self, rest: &[u8]) {
        self.clear();
        let wanted = self.block_bytes.max(rest.len());
        // A block that is held is filled further, so that what holds it is a good part of it.
        let is_roomy = self.block.capacity() >= wanted / 2 + rest.len();
        if !self.block.try_reclaim(wanted) && !is_roomy {
            self.block = BytesMut::with_capacity(wanted);
        }
        if !rest.is_empty() {
            self.block.extend_from_slice(rest);
        }
    }

    /// Makes room for at least a quarter of a block after the unread bytes, keeping these.
    #[inline]
    pub fn make_room(&mut self) {
        let spare = self.block.capacity() - self.block.len();
        if spare < self.block_bytes / 4 {
            self.let_go();
            let unread = self.block.len();
            let wanted = self.block_bytes.saturating_sub(unread).max(self.block_bytes / 4);
            // A slice keeps its whole block alive, so a block must not grow.
            if !self.block.try_reclaim(wanted) {
                let mut block = BytesMut::with_capacity(unread + wanted);
                block.extend_from_slice(&self.block);
                self.block = block;
            }
        }
    }

    /// Makes room for `bytes` after the unread ones at once, rather than by growing and copying as they come.
    #[inline]
    pub fn expect(&mut self, bytes: usize) {
        self.let_go();
        self.block.reserve(bytes);
    }

    /// The block itself, to fill its spare capacity.
    #[inline]
    pub fn block_mut(&mut self) -> &mut BytesMut {
        self.let_go();
        &mut self.block
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    /// The bytes that have arrived and were not consumed.
    #[inline]
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.block[self.consumed..]
    }

    /// Returns whether every byte has been consumed.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }

    /// The number of unread bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.block.len() - self.consumed
    }

    /// Drops the first `count` unread bytes.
    ///
    /// # Panics
    ///
    /// When fewer than `count` bytes are unread.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        let consumed = self.consumed + count;
        if consumed < self.block.len() {
            self.consumed = consumed;
        } else {
            assert!(consumed == self.block.len(), "only what has arrived is consumed");
            // The block does not move up, so the next turn need not reclaim it.
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.block.clear();
        self.consumed = 0;
    }

    /// Takes what is consumed out of the block.
    #[inline]
    fn let_go(&mut self) {
        if self.consumed > 0 {
            bytes::Buf::advance(&mut self.block, self.consumed);
            self.consumed = 0;
        }
    }

    /// Takes the first `count` unread bytes as a slice that shares the block.
    ///
    /// # Panics
    ///
    /// When fewer than `count` bytes are unread.
    #[inline]
    #[must_use]
    pub fn take(&mut self, count: usize) -> Bytes {
        self.let_go();
        self.block.split_to(count).freeze()
    }

    /// Takes what no parser could use yet, as a copy of its own.
    #[must_use]
    pub fn take_rest(&mut self) -> Box<[u8]> {
        let rest = Box::from(self.unread());
        self.clear();
        rest
    }
}

/// Slices below this size are copied when they are kept, so that a few bytes never keep a whole
/// block alive: a quarter of a block, in bytes.
pub(crate) const DETACH_BELOW_BYTES: usize = 64 * 1024;

/// The same bytes, in memory of their own unless they fill a good part of a block.
///
/// A slice of a [`ReceiveBuffer`] that is kept beyond the turn is passed through here.
#[must_use]
pub fn detach(bytes: Bytes) -> Bytes {
    if bytes.len() < DETACH_BELOW_BYTES { Bytes::copy_from_slice(&bytes) } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_comes_back_before_what_is_read_next() {
        let mut buffer = ReceiveBuffer::new(1024);
        buffer.start(b"");
        buffer.extend(b"one two");
        buffer.consume(4);
        let rest = buffer.take_rest();
        assert!(buffer.is_empty());
        buffer.start(&rest);
        buffer.extend(b" three");
        assert_eq!(buffer.unread(), b"two three");
    }

    #[test]
    fn the_block_is_reused_when_no_slice_lives() {
        let mut buffer = ReceiveBuffer::new(1024);
        buffer.start(b"");
        let address = buffer.block_mut().as_ptr();
        for _ in 0..100 {
            buffer.start(b"");
            assert_eq!(buffer.block_mut().as_ptr(), address);
            buffer.extend(&[7; 1000]);
            let slice = buffer.take(1000);
            assert_eq!(slice.len(), 1000);
        }
    }

    #[test]
    fn a_block_that_is_held_is_filled_before_there_is_another() {
        let mut buffer = ReceiveBuffer::new(1024);
        let mut kept = Vec::new();
        let counted = allocation_counter::measure(|| {
            for _ in 0..40 {
                buffer.start(b"");
                buffer.extend(&[7; 100]);
                kept.push(buffer.take(100));
            }
        });
        assert!(kept.iter().all(|slice| **slice == [7; 100]));
        // 4000 bytes, and the block that is filled next.
        assert!(counted.bytes_current <= 13 * 1024, "{counted:?}");
    }

    #[test]
    fn no_block_grows_however_much_of_it_is_unread() {
        let mut buffer = ReceiveBuffer::new(1024);
        for _ in 0..20 {
            buffer.start(b"");
            buffer.extend(&[7; 900]);
            // It is not kept, so that the block is the buffer's alone and could grow in place.
            drop(buffer.take(100));
            buffer.make_room();
            let capacity = buffer.block_mut().capacity();
            assert!(capacity <= 800 + 256, "{capacity} for 800 unread bytes");
            // A read fills whatever room there is.
            let unread = buffer.len();
            buffer.extend(&vec![8; capacity - unread]);
            assert_eq!(buffer.unread()[..unread], [7; 800]);
            buffer.consume(capacity);
        }
    }

    #[test]
    fn a_living_slice_keeps_its_bytes() {
        let mut buffer = ReceiveBuffer::new(64);
        buffer.start(b"");
        buffer.extend(b"kept");
        let kept = buffer.take(4);
        buffer.start(b"");
        buffer.extend(b"over");
        assert_eq!(&kept[..], b"kept");
        assert_eq!(buffer.unread(), b"over");
    }

    #[test]
    fn a_block_is_free_when_its_slices_are_gone() {
        let mut buffer = ReceiveBuffer::unallocated(64);
        assert_eq!(buffer.block_mut().capacity(), 0);
        buffer.start(b"");
        assert_eq!(buffer.block_mut().capacity(), 64);
        buffer.extend(b"kept");
        assert!(!buffer.is_free());
        let kept = buffer.take(4);
        assert!(!buffer.is_free());
        drop(kept);
        assert!(buffer.is_free());
    }

    #[test]
    fn room_is_made_without_losing_the_unread() {
        let mut buffer = ReceiveBuffer::new(64);
        buffer.start(b"");
        buffer.extend(&[1; 60]);
        buffer.consume(50);
        buffer.make_room();
        assert_eq!(buffer.unread(), &[1; 10]);
        assert!(buffer.block_mut().capacity() - buffer.len() >= 16);
    }

    #[test]
    fn what_is_expected_comes_without_a_move() {
        let mut buffer = ReceiveBuffer::new(64);
        buffer.start(b"rest");
        buffer.expect(1000);
        let address = buffer.unread().as_ptr();
        for _ in 0..100 {
            buffer.extend(&[7; 10]);
        }
        assert_eq!((buffer.len(), buffer.unread().as_ptr()), (1004, address));
    }

    #[test]
    fn small_slices_are_detached_and_large_ones_shared() {
        let small = Bytes::from(vec![1; 10]);
        assert_ne!(detach(small.clone()).as_ptr(), small.as_ptr());
        let large = Bytes::from(vec![1; DETACH_BELOW_BYTES]);
        assert_eq!(detach(large.clone()).as_ptr(), large.as_ptr());
    }
}
