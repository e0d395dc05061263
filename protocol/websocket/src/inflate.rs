//! RFC 7692 §7.2.2: decompressing messages, a bounded piece at a time.

use bolide_semantics::End;
use bytes::{Buf, Bytes};
use flate2::{Decompress, FlushDecompress, Status};

use crate::deflate::FLUSH_TAIL;
use crate::failure::Failure;
use crate::{CloseCode, Limits};

/// The largest piece that is inflated at once, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

static CORRUPT: Failure = Failure {
    code: CloseCode::INVALID_DATA,
    what: "a compressed message can't be inflated",
    limit: None,
};
static TOO_BIG: Failure = Failure {
    code: CloseCode::TOO_BIG,
    what: "a message is too big",
    limit: Some("message-bytes"),
};
static BOMB: Failure = Failure {
    code: CloseCode::TOO_BIG,
    what: "a message inflates to far more than it took",
    limit: Some("inflate-ratio-count"),
};

/// Memory that a decompressor takes in addition to its window, in bytes.
const STATE_BYTES: usize = 10 * 1024;

/// The decompressor of one direction.
#[derive(Debug)]
pub(crate) struct Inflater {
    /// Made when it is needed; dropped after each message when the peer keeps no context.
    stream: Option<Decompress>,
    window_bits: u8,
    keeps_context: bool,
    pending: Bytes,
    /// Mark: what has come is the end of the message.
    is_last: bool,
    /// The tail that the wire leaves out was appended.
    has_tail: bool,
    /// Mark: what was pulled last came before something that can't be inflated.
    is_broken: bool,
    taken_bytes: u64,
    made_bytes: u64,
}

impl Inflater {
    pub(crate) fn new(window_bits: u8, keeps_context: bool) -> Self {
        Self {
            stream: None,
            // Larger than the peer's does no harm, and the library knows none of 8.
            window_bits: window_bits.clamp(9, 15),
            keeps_context,
            pending: Bytes::new(),
            is_last: false,
            has_tail: false,
            is_broken: false,
            taken_bytes: 0,
            made_bytes: 0,
        }
    }

    /// Its memory, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let stream = self.stream.as_ref().map_or(0, |_| STATE_BYTES + (1 << self.window_bits));
        stream + self.pending.len()
    }

    /// Gives the next piece, once everything of the one before was pulled.
    pub(crate) fn push(&mut self, piece: Bytes, is_last: bool) {
        self.pending = piece;
        self.is_last = is_last;
    }

    /// Returns whether there may be more to pull.
    pub(crate) fn is_pending(&self) -> bool {
        self.is_last || self.is_broken || !self.pending.is_empty()
    }

    /// The next inflated piece; `None` when the wire has to bring more first.
    pub(crate) fn pull(&mut self, limits: &Limits) -> Result<Option<(Bytes, End)>, Failure> {
        if self.is_broken {
            return Err(CORRUPT);
        }
        let window_bits = self.window_bits;
        let stream =
            self.stream.get_or_insert_with(|| Decompress::new_with_window_bits(false, window_bits));
        let mut out = Vec::new();
        let mut is_complete = false;
        while !is_complete {
            if self.pending.is_empty() {
                if !self.is_last {
                    break;
                }
                if self.has_tail {
                    is_complete = true;
                    continue;
                }
                self.has_tail = true;
                self.pending = Bytes::from_static(&FLUSH_TAIL);
            }
            if out.capacity() == 0 {
                out.reserve(piece_bytes(self.pending.len()));
            }
            let before = stream.total_in();
            let status = stream.decompress_vec(&self.pending, &mut out, FlushDecompress::Sync);
            let used = usize::try_from(stream.total_in() - before).unwrap_or(usize::MAX);
            self.pending.advance(used.min(self.pending.len()));
            self.taken_bytes += used as u64;
            let is_full = out.len() == out.capacity();
            match status {
                // RFC 7692 §7.2.3.4: a final block; another may follow it in the same message.
                Ok(Status::StreamEnd) => stream.reset(false),
                Ok(_) if is_full => break,
                Ok(_) if used > 0 => {}
                // What comes before the mistake is judged first, however the message is cut.
                Ok(_) | Err(_) => {
                    self.is_broken = true;
                    break;
                }
            }
        }
        if self.is_broken && out.is_empty() {
            return Err(CORRUPT);
        }
        self.made_bytes += out.len() as u64;
        let fair = self.taken_bytes.saturating_mul(limits.inflate_ratio_count);
        if self.made_bytes > limits.inflate_free_bytes && self.made_bytes > fair {
            return Err(BOMB);
        }
        let wire_bytes_max = limits.message_bytes.saturating_add(limits.message_bytes / 8 + 1024);
        if self.made_bytes > limits.message_bytes || self.taken_bytes > wire_bytes_max {
            return Err(TOO_BIG);
        }
        if is_complete {
            self.complete();
            return Ok(Some((out.into(), End::Yes)));
        }
        Ok((!out.is_empty()).then(|| (out.into(), End::No)))
    }

    fn complete(&mut self) {
        self.is_last = false;
        self.has_tail = false;
        self.taken_bytes = 0;
        self.made_bytes = 0;
        if !self.keeps_context {
            self.stream = None;
        }
    }
}

/// How much room the inflated form of `length` bytes is given.
fn piece_bytes(length: usize) -> usize {
    length.saturating_mul(4).clamp(512, PIECE_BYTES)
}
