//! RFC 9113 §8.1, §8.3, §8.5: heads and trailers that are to be sent, and the end of exchanges.

use bolide_semantics::{
    Content, Context, End, ExchangeId, FieldName, FieldRef, Misuse, Pace, Priority, RequestHead,
    ResponseHead, Role, check_fields, check_target,
};
use http::{Method, StatusCode};

use crate::connection::Connection;
use crate::error::{ErrorCode, Fault};
use crate::goaway::LAST_OF_ALL;
use crate::head_writer::{self, Target};
use crate::shared_fields::SharedFields;
use crate::stream::{After, Kind, LENGTH_UNKNOWN, Opening, Part, PendingTrailers, Place, State};

impl Connection {
    /// Opens an exchange with a request (client only). The request's body, if there is one, follows
    /// by [`send_data`](Self::send_data).
    ///
    /// # Errors
    ///
    /// [`Misuse::Refused`] at the peer's limit of concurrent streams, after a GOAWAY, when the
    /// connection has ended, or for an extended CONNECT that the peer does not support;
    /// [`Misuse::InvalidHead`]; [`Misuse::WrongLength`] for [`End::Yes`] with a Content-Length that
    /// is not 0.
    pub fn send_request(
        &mut self,
        cx: &mut Context<'_>,
        head: &RequestHead<'_>,
        end: End,
    ) -> Result<ExchangeId, Misuse> {
        self.check_room(cx)?;
        check_target(head)?;
        if head.protocol.is_some() && !self.settings.peer_connect_protocol {
            return Err(Misuse::Refused);
        }
        let length = check_fields(head.fields)?;
        let id = self.open_request(head.method, length, end)?;
        let target = self.target(id, end == End::Yes);
        head_writer::request(&mut self.compression.encoder, cx.output.tail(), target, head);
        Ok(ExchangeId(id))
    }

    /// Checks whether a request may be sent now.
    #[inline]
    fn check_room(&mut self, cx: &mut Context<'_>) -> Result<(), Misuse> {
        let closed = self.begin(cx).is_some();
        if self.role == Role::Server {
            return Err(Misuse::OutOfOrder);
        }
        let full = self.streams.open() >= self.settings.peer_concurrent_streams;
        if closed || full || !self.goaway.may_open() || self.streams.next_own > LAST_OF_ALL {
            return Err(Misuse::Refused);
        }
        Ok(())
    }

    /// Opens the stream of a request with content of this length.
    #[inline]
    fn open_request(&mut self, method: &Method, length: u64, end: End) -> Result<u32, Misuse> {
        if end == End::Yes && !matches!(length, 0 | LENGTH_UNKNOWN) {
            return Err(Misuse::WrongLength);
        }
        let id = self.streams.next_own;
        self.streams.next_own += 2;
        let connect = method == Method::CONNECT;
        let receiving = Part::Head;
        self.streams.insert(Opening {
            id,
            state: match end {
                End::Yes => State::HalfClosedLocal { receiving },
                End::No => State::Open { receiving, sending: Part::Content },
            },
            kind: if connect { Kind::Connect } else { Kind::Message },
            send_window: self.settings.peer_window_bytes,
            receive_window: self.settings.window_bytes,
            receive_left: if method == Method::HEAD { 0 } else { LENGTH_UNKNOWN },
            send_left: if connect { LENGTH_UNKNOWN } else { length },
            priority: Priority::UNSPOKEN,
            now_ms: self.deadlines.clock.ms,
        });
        self.opened();
        Ok(id)
    }

    /// Sends the head of an interim response (server only), as often as wanted before the final one.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`]; [`Misuse::OutOfOrder`] after the final head; [`Misuse::InvalidHead`] for a field
    /// that can't be sent, for a status that is not 1xx, and for 101, which HTTP/2 does not have.
    pub fn send_interim(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        status: StatusCode,
        fields: &[FieldRef<'_>],
    ) -> Result<(), Misuse> {
        let slot = self.ordered(cx, id)?;
        if self.streams.get(slot).state.sending() != Some(Part::Head) {
            return Err(Misuse::OutOfOrder);
        }
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Misuse::InvalidHead);
        }
        check_fields(fields)?;
        let target = self.target(id.0, false);
        let head = ResponseHead::new(status, fields);
        head_writer::response(&mut self.compression.encoder, cx.output.tail(), target, &head);
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
    pub fn send_response(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        head: &ResponseHead<'_, SharedFields>,
        content: Content<'_>,
    ) -> Result<bool, Misuse> {
        let slot = self.ordered(cx, id)?;
        let stream = self.streams.get_mut(slot);
        if stream.state.sending() != Some(Part::Head) {
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
            Content::None => (End::Yes, None),
            Content::Whole(chunk) if chunk.bytes.is_empty() => (End::Yes, None),
            Content::Whole(chunk) => (End::No, Some(chunk)),
            Content::Follows => (End::No, None),
        };
        stream.announce(head.status, length, end)?;
        let target = self.target(id.0, end == End::Yes);
        head_writer::response(&mut self.compression.encoder, cx.output.tail(), target, head);
        if end == End::Yes {
            self.finish_sending(cx, slot);
            return Ok(true);
        }
        let shared = head.shared.and_then(SharedFields::priority);
        if !head.own.is_empty() || shared.is_some() {
            self.follow_priority(slot, head.own, shared);
        }
        match whole {
            Some(chunk) => self.give(cx, slot, chunk, End::Yes),
            None => Ok(true),
        }
    }

