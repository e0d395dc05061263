//! RFC 9113 §6.2, §6.10, §8.1: HEADERS and CONTINUATION frames: requests, responses and trailers.

use bolide_hpack::Decoder;
use bolide_semantics::{
    Context, End, ExchangeEvent, ExchangeId, ExpectedHead as Expected, Head, HeadReader,
    HeadSize as Size, HeadSummary as Summary, Priority, Role, has_no_body,
};
use http::{Method, StatusCode, Version};

use crate::connection::Connection;
use crate::error::{ErrorCode, Fault};
use crate::frame::headers::Layout;
use crate::frame::payload;
use crate::frame::{FrameHeader, HEADER_BYTES, flag, kind};
use crate::incoming::{HeaderBlock, Step};
use crate::limits::Limits;
use crate::stream::{Kind, LENGTH_UNKNOWN, Opening, Part, State};

/// Decodes a block into the head.
#[inline]
pub(crate) fn decode(
    decoder: &mut Decoder,
    block: &[u8],
    head: &mut Head,
    expected: Expected,
    limits: &Limits,
) -> Result<Summary, Fault> {
    let mut reader = HeadReader::new(head, Version::HTTP_2, expected, limits.of_heads());
    if decoder.decode(block, &mut reader).is_err() {
        let what = "a header block that can't be decoded";
        return Err(Fault::peer(ErrorCode::CompressionError, "compression-error", what));
    }
    let summary = reader.finish();
    head.set_wire_bytes(block.len());
    if summary.size == Size::Absurd {
        return Err(Fault::abuse("hpack-bomb", "a header list far above the limit"));
    }
    Ok(summary)
}

/// Owner of a block.
#[derive(Debug, Clone, Copy)]
struct Block {
    id: u32,
    end_stream: bool,
    self_dependent: bool,
}

impl Connection {
    #[inline]
    pub(crate) fn read_headers(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        if header.stream == 0 {
            return Err(Fault::protocol("a HEADERS frame for stream 0"));
        }
        if header.length > self.limits.heads.header_block_bytes {
            return Err(Fault::abuse("header-block", "a header block above the limit"));
        }
        let Some(bytes) = payload(cx, header) else { return Ok(Step::Incomplete) };
        let opens = self.role == Role::Server && header.stream > self.streams.highest_peer;
        if opens && cx.output_room() == 0 {
            // No further request while responses wait to be read.
            self.incoming.held = true;
            return Ok(Step::Incomplete);
        }
        let Layout { fragment, depends_on } = Layout::of(header, bytes)?;
        let id = header.stream;
        let end_stream = header.has(flag::END_STREAM);
        let block = Block { id, end_stream, self_dependent: depends_on == Some(id) };
        if !header.has(flag::END_HEADERS) {
            self.incoming.block = Some(Box::new(HeaderBlock {
                stream: id,
                end_stream,
                self_dependent: block.self_dependent,
                bytes: bytes[fragment].to_vec(),
                continuations: 0,
                since_ms: self.deadlines.clock.ms,
            }));
            cx.input.consume(HEADER_BYTES + header.length as usize);
            return Ok(Step::Next);
        }
        let expected = self.expected(id)?;
        let Context { input, head, .. } = &mut *cx;
        let start = HEADER_BYTES + fragment.start;
        let encoded = &input.unread()[start..HEADER_BYTES + fragment.end];
        let decoder = &mut self.compression.decoder;
        let summary = decode(decoder, encoded, head, expected, &self.limits)?;
        input.consume(HEADER_BYTES + header.length as usize);
        self.received_block(cx, block, expected, summary)
    }

