//! RFC 9112 §6.3, §7.1, §9.3: bodies and tunnels, as they come in.

use bolide_buffers::ReceiveBuffer;
use bolide_semantics::{
    Context, Deadline, DeadlineReason, End, ExchangeEvent, ExchangeId, FieldName, HeadKind, Output,
    Role, is_connection_specific,
};
use bytes::Bytes;
use http::Version;

use crate::body::Body;
use crate::chunked::Step;
use crate::connection::{Connection, Reading};
use crate::error::{BODY_TIMED_OUT, EOF, Failure, Stop, TRAILERS_TOO_LARGE, TRUNCATED, UNREAD};
use crate::field_lines;
use crate::persistence::PeerSide;
use crate::request_head::{cut, too_long};
use crate::sending::Sending;

impl Connection {
    /// Reads on in a body or a tunnel.
    #[inline]
    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Output {
        let (Reading::Body(body), Some((id, _))) = (&mut self.reading, self.exchanges.oldest())
        else {
            return self.wait(cx, None);
        };
        if self.gate.is_closed(&self.limits) {
            self.clock.busy();
            return self.wait(cx, None);
        }
        match body.next(cx.input, self.limits.bodies.chunk_extension_bytes) {
            Ok(Step::Content(length, end)) => {
                let data = cx.input.take(length);
                self.gate.received(length);
                self.clock.received(length);
                self.current.expects_continue = false;
                if end == End::Yes {
                    self.complete();
                }
                Output::Exchange(id, ExchangeEvent::Data(data, end))
            }
            Ok(Step::End) => self.report_end(id),
            Ok(Step::Trailers) => match self.read_trailers(cx) {
                Ok(()) => {
                    self.complete();
                    Output::Exchange(id, ExchangeEvent::Trailers)
                }
                Err(Stop::Incomplete) => self.await_body(cx, id),
                Err(Stop::Fault(failure)) => self.break_off(cx, failure),
            },
            Ok(Step::Starved) => self.await_body(cx, id),
            Err(failure) => self.break_off(cx, failure),
        }
    }

    /// A copy of the whole body of the request whose head was just reported, if its length is known, all of it has
    /// arrived, and it has at most `bytes_max` bytes; it counts as [consumed](Self::consumed). `None`, and nothing
    /// has happened: the body comes by [`poll`](Self::poll).
    #[inline]
    pub fn whole_body(
        &mut self,
        input: &mut ReceiveBuffer,
        id: ExchangeId,
        bytes_max: usize,
    ) -> Option<Bytes> {
        let Reading::Body(Body::Length(left)) = self.reading else { return None };
        let is_open = self.ending.is_none() && self.exchanges.is_oldest(id);
        let left = usize::try_from(left).ok().filter(|left| is_open && *left <= bytes_max)?;
        let data = Bytes::copy_from_slice(input.unread().get(..left)?);
        input.consume(left);
        self.clock.received(left);
        self.current.expects_continue = false;
        self.complete();
        Some(data)
    }

    /// The message that is read is complete.
    #[inline]
    pub(crate) fn complete(&mut self) {
        if self.role == Role::Server {
            self.clock.busy();
            self.reading = Reading::Complete;
            return;
        }
        self.exchanges.close_oldest();
        self.reading = Reading::Head;
        if !self.persistence.persists {
            self.end(self.persistence.reason());
        }
    }

    fn report_end(&mut self, id: ExchangeId) -> Output {
        self.complete();
        Output::Exchange(id, ExchangeEvent::Data(Bytes::new(), End::Yes))
    }