    /// RFC 9218 §5: the response says in which order its stream is to be sent.
    fn follow_priority(&mut self, slot: u32, own: &[FieldRef<'_>], shared: Option<&[u8]>) {
        let own = own.iter().find(|field| field.known == Some(FieldName::Priority));
        if let Some(value) = own.map(|field| field.value).or(shared) {
            let priority = self.streams.get(slot).sending.priority.merge(value);
            self.reprioritise(slot, priority);
        }
    }

    /// The stream of a head, and how that is framed.
    #[inline]
    pub(crate) fn target(&self, stream: u32, end_stream: bool) -> Target {
        Target { stream, end_stream, frame_bytes_max: self.settings.peer_frame_bytes }
    }

    /// Sends trailers and ends the message. While a chunk waits they are kept and sent after it.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`]; [`Misuse::OutOfOrder`] before the head, after the end, or in a
    /// tunnel; [`Misuse::InvalidHead`]; [`Misuse::WrongLength`] when the body is shorter than its
    /// Content-Length.
    pub fn send_trailers(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        fields: &[FieldRef<'_>],
    ) -> Result<(), Misuse> {
        let slot = self.ordered(cx, id)?;
        check_fields(fields)?;
        let stream = self.streams.get_mut(slot);
        if stream.state.sending() != Some(Part::Content) || stream.kind == Kind::Tunnel {
            return Err(Misuse::OutOfOrder);
        }
        if !matches!(stream.sending.left, 0 | LENGTH_UNKNOWN) {
            return Err(Misuse::WrongLength);
        }
        if let Some(waiting) = &mut stream.sending.waiting {
            if !matches!(waiting.after, After::More) {
                return Err(Misuse::OutOfOrder);
            }
            let trailers = PendingTrailers::new(fields);
            let held = trailers.held_bytes();
            waiting.after = After::Trailers(Box::new(trailers));
            self.streams.waiting_bytes += held;
            return Ok(());
        }
        self.write_trailers(cx, id.0, fields.iter().copied());
        self.finish_sending(cx, slot);
        Ok(())
    }

    /// Gives up an exchange: RST_STREAM with INTERNAL_ERROR (server) or CANCEL (client). Nothing is
    /// reported about it any more.
    pub fn abort(&mut self, cx: &mut Context<'_>, id: ExchangeId) {
        self.reset(
            cx,
            id,
            match self.role {
                Role::Server => ErrorCode::InternalError,
                Role::Client => ErrorCode::Cancel,
            },
        );
    }

    /// As [`Self::abort`], and the peer is told that nothing failed here: the other side does not go on (CANCEL).
    pub fn cancel(&mut self, cx: &mut Context<'_>, id: ExchangeId) {
        self.reset(cx, id, ErrorCode::Cancel);
    }

    fn reset(&mut self, cx: &mut Context<'_>, id: ExchangeId, code: ErrorCode) {
        let Ok(slot) = self.ordered(cx, id) else { return };
        // Too many unread control frames are found out about with the peer's next frame.
        let _ = self.write_reset(cx, id.0, code);
        self.remove(cx, slot);
    }

    pub(crate) fn write_trailers<'a>(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        fields: impl Iterator<Item = FieldRef<'a>>,
    ) {
        let target = self.target(stream, true);
        head_writer::trailers(&mut self.compression.encoder, cx.output.tail(), target, fields);
    }

    /// Everything of a message has been sent.
    #[inline]
    pub(crate) fn finish_sending(&mut self, cx: &mut Context<'_>, slot: u32) {
        let stream = self.streams.get_mut(slot);
        match stream.state.receiving() {
            None => self.remove(cx, slot),
            Some(_) if self.role == Role::Server && stream.kind != Kind::Tunnel => {
                self.answered_early(cx, slot);
            }
            Some(receiving) => {
                stream.state = State::HalfClosedLocal { receiving };
                self.stop_waiting(slot);
            }
        }
    }

    /// The stream waits neither for its turn nor for its window any more.
    #[inline]
    pub(crate) fn stop_waiting(&mut self, slot: u32) {
        let stream = self.streams.get_mut(slot);
        let id = stream.id;
        match stream.sending.place {
            Place::Nowhere => return,
            Place::Listed => self.scheduler.remove(self.streams.slots_mut(), slot),
            Place::Window => stream.sending.place = Place::Nowhere,
        }
        self.stats.stops_waiting(slot, id, &self.deadlines.clock);
    }

    /// RFC 9113 §8.1: the response is complete before the request is.
    fn answered_early(&mut self, cx: &mut Context<'_>, slot: u32) {
        self.stop_waiting(slot);
        let stream = self.streams.get_mut(slot);
        stream.state = State::Discarding;
        let receiving = &mut stream.receiving;
        receiving.pace = Pace::new(self.deadlines.clock.ms);
        let unconsumed = std::mem::take(&mut receiving.unconsumed);
        let window = &receiving.window;
        let known = receiving.left != LENGTH_UNKNOWN;
        let long = known && receiving.left > window.available.max(0) as u64;
        if stream.kind == Kind::Connect || long || window.is_half_used() {
            self.pending.refused_rests.push(stream.id);
        }
        self.release(cx, unconsumed);
    }

    /// The turn ends: requests that have been answered and still are long are refused.
    #[inline]
    pub(crate) fn refuse_rests(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        while let Some(id) = self.pending.refused_rests.pop() {
            if let Some(slot) = self.streams.find(id) {
                self.write_reset(cx, id, ErrorCode::NoError)?;
                self.remove(cx, slot);
            }
        }
        Ok(())
    }
}