    /// A frame while a header block is open: it must be its continuation.
    #[cold]
    pub(crate) fn read_continuation(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        let Some(open) = self.incoming.block.as_deref_mut() else {
            return Err(Fault::protocol("a CONTINUATION frame without a header block"));
        };
        if header.kind != kind::CONTINUATION || header.stream != open.stream {
            return Err(Fault::protocol("a header block is interrupted by another frame"));
        }
        if open.bytes.len() as u32 + header.length > self.limits.heads.header_block_bytes {
            return Err(Fault::abuse("continuation-flood", "a header block above the limit"));
        }
        if open.continuations == self.limits.heads.continuation_frames_count {
            return Err(Fault::abuse("continuation-flood", "too many CONTINUATION frames"));
        }
        let Some(bytes) = payload(cx, header) else { return Ok(Step::Incomplete) };
        open.continuations += 1;
        open.bytes.extend_from_slice(bytes);
        cx.input.consume(HEADER_BYTES + header.length as usize);
        if !header.has(flag::END_HEADERS) {
            return Ok(Step::Next);
        }
        let (id, end_stream) = (open.stream, open.end_stream);
        let block = Block { id, end_stream, self_dependent: open.self_dependent };
        let encoded = std::mem::take(&mut open.bytes);
        self.incoming.block = None;
        let expected = self.expected(id)?;
        let decoder = &mut self.compression.decoder;
        let summary = decode(decoder, &encoded, cx.head, expected, &self.limits)?;
        self.received_block(cx, block, expected, summary)
    }

    /// RFC 9113 §5.1: what a header block on this stream has to be.
    #[inline]
    fn expected(&self, id: u32) -> Result<Expected, Fault> {
        if self.role == Role::Server && id > self.streams.highest_peer {
            if id.is_multiple_of(2) {
                return Err(Fault::protocol("a client opened a stream with an even number"));
            }
            return Ok(Expected::Request);
        }
        self.expected_later(id)
    }

    fn expected_later(&self, id: u32) -> Result<Expected, Fault> {
        if let Some(slot) = self.streams.find(id) {
            return Ok(match self.streams.get(slot).state.receiving() {
                Some(Part::Head) => Expected::Response,
                _ => Expected::Trailers,
            });
        }
        if self.is_unopened(id) {
            return Err(Fault::protocol("HEADERS for a stream that was never opened"));
        }
        if self.streams.reset.contains(id) {
            return Ok(Expected::Nothing);
        }
        Err(Fault::closed("HEADERS for a closed stream"))
    }

    #[inline]
    fn received_block(
        &mut self,
        cx: &mut Context<'_>,
        block: Block,
        expected: Expected,
        summary: Summary,
    ) -> Result<Step, Fault> {
        match expected {
            Expected::Request => self.received_request(cx, block, summary),
            Expected::Response => self.received_response(cx, block, summary),
            Expected::Trailers => self.received_trailers(cx, block, summary),
            Expected::Nothing => {
                if let Some(slot) = self.streams.find(block.id)
                    && block.end_stream
                {
                    self.remove(cx, slot);
                }
                self.glitch()?;
                Ok(Step::Next)
            }
        }
    }

