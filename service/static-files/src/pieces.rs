//! The buffers that pieces of large files are read into: counted, so that slow clients can't make many
//! of them, and used again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::limits::{PIECE_BYTES, PIECE_MIN_BYTES, PIECES_BYTES};

/// How many large buffers are kept for the next pieces.
const SPARE_COUNT: usize = 16;

/// Memory that all workers have out in pieces.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    out_bytes: AtomicUsize,
    spare: Mutex<Vec<Box<[u8]>>>,
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

    fn take(self: &Arc<Self>, bytes: usize) -> Piece {
        let spare = if bytes > PIECE_MIN_BYTES {
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop()
        } else {
            None
        };
        let size = if bytes > PIECE_MIN_BYTES { PIECE_BYTES } else { PIECE_MIN_BYTES };
        let buffer = spare.unwrap_or_else(|| vec![0; size.max(bytes)].into_boxed_slice());
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
        if self.buffer.len() == PIECE_BYTES {
            let mut spare = self.pieces.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < SPARE_COUNT {
                spare.push(std::mem::take(&mut self.buffer));
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
        assert_eq!(pieces.spare.lock().unwrap().len(), SPARE_COUNT);
        drop(small);
        assert_eq!(pieces.out_bytes.load(Ordering::Relaxed), 0);
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
