//! Output in order: small pieces copied together, large ones shared.

use std::io::{self, IoSlice, Write};

use crate::chunk::Chunk;
use crate::outside::Outside;
use crate::waiting_pieces::WaitingPieces;

/// Pieces below this size are copied, in bytes: copying them costs less than a vectored write does beyond a plain
/// one, and than one more element of it.
pub const COPIED_BYTES: usize = 4096;

/// The elements handed to one vectored write while few pieces wait.
const SLICES_FEW: usize = 32;

/// The most elements handed to one vectored write (Linux takes 1024 at most): two megabytes in frames of
/// 16 KiB, or the responses to 256 requests.
const SLICES_MAX: usize = 512;

/// When this many copied bytes have been sent from the front, and no more are left, the rest moves up, in bytes.
const COMPACT_ABOVE_BYTES: usize = 64 * 1024;

/// A shared piece of the queue.
#[derive(Debug)]
struct Piece {
    /// It follows so many of the copied bytes.
    after: usize,
    /// Its bytes; none when they are not in memory.
    chunk: Chunk,
    /// Place of its bytes instead.
    outside: Option<Box<Outside>>,
    /// The memory that stays until its last byte has left, in bytes.
    held_bytes: usize,
}

impl Piece {
    /// Its unsent bytes.
    #[inline]
    fn len(&self) -> usize {
        self.outside.as_ref().map_or(self.chunk.bytes.len(), |outside| outside.bytes)
    }

    /// The first `count` of its bytes, which are not all, have been written.
    fn advance(&mut self, count: usize) {
        match &mut self.outside {
            None => bytes::Buf::advance(&mut self.chunk.bytes, count),
            Some(outside) => {
                outside.offset += count as u64;
                outside.bytes -= count;
            }
        }
    }
}

impl AsRef<Chunk> for Piece {
    fn as_ref(&self) -> &Chunk {
        &self.chunk
    }
}

impl AsMut<Chunk> for Piece {
    fn as_mut(&mut self) -> &mut Chunk {
        &mut self.chunk
    }
}

/// Result of [`SendQueue::flush`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Everything has been written.
    Drained,
    /// The sink takes no more for now.
    Blocked,
    /// The next bytes are not in memory: the owner of the sink sends [it](SendQueue::outside) and
    /// [advances](SendQueue::advance). Only a queue that such a piece was given to comes to this.
    Outside,
}

/// Bytes that wait to be written.
///
/// Encoders append to [`tail`](Self::tail), a plain `Vec<u8>`; bodies are [pushed](Self::push) and
/// keep their memory. [`flush`](Self::flush) writes everything in as few vectored writes as
/// possible.
#[derive(Debug, Default)]
pub struct SendQueue {
    /// Copied bytes, in order.
    copied: Vec<u8>,
    /// How many of `copied` have been written.
    copied_sent: usize,
    /// Shared pieces, in order.
    shared: WaitingPieces<Piece>,
    /// Unsent bytes of `shared`.
    shared_bytes: usize,
    /// The memory of the pieces in `shared` that are kept nowhere else.
    held_bytes: usize,
    /// How many of `shared` are not in memory.
    outside_count: usize,
}

