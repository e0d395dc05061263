//! RFC 9113 §6.1, §6.9: frame after frame of one stream's body, as a large transfer consists of them.
//!
//! The first frame is read with everything that a DATA frame may bring up. What it leaves is a run: how much of the
//! same stream may follow before a window, the body's length or anything else has a say. Frames within that are handed
//! on as they lie there, and what they and their consumption mean for stream and windows is settled once, before
//! anything else happens. The peer can't tell: what is queued within a turn leaves at its end.

use bolide_semantics::{Context, End, ExchangeEvent, ExchangeId, Output};
use bytes::Buf;

use crate::connection::Connection;
use crate::frame::{FrameHeader, HEADER_BYTES, kind};
use crate::incoming::Run;
use crate::limits::{FRAME_BYTES, SMALL_DATA_BYTES};
use crate::stream::{LENGTH_UNKNOWN, Part};

impl Connection {
    /// A DATA frame of this stream was read to its end, and the stream has not ended.
    #[inline]
    pub(crate) fn begin_run(&mut self, slot: u32) {
        let stream = self.streams.get(slot);
        let receiving = &stream.receiving;
        let room = receiving.window.room().min(self.receive_flow.window.room());
        // The last byte may be no body's end, and the end itself is looked at.
        let left = u64::from(room).min(receiving.left.saturating_sub(1)) as u32;
        let unconsumed = receiving.unconsumed;
        let (stream, last) = (stream.id, stream.id);
        let run = Run { stream, slot, left, received: 0, unconsumed, consumed: 0, last };
        **self.incoming.run.get_or_insert_default() = run;
    }

    /// The next frame of the run, if that is what the input begins with, whole.
    #[inline]
    pub(crate) fn next_of_run(&mut self, cx: &mut Context<'_>) -> Option<Output> {
        let unread = cx.input.unread();
        let header = FrameHeader::parse(unread.first_chunk::<HEADER_BYTES>()?);
        let frame_bytes = HEADER_BYTES + header.length as usize;
        let run = self.incoming.run.as_mut()?;
        let fits = header.stream == run.stream
            && (header.kind, header.flags) == (kind::DATA, 0)
            && header.length <= run.left
            && header.length > SMALL_DATA_BYTES
            && header.length <= self.limits.frame_bytes.max(FRAME_BYTES)
            && frame_bytes <= unread.len();
        if !fits || !self.pending.is_empty() {
            return None;
        }
        run.left -= header.length;
        run.received += header.length;
        run.unconsumed += header.length;
        self.incoming.frames = self.incoming.frames.wrapping_add(1);
        let mut data = cx.input.take(frame_bytes);
        data.advance(HEADER_BYTES);
        Some(Output::Exchange(ExchangeId(header.stream), ExchangeEvent::Data(data, End::No)))
    }

    /// The run is over: what came in it counts.
    pub(crate) fn settle_run(&mut self, cx: &mut Context<'_>) {
        let Some(run) = &mut self.incoming.run else { return };
        let Run { slot, received, consumed, last, .. } = **run;
        **run = Run { last, ..Run::default() };
        let clock = self.deadlines.clock;
        if received > 0 {
            self.deadlines.received_ms = clock.ms;
            let stream = self.streams.get_mut(slot);
            // The run's length has seen to it that both take it.
            let _ = stream.receiving.window.receive(received, clock.us);
            let _ = self.receive_flow.window.receive(received, clock.us);
            self.count_received(slot, received);
        }
        if consumed > 0 {
            self.consume(cx, slot, consumed);
        }
    }

    /// How many bytes of the body that came last are still to come, as far as its length is known and our windows let
    /// the peer send them (RFC 9113 §5.2): it sends them without waiting for anything. 0: nobody knows.
    #[inline]
    #[must_use]
    pub fn expects(&self) -> u64 {
        self.incoming.run.as_ref().map_or(0, |run| self.expects_of(run.last))
    }

    fn expects_of(&self, id: u32) -> u64 {
        let Some(slot) = self.streams.find(id) else { return 0 };
        let stream = self.streams.get(slot);
        let (state, stream) = (stream.state, &stream.receiving);
        if stream.left == LENGTH_UNKNOWN || state.receiving() != Some(Part::Content) {
            return 0;
        }
        let allowed = stream.window.available.min(self.receive_flow.window.available);
        stream.left.min(allowed.max(0) as u64)
    }
}
