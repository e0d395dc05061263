//! RFC 9114 §4.1, §4.3, §4.4: heads and trailers that are to be sent, and the end of exchanges.

use std::mem;

use bolide_buffers::Chunk;
use bolide_semantics::{
    Content, End, ExchangeId, ExchangeKind, FieldName, FieldRef, LENGTH_UNKNOWN, Misuse,
    PendingTrailers, RequestHead, ResponseHead, Role, check_fields, check_target, has_no_body,
};
use bytes::Bytes;
use http::{Method, StatusCode};

use crate::connection::Connection;
use crate::error::ErrorCode;
use crate::head_writer;
use crate::shared_fields::SharedFields;
use crate::stream::{After, Part, Stream, number_of};
use crate::transport::{Context, Quic};
use crate::varint;

impl Connection {
    /// Opens an exchange with a request (client only). The request's body, if there is one, follows
    /// by [`send_data`](Self::send_data).
    ///
    /// # Errors
    ///
    /// [`Misuse::Refused`] at the peer's limit of streams, after a GOAWAY, when the
    /// connection has ended, or for an extended CONNECT that the peer does not support;
    /// [`Misuse::InvalidHead`]; [`Misuse::WrongLength`] for [`End::Yes`] with a Content-Length that
    /// is not 0.
    pub fn send_request<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        head: &RequestHead<'_>,
        end: End,
    ) -> Result<ExchangeId, Misuse> {
        let closed = self.begin(cx).is_some();
        if self.role == Role::Server {
            return Err(Misuse::OutOfOrder);
        }
        if closed || !self.control.goaway.may_open() {
            return Err(Misuse::Refused);
        }
        check_target(head)?;
        if head.protocol.is_some() && self.takes_protocols() != Some(true) {
            return Err(Misuse::Refused);
        }
        let length = check_fields(head.fields)?;
        if end == End::Yes && !matches!(length, 0 | LENGTH_UNKNOWN) {
            return Err(Misuse::WrongLength);
        }
        let id = cx.quic.open_bidirectional().ok_or(Misuse::Refused)?;
        let number = number_of(id).ok_or(Misuse::Refused)?;
        let stream = self.insert(number);
        stream.is_reported = true;
        if head.method == Method::HEAD {
            stream.receiving.left = 0;
        }
        stream.sending.part = Part::Content;
        stream.sending.left = length;
        if head.method == Method::CONNECT {
            stream.kind = ExchangeKind::Connect;
            stream.sending.left = LENGTH_UNKNOWN;
        }
        self.scratch.clear();
        head_writer::request(&mut self.compression.encoder, id, head, &mut self.scratch);
        self.send_head(cx, number, end, Chunk::default());
        Ok(ExchangeId(number))
    }

    /// Sends the head of an interim response (server only), as often as wanted before the final one.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`]; [`Misuse::OutOfOrder`] after the final head; [`Misuse::InvalidHead`] for a field
    /// that can't be sent, for a status that is not 1xx, and for 101, which HTTP/3 does not have.
    pub fn send_interim<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        id: ExchangeId,
        status: StatusCode,
        fields: &[FieldRef<'_>],
    ) -> Result<(), Misuse> {
        let stream = self.ordered(cx, id)?;
        if stream.sending.part != Part::Head {
            return Err(Misuse::OutOfOrder);
        }
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Misuse::InvalidHead);
        }
        check_fields(fields)?;
        let stream = stream.id();
        let head = ResponseHead::new(status, fields);
        self.scratch.clear();
        head_writer::response(&mut self.compression.encoder, stream, &head, &mut self.scratch);
        self.send_head(cx, id.0, End::No, Chunk::default());
        Ok(())
    }

    /// Sends the head of the final response (server only), and its content where that is at hand. A 2xx to CONNECT
    /// turns the exchange into a tunnel. Returns what [`send_data`](Self::send_data) does.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`]; [`Misuse::OutOfOrder`] after the final head; [`Misuse::InvalidHead`] for a field
    /// that can't be sent, two lengths, or a status of 1xx; [`Misuse::WrongLength`] when the content is not as long as
    /// the head says, or has no place in this response (RFC 9110 §6.4.1).
    #[inline]
    pub fn send_response<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        id: ExchangeId,
        head: &ResponseHead<'_, SharedFields>,
        content: Content<'_>,
    ) -> Result<bool, Misuse> {
        let stream = self.ordered(cx, id)?;
        if stream.sending.part != Part::Head {
            return Err(Misuse::OutOfOrder);
        }
        let length = match (check_fields(head.own)?, head.length) {
            (LENGTH_UNKNOWN, length) => length.unwrap_or(LENGTH_UNKNOWN),
            (length, None) => length,
            (_, Some(_)) => return Err(Misuse::InvalidHead),
        };
        if head.status.is_informational() {
            return Err(Misuse::InvalidHead);
        }
        let (end, whole) = match content {
            Content::Whole(chunk) => (End::Yes, Some(chunk)),
            Content::None => (End::Yes, None),
            Content::Follows => (End::No, None),
        };
        let given = whole.as_ref().map(|chunk| chunk.bytes.len() as u64);
        announce(stream, head.status, length, end, given)?;
        let stream = stream.id();
        self.scratch.clear();
        head_writer::response(&mut self.compression.encoder, stream, head, &mut self.scratch);
        self.follow_priority(cx, id.0, head);
        Ok(self.send_head(cx, id.0, end, whole.map(mem::take).unwrap_or_default()))
    }

    /// RFC 9218 §5: the response says in which order its stream is to be sent.
    #[inline]
    fn follow_priority<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        head: &ResponseHead<'_, SharedFields>,
    ) {
        let own = head.own.iter().find(|field| field.known == Some(FieldName::Priority));
        let shared = head.shared.and_then(SharedFields::priority);
        if let Some(value) = own.map(|field| field.value).or(shared)
            && let Some(stream) = self.streams.peek(number)
        {
            let priority = stream.sending.priority.merge(value);
            self.reprioritise(cx, number, priority);
        }
    }

    /// Sends trailers and ends the message. While a chunk waits they are kept and sent after it.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`]; [`Misuse::OutOfOrder`] before the head, after the end, in a tunnel, or
    /// once the server needs no more of the request (§4.1); [`Misuse::InvalidHead`]; [`Misuse::WrongLength`] when the body is shorter than its
    /// Content-Length.
    pub fn send_trailers<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        id: ExchangeId,
        fields: &[FieldRef<'_>],
    ) -> Result<(), Misuse> {
        let stream = self.ordered(cx, id)?;
        check_fields(fields)?;
        if stream.sending.part != Part::Content || stream.kind == ExchangeKind::Tunnel {
            return Err(Misuse::OutOfOrder);
        }
        if !matches!(stream.sending.left, 0 | LENGTH_UNKNOWN) {
            return Err(Misuse::WrongLength);
        }
        stream.sending.part = Part::Ended;
        if let Some(waiting) = &mut stream.sending.waiting {
            waiting.after = After::Trailers(Box::new(PendingTrailers::new(fields)));
            self.streams.charge(id.0);
            return Ok(());
        }
        let stream = stream.id();
        self.scratch.clear();
        let fields = fields.iter().copied();
        head_writer::trailers(&mut self.compression.encoder, stream, fields, &mut self.scratch);
        self.send_head(cx, id.0, End::Yes, Chunk::default());
        Ok(())
    }

    /// Gives up an exchange: H3_INTERNAL_ERROR (server) or H3_REQUEST_CANCELLED (client). Nothing is
    /// reported about it any more.
    pub fn abort<Q: Quic>(&mut self, cx: &mut Context<'_, Q>, id: ExchangeId) {
        let code = match self.role {
            Role::Server => ErrorCode::InternalError,
            Role::Client => ErrorCode::RequestCancelled,
        };
        if self.ordered(cx, id).is_ok() {
            self.give_up(cx, id.0, code, None);
        }
    }

    /// As [`Self::abort`], and the peer is told that nothing failed here: the other side does not go on
    /// (H3_REQUEST_CANCELLED).
    pub fn cancel<Q: Quic>(&mut self, cx: &mut Context<'_, Q>, id: ExchangeId) {
        if self.ordered(cx, id).is_ok() {
            self.give_up(cx, id.0, ErrorCode::RequestCancelled, None);
        }
    }

    /// Sends a datagram of an exchange (RFC 9297 §2.1). Returns whether it was: the peer may not take any, and the
    /// transport may have no room.
    pub fn send_datagram<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        id: ExchangeId,
        payload: &[u8],
    ) -> bool {
        let takes = self.control.settings.is_some_and(|settings| settings.datagrams);
        let Ok(stream) = self.ordered(cx, id) else { return false };
        if !takes {
            return false;
        }
        let mut datagram = Vec::with_capacity(payload.len() + 8);
        varint::write(stream.id() / 4, &mut datagram);
        datagram.extend_from_slice(payload);
        cx.quic.send_datagram(Bytes::from(datagram))
    }

    /// Everything of a message has been taken by the transport.
    pub(crate) fn sent_all<Q: Quic>(&mut self, cx: &mut Context<'_, Q>, number: u32) {
        let Some(stream) = self.streams.peek(number) else { return };
        let early = self.role == Role::Server
            && stream.kind != ExchangeKind::Tunnel
            && stream.receiving.part != Part::Ended;
        if early {
            // RFC 9114 §4.1: the response is complete before the request is, of which no more is needed.
            let _ = self.is_at_end(cx, number);
            return self.remove(cx, number, ErrorCode::NoError);
        }
        // Only an exchange that is over is changed by this, and that needs no report.
        let _ = self.response_ended(cx, number);
    }
}

/// The head of the final response is being sent: what follows it.
fn announce(
    stream: &mut Stream,
    status: StatusCode,
    length: u64,
    end: End,
    given: Option<u64>,
) -> Result<(), Misuse> {
    let tunnel = stream.kind == ExchangeKind::Connect && status.is_success();
    let bodiless = stream.sending.left == 0 || has_no_body(&Method::GET, status);
    let left = match (tunnel, bodiless) {
        (true, _) => LENGTH_UNKNOWN,
        (false, true) => 0,
        (false, false) => length,
    };
    let given = given.or_else(|| (end == End::Yes).then_some(0));
    if left != LENGTH_UNKNOWN && given.is_some_and(|given| given != left) {
        return Err(Misuse::WrongLength);
    }
    stream.sending.left = left;
    if tunnel {
        stream.kind = ExchangeKind::Tunnel;
        stream.receiving.left = LENGTH_UNKNOWN;
    }
    stream.sending.part = Part::Content;
    Ok(())
}
