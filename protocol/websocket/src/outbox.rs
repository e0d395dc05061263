//! RFC 6455 §6.1: what is to leave: small pieces together, large ones shared.

use std::collections::VecDeque;

use bytes::Bytes;

/// Pieces below this size are copied, in bytes: one piece more would cost as much.
const COPY_BELOW_BYTES: usize = 2048;

/// Returns whether content is copied behind its frame's head.
#[inline]
pub(crate) fn is_copied(content: &[u8]) -> bool {
    content.len() < COPY_BELOW_BYTES
}

/// Frames that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    ready: VecDeque<Bytes>,
    ready_bytes: usize,
    /// The newest bytes, which still grow.
    tail: Vec<u8>,
}

impl Outbox {
    pub(crate) fn len(&self) -> usize {
        self.ready_bytes + self.tail.len()
    }

    /// The memory of what waits, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let places = self.ready.capacity() * size_of::<Bytes>();
        self.ready_bytes + places + self.tail.capacity()
    }

    /// Returns where heads and small pieces are appended, with room for so many bytes: most frames leave alone, so that what one takes
    /// is no more than it needs.
    pub(crate) fn tail(&mut self, bytes: usize) -> &mut Vec<u8> {
        if self.tail.is_empty() {
            self.tail.reserve_exact(bytes);
        }
        &mut self.tail
    }

    pub(crate) fn push(&mut self, bytes: Bytes) {
        if is_copied(&bytes) {
            self.tail.extend_from_slice(&bytes);
            return;
        }
        self.seal();
        self.ready_bytes += bytes.len();
        self.ready.push_back(bytes);
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.ready_bytes += self.tail.len();
            self.ready.push_back(std::mem::take(&mut self.tail).into());
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() {
            self.seal();
        }
        let bytes = self.ready.pop_front()?;
        self.ready_bytes -= bytes.len();
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_leave_together_and_large_ones_as_they_are() {
        let mut outbox = Outbox::default();
        outbox.tail(4).extend_from_slice(b"head");
        let large = Bytes::from(vec![7; COPY_BELOW_BYTES]);
        outbox.push(large.clone());
        outbox.push(Bytes::from_static(b"a"));
        outbox.push(Bytes::from_static(b"b"));
        assert_eq!(outbox.len(), 4 + COPY_BELOW_BYTES + 2);
        assert_eq!(outbox.pop().unwrap(), "head");
        assert_eq!(outbox.pop().unwrap().as_ptr(), large.as_ptr());
        assert_eq!(outbox.pop().unwrap(), "ab");
        assert_eq!((outbox.pop(), outbox.len()), (None, 0));
    }
}