impl SendQueue {
    /// An empty queue that owns no memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of unsent bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.copied.len() - self.copied_sent + self.shared_bytes
    }

    /// Returns whether nothing waits to be written.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns where encoders append. Bytes may only be added at the end.
    #[inline]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.copied
    }

    /// Appends `bytes`: copied when small, shared otherwise. Lent ones, which is what plain [`Bytes`](bytes::Bytes) are, get
    /// memory of their own when they have to [wait](Self::settle).
    #[inline]
    pub fn push(&mut self, bytes: impl Into<Chunk>) {
        let chunk = bytes.into();
        if chunk.bytes.len() < COPIED_BYTES {
            self.copied.extend_from_slice(&chunk.bytes);
        } else {
            self.shared_bytes += chunk.bytes.len();
            let held_bytes = chunk.held_bytes();
            self.held_bytes += held_bytes;
            let after = self.copied.len();
            self.shared.push(Piece { after, chunk, outside: None, held_bytes });
        }
    }

    /// Appends the first `length` bytes of a chunk, as [`push`](Self::push) does, and removes them from it.
    ///
    /// # Panics
    ///
    /// When the chunk is shorter.
    #[inline]
    pub fn push_front(&mut self, chunk: &mut Chunk, length: usize) {
        if length < COPIED_BYTES {
            self.copied.extend_from_slice(&chunk.bytes[..length]);
            bytes::Buf::advance(&mut chunk.bytes, length);
        } else {
            self.push(Chunk { bytes: chunk.bytes.split_to(length), memory: chunk.memory });
        }
    }

    /// Appends bytes that are not in memory. Only for a queue whose sink's owner knows what they are.
    pub fn push_outside(&mut self, outside: Outside) {
        if outside.bytes > 0 {
            self.shared_bytes += outside.bytes;
            self.outside_count += 1;
            let chunk = Chunk::shared(bytes::Bytes::new());
            let outside = Some(Box::new(outside));
            let after = self.copied.len();
            self.shared.push(Piece { after, chunk, outside, held_bytes: 0 });
        }
    }

    /// Returns whether anything in it is not in memory.
    #[inline]
    #[must_use]
    pub fn has_outside(&self) -> bool {
        self.outside_count > 0
    }

    /// Returns what comes next, if it is not in memory.
    #[must_use]
    pub fn outside(&self) -> Option<&Outside> {
        let piece = self.shared.front().filter(|piece| piece.after == self.copied_sent)?;
        piece.outside.as_deref()
    }

    /// Fills `slices` with the unsent bytes in order, up to what is not in memory, and returns how many elements
    /// were filled.
    fn gather<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut position = self.copied_sent;
        for Piece { after, chunk, outside, .. } in self.shared.iter() {
            if filled + 2 > slices.len() {
                return filled;
            }
            if position < *after {
                slices[filled] = IoSlice::new(&self.copied[position..*after]);
                filled += 1;
                position = *after;
            }
            if outside.is_some() {
                return filled;
            }
            slices[filled] = IoSlice::new(&chunk.bytes);
            filled += 1;
        }
        if position < self.copied.len() && filled < slices.len() {
            slices[filled] = IoSlice::new(&self.copied[position..]);
            filled += 1;
        }
        filled
    }

    /// Drops the first `count` unsent bytes: they have been written.
    pub fn advance(&mut self, mut count: usize) {
        while let Some(piece) = self.shared.front_mut() {
            let before = piece.after - self.copied_sent;
            if count < before {
                self.copied_sent += count;
                return;
            }
            count -= before;
            self.copied_sent = piece.after;
            let length = piece.len();
            if count < length {
                piece.advance(count);
                self.shared_bytes -= count;
                return;
            }
            count -= length;
            self.shared_bytes -= length;
            self.held_bytes -= piece.held_bytes;
            self.outside_count -= usize::from(piece.outside.is_some());
            self.shared.pop();
        }
        self.copied_sent += count;
        debug_assert!(self.copied_sent <= self.copied.len(), "more was written than was queued");
        if self.copied_sent == self.copied.len() && self.shared.is_empty() {
            self.copied.clear();
            self.copied_sent = 0;
        }
    }

    /// Writes until nothing is left, `sink` takes no more, or what comes next is not in memory. A short write counts as full: an
    /// edge-triggered socket reports again when it has room.
    ///
    /// # Errors
    ///
    /// Whatever `sink` reports, except `WouldBlock` and `Interrupted`; `WriteZero` when it accepts
    /// nothing.
    #[inline]
    pub fn flush(&mut self, sink: &mut (impl Write + ?Sized)) -> io::Result<Flush> {
        while !self.is_empty() {
            let (written, offered) = if self.shared.is_empty() {
                let bytes = &self.copied[self.copied_sent..];
                (sink.write(bytes), bytes.len())
            } else if self.outside().is_some() {
                return Ok(Flush::Outside);
            } else if self.shared.len() < SLICES_FEW / 2 {
                self.write_vectored::<SLICES_FEW>(sink)
            } else {
                self.write_vectored::<SLICES_MAX>(sink)
            };
            match written {
                // All of it, as nearly always.
                Ok(count) if count == offered && count > 0 && self.shared.is_empty() => {
                    self.copied.clear();
                    self.copied_sent = 0;
                    return Ok(Flush::Drained);
                }
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.advance(count);
                    if count < offered {
                        return Ok(Flush::Blocked);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Flush::Blocked);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Flush::Drained)
    }

    /// One vectored write of as much as `SLICES` elements hold: what came of it, and how much was offered.
    fn write_vectored<const SLICES: usize>(
        &self,
        sink: &mut (impl Write + ?Sized),
    ) -> (io::Result<usize>, usize) {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let filled = self.gather(&mut slices);
        let offered = slices[..filled].iter().map(|slice| slice.len()).sum();
        (sink.write_vectored(&slices[..filled]), offered)
    }

    /// Prepares what is left for waiting beyond the turn: pieces are [settled](WaitingPieces::settle), and the space of what was
    /// sent is given back.
    pub fn settle(&mut self) {
        self.shared.settle();
        let left = self.copied.len() - self.copied_sent;
        if self.copied_sent > COMPACT_ABOVE_BYTES.max(left) {
            self.copied.drain(..self.copied_sent);
            for Piece { after, .. } in self.shared.iter_mut() {
                *after -= self.copied_sent;
            }
            self.copied_sent = 0;
        }
    }

    /// The memory that is in use for what waits, in bytes: all but what others keep anyway.
    #[inline]
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.allocated_bytes() + self.held_bytes
    }

    /// The memory that the queue has allocated for itself, in bytes, without shared pieces.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.copied.capacity() + self.shared.capacity() * size_of::<Piece>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    /// A sink that takes as many bytes a call as it is told, then blocks.
    struct Narrow {
        taken: Vec<u8>,
        per_call: Vec<usize>,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.write_vectored(&[IoSlice::new(bytes)])
        }

        fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            let Some(limit) = self.per_call.pop() else {
                return Err(io::ErrorKind::WouldBlock.into());
            };
            let before = self.taken.len();
            for slice in slices {
                let room = limit - (self.taken.len() - before);
                self.taken.extend_from_slice(&slice[..slice.len().min(room)]);
            }
            Ok(self.taken.len() - before)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn any_pieces_through_any_sink_come_out_in_order(
            pieces in proptest::collection::vec((0..4, 0_usize..12_000), 0..40),
            rooms in proptest::collection::vec(1_usize..18_000, 0..80),
        ) {
            let mut queue = SendQueue::new();
            let mut expected = Vec::new();
            let mut sink = Narrow { taken: Vec::new(), per_call: Vec::new() };
            for (index, (kind, length)) in pieces.iter().enumerate() {
                let piece = vec![index as u8; *length];
                expected.extend_from_slice(&piece);
                match kind {
                    0 => queue.push(Bytes::from(piece)),
                    1 => queue.push(Chunk::shared(piece.into())),
                    2 => {
                        let mut chunk = Chunk::from(Bytes::from(piece));
                        queue.push_front(&mut chunk, length / 3);
                        queue.push_front(&mut chunk, length - length / 3);
                        prop_assert!(chunk.bytes.is_empty());
                    }
                    _ => queue.tail().extend_from_slice(&piece),
                }
                if let Some(room) = rooms.get(index) {
                    sink.per_call = vec![*room];
                    queue.flush(&mut sink).unwrap();
                    queue.settle();
                    prop_assert_eq!(queue.len() + sink.taken.len(), expected.len());
                }
            }
            while !queue.is_empty() {
                sink.per_call = vec![700];
                queue.flush(&mut sink).unwrap();
                queue.settle();
            }
            prop_assert_eq!(sink.taken, expected);
        }
    }

    fn piece(queue: &SendQueue, index: usize) -> &Chunk {
        &queue.shared.iter().nth(index).unwrap().chunk
    }

    #[test]
    fn slices_that_fill_a_block_together_are_kept_without_a_copy() {
        let mut queue = SendQueue::new();
        let block = Bytes::from(vec![7; 128 * 1024]);
        for start in (0..block.len()).step_by(16 * 1024) {
            queue.tail().extend_from_slice(b"frame 123");
            queue.push(block.slice(start + 9..start + 16 * 1024));
        }
        queue.settle();
        assert_eq!(piece(&queue, 0).bytes.as_ptr(), block[9..].as_ptr());
        assert_eq!(piece(&queue, 7).bytes.as_ptr(), block[7 * 16 * 1024 + 9..].as_ptr());
    }

    #[test]
    fn what_is_lent_is_copied_once_to_wait_and_what_is_own_never() {
        let mut queue = SendQueue::new();
        let block = Bytes::from(vec![7; 20_000]);
        queue.push(block.slice(..10_000));
        queue.push(Chunk::shared(block.slice(10_000..)));
        queue.settle();
        let address = |queue: &SendQueue, index: usize| piece(queue, index).bytes.as_ptr();
        let copy = address(&queue, 0);
        assert_ne!(copy, block.as_ptr());
        assert_eq!(address(&queue, 1), block[10_000..].as_ptr());
        queue.settle();
        assert_eq!(address(&queue, 0), copy);
        let mut sent = Vec::new();
        queue.flush(&mut sent).unwrap();
        assert_eq!(sent, block);
    }

    #[test]
    fn a_megabyte_of_frames_leaves_in_one_write() {
        let mut queue = SendQueue::new();
        let frame = Bytes::from(vec![7; 16 * 1024]);
        for _ in 0..64 {
            queue.tail().extend_from_slice(b"frame 123");
            queue.push(frame.clone());
        }
        let mut sink = Narrow { taken: Vec::new(), per_call: vec![usize::MAX] };
        assert_eq!(queue.flush(&mut sink).unwrap(), Flush::Drained);
        assert_eq!(sink.taken.len(), 64 * (16 * 1024 + 9));
    }

    #[test]
    fn what_is_not_in_memory_keeps_its_place_and_is_sent_by_somebody_else() {
        let file = Arc::new(b"0123456789".to_vec());
        let piece = |offset, bytes| Outside { source: file.clone(), offset, bytes };
        let mut queue = SendQueue::new();
        queue.push_outside(piece(0, 2));
        queue.tail().extend_from_slice(b"head ");
        queue.push_outside(piece(4, 5));
        queue.push_outside(piece(9, 0));
        queue.push_outside(piece(1, 1));
        queue.push(Bytes::from(vec![b'x'; COPIED_BYTES]));
        queue.tail().extend_from_slice(b" tail");
        assert_eq!(queue.len(), 2 + 5 + 5 + 1 + COPIED_BYTES + 5);
        let mut sink = Narrow { taken: Vec::new(), per_call: vec![usize::MAX; 9] };
        let mut steps = 0;
        while queue.flush(&mut sink).unwrap() == Flush::Outside {
            let next = queue.outside().unwrap();
            let file = next.source.downcast_ref::<Vec<u8>>().unwrap();
            // At most two bytes at a time: the rest stays at the front.
            let start = usize::try_from(next.offset).unwrap();
            let count = next.bytes.min(2);
            sink.taken.extend_from_slice(&file[start..start + count]);
            queue.advance(count);
            queue.settle();
            steps += 1;
        }
        assert_eq!(steps, 1 + 3 + 1);
        let expected = [b"01head 456781", &[b'x'; COPIED_BYTES][..], b" tail"].concat();
        assert_eq!(sink.taken, expected);
        assert!(queue.is_empty() && queue.outside().is_none() && !queue.has_outside());
    }

    #[test]
    fn a_sink_that_takes_nothing_is_an_error() {
        let mut queue = SendQueue::new();
        queue.tail().extend_from_slice(b"pong");
        let mut sink = Narrow { taken: Vec::new(), per_call: vec![0] };
        assert_eq!(queue.flush(&mut sink).unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}
