//! RFC 9113 §8.1, §8.3, §8.5: heads and trailers that are to be sent, and the end of exchanges.

use bolide_hpack::Encoder;
use bolide_semantics::{
    Context, End, ExchangeId, FieldName, FieldRef, HeadName, Misuse, OutgoingHead, Role, Start,
    is_token, is_valid_authority, is_valid_scheme, is_valid_target,
};
use http::{Method, StatusCode};

use crate::connection::{Compression, Connection};
use crate::error::{ErrorCode, Fault};
use crate::frame::{self, HEADER_BYTES};
use crate::goaway::LAST_OF_ALL;
use crate::head_writer::{self, Target};
use crate::priority::Priority;
use crate::stream::Place;
use crate::stream::{LENGTH_UNKNOWN, Opening, PendingTrailers, Progress};

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
    pub fn send_request<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        head: OutgoingHead<'a, I>,
        end: End,
    ) -> Result<ExchangeId, Misuse>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        self.check_room(cx)?;
        let Start::Request { method, scheme, authority, path, protocol } = head.start else {
            return Err(Misuse::InvalidHead);
        };
        let connect = method == Method::CONNECT;
        check_target(connect, scheme, authority, path, protocol)?;
        if protocol.is_some() && !self.settings.peer_connect_protocol {
            return Err(Misuse::Refused);
        }
        let length = head_writer::check(head.fields.clone())?;
        let id = self.open_request(method, length, end)?;
        self.write_head(cx, id, end == End::Yes, Some(head.start), head.fields);
        Ok(ExchangeId(id))
    }

    /// The same for a head that is sent again and again: `name`, which is not 0, stands for it. Two
    /// calls of a connection with the same name must have the same head, which is checked and encoded
    /// once. One head is remembered.
    ///
    /// # Errors
    ///
    /// As [`send_request`](Self::send_request).
    pub fn send_named_request<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        name: u16,
        head: OutgoingHead<'a, I>,
        end: End,
    ) -> Result<ExchangeId, Misuse>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        let Compression { encoder, memory, .. } = &mut self.compression;
        let known = memory.recognise(name, encoder.generation(), std::iter::empty());
        let (Some(length), Start::Request { method, .. }) = (known, head.start) else {
            return self.send_and_remember(cx, name, head, end);
        };
        self.check_room(cx)?;
        let id = self.open_request(method, length, end)?;
        if !self.write_head_again(cx, id, end == End::Yes) {
            self.write_head(cx, id, end == End::Yes, Some(head.start), head.fields);
        }
        Ok(ExchangeId(id))
    }

    #[cold]
    fn send_and_remember<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        name: u16,
        head: OutgoingHead<'a, I>,
        end: End,
    ) -> Result<ExchangeId, Misuse>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        // What opens the connection stands before the head.
        let _ = self.begin(cx);
        let before = cx.output.tail().len();
        let counts = |encoder: &Encoder| (encoder.generation(), encoder.withheld());
        let counted = counts(&self.compression.encoder);
        let length = head_writer::check(head.fields.clone())?;
        let connects =
            matches!(head.start, Start::Request { method, .. } if method == Method::CONNECT);
        let id = self.send_request(cx, head, end)?;
        let Compression { encoder, memory, .. } = &mut self.compression;
        let block = &cx.output.tail()[before + HEADER_BYTES..];
        let is_whole = block.len() <= self.settings.peer_frame_bytes as usize;
        if !connects && is_whole && memory.is_free() && counts(encoder) == counted {
            let generation = encoder.generation();
            memory.remember(name, generation, length, std::iter::empty(), block);
        }
        Ok(id)
    }

    /// Whether a request may be sent now.
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
        let end_stream = end == End::Yes;
        if end_stream && !matches!(length, 0 | LENGTH_UNKNOWN) {
            return Err(Misuse::WrongLength);
        }
        let id = self.streams.next_own;
        self.streams.next_own += 2;
        let slot = self.streams.insert(Opening {
            id,
            send_window: self.settings.peer_window_bytes,
            receive_window: self.settings.window_bytes,
            priority: Priority::UNSPOKEN,
            now_ms: self.deadlines.clock.ms,
        });
        self.opened();
        let connect = method == Method::CONNECT;
        let stream = self.streams.get_mut(slot);
        stream.connect = connect;
        stream.head_request = method == Method::HEAD;
        stream.sending = if end_stream { Progress::Ended } else { Progress::Body };
        stream.send_left = if connect { LENGTH_UNKNOWN } else { length };
        Ok(id)
    }

    /// Sends a response's head (server only): interim ones with a 1xx status, as often as wanted and
    /// with [`End::No`], then the final one. A 2xx to CONNECT turns the exchange into a tunnel.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`]; [`Misuse::OutOfOrder`] after the final head;
    /// [`Misuse::InvalidHead`], also for 101, which HTTP/2 does not have; [`Misuse::WrongLength`]
    /// for [`End::Yes`] with a Content-Length that is not 0, where the response could have content.
    #[inline]
    pub fn send_head<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        head: OutgoingHead<'a, I>,
        end: End,
    ) -> Result<(), Misuse>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        let slot = self.ordered(cx, id)?;
        let stream = self.streams.get_mut(slot);
        if stream.sending != Progress::Head || self.role == Role::Client {
            return Err(Misuse::OutOfOrder);
        }
        let Start::Response { status } = head.start else { return Err(Misuse::InvalidHead) };
        let Compression { encoder, memory, .. } = &mut self.compression;
        let known = memory.recognise(status.as_u16(), encoder.generation(), head.fields.clone());
        let length = match known {
            Some(length) => length,
            None => head_writer::check(head.fields.clone())?,
        };
        let end_stream = end == End::Yes;
        if status.is_informational() {
            if end_stream || status == StatusCode::SWITCHING_PROTOCOLS {
                return Err(Misuse::InvalidHead);
            }
            self.write_head(cx, id.0, false, Some(head.start), head.fields);
            return Ok(());
        }
        stream.announce(status, length, end)?;
        if known.is_none() || !self.write_head_again(cx, id.0, end_stream) {
            self.write_response(cx, id.0, end_stream, status, length, head.fields.clone());
        }
        if end_stream {
            self.finish_sending(cx, slot);
        } else if (known.is_none() || self.compression.memory.has_priority())
            && let Some(field) =
                { head.fields }.find(|field| field.known == Some(FieldName::Priority))
        {
            let priority = self.streams.get(slot).priority.merge(field.value);
            self.reprioritise(slot, priority);
        }
        Ok(())
    }

    /// The same as [`send_head`](Self::send_head) for the head that has this name, when it is the one that is
    /// remembered: it is neither looked at nor encoded. `None`: it isn't, and nothing has happened.
    ///
    /// # Errors
    ///
    /// As [`send_head`](Self::send_head).
    #[inline]
    pub fn send_head_again(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        name: &HeadName,
        end: End,
    ) -> Option<Result<(), Misuse>> {
        let Compression { encoder, memory, .. } = &mut self.compression;
        let length = memory.recognise_named(name, encoder.generation())?;
        if memory.has_priority() {
            return None;
        }
        let slot = match self.ordered(cx, id) {
            Ok(slot) => slot,
            Err(misuse) => return Some(Err(misuse)),
        };
        let stream = self.streams.get_mut(slot);
        if stream.sending != Progress::Head {
            return Some(Err(Misuse::OutOfOrder));
        }
        if let Err(misuse) = stream.announce(name.status, length, end) {
            return Some(Err(misuse));
        }
        if !self.write_head_again(cx, id.0, end == End::Yes) {
            self.streams.get_mut(slot).sending = Progress::Head;
            return None;
        }
        if end == End::Yes {
            self.finish_sending(cx, slot);
        }
        Some(Ok(()))
    }

    /// Names the head that was sent last, for [`send_head_again`](Self::send_head_again).
    #[inline]
    pub fn name_head(&mut self, name: HeadName) {
        self.compression.memory.name(name);
    }

    /// Sends the head that is remembered, if the encoder has nothing to say before it.
    #[inline]
    fn write_head_again(&mut self, cx: &mut Context<'_>, stream: u32, end_stream: bool) -> bool {
        let frame_bytes_max = self.settings.peer_frame_bytes;
        let target = Target { stream, end_stream, frame_bytes_max };
        let Compression { encoder, memory, .. } = &mut self.compression;
        head_writer::write_again(encoder, cx.output.tail(), target, [memory.block(), &[]])
    }

    /// Sends a final response's head, and remembers it if it may be sent again as it is.
    fn write_response<'a>(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        end_stream: bool,
        status: StatusCode,
        length: u64,
        fields: impl Iterator<Item = FieldRef<'a>> + Clone,
    ) {
        let before = cx.output.tail().len();
        let counts = |encoder: &Encoder| (encoder.generation(), encoder.withheld());
        let counted = counts(&self.compression.encoder);
        self.write_head(cx, id, end_stream, Some(Start::Response { status }), fields.clone());
        let Compression { encoder, memory, .. } = &mut self.compression;
        if memory.is_free() && counts(encoder) == counted {
            let block = &cx.output.tail()[before + HEADER_BYTES..];
            memory.remember(status.as_u16(), encoder.generation(), length, fields, block);
        }
    }

    /// Sends trailers and ends the message. While a chunk waits they are kept and sent after it.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`]; [`Misuse::OutOfOrder`] before the head, after the end, or in a
    /// tunnel; [`Misuse::InvalidHead`]; [`Misuse::WrongLength`] when the body is shorter than its
    /// Content-Length.
    pub fn send_trailers<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        fields: I,
    ) -> Result<(), Misuse>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        let slot = self.ordered(cx, id)?;
        head_writer::check(fields.clone())?;
        let stream = self.streams.get_mut(slot);
        if stream.sending != Progress::Body || stream.end_after || stream.tunnel {
            return Err(Misuse::OutOfOrder);
        }
        if !matches!(stream.send_left, 0 | LENGTH_UNKNOWN) {
            return Err(Misuse::WrongLength);
        }
        if stream.chunk.is_some() {
            stream.end_after = true;
            stream.trailers = Some(Box::new(PendingTrailers::new(fields)));
            return Ok(());
        }
        self.write_head(cx, id.0, true, None, fields);
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

    /// As [`Self::abort`], and the peer is told that nothing failed here: somebody does not go on (CANCEL).
    pub fn cancel(&mut self, cx: &mut Context<'_>, id: ExchangeId) {
        self.reset(cx, id, ErrorCode::Cancel);
    }

    fn reset(&mut self, cx: &mut Context<'_>, id: ExchangeId, code: ErrorCode) {
        let Ok(slot) = self.ordered(cx, id) else { return };
        // Too many unread control frames are found out about with the peer's next frame.
        let _ = self.write_reset(cx, id.0, code);
        self.remove(cx, slot);
    }

    #[inline]
    pub(crate) fn write_head<'a>(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        end_stream: bool,
        start: Option<Start<'_>>,
        fields: impl Iterator<Item = FieldRef<'a>>,
    ) {
        let frame_bytes_max = self.settings.peer_frame_bytes;
        let target = Target { stream, end_stream, frame_bytes_max };
        let encoder = &mut self.compression.encoder;
        head_writer::write(encoder, cx.output.tail(), target, start, fields, &[]);
    }

    /// Everything of a message has been sent.
    #[inline]
    pub(crate) fn finish_sending(&mut self, cx: &mut Context<'_>, slot: u32) {
        let stream = self.streams.get_mut(slot);
        stream.sending = Progress::Ended;
        stream.hungry = false;
        if stream.receiving == Progress::Ended {
            self.remove(cx, slot);
        } else if self.role == Role::Server && !stream.tunnel {
            self.answered_early(cx, slot);
        } else {
            self.stop_waiting(slot);
        }
    }

    /// The stream has nothing more to send.
    fn stop_waiting(&mut self, slot: u32) {
        let stream = self.streams.get_mut(slot);
        let (id, place) = (stream.id, stream.place);
        if place == Place::Listed {
            self.scheduler.remove(self.streams.slots_mut(), slot);
        }
        if place != Place::Nowhere {
            self.streams.get_mut(slot).place = Place::Nowhere;
            self.stats.stops_waiting(slot, id, &self.deadlines.clock);
        }
    }

    /// RFC 9113 §8.1: the answer is complete before the request is.
    fn answered_early(&mut self, cx: &mut Context<'_>, slot: u32) {
        self.stop_waiting(slot);
        let stream = self.streams.get_mut(slot);
        stream.discarding = true;
        stream.rate_ms = self.deadlines.clock.ms;
        let unconsumed = std::mem::take(&mut stream.unconsumed);
        let window = &stream.window;
        let known = stream.receive_left != LENGTH_UNKNOWN;
        let long = known && stream.receive_left > window.available.max(0) as u64;
        if stream.connect || long || window.is_half_used() {
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

    /// `bytes` of the data that was reported for an exchange have been used up: the peer may send as
    /// much again. Calls for exchanges that are over are harmless.
    #[inline]
    pub fn consumed(&mut self, cx: &mut Context<'_>, id: ExchangeId, bytes: usize) {
        if self.incoming.run.as_mut().is_some_and(|run| run.consumes(id, bytes)) {
            return;
        }
        let Ok(slot) = self.ordered(cx, id) else { return };
        self.consume(cx, slot, u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// The same for an open stream.
    #[inline]
    pub(crate) fn consume(&mut self, cx: &mut Context<'_>, slot: u32, bytes: u32) {
        let clock = self.deadlines.clock;
        let stream = self.streams.get_mut(slot);
        let (id, bytes) = (stream.id, bytes.min(stream.unconsumed));
        stream.unconsumed -= bytes;
        if stream.receiving != Progress::Ended {
            let enough = stream.receive_left != LENGTH_UNKNOWN
                && stream.receive_left <= stream.window.available.max(0) as u64;
            if enough {
                stream.window.consumed += bytes;
            } else {
                let tuning = self.receive_flow.stream_tuning(clock.us, &self.limits);
                let size = stream.window.size;
                if let Some(increment) = stream.window.consume(bytes, tuning) {
                    frame::window_update::write(cx.output.tail(), id, increment);
                }
                if stream.window.size > size {
                    let size = stream.window.size;
                    self.stream_window_grew(cx, size);
                }
            }
        }
        self.release(cx, bytes);
    }

    #[cold]
    fn stream_window_grew(&mut self, cx: &mut Context<'_>, size: u32) {
        let initial = self.settings.window_bytes;
        if let Some(bytes) = self.receive_flow.stream_grew(size, initial) {
            let now_ms = self.deadlines.clock.ms;
            let difference = self.settings.write_window(cx.output.tail(), bytes, now_ms);
            for stream in self.streams.slots_mut().iter_mut().filter(|stream| stream.id != 0) {
                stream.window.shift(difference);
            }
        }
    }
}

/// RFC 9113 §8.3.1, §8.5, RFC 8441 §4: the pseudo-fields of a request of ours.
fn check_target(
    connect: bool,
    scheme: &str,
    authority: &str,
    path: &str,
    protocol: Option<&str>,
) -> Result<(), Misuse> {
    let valid = is_valid_authority(authority.as_bytes())
        && protocol.is_none_or(|protocol| connect && is_token(protocol.as_bytes()))
        && if connect && protocol.is_none() {
            path.is_empty()
        } else {
            let path_begins = path.starts_with('/') || path == "*";
            is_valid_scheme(scheme.as_bytes()) && path_begins && is_valid_target(path.as_bytes())
        };
    if valid { Ok(()) } else { Err(Misuse::InvalidHead) }
}
