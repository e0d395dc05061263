//! How large the pieces are that an upload is given in.

use bytes::Bytes;

/// The largest piece, in bytes: what one write takes well.
const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// The least, in bytes: one frame of HTTP/2.
const PIECE_BYTES_MIN: usize = 16 * 1024;

/// A piece that leaves faster than this is followed by a larger one, in nanoseconds (4 ms).
const FAST_NS: u64 = 4_000_000;

/// One that takes longer is followed by a smaller one, in nanoseconds (40 ms): what is counted as sent is
/// then never more than a look's fraction ahead of what was.
const SLOW_NS: u64 = 40_000_000;

/// Block that uploads are made of. It is never copied.
static BLOCK: [u8; PIECE_BYTES_MAX] = [0; PIECE_BYTES_MAX];

/// The pieces of one upload.
#[derive(Debug)]
pub(super) struct Feed {
    /// Size that is still to be given; `None`: as long as there is time.
    left: Option<u64>,
    piece_bytes: usize,
    /// When the last one was given that could not leave at once.
    given_ns: Option<u64>,
    /// The last piece has been given.
    pub(super) is_over: bool,
}

impl Feed {
    /// An upload of so many bytes; `None`: of as many as there is time for.
    pub(super) fn new(bytes: Option<u64>) -> Self {
        Self { left: bytes, piece_bytes: 4 * PIECE_BYTES_MIN, given_ns: None, is_over: false }
    }

    /// The next piece, and whether it is the last. `ends`: time is over.
    pub(super) fn next(&mut self, now_ns: u64, ends: bool) -> (Bytes, bool) {
        if let Some(given_ns) = self.given_ns.replace(now_ns) {
            let took_ns = now_ns.saturating_sub(given_ns);
            if took_ns < FAST_NS {
                self.piece_bytes = (self.piece_bytes * 2).min(PIECE_BYTES_MAX);
            } else if took_ns > SLOW_NS {
                self.piece_bytes = (self.piece_bytes / 2).max(PIECE_BYTES_MIN);
            }
        }
        let Some(left) = &mut self.left else {
            self.is_over = ends;
            let length = if ends { 0 } else { self.piece_bytes };
            return (Bytes::from_static(&BLOCK[..length]), ends);
        };
        let length = self.piece_bytes.min(usize::try_from(*left).unwrap_or(usize::MAX));
        *left -= length as u64;
        self.is_over = *left == 0;
        (Bytes::from_static(&BLOCK[..length]), self.is_over)
    }

    /// Returns what has not been given, where an end is known.
    pub(super) fn left(&self) -> u64 {
        self.left.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_length_is_given_to_the_byte() {
        let mut feed = Feed::new(Some(3_000_001));
        let (mut sum, mut now_ns) = (0, 0);
        loop {
            let (piece, last) = feed.next(now_ns, false);
            sum += piece.len();
            now_ns += 1000;
            assert_eq!(last, feed.is_over);
            if last {
                break;
            }
        }
        assert_eq!((sum, feed.left()), (3_000_001, 0));
    }

    #[test]
    fn pieces_follow_the_pace() {
        let mut feed = Feed::new(None);
        let mut at = |now_ns| feed.next(now_ns, false).0.len();
        let first = at(0);
        assert_eq!(at(1_000_000), 2 * first);
        for step in 2..10 {
            at(step * 1_000_000);
        }
        assert_eq!(at(10_000_000), PIECE_BYTES_MAX);
        assert_eq!(at(20_000_000), PIECE_BYTES_MAX, "neither fast nor slow");
        for step in 1..10 {
            at(20_000_000 + step * 100_000_000);
        }
        assert_eq!(at(2_000_000_000), PIECE_BYTES_MIN);
    }

    #[test]
    fn without_a_length_the_time_ends_it() {
        let mut feed = Feed::new(None);
        assert!(!feed.next(0, false).1 && !feed.is_over);
        let (piece, last) = feed.next(1, true);
        assert!(piece.is_empty() && last && feed.is_over);
    }

    #[test]
    fn an_empty_upload_is_one_empty_piece() {
        let (piece, last) = Feed::new(Some(0)).next(0, false);
        assert!(piece.is_empty() && last);
    }
}
