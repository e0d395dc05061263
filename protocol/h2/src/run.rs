//! RFC 9113 §6.1, §6.9: frame after frame of one stream's body, as a large transfer consists of them.
//!
//! The first frame is read with everything that a DATA frame may bring up. What it leaves is a run: how much of the
//! same stream may follow before a window, the body's length or anything else has a say. Frames within that are handed
//! on as they lie there, and what they and their consumption mean for stream and windows is settled once, before
//! anything else happens. The peer can't tell: what is queued within a turn leaves at its end.

use bolide_buffers::ReceiveBuffer;
use bolide_semantics::ExchangeId;
use bytes::{Buf, Bytes};

use crate::frame::{FrameHeader, HEADER_BYTES, kind};
use crate::limits::{Frames, SMALL_DATA_BYTES};
use crate::receive_window::ReceiveWindow;
use crate::stream::Stream;

/// A body of which frames follow each other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    /// Zero when there is none.
    pub(crate) stream: u32,
    pub(crate) slot: u32,
    /// Bytes that may follow in it.
    left: u32,
    /// Bytes that came in it.
    pub(crate) received: u32,
    /// Bytes of the body that wait to be consumed, and those that were consumed since the run began.
    unconsumed: u32,
    pub(crate) consumed: u32,
    /// The stream of the last run.
    pub(crate) last: u32,
}

impl Run {
    /// A DATA frame of this stream was read to its end, and the stream has not ended.
    #[inline]
    pub(crate) fn of(stream: &Stream, slot: u32, connection: &ReceiveWindow) -> Self {
        let receiving = &stream.receiving;
        let room = receiving.window.room().min(connection.room());
        // The last byte may be no body's end, and the end itself is looked at.
        let left = u64::from(room).min(receiving.left.saturating_sub(1)) as u32;
        let (id, unconsumed) = (stream.id, receiving.unconsumed);
        Self { stream: id, slot, left, received: 0, unconsumed, consumed: 0, last: id }
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.stream != 0
    }

    /// The data of the run's next frame, if that is what the input begins with, whole.
    #[inline]
    pub(crate) fn next(
        &mut self,
        input: &mut ReceiveBuffer,
        frame_bytes_max: u32,
    ) -> Option<Bytes> {
        let unread = input.unread();
        let header = FrameHeader::parse(unread.first_chunk::<HEADER_BYTES>()?);
        let frame_bytes = HEADER_BYTES + header.length as usize;
        let fits = header.stream == self.stream
            && (header.kind, header.flags) == (kind::DATA, 0)
            && header.length <= self.left
            && header.length > SMALL_DATA_BYTES
            && header.length <= frame_bytes_max.max(Frames::DEFAULT.frame_bytes)
            && frame_bytes <= unread.len();
        if !fits {
            return None;
        }
        self.left -= header.length;
        self.received += header.length;
        self.unconsumed += header.length;
        let mut data = input.take(frame_bytes);
        data.advance(HEADER_BYTES);
        Some(data)
    }

    /// The run is over. Returns what it came to.
    #[inline]
    pub(crate) fn close(&mut self) -> Self {
        std::mem::replace(self, Self { last: self.last, ..Self::default() })
    }

    /// Counts consumed bytes; false when they are not the run's.
    #[inline]
    pub(crate) fn consumes(&mut self, id: ExchangeId, bytes: usize) -> bool {
        if self.stream != id.0 || bytes > self.unconsumed as usize {
            return false;
        }
        self.unconsumed -= bytes as u32;
        self.consumed += bytes as u32;
        true
    }
}