    /// More of a body is waited for.
    fn await_body(&mut self, cx: &mut Context<'_>, id: ExchangeId) -> Output {
        let is_tunnel = matches!(self.reading, Reading::Body(Body::Tunnel));
        if self.persistence.has_ended() {
            if is_tunnel {
                self.reading = Reading::Complete;
                if matches!(self.sending, Sending::Complete) {
                    self.end_tunnel();
                }
                return Output::Exchange(id, ExchangeEvent::Data(Bytes::new(), End::Yes));
            }
            let is_until_close = matches!(self.reading, Reading::Body(Body::UntilClose));
            if is_until_close && self.persistence.peer_side == PeerSide::Ended {
                return self.report_end(id);
            }
            return self.finish(&TRUNCATED);
        }
        if self.role == Role::Client || is_tunnel || self.current.expects_continue {
            self.clock.busy();
            return self.wait(cx, None);
        }
        match self.clock.body(cx.now, &self.limits, self.sending.is_ready()) {
            Some(at) => self.wait(cx, Some(Deadline { at, reason: DeadlineReason::Body })),
            None => self.break_off(cx, &BODY_TIMED_OUT),
        }
    }

    /// A body can't be read to its end: a server says so if it still can.
    #[cold]
    fn break_off(&mut self, cx: &mut Context<'_>, failure: &'static Failure) -> Output {
        if self.role == Role::Server && self.sending.is_ready() {
            return self.refuse_unread(cx, failure);
        }
        self.finish(failure)
    }

    /// RFC 9112 §7.1.2: reads a trailer section. Fields that may not stand there are dropped.
    fn read_trailers(&mut self, cx: &mut Context<'_>) -> Result<(), Stop> {
        let unread = cx.input.unread();
        let bytes_max = self.limits.bodies.trailer_bytes;
        if !self.scan.is_worthwhile(unread, [bytes_max; 2]) {
            self.scan.incomplete(unread.len());
            return Err(Stop::Incomplete);
        }
        cx.head.clear(HeadKind::Trailers, Version::HTTP_11);
        let keep = |name, _: &[u8]| {
            let forbidden = matches!(name, FieldName::ContentLength | FieldName::Host);
            Ok(!forbidden && !is_connection_specific(name))
        };
        let (bytes, is_cut) = cut(unread, bytes_max);
        match field_lines::read(bytes, 0, self.limits.bodies.trailers_count, cx.head, keep) {
            Ok(length) => {
                self.scan.complete();
                cx.input.consume(length);
                Ok(())
            }
            Err(stop) => {
                self.scan.incomplete(unread.len());
                Err(too_long(stop, is_cut, &TRAILERS_TOO_LARGE))
            }
        }
    }

    /// Server: reads and drops the rest of a body.
    pub(crate) fn poll_discard(&mut self, cx: &mut Context<'_>) -> Output {
        loop {
            match self.discard(cx) {
                Ok(Step::Content(..)) => {}
                Ok(Step::End) => {
                    self.next_request();
                    return self.go_on(cx);
                }
                Ok(Step::Starved | Step::Trailers) if self.persistence.has_ended() => {
                    return self.finish(&EOF);
                }
                Ok(Step::Starved | Step::Trailers) => {
                    let Some(at) = self.clock.body(cx.now, &self.limits, true) else {
                        return self.finish(&BODY_TIMED_OUT);
                    };
                    return self.wait(cx, Some(Deadline { at, reason: DeadlineReason::Body }));
                }
                Err(failure) => return self.finish(failure),
            }
        }
    }

    /// Throws one piece away.
    fn discard(&mut self, cx: &mut Context<'_>) -> Result<Step, &'static Failure> {
        let Reading::Discard(body, left) = &mut self.reading else { return Ok(Step::End) };
        match body.next(cx.input, self.limits.bodies.chunk_extension_bytes)? {
            Step::Content(length, end) => {
                cx.input.consume(length);
                let rest = u32::try_from(length).ok().and_then(|length| left.checked_sub(length));
                *left = rest.ok_or(&UNREAD)?;
                self.clock.received(length);
                Ok(if end == End::Yes { Step::End } else { Step::Content(length, end) })
            }
            Step::Trailers => match self.read_trailers(cx) {
                Ok(()) => Ok(Step::End),
                Err(Stop::Incomplete) => Ok(Step::Starved),
                Err(Stop::Fault(failure)) => Err(failure),
            },
            step => Ok(step),
        }
    }
}
