//! RFC 9114 §4.1, §7.1, §7.2: the frames of a request's stream.

use bolide_semantics::{End, ExchangeEvent, ExchangeId, ExchangeKind, LENGTH_UNKNOWN, Role};
use bytes::Bytes;

use crate::connection::Connection;
use crate::error::{ErrorCode, Fault};
use crate::frame::kind;
use crate::stream::Part;
use crate::transport::{Context, Quic, Read};

const WRONG_LENGTH: &str = "a body that is not as long as its content-length";

impl Connection {
    /// Bytes of one exchange that were reported and are not [consumed](Self::consumed).
    #[must_use]
    pub fn unconsumed_bytes_of(&self, id: ExchangeId) -> usize {
        self.streams.peek(id.0).map_or(0, |stream| stream.receiving.unconsumed as usize)
    }

    /// Reads on until there is something to report; `None`: nothing more can be read of the stream now.
    pub(crate) fn read_stream<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
    ) -> Result<Option<ExchangeEvent>, Fault> {
        loop {
            let full = self.limits.stream_unconsumed_bytes;
            let Some(stream) = self.streams.find(number) else { return Ok(None) };
            let id = stream.id();
            let is_answered = self.role == Role::Server && stream.sending.part == Part::Ended;
            if stream.receiving.part == Part::Ended
                || (is_answered && stream.kind != ExchangeKind::Tunnel)
            {
                return Ok(None);
            }
            let receiving = &mut stream.receiving;
            if let Some(required) = receiving.blocked {
                if !self.compression.decoder.is_ready(required) {
                    return Ok(None);
                }
                receiving.blocked = None;
                let section = std::mem::take(&mut receiving.section);
                self.compression.decoder.unblock();
                self.compression.blocked.retain(|blocked| *blocked != number);
                if let Some(event) = self.section(cx, number, &section)? {
                    return Ok(Some(event));
                }
                continue;
            }
            if let Some(code) = receiving.reset {
                self.given_up_by_peer(cx, number, code)?;
                return Ok(None);
            }
            if receiving.unconsumed >= full {
                receiving.reset = cx.quic.reset_code(id);
                if receiving.reset.is_none() {
                    return Ok(None);
                }
                continue;
            }
            if receiving.input.is_empty() {
                let read = if receiving.has_ended { Read::End } else { cx.quic.read(id) };
                match read {
                    Read::Data(bytes, end) => receiving.arrived(bytes, end),
                    Read::Nothing => return Ok(None),
                    Read::Reset(code) => receiving.reset = Some(code),
                    Read::End => {
                        receiving.has_ended = true;
                        return self.ended(cx, number);
                    }
                }
                continue;
            }
            if let Some(event) = self.parse(cx, number)? {
                return Ok(Some(event));
            }
        }
    }

    /// Deals with the next part of what was read.
    #[inline]
    fn parse<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
    ) -> Result<Option<ExchangeEvent>, Fault> {
        let now_ms = self.times.clock.ms;
        let Some(stream) = self.streams.find(number) else { return Ok(None) };
        let receiving = &mut stream.receiving;
        let Some((kind, left)) = receiving.frames.current else {
            if let Some((kind, length)) = receiving.frames.header(&mut receiving.input) {
                self.begin_frame(cx, number, kind, length)?;
            }
            return Ok(None);
        };
        let piece = receiving.frames.payload(&mut receiving.input);
        match kind {
            kind::DATA => {
                receiving.pace.received(piece.len() as u32, now_ms);
                self.times.bodies.received(piece.len() as u32);
                receiving.unconsumed += piece.len() as u32;
                self.unconsumed += piece.len();
                if receiving.left != LENGTH_UNKNOWN {
                    receiving.left -= piece.len() as u64;
                }
                let ends = self.is_at_end(cx, number);
                if ends && self.is_short(number) {
                    self.stream_error(cx, number, ErrorCode::MessageError, WRONG_LENGTH)?;
                    return Ok(None);
                }
                if ends {
                    self.received_all(cx, number)?;
                }
                let end = if ends { End::Yes } else { End::No };
                Ok(Some(ExchangeEvent::Data(piece, end)))
            }
            kind::HEADERS if piece.len() as u64 == left && receiving.section.is_empty() => {
                self.section(cx, number, &piece)
            }
            kind::HEADERS => {
                receiving.section.extend_from_slice(&piece);
                if piece.len() as u64 != left {
                    return Ok(None);
                }
                let section = std::mem::take(&mut receiving.section);
                self.section(cx, number, &section)
            }
            _ => Ok(None),
        }
    }

    /// RFC 9114 §4.1, §7.2: whether the frame may come now.
    fn begin_frame<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        kind: u64,
        length: u64,
    ) -> Result<(), Fault> {
        let role = self.role;
        let Some(stream) = self.streams.find(number) else { return Ok(()) };
        let (part, tunnel) = (stream.receiving.part, stream.kind == ExchangeKind::Tunnel);
        let receiving = &mut stream.receiving;
        match kind {
            kind::DATA if part == Part::Content => {
                let is_first = !std::mem::replace(&mut receiving.has_begun, true)
                    || (tunnel && receiving.unconsumed == 0);
                let left = receiving.left;
                if length == 0 {
                    receiving.frames.current = None;
                }
                self.budgets.data(length, is_first, self.times.clock.ms, &self.limits)?;
                if left != LENGTH_UNKNOWN && length > left {
                    self.stream_error(cx, number, ErrorCode::MessageError, WRONG_LENGTH)?;
                }
                Ok(())
            }
            kind::DATA if part == Part::Head => Err(Fault::unexpected("DATA before the head")),
            kind::DATA => Err(Fault::unexpected("DATA after the trailers")),
            kind::HEADERS if part == Part::Tail => {
                Err(Fault::unexpected("HEADERS after the trailers"))
            }
            kind::HEADERS if tunnel => Err(Fault::unexpected("HEADERS in a tunnel")),
            kind::HEADERS if length > u64::from(self.limits.heads.section_bytes) => {
                Err(Fault::abuse("large-section", "a field section above the limit"))
            }
            kind::HEADERS if length == 0 => {
                let code = ErrorCode::QpackDecompressionFailed;
                Err(Fault::new(code, "a field section without its prefix"))
            }
            kind::HEADERS => Ok(()),
            kind::PUSH_PROMISE if role == Role::Client => {
                Err(Fault::new(ErrorCode::IdError, "a push that was never allowed"))
            }
            kind::PUSH_PROMISE => Err(Fault::unexpected("PUSH_PROMISE from a client")),
            kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID => {
                Err(Fault::unexpected("a control stream's frame on a request's stream"))
            }
            kind::PRIORITY_UPDATE_REQUEST | kind::PRIORITY_UPDATE_PUSH => {
                Err(Fault::unexpected("PRIORITY_UPDATE on a request's stream"))
            }
            _ if kind::is_of_http2(kind) => Err(Fault::unexpected("a frame of HTTP/2")),
            _ => {
                if length == 0 {
                    receiving.frames.current = None;
                }
                self.glitch()
            }
        }
    }

    /// Returns whether the peer's side ends right here: then what has just been read is its last.
    pub(crate) fn is_at_end<Q: Quic>(&mut self, cx: &mut Context<'_, Q>, number: u32) -> bool {
        let Some(stream) = self.streams.find(number) else { return false };
        let id = stream.id();
        let receiving = &mut stream.receiving;
        if !receiving.input.is_empty() || !receiving.frames.is_between() {
            return false;
        }
        if receiving.has_ended {
            return true;
        }
        match cx.quic.read(id) {
            Read::Data(bytes, end) => receiving.arrived(bytes, end),
            Read::Nothing => {}
            Read::Reset(code) => receiving.reset = Some(code),
            Read::End => receiving.has_ended = true,
        }
        receiving.has_ended && receiving.input.is_empty()
    }

    /// Returns whether a body that ends here is shorter than was announced.
    pub(crate) fn is_short(&self, number: u32) -> bool {
        let left = self.streams.peek(number).map_or(0, |stream| stream.receiving.left);
        !matches!(left, 0 | LENGTH_UNKNOWN)
    }

    /// The peer's side of the stream has ended.
    fn ended<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
    ) -> Result<Option<ExchangeEvent>, Fault> {
        let Some(stream) = self.streams.find(number) else { return Ok(None) };
        let receiving = &mut stream.receiving;
        if !receiving.frames.is_between() {
            let what = "a stream that ends within a frame";
            return Err(Fault::new(ErrorCode::FrameError, what));
        }
        match receiving.part {
            Part::Head => {
                let (code, what) = match self.role {
                    Role::Server => (ErrorCode::RequestIncomplete, "a request without a head"),
                    Role::Client => (ErrorCode::MessageError, "a response without a final head"),
                };
                self.stream_error(cx, number, code, what)?;
                Ok(None)
            }
            Part::Content if !matches!(receiving.left, 0 | LENGTH_UNKNOWN) => {
                self.stream_error(cx, number, ErrorCode::MessageError, WRONG_LENGTH)?;
                Ok(None)
            }
            Part::Content => {
                self.received_all(cx, number)?;
                Ok(Some(ExchangeEvent::Data(Bytes::new(), End::Yes)))
            }
            Part::Tail => {
                self.received_all(cx, number)?;
                Ok(None)
            }
            Part::Ended => Ok(None),
        }
    }

    /// The message is complete, and so is the peer's side of the stream.
    pub(crate) fn received_all<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
    ) -> Result<(), Fault> {
        if let Some(stream) = self.streams.find(number) {
            stream.receiving.part = Part::Ended;
        }
        self.response_ended(cx, number)
    }
}
