//! What is to be sent, in order: small pieces copied together, large ones shared.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

use bytes::Bytes;

/// Pieces below this size are copied, in bytes: copying them costs less than one more element of a
/// vectored write.
const COPY_BELOW_BYTES: usize = 2048;

/// The most elements handed to one vectored write (Linux takes 1024 at most).
const SLICES_MAX: usize = 64;

/// When this many copied bytes have been sent from the front, the rest moves up, in bytes.
const COMPACT_ABOVE_BYTES: usize = 64 * 1024;

/// What [`SendQueue::flush`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Everything has been written.
    Drained,
    /// The sink takes no more for now.
    Blocked,
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
    /// Shared pieces, each with the length of `copied` when it was pushed: it follows these bytes.
    shared: VecDeque<(usize, Bytes)>,
    /// Unsent bytes of `shared`.
    shared_bytes: usize,
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

    /// Whether nothing waits to be written.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where encoders append. Bytes may only be added at the end.
    #[inline]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.copied
    }

    /// Appends `bytes`: copied when small, shared otherwise.
    #[inline]
    pub fn push(&mut self, bytes: Bytes) {
        if bytes.len() < COPY_BELOW_BYTES {
            self.copied.extend_from_slice(&bytes);
        } else {
            self.shared_bytes += bytes.len();
            self.shared.push_back((self.copied.len(), bytes));
        }
    }

    /// Fills `slices` with the unsent bytes in order and returns how many elements were filled.
    fn gather<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES_MAX]) -> usize {
        let mut filled = 0;
        let mut position = self.copied_sent;
        for (after, bytes) in &self.shared {
            if filled + 2 > SLICES_MAX {
                return filled;
            }
            if position < *after {
                slices[filled] = IoSlice::new(&self.copied[position..*after]);
                filled += 1;
                position = *after;
            }
            slices[filled] = IoSlice::new(bytes);
            filled += 1;
        }
        if position < self.copied.len() && filled < SLICES_MAX {
            slices[filled] = IoSlice::new(&self.copied[position..]);
            filled += 1;
        }
        filled
    }

    /// Drops the first `count` unsent bytes: they have been written.
    pub fn advance(&mut self, mut count: usize) {
        while let Some((after, bytes)) = self.shared.front_mut() {
            let before = *after - self.copied_sent;
            if count < before {
                self.copied_sent += count;
                return;
            }
            count -= before;
            self.copied_sent = *after;
            if count < bytes.len() {
                bytes::Buf::advance(bytes, count);
                self.shared_bytes -= count;
                return;
            }
            count -= bytes.len();
            self.shared_bytes -= bytes.len();
            self.shared.pop_front();
        }
        self.copied_sent += count;
        debug_assert!(self.copied_sent <= self.copied.len(), "more was written than was queued");
        if self.copied_sent == self.copied.len() && self.shared.is_empty() {
            self.copied.clear();
            self.copied_sent = 0;
        }
    }

    /// Writes until nothing is left or `sink` takes no more. A short write counts as full: an
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
            } else {
                let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                let filled = self.gather(&mut slices);
                let offered = slices[..filled].iter().map(|slice| slice.len()).sum();
                (sink.write_vectored(&slices[..filled]), offered)
            };
            match written {
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

    /// Prepares what is left for waiting beyond the turn: small shared pieces get memory of their
    /// own, and the space of what was sent is given back.
    pub fn settle(&mut self) {
        for (_, bytes) in &mut self.shared {
            let kept = std::mem::take(bytes);
            *bytes = crate::detach(kept);
        }
        if self.copied_sent > COMPACT_ABOVE_BYTES {
            self.copied.drain(..self.copied_sent);
            for (after, _) in &mut self.shared {
                *after -= self.copied_sent;
            }
            self.copied_sent = 0;
        }
    }

    /// The memory that the queue has allocated for itself, in bytes, without shared pieces.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.copied.capacity() + self.shared.capacity() * size_of::<(usize, Bytes)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            pieces in proptest::collection::vec((any::<bool>(), 0_usize..6000), 0..40),
            rooms in proptest::collection::vec(1_usize..9000, 0..80),
        ) {
            let mut queue = SendQueue::new();
            let mut expected = Vec::new();
            let mut sink = Narrow { taken: Vec::new(), per_call: Vec::new() };
            for (index, (shared, length)) in pieces.iter().enumerate() {
                let piece = vec![index as u8; *length];
                expected.extend_from_slice(&piece);
                if *shared {
                    queue.push(Bytes::from(piece));
                } else {
                    queue.tail().extend_from_slice(&piece);
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

    #[test]
    fn a_sink_that_takes_nothing_is_an_error() {
        let mut queue = SendQueue::new();
        queue.tail().extend_from_slice(b"pong");
        let mut sink = Narrow { taken: Vec::new(), per_call: vec![0] };
        assert_eq!(queue.flush(&mut sink).unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}
