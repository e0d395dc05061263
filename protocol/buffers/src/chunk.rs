//! A piece of a body on its way out, and whose memory it is.

use bytes::Bytes;

use crate::receive_buffer::DETACH_BELOW_BYTES;

/// Slices of one block that are no further apart than this count as one when they are kept, in bytes: between
/// two of them stands a frame's header.
const NEAR_BYTES: usize = 64;

/// The owner of the memory of a [`Chunk`]'s bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Memory {
    /// A slice of a block that is read into, maybe: who keeps it copies it.
    #[default]
    Lent,
    /// Of its own, for as long as the chunk waits.
    Kept,
    /// Of an owner that keeps it anyway, a cached file say: waiting for it costs nothing.
    Shared,
}

/// Bytes that are to be sent, and whether they may wait as they are.
///
/// Bytes are *lent* unless said otherwise: they may be a slice of a
/// [`ReceiveBuffer`](crate::ReceiveBuffer), of which a few would keep a whole block alive, so to keep
/// them, [detach](crate::detach) them. Bytes of one's own, a file in memory say, are shared as long as
/// they wait, however many wait for the same.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    /// The bytes.
    pub bytes: Bytes,
    /// The owner of their memory.
    pub memory: Memory,
}

impl Chunk {
    /// Bytes that their owner keeps anyway: they are never copied to wait.
    #[inline]
    #[must_use]
    pub fn shared(bytes: Bytes) -> Self {
        Self { bytes, memory: Memory::Shared }
    }

    /// Bytes in memory of their own: they are never copied to wait.
    #[inline]
    #[must_use]
    pub fn kept(bytes: Bytes) -> Self {
        Self { bytes, memory: Memory::Kept }
    }

    /// Returns whether they may be a slice of a block that is read into.
    #[inline]
    #[must_use]
    pub fn is_lent(&self) -> bool {
        self.memory == Memory::Lent
    }

    /// The memory that waits with them, in bytes.
    #[inline]
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        if self.memory == Memory::Shared { 0 } else { self.bytes.len() }
    }

    /// The same, ready to wait for longer than the turn.
    #[must_use]
    pub fn detach(self) -> Self {
        if self.is_lent() { Self::kept(crate::detach(self.bytes)) } else { self }
    }
}

impl AsRef<Self> for Chunk {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsMut<Self> for Chunk {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// Prepares pieces, in order, for waiting beyond the turn: those that are lent get memory of their own unless they,
/// with their neighbours in the same block, fill a good part of it. What was copied once is never copied
/// again, so this may be called as often as pieces join the others.
pub(crate) fn settle(pieces: &mut [impl AsRef<Chunk> + AsMut<Chunk>]) {
    for run in pieces.chunk_by_mut(|before, after| is_near(before.as_ref(), after.as_ref())) {
        if run.iter().map(|piece| piece.as_ref().bytes.len()).sum::<usize>() < DETACH_BELOW_BYTES {
            for chunk in run.iter_mut().map(AsMut::as_mut).filter(|chunk| chunk.is_lent()) {
                *chunk = Chunk::kept(Bytes::copy_from_slice(&chunk.bytes));
            }
        }
    }
}

/// Returns whether `after` is lent like `before` and begins where that ends in memory, or a header further.
fn is_near(before: &Chunk, after: &Chunk) -> bool {
    let end = before.bytes.as_ptr() as usize + before.bytes.len();
    before.is_lent() == after.is_lent()
        && (after.bytes.as_ptr() as usize).wrapping_sub(end) <= NEAR_BYTES
}

impl From<Bytes> for Chunk {
    #[inline]
    fn from(bytes: Bytes) -> Self {
        Self { bytes, memory: Memory::Lent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_copied_to_wait_and_what_is_own_is_shared() {
        let bytes = Bytes::from(vec![1; 4096]);
        let lent = Chunk::from(bytes.clone()).detach();
        assert_eq!(lent.bytes, bytes);
        assert_ne!(lent.bytes.as_ptr(), bytes.as_ptr());
        let own = Chunk::shared(bytes.clone()).detach();
        assert_eq!(own.bytes.as_ptr(), bytes.as_ptr());
    }

    #[test]
    fn slices_that_fill_a_block_together_stay_and_one_alone_is_copied_once() {
        let block = Bytes::from(vec![7; 2 * DETACH_BELOW_BYTES]);
        let frames = (0..block.len()).step_by(16 * 1024);
        let mut pieces: Vec<Chunk> =
            frames.map(|start| block.slice(start + 9..start + 16 * 1024).into()).collect();
        pieces.push(Bytes::from(vec![8; 10_000]).into());
        let address = |pieces: &[Chunk], at: usize| pieces[at].bytes.as_ptr();
        let alone = address(&pieces, 8);
        settle(&mut pieces);
        assert_eq!(address(&pieces, 0), block[9..].as_ptr());
        assert_eq!(address(&pieces, 7), block[7 * 16 * 1024 + 9..].as_ptr());
        let copy = address(&pieces, 8);
        assert_ne!(copy, alone);
        settle(&mut pieces);
        assert_eq!(address(&pieces, 8), copy);
        // What is left of a block when most of it was passed on no longer keeps it.
        settle(&mut pieces[6..]);
        assert_ne!(address(&pieces, 7), block[7 * 16 * 1024 + 9..].as_ptr());
    }

    #[test]
    fn nothing_is_copied_twice() {
        let once = Chunk::from(Bytes::from(vec![1; 100])).detach();
        let address = once.bytes.as_ptr();
        assert_eq!(once.detach().bytes.as_ptr(), address);
    }
}
