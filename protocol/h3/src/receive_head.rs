//! RFC 9114 §4.1, §4.2, §4.3: field sections: requests, responses and trailers.

use bolide_qpack::Decoded;
use bolide_semantics::{
    End, ExchangeEvent, ExchangeKind, ExpectedHead, HeadReader, HeadSize, HeadSummary,
    LENGTH_UNKNOWN, Priority, Role, has_no_body,
};
use http::{Method, StatusCode, Version};

use crate::connection::Connection;
use crate::error::{ErrorCode, Fault};
use crate::stream::Part;
use crate::transport::{Context, Quic};

/// An event, unless the section led to none.
type Report = Result<Option<ExchangeEvent>, Fault>;

impl Connection {
    /// A whole field section of a stream has come.
    pub(crate) fn section<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        bytes: &[u8],
    ) -> Report {
        let Some(stream) = self.streams.find(number) else { return Ok(None) };
        let expected = match (stream.receiving.part, self.role) {
            (Part::Head, Role::Server) => ExpectedHead::Request,
            (Part::Head, Role::Client) => ExpectedHead::Response,
            _ => ExpectedHead::Trailers,
        };
        let id = stream.id();
        let mut reader =
            HeadReader::new(cx.head, Version::HTTP_3, expected, self.limits.of_heads());
        let out = self.control.decoder_output();
        let decoded = self.compression.decoder.decode(id, bytes, &mut reader, out)?;
        if let Decoded::Blocked(required) = decoded {
            stream.receiving.blocked = Some(required);
            stream.receiving.section = bytes.to_vec();
            self.compression.blocked.push(number);
            return Ok(None);
        }
        let summary = reader.finish();
        cx.head.set_wire_bytes(bytes.len());
        if summary.size == HeadSize::Absurd {
            return Err(Fault::abuse("qpack-bomb", "a header list far above the limit"));
        }
        match expected {
            ExpectedHead::Request => self.request(cx, number, summary),
            ExpectedHead::Response => self.response(cx, number, summary),
            ExpectedHead::Trailers | ExpectedHead::Nothing => self.trailers(cx, number, summary),
        }
    }

    fn request<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        summary: HeadSummary,
    ) -> Report {
        let ends = self.is_at_end(cx, number);
        let has_length = !matches!(summary.content_length, 0 | LENGTH_UNKNOWN);
        let malformed = match summary.malformed {
            None if ends && has_length => Some("a content-length without a body"),
            malformed => malformed,
        };
        if let Some(what) = malformed {
            self.stream_error(cx, number, ErrorCode::MessageError, what)?;
            return Ok(None);
        }
        let Some(stream) = self.streams.find(number) else { return Ok(None) };
        stream.is_reported = true;
        stream.kind = summary.kind;
        stream.receiving.since_ms = self.times.clock.ms;
        stream.receiving.part = Part::Content;
        if summary.kind != ExchangeKind::Connect {
            stream.receiving.left = summary.content_length;
        }
        if cx.head.method() == Method::HEAD {
            stream.sending.left = 0;
        }
        // An update that came is newer than what the request says.
        let priority = summary.priority.filter(|_| stream.sending.priority == Priority::UNSPOKEN);
        if let Some(priority) = priority {
            self.reprioritise(cx, number, priority);
        }
        if ends {
            self.received_all(cx, number)?;
        }
        Ok(Some(if summary.size == HeadSize::Fine {
            ExchangeEvent::Head(if ends { End::Yes } else { End::No })
        } else {
            ExchangeEvent::Rejected(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
        }))
    }

    fn response<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        summary: HeadSummary,
    ) -> Report {
        let status = cx.head.status();
        let malformed = match summary.malformed {
            None if summary.size != HeadSize::Fine => Some("a response head above the limit"),
            malformed => malformed,
        };
        if let Some(what) = malformed {
            self.stream_error(cx, number, ErrorCode::MessageError, what)?;
            return Ok(None);
        }
        let interim_max = self.limits.heads.interim_count;
        let Some(stream) = self.streams.find(number) else { return Ok(None) };
        if status.is_informational() {
            stream.interim_count = stream.interim_count.saturating_add(1);
            if stream.interim_count > interim_max {
                let what = "too many interim responses came";
                self.stream_error(cx, number, ErrorCode::ExcessiveLoad, what)?;
                return Ok(None);
            }
            return Ok(Some(ExchangeEvent::Informational));
        }
        let left = &mut stream.receiving.left;
        if stream.kind == ExchangeKind::Connect && status.is_success() {
            stream.kind = ExchangeKind::Tunnel;
            *left = LENGTH_UNKNOWN;
        } else if has_no_body(&Method::GET, status) {
            *left = 0;
        } else if *left != 0 {
            *left = summary.content_length;
        }
        stream.receiving.part = Part::Content;
        let ends = self.is_at_end(cx, number);
        if ends && self.is_short(number) {
            let what = "a body that is not as long as its content-length";
            self.stream_error(cx, number, ErrorCode::MessageError, what)?;
            return Ok(None);
        }
        if ends {
            self.received_all(cx, number)?;
        }
        Ok(Some(ExchangeEvent::Head(if ends { End::Yes } else { End::No })))
    }

    fn trailers<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        summary: HeadSummary,
    ) -> Report {
        let malformed = match summary.malformed {
            None if summary.size != HeadSize::Fine => Some("trailers above the limit"),
            None if self.is_short(number) => {
                Some("a body that is not as long as its content-length")
            }
            malformed => malformed,
        };
        if let Some(what) = malformed {
            self.stream_error(cx, number, ErrorCode::MessageError, what)?;
            return Ok(None);
        }
        if self.is_at_end(cx, number) {
            self.received_all(cx, number)?;
        } else if let Some(stream) = self.streams.find(number) {
            stream.receiving.part = Part::Tail;
        }
        Ok(Some(ExchangeEvent::Trailers))
    }
}