    #[inline]
    fn received_request(
        &mut self,
        cx: &mut Context<'_>,
        block: Block,
        mut summary: Summary,
    ) -> Result<Step, Fault> {
        let Block { id, end_stream, self_dependent } = block;
        self.streams.highest_peer = id;
        if !self.goaway.serves(id) {
            self.streams.reset.insert(id);
            self.glitch()?;
            return Ok(Step::Next);
        }
        if self.streams.open() >= self.limits.concurrent_streams_count {
            return self.refuse(cx, id);
        }
        if end_stream && !matches!(summary.content_length, 0 | LENGTH_UNKNOWN) {
            summary.malformed = Some("a content-length without a body");
        }
        if self_dependent {
            summary.malformed = Some("a stream that depends on itself");
        }
        if let Some(what) = summary.malformed {
            self.stream_error(cx, id, ErrorCode::ProtocolError, what)?;
            return Ok(Step::Next);
        }
        let early = self.scheduler.early.take(id);
        let sending = Part::Head;
        self.streams.insert(Opening {
            id,
            state: if end_stream {
                State::HalfClosedRemote { sending }
            } else {
                State::Open { receiving: Part::Content, sending }
            },
            kind: summary.kind,
            send_window: self.settings.peer_window_bytes,
            receive_window: self.settings.window_bytes,
            receive_left: match summary.kind {
                Kind::Connect => LENGTH_UNKNOWN,
                _ => summary.content_length,
            },
            send_left: if cx.head.method() == Method::HEAD { 0 } else { LENGTH_UNKNOWN },
            priority: early.or(summary.priority).unwrap_or(Priority::UNSPOKEN),
            now_ms: self.deadlines.clock.ms,
        });
        self.opened();
        let event = if summary.size == Size::Fine {
            ExchangeEvent::Head(if end_stream { End::Yes } else { End::No })
        } else {
            ExchangeEvent::Rejected(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
        };
        Ok(Step::Event(ExchangeId(id), event))
    }

    /// A stream has been opened.
    #[inline]
    pub(crate) fn opened(&mut self) {
        self.stats.opened();
        if self.streams.open() == 1 {
            self.deadlines.scan_ms = self.deadlines.clock.ms;
            self.deadlines.trimmed = false;
        }
    }

    /// RFC 9113 §5.1.2: more streams than we allow. Free until the peer has acknowledged the limit.
    #[cold]
    fn refuse(&mut self, cx: &mut Context<'_>, id: u32) -> Result<Step, Fault> {
        self.stats.refused();
        self.write_reset(cx, id, ErrorCode::RefusedStream)?;
        if self.settings.is_acknowledged() {
            self.glitch()?;
        }
        Ok(Step::Next)
    }

    fn received_response(
        &mut self,
        cx: &mut Context<'_>,
        block: Block,
        summary: Summary,
    ) -> Result<Step, Fault> {
        let Block { id, end_stream, .. } = block;
        let slot = self.streams.find(id).expect("a response is expected for an open stream only");
        let status = cx.head.status();
        let malformed = match summary.malformed {
            None if summary.size != Size::Fine => Some("a response head above the limit"),
            None if end_stream && status.is_informational() => {
                Some("an interim response that ends")
            }
            malformed => malformed,
        };
        if let Some(what) = malformed {
            self.stream_error(cx, id, ErrorCode::ProtocolError, what)?;
            return Ok(Step::Next);
        }
        let stream = self.streams.get_mut(slot);
        if status.is_informational() {
            stream.interim_count = stream.interim_count.saturating_add(1);
            if stream.interim_count > self.limits.heads.interim_count {
                let what = "too many interim responses came";
                self.stream_error(cx, id, ErrorCode::EnhanceYourCalm, what)?;
                return Ok(Step::Next);
            }
            return Ok(Step::Event(ExchangeId(id), ExchangeEvent::Informational));
        }
        let left = &mut stream.receiving.left;
        if stream.kind == Kind::Connect && status.is_success() {
            stream.kind = Kind::Tunnel;
            *left = LENGTH_UNKNOWN;
        } else if has_no_body(&Method::GET, status) {
            *left = 0;
        } else if *left != 0 {
            *left = summary.content_length;
        }
        if end_stream && !matches!(*left, 0 | LENGTH_UNKNOWN) {
            let what = "a body that is not as long as its content-length";
            self.stream_error(cx, id, ErrorCode::ProtocolError, what)?;
            return Ok(Step::Next);
        }
        stream.state.head_received();
        let end = if end_stream { End::Yes } else { End::No };
        if end_stream && stream.state.end_received() {
            self.remove(cx, slot);
        }
        Ok(Step::Event(ExchangeId(id), ExchangeEvent::Head(end)))
    }

    fn received_trailers(
        &mut self,
        cx: &mut Context<'_>,
        block: Block,
        summary: Summary,
    ) -> Result<Step, Fault> {
        let Block { id, end_stream, self_dependent } = block;
        let slot = self.streams.find(id).expect("trailers are expected for an open stream only");
        let stream = self.streams.get_mut(slot);
        if stream.state.receiving().is_none() {
            let what = "HEADERS after the end of the stream";
            self.stream_error(cx, id, ErrorCode::StreamClosed, what)?;
            return Ok(Step::Next);
        }
        let malformed = match summary.malformed {
            Some(what) => Some(what),
            None if summary.size != Size::Fine => Some("trailers above the limit"),
            None if !end_stream => Some("trailers that do not end the stream"),
            None if stream.kind == Kind::Tunnel => Some("trailers in a tunnel"),
            None if self_dependent => Some("a stream that depends on itself"),
            None if !matches!(stream.receiving.left, 0 | LENGTH_UNKNOWN) => {
                Some("a body that is not as long as its content-length")
            }
            None => None,
        };
        if let Some(what) = malformed {
            self.stream_error(cx, id, ErrorCode::ProtocolError, what)?;
            return Ok(Step::Next);
        }
        let silent = stream.state == State::Discarding;
        if stream.state.end_received() {
            self.remove(cx, slot);
        }
        if silent {
            return Ok(Step::Next);
        }
        Ok(Step::Event(ExchangeId(id), ExchangeEvent::Trailers))
    }
}
