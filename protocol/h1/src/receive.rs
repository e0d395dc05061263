//! RFC 9112 §2.2, §6.3, §9: what comes in, one report at a time.

use bolide_semantics::{
    Context, Deadline, DeadlineReason, End, ExchangeEvent, ExchangeId, FieldName, HeadKind, Output,
    Role, is_connection_specific,
};
use bytes::Bytes;
use http::{StatusCode, Version};

use crate::body::{Body, Step};
use crate::connection::{Connection, Current, Reading};
use crate::error::{
    BARE_CR, BARE_LF, BODY_TIMED_OUT, EMPTY_LINES, EOF, Failure, HEAD_TIMED_OUT, IDLE, LAST,
    SHUT_DOWN, Stop, TOO_MANY_INTERIM, TRAILERS_TOO_LARGE, TRUNCATED, UNANSWERED, UNASKED_SWITCH,
    UNREAD, UNSOLICITED, WRITE_TIMED_OUT,
};
use crate::exchanges::Kind;
use crate::field_lines;
use crate::progress::Progress;
use crate::request_head::{self, RequestHead, cut, too_long};
use crate::response_head::{self, ResponseHead};

impl Connection {
    /// Reads and advances until there is one thing to report. Call until it waits or has closed.
    #[inline]
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Output {
        loop {
            if let Some(failure) = self.ending {
                return self.wind_up(failure);
            }
            if self.sending.is_blocked() && cx.output_room() > 0 && self.sending.unblock() {
                let id = ExchangeId(self.exchanges.total());
                return Output::Exchange(id, ExchangeEvent::Sendable);
            }
            let output = match self.reading {
                Reading::Head if self.role == Role::Server => self.poll_request(cx),
                Reading::Head => self.poll_response(cx),
                Reading::Body(_) => self.poll_body(cx),
                Reading::Discard(..) => self.poll_discard(cx),
                Reading::Complete | Reading::Refused(_) => Some(self.wait(cx, None)),
            };
            if let Some(output) = output {
                return output;
            }
        }
    }

    /// Reports what the end of the connection means, exchange by exchange, then the end.
    #[cold]
    fn wind_up(&mut self, failure: &'static Failure) -> Output {
        if let Some(id) = self.exchanges.close_next() {
            // RFC 9112 §9.6: a server acts on nothing that follows the request it answered last.
            let untouched = self.role == Role::Client && std::ptr::eq(failure, &LAST);
            let reason = failure.abort_reason(untouched);
            return Output::Exchange(id, ExchangeEvent::Aborted(reason));
        }
        Output::Closed(failure.close)
    }

    /// Nothing until more bytes come, or until a deadline.
    #[inline]
    fn wait(&mut self, cx: &Context<'_>, until: Option<Deadline>) -> Output {
        let timeout = self.bounds.write_timeout.duration();
        match self.progress.look(cx.output.len(), cx.now, timeout) {
            Progress::Drained => Output::Wait(until),
            Progress::Until(at) => {
                let write = Deadline { at, reason: DeadlineReason::Write };
                Output::Wait(Deadline::earlier(until, Some(write)))
            }
            Progress::Stalled => {
                self.end(&WRITE_TIMED_OUT);
                self.wind_up(&WRITE_TIMED_OUT)
            }
        }
    }

    /// No message has begun.
    #[inline]
    fn wait_idle(&mut self, cx: &Context<'_>) -> Option<Output> {
        let at = self.clock.idle(cx.now, self.bounds.idle_timeout);
        if cx.now < at {
            return Some(self.wait(cx, Some(Deadline { at, reason: DeadlineReason::Idle })));
        }
        if !cx.output.is_empty() {
            // The last answer has not left: the deadline for writing holds.
            return Some(self.wait(cx, None));
        }
        self.end(&IDLE);
        None
    }

