//! The buffers that pieces of large files are read into: counted, so that slow clients can't make many
//! of them, and used again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::limits::{PIECE_BYTES, PIECE_MIN_BYTES, PIECES_BYTES};

/// Sizes of buffers: each is twice the one before, from `PIECE_MIN_BYTES` to `PIECE_BYTES`.
const SIZES: usize = size_index(PIECE_BYTES) + 1;

/// How many buffers of each size but the smallest are kept for the next pieces.
const SPARE_COUNT: usize = 16;

/// Which of the sizes is enough for so many bytes.
const fn size_index(bytes: usize) -> usize {
    bytes.div_ceil(PIECE_MIN_BYTES).next_power_of_two().trailing_zeros() as usize
}

/// Memory that all workers have out in pieces.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    out_bytes: AtomicUsize,
    /// By size.
    spare: Mutex<[Vec<Box<[u8]>>; SIZES]>,
}

impl Pieces {
    /// How large the next piece may be, for a client that has taken `taken` bytes already: it grows
    /// with what was taken, and is small while others hold too much.
    pub(crate) fn next_bytes(&self, taken: u64) -> usize {
        if self.out_bytes.load(Ordering::Relaxed) >= PIECES_BYTES {
            return PIECE_MIN_BYTES;
        }
        usize::try_from(taken).unwrap_or(PIECE_BYTES).clamp(PIECE_MIN_BYTES, PIECE_BYTES)
    }

    /// Has `read` fill a buffer of at most `bytes` bytes.
    pub(crate) fn fill<E>(
        self: &Arc<Self>,
        bytes: usize,
        read: impl FnOnce(&mut [u8]) -> Result<Option<usize>, E>,
    ) -> Result<Option<Bytes>, E> {
        let mut piece = self.take(bytes);
        let Some(filled) = read(&mut piece.buffer[..bytes])? else { return Ok(None) };
        piece.filled = filled.min(bytes);
        Ok(Some(Bytes::from_owner(piece)))
    }

    /// A buffer of at least so many bytes, no more than [`PIECE_BYTES`].
    fn take(self: &Arc<Self>, bytes: usize) -> Piece {
        let size = size_index(bytes);
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner)[size].pop();
        let buffer = spare.unwrap_or_else(|| vec![0; PIECE_MIN_BYTES << size].into_boxed_slice());
        self.out_bytes.fetch_add(buffer.len(), Ordering::Relaxed);
        Piece { buffer, filled: 0, pieces: Arc::clone(self) }
    }
}

/// One buffer that is out.
struct Piece {
    buffer: Box<[u8]>,
    filled: usize,
    pieces: Arc<Pieces>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.pieces.out_bytes.fetch_sub(self.buffer.len(), Ordering::Relaxed);
        let size = size_index(self.buffer.len());
        if size > 0 {
            let mut spare = self.pieces.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if spare[size].len() < SPARE_COUNT {
                spare[size].push(std::mem::take(&mut self.buffer));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(pieces: &Arc<Pieces>, bytes: usize) -> Bytes {
        let filled = pieces.fill(bytes, |buffer| Ok::<_, ()>(Some(buffer.len())));
        filled.unwrap().unwrap()
    }

    #[test]
    fn slow_downloads_hold_small_pieces() {
        let pieces = Arc::new(Pieces::default());
        assert_eq!(pieces.next_bytes(0), PIECE_MIN_BYTES, "who has taken nothing gets little");
        assert_eq!(pieces.next_bytes(100_000), 100_000);
        assert_eq!(pieces.next_bytes(1 << 40), PIECE_BYTES);
        let held: Vec<_> = (0..256).map(|_| piece(&pieces, PIECE_BYTES)).collect();
        assert_eq!(pieces.next_bytes(1 << 40), PIECE_MIN_BYTES);
        let small = piece(&pieces, PIECE_MIN_BYTES);
        assert_eq!(pieces.out_bytes.load(Ordering::Relaxed), PIECES_BYTES + PIECE_MIN_BYTES);
        drop(held);
        assert_eq!(pieces.next_bytes(1 << 40), PIECE_BYTES);
        assert_eq!(pieces.spare.lock().unwrap()[size_index(PIECE_BYTES)].len(), SPARE_COUNT);
        drop(small);
        assert_eq!(pieces.out_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_piece_takes_at_most_twice_what_was_asked_for() {
        let pieces = Arc::new(Pieces::default());
        for (bytes, taken) in [(1, 16), (16 * 1024 + 1, 32), (65_536, 64), (200_000, 256)] {
            let held = piece(&pieces, bytes);
            assert_eq!(held.len(), bytes);
            assert_eq!(pieces.out_bytes.load(Ordering::Relaxed), taken * 1024, "for {bytes}");
        }
        let is_kept = pieces.spare.lock().unwrap().each_ref().map(|spare| spare.len() == 1);
        assert_eq!(is_kept, [false, true, true, false, true]);
    }

    #[test]
    fn a_piece_ends_where_it_was_filled() {
        let pieces = Arc::new(Pieces::default());
        let short = pieces.fill(1000, |buffer| {
            buffer[..3].copy_from_slice(b"abc");
            Ok::<_, ()>(Some(3))
        });
        assert_eq!(short.unwrap().unwrap(), "abc");
        assert_eq!(pieces.fill(1000, |_| Ok::<_, ()>(None)), Ok(None));
        assert_eq!(pieces.fill(1000, |_| Err("no")), Err("no"));
        assert_eq!(pieces.out_bytes.load(Ordering::Relaxed), 0);
    }
}
