//! RFC 9113 §8.1: a request's body that has arrived by the time its head is reported.
//!
//! Clients that send several requests at once often send the heads first and the bodies after them. So the
//! body is looked for behind frames of other streams, and its frame is passed over when reading comes to it.

use bolide_buffers::ReceiveBuffer;
use bolide_semantics::{Context, ExchangeId};
use bytes::Bytes;

use crate::connection::Connection;
use crate::frame::{FrameHeader, HEADER_BYTES, flag, kind};
use crate::incoming::EXHAUSTED;
use crate::limits::FRAMES_AHEAD_COUNT;
use crate::stream::{Kind, Part, State};

impl Connection {
    /// A copy of the whole body of the request whose head was just reported, if it has arrived in one frame
    /// without padding, of at most `bytes_max` bytes. It counts as received, and not yet as
    /// [consumed](Self::consumed). `None`, and nothing has happened: the body comes by [`poll`](Self::poll).
    #[inline]
    pub fn whole_body(
        &mut self,
        input: &mut ReceiveBuffer,
        id: ExchangeId,
        bytes_max: usize,
    ) -> Option<Bytes> {
        let ahead = &mut self.incoming.ahead;
        if ahead.from_end == EXHAUSTED || ahead.taken.len() >= FRAMES_AHEAD_COUNT {
            return None;
        }
        let from_end = std::mem::replace(&mut ahead.from_end, EXHAUSTED);
        let (found, left) = self.find_body(input.unread(), from_end, id, bytes_max)?;
        let ahead = &mut self.incoming.ahead;
        ahead.from_end = left;
        ahead.taken.push(id.0);
        Some(Bytes::copy_from_slice(found))
    }

    /// Passes over a DATA frame that reading has come to, if it was taken.
    #[inline]
    pub(crate) fn passes_over(&mut self, cx: &mut Context<'_>, header: FrameHeader) -> bool {
        if !self.incoming.ahead.taken.remove(header.stream) {
            return false;
        }
        cx.input.consume(HEADER_BYTES);
        self.incoming.skip = header.length;
        true
    }

    /// The payload of the frame that is the body, and how many bytes of the input come after it.
    fn find_body<'a>(
        &mut self,
        unread: &'a [u8],
        from_end: u32,
        id: ExchangeId,
        bytes_max: usize,
    ) -> Option<(&'a [u8], u32)> {
        if !self.incoming.is_between_frames() {
            return None;
        }
        // Reading may have come further than that; what is not known is further from the end than anything.
        let mut rest = &unread[unread.len().saturating_sub(from_end as usize)..];
        let frame_bytes_max = self.limits.frames.frame_bytes as usize;
        for _ in 0..FRAMES_AHEAD_COUNT {
            let Some(header) = rest.first_chunk::<HEADER_BYTES>() else { break };
            let header = FrameHeader::parse(header);
            let length = header.length as usize;
            let Some(payload) = rest.get(HEADER_BYTES..HEADER_BYTES + length) else { break };
            let plain = match header.kind {
                kind::DATA => length <= frame_bytes_max,
                kind::HEADERS => header.has(flag::END_HEADERS),
                _ => false,
            };
            if !plain {
                break;
            }
            if header.stream == id.0 {
                if header.kind != kind::DATA || !self.takes_whole(header, bytes_max) {
                    return None;
                }
                let left = rest.len() - HEADER_BYTES - length;
                return Some((payload, u32::try_from(left).ok().filter(|left| *left < EXHAUSTED)?));
            }
            rest = &rest[HEADER_BYTES + length..];
        }
        None
    }

    /// Receives a DATA frame ahead of its turn, if it is the whole body of its request and breaks no rule:
    /// a peer that breaks one learns it when reading comes to the frame.
    fn takes_whole(&mut self, header: FrameHeader, bytes_max: usize) -> bool {
        let length = header.length;
        let ends = header.flags & (flag::END_STREAM | flag::PADDED) == flag::END_STREAM;
        let clock = self.deadlines.clock;
        let Some(slot) = self.streams.find(header.stream) else { return false };
        let connection = &mut self.receive_flow.window;
        let stream = self.streams.get_mut(slot);
        let takes = ends
            && length as usize <= bytes_max
            && matches!(stream.state, State::Open { receiving: Part::Content, .. })
            && stream.kind != Kind::Tunnel
            && stream.receiving.expects(length, true)
            && i64::from(length) < i64::from(stream.receiving.window.available)
            && i64::from(length) < i64::from(connection.available);
        if !takes || !connection.receive(length, clock.us) {
            return false;
        }
        // Windows that are not used up: nothing of that is to be counted.
        let received = stream.receiving.window.receive(length, clock.us);
        debug_assert!(received, "the window has room, as was looked at");
        stream.state.end_received();
        self.count_received(slot, length);
        true
    }
}