    /// Server: reads the next request's head.
    #[inline]
    fn poll_request(&mut self, cx: &mut Context<'_>) -> Option<Output> {
        self.held = cx.output_room() == 0;
        if self.held {
            self.clock.busy();
            return Some(self.wait(cx, None));
        }
        let unread = cx.input.unread();
        match unread.first() {
            None => return self.await_request(cx),
            Some(b'\r' | b'\n') => return self.skip_empty_line(cx),
            Some(_) => {}
        }
        let limits = [self.bounds.request_line_bytes, self.bounds.head_bytes];
        if !self.scan.is_worthwhile(unread, limits) {
            return self.await_head(cx);
        }
        match request_head::read(unread, cx.head, &self.bounds) {
            Ok(request) => Some(self.begin(cx, &request)),
            Err(Stop::Incomplete) => self.await_head(cx),
            Err(Stop::Fault(failure)) => Some(self.refuse(cx, failure)),
        }
    }

    /// A request's head is complete.
    #[inline]
    fn begin(&mut self, cx: &mut Context<'_>, request: &RequestHead) -> Output {
        cx.input.consume(request.length);
        self.scan.complete();
        self.clock.busy();
        self.unconsumed = 0;
        let id = self.exchanges.open(request.kind);
        self.persistence.persists = request.persists
            && !self.persistence.draining
            && self.exchanges.total() < self.bounds.requests_count;
        self.current = Current {
            version_10: request.version_10,
            expects_continue: request.expects_continue,
            interim_count: 0,
        };
        let end = match request.body {
            Some(body) => {
                self.reading = Reading::Body(body);
                End::No
            }
            None => {
                self.reading = Reading::Complete;
                End::Yes
            }
        };
        Output::Exchange(id, ExchangeEvent::Head(end))
    }

    /// Server: the request is refused, and nothing more is read.
    #[cold]
    fn refuse(&mut self, cx: &mut Context<'_>, failure: &'static Failure) -> Output {
        let id = match self.exchanges.oldest() {
            Some((id, _)) => id,
            None => {
                self.current = Current::default();
                self.exchanges.open(Kind::Plain)
            }
        };
        cx.input.consume(cx.input.len());
        self.clock.busy();
        self.persistence.persists = false;
        self.reading = Reading::Refused(failure);
        Output::Exchange(id, ExchangeEvent::Rejected(failure.status))
    }

    /// As [`Self::refuse`], when what stands in the context's head is not this request's.
    #[cold]
    fn refuse_unread(&mut self, cx: &mut Context<'_>, failure: &'static Failure) -> Output {
        cx.head.clear(HeadKind::Request, Version::HTTP_11);
        self.refuse(cx, failure)
    }

    /// Server: no request has begun.
    #[inline]
    fn await_request(&mut self, cx: &Context<'_>) -> Option<Output> {
        if self.persistence.ended {
            self.end(&EOF);
            return None;
        }
        if self.persistence.draining {
            self.end(&SHUT_DOWN);
            return None;
        }
        self.wait_idle(cx)
    }

    /// Server: a request has begun, and its head is not complete.
    #[cold]
    fn await_head(&mut self, cx: &mut Context<'_>) -> Option<Output> {
        self.scan.incomplete(cx.input.len());
        if self.persistence.ended {
            self.end(&TRUNCATED);
            return None;
        }
        let at = self.clock.head(cx.now, self.bounds.head_timeout);
        if cx.now >= at {
            return Some(self.refuse_unread(cx, &HEAD_TIMED_OUT));
        }
        Some(self.wait(cx, Some(Deadline { at, reason: DeadlineReason::Head })))
    }

    /// RFC 9112 §2.2: skips an empty line before a request.
    #[cold]
    fn skip_empty_line(&mut self, cx: &mut Context<'_>) -> Option<Output> {
        let failure = match cx.input.unread() {
            [b'\r'] => return self.await_head(cx),
            [b'\r', b'\n', ..] if self.scan.empty_lines < self.bounds.empty_lines_count => {
                self.scan.skip_empty_line();
                cx.input.consume(2);
                return None;
            }
            [b'\r', b'\n', ..] => &EMPTY_LINES,
            [b'\r', ..] => &BARE_CR,
            _ => &BARE_LF,
        };
        Some(self.refuse_unread(cx, failure))
    }

