//! RFC 9112 §6, §7.1, §9.6: responses, and the bodies of either role, as they are sent.

use std::mem;

use bolide_buffers::{Chunk, Outside};
use bolide_semantics::{Content, Context, End, ExchangeId, FieldRef, Misuse, ResponseHead, Role};
use http::StatusCode;

use crate::body::Body;
use crate::connection::{Connection, Reading};
use crate::encode::{self, Pass, Written};
use crate::error::{Failure, UNREAD};
use crate::exchanges::Kind;
use crate::framing::response_has_no_body;
use crate::sending::{Framing, Piece, Sending};
use crate::shared_fields::SharedFields;

impl Connection {
    /// Sends the head of an interim response (server); it is left out for HTTP/1.0 (RFC 9110 §15.2).
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`] when the exchange is not open, [`Misuse::OutOfOrder`] when it has its final head,
    /// [`Misuse::InvalidHead`] when a field can't be sent, or the status is not an interim one. 101 is final.
    pub fn send_interim(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        status: StatusCode,
        fields: &[FieldRef<'_>],
    ) -> Result<(), Misuse> {
        self.answerable(id)?;
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Misuse::InvalidHead);
        }
        if self.current.version_10 {
            return Ok(());
        }
        let tail = cx.output.tail();
        let start = tail.len();
        encode::status_line(tail, status);
        let pass = Pass { length: false, upgrade: false, te: false };
        if let Err(misuse) = encode::fields(tail, fields, pass) {
            tail.truncate(start);
            return Err(misuse);
        }
        tail.extend_from_slice(b"\r\n");
        let queued = tail.len() - start;
        self.progress.queued(queued);
        if status == StatusCode::CONTINUE {
            self.current.expects_continue = false;
        }
        Ok(())
    }

    /// Sends the head of the final response (server), and its content where that is at hand. 101, if the request
    /// asked for an upgrade, and a 2xx to CONNECT turn the exchange into a tunnel. Returns what
    /// [`Self::send_data`] does.
    ///
    /// The framing is added: `Transfer-Encoding: chunked` when a body of unknown length follows,
    /// `Content-Length: 0` when none follows, `Connection` when it matters. With `Connection: close`
    /// among its own fields the connection ends with this response.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`] when the exchange is not open, [`Misuse::OutOfOrder`] when it has its
    /// final head, or when a switch of protocols was not asked for or comes before the request is
    /// complete, [`Misuse::InvalidHead`] when a field can't be sent, [`Misuse::WrongLength`] when the
    /// content is not as long as the head says.
    #[inline]
    pub fn send_response(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        head: &ResponseHead<'_, SharedFields>,
        content: Content<'_>,
    ) -> Result<bool, Misuse> {
        let kind = self.answerable(id)?;
        let (extent, whole) = match content {
            Content::None => (Extent::Head, None),
            Content::Whole(chunk) if chunk.bytes.is_empty() => (Extent::Head, None),
            Content::Whole(chunk) => (Extent::Whole, Some(chunk)),
            Content::Follows => (Extent::Begun, None),
        };
        let input_bytes = cx.input.len();
        let tail = cx.output.tail();
        let start = tail.len();
        let is_switch = head.status == StatusCode::SWITCHING_PROTOCOLS
            || (kind == Kind::Connect && head.status.is_success());
        let sent = if is_switch {
            self.switch(tail, kind, head)
        } else {
            self.response(tail, input_bytes, kind, head, extent)
        };
        if let Err(misuse) = sent {
            tail.truncate(start);
            return Err(misuse);
        }
        let queued = tail.len() - start;
        self.progress.queued(queued);
        if let Some(chunk) = whole {
            return self.send_piece(cx, Piece::Chunk(mem::take(chunk)), End::Yes);
        }
        if extent == Extent::Head {
            self.sent(self.sending.framing().unwrap_or(Framing::Nothing), input_bytes);
        }
        Ok(true)
    }

    /// Server: what kind of exchange `id` is, when its response may begin.
    #[inline]
    fn answerable(&self, id: ExchangeId) -> Result<Kind, Misuse> {
        let kind = self.kind_of(id).filter(|_| self.role == Role::Server && self.ending.is_none());
        let kind = kind.ok_or(Misuse::UnknownExchange)?;
        if self.sending.is_ready() { Ok(kind) } else { Err(Misuse::OutOfOrder) }
    }

    /// Writes the head of a final response, and decides how its body is framed.
    #[inline]
    fn response(
        &mut self,
        tail: &mut Vec<u8>,
        input_bytes: usize,
        kind: Kind,
        head: &ResponseHead<'_, SharedFields>,
        extent: Extent,
    ) -> Result<(), Misuse> {
        let status = head.status;
        let has_length = status != StatusCode::NO_CONTENT;
        match (head.shared, head.length) {
            (Some(shared), Some(length)) if status == StatusCode::OK => {
                tail.extend_from_slice(shared.up_to_length());
                encode::number_line(tail, length);
            }
            (shared, length) => {
                if status.is_informational() {
                    return Err(Misuse::InvalidHead);
                }
                encode::status_line(tail, status);
                tail.extend_from_slice(shared.map_or(&[], SharedFields::text));
                if let Some(length) = length.filter(|_| has_length) {
                    tail.extend_from_slice(b"content-length: ");
                    encode::number_line(tail, length);
                }
            }
        }
        let upgrade = status == StatusCode::UPGRADE_REQUIRED;
        let pass = Pass { length: has_length, upgrade, te: false };
        let mut written = encode::fields(tail, head.own, pass)?;
        if head.length.is_some() && written.length.is_some() {
            return Err(Misuse::InvalidHead);
        }
        written.length = written.length.or(head.length);
        if let Some(date) = head.date {
            encode::date(tail, date);
        }
        self.frame(tail, input_bytes, kind, status, &written, extent)
    }

    /// Decides how the body of a final response is framed, and writes the last lines of its head.
    #[inline]
    fn frame(
        &mut self,
        tail: &mut Vec<u8>,
        input_bytes: usize,
        kind: Kind,
        status: StatusCode,
        written: &Written,
        extent: Extent,
    ) -> Result<(), Misuse> {
        let Written { length, close, upgrade, .. } = *written;
        let no_body = response_has_no_body(kind, status);
        let mut persists =
            self.persistence.persists && !close && self.keeps(input_bytes, status, extent);
        let framing = match (length, extent) {
            _ if no_body => Framing::Nothing,
            (Some(1..), Extent::Head) => return Err(Misuse::WrongLength),
            (Some(length), _) => Framing::Length(length),
            (None, Extent::Head) => {
                tail.extend_from_slice(b"content-length: 0\r\n");
                Framing::Length(0)
            }
            (None, _) if self.current.version_10 => {
                persists = false;
                Framing::UntilClose
            }
            (None, _) => {
                tail.extend_from_slice(b"transfer-encoding: chunked\r\n");
                Framing::Chunked
            }
        };
        if upgrade {
            // RFC 9110 §15.5.22: it says which protocol is wanted.
            let option = |given: bool, name| given.then_some(name);
            let kept = persists && self.current.version_10;
            let options = [Some("upgrade"), option(!persists, "close"), option(kept, "keep-alive")];
            encode::connection(tail, options);
            tail.extend_from_slice(b"\r\n");
        } else if !persists {
            tail.extend_from_slice(b"connection: close\r\n\r\n");
        } else if self.current.version_10 {
            tail.extend_from_slice(b"connection: keep-alive\r\n\r\n");
        } else {
            tail.extend_from_slice(b"\r\n");
        }
        self.persistence.persists = persists;
        self.sending.begin(framing);
        Ok(())
    }

    /// Returns whether the connection can live on although the response comes before the request is read.
    ///
    /// A connection that can't says so (RFC 9112 §9.6).
    #[inline]
    fn keeps(&self, input_bytes: usize, status: StatusCode, extent: Extent) -> bool {
        let Reading::Body(body) = self.reading else { return true };
        // RFC 9110 §10.1.1: the client may or may not send what it was not told to send.
        if self.current.expects_continue {
            return false;
        }
        let fails = status.is_client_error() || status.is_server_error();
        match body {
            // It may still be read while pieces of the response are sent; after an error that is rare.
            Body::Length(_) if extent == Extent::Begun && !fails => true,
            Body::Length(_) => left_to_read(&body, input_bytes) <= self.discard_bytes(),
            // Any number of chunks may follow. What fails is refused before they are there, and is large more often.
            Body::Chunked(_) | Body::UntilClose | Body::Tunnel => !fails,
        }
    }

    fn discard_bytes(&self) -> u64 {
        u64::from(self.limits.bodies.discard_bytes)
    }

    /// Writes the head after which the exchange is a tunnel.
    #[cold]
    fn switch(
        &mut self,
        tail: &mut Vec<u8>,
        kind: Kind,
        head: &ResponseHead<'_, SharedFields>,
    ) -> Result<(), Misuse> {
        let upgrades = head.status == StatusCode::SWITCHING_PROTOCOLS;
        let asked = kind == if upgrades { Kind::Upgrade } else { Kind::Connect };
        if !asked || !matches!(self.reading, Reading::Complete) {
            return Err(Misuse::OutOfOrder);
        }
        encode::status_line(tail, head.status);
        tail.extend_from_slice(head.shared.map_or(&[], SharedFields::text));
        let pass = Pass { length: false, upgrade: upgrades, te: false };
        let written = encode::fields(tail, head.own, pass)?;
        // RFC 9110 §15.2.2: it must say which protocol.
        if upgrades && !written.upgrade {
            return Err(Misuse::InvalidHead);
        }
        if let Some(date) = head.date {
            encode::date(tail, date);
        }
        encode::connection(tail, [upgrades.then_some("upgrade"), None, None]);
        tail.extend_from_slice(b"\r\n");
        self.begin_tunnel();
        Ok(())
    }

    /// Gives the next piece of a body or of a tunnel; it is framed at once. `Ok(false)`: the output is
    /// full, and the next piece waits for
    /// [`Sendable`](bolide_semantics::ExchangeEvent::Sendable).
    ///
    /// The end of a tunnel ends a server's connection; a client that has ended its side reads on.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`] when the exchange is not open or its message complete,
    /// [`Misuse::OutOfOrder`] before a head, [`Misuse::Busy`] before `Sendable`, and
    /// [`Misuse::WrongLength`] when it is not what the head announced.
    #[inline]
    pub fn send_data(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        data: impl Into<Chunk>,
        end: End,
    ) -> Result<bool, Misuse> {
        self.check_sending(id)?;
        self.send_piece(cx, Piece::Chunk(data.into()), end)
    }

    /// [`Self::send_data`] for a piece whose bytes are not in memory: it is framed by its length. The owner of
    /// the socket must know what it is.
    ///
    /// # Errors
    ///
    /// As [`Self::send_data`].
    pub fn send_outside(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        outside: Outside,
        end: End,
    ) -> Result<bool, Misuse> {
        self.check_sending(id)?;
        self.send_piece(cx, Piece::Outside(outside), end)
    }

    #[inline]
    fn send_piece(&mut self, cx: &mut Context<'_>, piece: Piece, end: End) -> Result<bool, Misuse> {
        let before = cx.output.len();
        let framing = self.sending.data(cx.output, piece, end)?;
        self.progress.queued(cx.output.len() - before);
        if self.exchanges.is_empty() {
            // The rest of a request that was answered early moves.
            self.clock.busy();
        }
        if end == End::Yes {
            self.sent(framing, cx.input.len());
            return Ok(true);
        }
        let more = cx.output_room() > 0;
        if !more {
            self.sending.block();
        }
        Ok(more)
    }

    /// Ends a body with trailers. They are dropped where the body is not chunked; so are fields that
    /// may not stand in a trailer section.
    ///
    /// # Errors
    ///
    /// As [`Self::send_data`]; [`Misuse::InvalidHead`] when a field can't be sent.
    pub fn send_trailers(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        fields: &[FieldRef<'_>],
    ) -> Result<(), Misuse> {
        self.check_sending(id)?;
        let framing = self.sending.framing()?;
        match framing {
            Framing::Length(1..) => return Err(Misuse::WrongLength),
            Framing::Tunnel => return Err(Misuse::OutOfOrder),
            Framing::Length(0) | Framing::UntilClose | Framing::Nothing => {}
            Framing::Chunked => {
                let tail = cx.output.tail();
                let start = tail.len();
                tail.extend_from_slice(b"0\r\n");
                let pass = Pass { length: false, upgrade: false, te: false };
                if let Err(misuse) = encode::fields(tail, fields, pass) {
                    tail.truncate(start);
                    return Err(misuse);
                }
                tail.extend_from_slice(b"\r\n");
                let queued = tail.len() - start;
                self.progress.queued(queued);
            }
        }
        self.sent(framing, cx.input.len());
        Ok(())
    }

    /// Checks whether `id` may be the exchange whose message is being sent.
    #[inline]
    fn check_sending(&self, id: ExchangeId) -> Result<(), Misuse> {
        let known = match self.role {
            Role::Server => self.exchanges.is_oldest(id),
            // The request that is being sent is the newest, even after its response came.
            Role::Client => {
                self.exchanges.contains(id)
                    || (id.0 == self.exchanges.total() && !self.sending.is_ready())
            }
        };
        if !known || self.ending.is_some() {
            return Err(Misuse::UnknownExchange);
        }
        if id.0 == self.exchanges.total() { Ok(()) } else { Err(Misuse::OutOfOrder) }
    }

    /// The message that was sent with this framing is complete; so much input is at hand.
    #[inline]
    fn sent(&mut self, framing: Framing, input_bytes: usize) {
        if framing == Framing::Tunnel {
            self.sending = Sending::Complete;
            if self.role == Role::Server || matches!(self.reading, Reading::Complete) {
                self.end_tunnel();
            }
        } else if self.role == Role::Client {
            self.sending = Sending::Ready;
        } else {
            self.answered_all(input_bytes);
        }
    }

    /// Server: the response is complete.
    #[inline]
    fn answered_all(&mut self, input_bytes: usize) {
        self.exchanges.close_oldest();
        self.sending = Sending::Complete;
        match self.reading {
            Reading::Body(body) => {
                // A client that still waits for `100 Continue` was told that the connection closes.
                let persists = self.persistence.persists;
                if persists && left_to_read(&body, input_bytes) <= self.discard_bytes() {
                    let here = u32::try_from(input_bytes).unwrap_or(u32::MAX);
                    self.clock.busy();
                    self.reading = Reading::Discard(
                        body,
                        self.limits.bodies.discard_bytes.saturating_add(here),
                    );
                } else {
                    self.end(if persists { &UNREAD } else { self.last() });
                }
            }
            Reading::Refused(failure) => self.end(failure),
            Reading::Complete | Reading::Head | Reading::Held | Reading::Discard(..) => {
                self.next_request()
            }
        }
    }

    #[cold]
    fn last(&self) -> &'static Failure {
        self.persistence.reason()
    }
}

/// Parts of a response that are there when its head is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The head, with which it ends.
    Head,
    /// Head and content.
    Whole,
    /// The head, which pieces of content follow.
    Begun,
}

/// How much of a body has certainly not arrived, in bytes.
fn left_to_read(body: &Body, input_bytes: usize) -> u64 {
    body.known_left().saturating_sub(input_bytes as u64)
}
