//! RFC 7692 §7.2.1: compressing messages.

use bolide_semantics::End;
use flate2::{Compress, Compression, FlushCompress};

/// End of every flush, and what no message on the wire does.
pub(crate) const FLUSH_TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// How hard is tried, of 9: the size hardly changes beyond, the cost does.
const LEVEL: u32 = 3;

/// Output grows by this, in bytes.
const GROWTH_BYTES: usize = 16 * 1024;

/// Memory that a compressor takes, in bytes.
const STATE_BYTES: usize = 350 * 1024;

/// The compressor of one direction.
#[derive(Debug)]
pub(crate) struct Deflater {
    /// Made when it is needed; dropped after each message when no context is kept.
    stream: Option<Compress>,
    window_bits: u8,
    keeps_context: bool,
}

impl Deflater {
    /// A compressor; `None` for a window that is too small for it: messages go as they are then.
    pub(crate) fn new(window_bits: u8, keeps_context: bool) -> Option<Self> {
        (9..=15).contains(&window_bits).then_some(Self { stream: None, window_bits, keeps_context })
    }

    /// Its memory, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.stream.as_ref().map_or(0, |_| STATE_BYTES)
    }

    /// Compresses a piece of a message.
    pub(crate) fn piece(&mut self, data: &[u8], end: End) -> Vec<u8> {
        let mut out = Vec::with_capacity(data.len() / 2 + 64);
        if data.is_empty() {
            // RFC 7692 §7.2.3.6: an empty block; compressors don't flush when there is nothing new.
            out.push(0);
            out.extend_from_slice(&FLUSH_TAIL);
        } else {
            let stream = self.stream.get_or_insert_with(|| {
                Compress::new_with_window_bits(Compression::new(LEVEL), false, self.window_bits)
            });
            compress(stream, data, &mut out);
        }
        if end == End::Yes {
            debug_assert!(out.ends_with(&FLUSH_TAIL), "a flush ends in an empty block");
            out.truncate(out.len() - FLUSH_TAIL.len());
            if !self.keeps_context {
                self.stream = None;
            }
        }
        out
    }
}

fn compress(stream: &mut Compress, data: &[u8], out: &mut Vec<u8>) {
    let mut rest = data;
    loop {
        if out.capacity() - out.len() < 64 {
            out.reserve(GROWTH_BYTES);
        }
        let before = stream.total_in();
        stream
            .compress_vec(rest, out, FlushCompress::Sync)
            .expect("a compressor fails only after its end, which nobody asks for");
        rest = &rest[(stream.total_in() - before) as usize..];
        if out.len() < out.capacity() {
            return;
        }
    }
}