    /// Client: reads the next response's head.
    #[inline]
    fn poll_response(&mut self, cx: &mut Context<'_>) -> Option<Output> {
        let Some((id, kind)) = self.exchanges.oldest() else {
            return self.await_exchange(cx);
        };
        let unread = cx.input.unread();
        let limits = [self.bounds.head_bytes; 2];
        if !unread.is_empty() && self.scan.is_worthwhile(unread, limits) {
            match response_head::read(unread, cx.head, kind, &self.bounds) {
                Ok(response) => return self.answered(cx, id, kind, &response),
                Err(Stop::Incomplete) => {}
                Err(Stop::Fault(failure)) => {
                    self.end(failure);
                    return None;
                }
            }
        }
        self.scan.incomplete(cx.input.len());
        if self.persistence.ended {
            self.end(if cx.input.is_empty() { &UNANSWERED } else { &TRUNCATED });
            return None;
        }
        Some(self.wait(cx, None))
    }

    /// Client: no request waits for its response.
    fn await_exchange(&mut self, cx: &Context<'_>) -> Option<Output> {
        let failure = if !cx.input.is_empty() {
            &UNSOLICITED
        } else if self.persistence.ended {
            &EOF
        } else if !self.sending.is_ready() {
            // The rest of a request that was answered early.
            return Some(self.wait(cx, None));
        } else if self.persistence.draining {
            &SHUT_DOWN
        } else {
            return self.wait_idle(cx);
        };
        self.end(failure);
        None
    }

    /// Client: a response's head is complete.
    #[inline]
    fn answered(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        kind: Kind,
        response: &ResponseHead,
    ) -> Option<Output> {
        cx.input.consume(response.length);
        self.scan.complete();
        if response.status.is_informational() && response.status != StatusCode::SWITCHING_PROTOCOLS
        {
            self.current.interim_count = self.current.interim_count.saturating_add(1);
            if self.current.interim_count > self.bounds.interim_count {
                self.end(&TOO_MANY_INTERIM);
                return None;
            }
            return Some(Output::Exchange(id, ExchangeEvent::Informational));
        }
        self.current.interim_count = 0;
        let event = |end| Some(Output::Exchange(id, ExchangeEvent::Head(end)));
        if response.status == StatusCode::SWITCHING_PROTOCOLS {
            if kind != Kind::Upgrade || !self.sending.is_ready() {
                self.end(&UNASKED_SWITCH);
                return None;
            }
            self.begin_tunnel();
            return event(End::No);
        }
        if kind == Kind::Connect && response.status.is_success() {
            self.begin_tunnel();
            return event(End::No);
        }
        self.persistence.persists &= response.persists;
        self.persistence.peer_closes |= response.closes;
        self.unconsumed = 0;
        if let Some(body) = response.body {
            self.reading = Reading::Body(body);
            return event(End::No);
        }
        self.complete();
        event(End::Yes)
    }

    /// The message that is read is complete.
    #[inline]
    fn complete(&mut self) {
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

    /// Reads on in a body or a tunnel.
    #[inline]
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Option<Output> {
        if self.is_gated() {
            self.clock.busy();
            return Some(self.wait(cx, None));
        }
        let Reading::Body(body) = &mut self.reading else { return None };
        let (id, _) = self.exchanges.oldest()?;
        match body.next(cx.input, self.bounds.chunk_extension_bytes) {
            Ok(Step::Content(length, end)) => {
                let data = cx.input.take(length);
                self.unconsumed += length;
                self.clock.received(length);
                self.current.expects_continue = false;
                if end == End::Yes {
                    self.complete();
                }
                Some(Output::Exchange(id, ExchangeEvent::Data(data, end)))
            }
            Ok(Step::End) => {
                self.complete();
                Some(Output::Exchange(id, ExchangeEvent::Data(Bytes::new(), End::Yes)))
            }
            Ok(Step::Trailers) => match self.read_trailers(cx) {
                Ok(()) => {
                    self.complete();
                    Some(Output::Exchange(id, ExchangeEvent::Trailers))
                }
                Err(Stop::Incomplete) => self.await_body(cx, id),
                Err(Stop::Fault(failure)) => self.break_off(cx, failure),
            },
            Ok(Step::Starved) => self.await_body(cx, id),
            Err(failure) => self.break_off(cx, failure),
        }
    }

    /// More of a body is waited for.
    fn await_body(&mut self, cx: &mut Context<'_>, id: ExchangeId) -> Option<Output> {
        let Reading::Body(body) = self.reading else { return None };
        if self.persistence.ended {
            match body {
                Body::Length(_) | Body::Chunked(_) => {
                    self.end(&TRUNCATED);
                    return None;
                }
                Body::UntilClose => self.complete(),
                Body::Tunnel => self.reading = Reading::Complete,
            }
            return Some(Output::Exchange(id, ExchangeEvent::Data(Bytes::new(), End::Yes)));
        }
        let wanted = self.role == Role::Server && body != Body::Tunnel;
        if !wanted || self.current.expects_continue {
            self.clock.busy();
            return Some(self.wait(cx, None));
        }
        match self.clock.body(cx.now, &self.bounds, self.sending.is_ready()) {
            Some(at) => Some(self.wait(cx, Some(Deadline { at, reason: DeadlineReason::Body }))),
            None => self.break_off(cx, &BODY_TIMED_OUT),
        }
    }

    /// A body can't be read to its end: a server says so if it still can.
    #[cold]
    fn break_off(&mut self, cx: &mut Context<'_>, failure: &'static Failure) -> Option<Output> {
        if self.role == Role::Server && self.sending.is_ready() {
            return Some(self.refuse_unread(cx, failure));
        }
        self.end(failure);
        None
    }

    /// RFC 9112 §7.1.2: reads a trailer section. Fields that may not stand there are dropped.
    fn read_trailers(&mut self, cx: &mut Context<'_>) -> Result<(), Stop> {
        let unread = cx.input.unread();
        let bytes_max = self.bounds.trailer_bytes;
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
        match field_lines::read(bytes, 0, self.bounds.trailers_count, cx.head, keep) {
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

    /// Server: reads on in a body that nobody wants any more.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Option<Output> {
        let Reading::Discard(body, left) = &mut self.reading else { return None };
        let step = match body.next(cx.input, self.bounds.chunk_extension_bytes) {
            Ok(Step::Trailers) => match self.read_trailers(cx) {
                Ok(()) => Ok(Step::End),
                Err(Stop::Incomplete) => Ok(Step::Starved),
                Err(Stop::Fault(failure)) => Err(failure),
            },
            Ok(Step::Content(length, end)) => {
                cx.input.consume(length);
                match u32::try_from(length).ok().and_then(|length| left.checked_sub(length)) {
                    Some(rest) => {
                        *left = rest;
                        self.clock.received(length);
                        if end == End::No {
                            return None;
                        }
                        Ok(Step::End)
                    }
                    None => Err(&UNREAD),
                }
            }
            step => step,
        };
        match step {
            Ok(Step::End) => self.next_request(),
            Err(failure) => self.end(failure),
            Ok(_) if self.persistence.ended => self.end(&EOF),
            Ok(_) => match self.clock.body(cx.now, &self.bounds, true) {
                Some(at) => {
                    return Some(
                        self.wait(cx, Some(Deadline { at, reason: DeadlineReason::Body })),
                    );
                }
                None => self.end(&BODY_TIMED_OUT),
            },
        }
        None
    }
}
