//! RFC 9112 §2.2, §3, §9.3: requests, one after the other, as a server reads them.

use std::time::Instant;

use bolide_semantics::{Context, Deadline, DeadlineReason, End, ExchangeEvent, HeadKind, Output};
use http::Version;

use crate::connection::{Connection, Current, Reading};
use crate::error::{
    BARE_CR, BARE_LF, EMPTY_LINES, EOF, Failure, HEAD_TIMED_OUT, SHUT_DOWN, Stop, TRUNCATED,
};
use crate::exchanges::Kind;
use crate::gate::Gate;
use crate::limits::LEAVE_NOTICE;
use crate::persistence::Wish;
use crate::request_head::{self, ReceivedRequest};

impl Connection {
    /// Reads the next request's head.
    #[inline]
    pub(crate) fn poll_request(&mut self, cx: &mut Context<'_>) -> Output {
        if cx.output_room() == 0 {
            self.reading = Reading::Held;
            self.clock.busy();
            return self.wait(cx, None);
        }
        self.reading = Reading::Head;
        let unread = cx.input.unread();
        match unread.first() {
            None => return self.await_request(cx),
            Some(b'\r' | b'\n') => return self.skip_empty_line(cx),
            Some(_) => {}
        }
        let limits = [self.limits.heads.request_line_bytes, self.limits.heads.head_bytes];
        if !self.scan.is_worthwhile(unread, limits) {
            return self.await_head(cx);
        }
        match request_head::read(unread, cx.head, &self.limits) {
            Ok(request) => self.begin(cx, &request),
            Err(Stop::Incomplete) => self.await_head(cx),
            Err(Stop::Fault(failure)) => self.refuse(cx, failure),
        }
    }

    /// A request's head is complete.
    #[inline]
    fn begin(&mut self, cx: &mut Context<'_>, request: &ReceivedRequest) -> Output {
        cx.input.consume(request.length);
        self.scan.complete();
        self.clock.busy();
        self.gate = Gate::default();
        let id = self.exchanges.open(request.kind, 0);
        self.persistence.persists = request.persists
            && self.persistence.wish == Wish::Stay
            && self.exchanges.total() < self.limits.requests_count.max(1);
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

    /// The request is refused, and nothing more is read.
    #[cold]
    fn refuse(&mut self, cx: &mut Context<'_>, failure: &'static Failure) -> Output {
        let id = match self.exchanges.oldest() {
            Some((id, _)) => id,
            None => {
                self.current = Current::default();
                self.exchanges.open(Kind::Plain, 0)
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
    pub(crate) fn refuse_unread(
        &mut self,
        cx: &mut Context<'_>,
        failure: &'static Failure,
    ) -> Output {
        cx.head.clear(HeadKind::Request, Version::HTTP_11);
        self.refuse(cx, failure)
    }

    /// No request has begun.
    #[inline]
    fn await_request(&mut self, cx: &Context<'_>) -> Output {
        match self.persistence.wish {
            _ if self.persistence.has_ended() => self.finish(&EOF),
            Wish::Stay => self.wait_idle(cx),
            Wish::Leave(since) => self.await_last_request(cx, since),
            Wish::Drain => self.finish(&SHUT_DOWN),
        }
    }

    /// No request has begun, and one more may.
    #[cold]
    fn await_last_request(&mut self, cx: &Context<'_>, since: Instant) -> Output {
        let at = self.clock.idle(cx.now, LEAVE_NOTICE).max(since + LEAVE_NOTICE);
        if cx.now < at {
            self.wait(cx, Some(Deadline { at, reason: DeadlineReason::Idle }))
        } else {
            self.finish(&SHUT_DOWN)
        }
    }

    /// A request has begun, and its head is not complete.
    #[cold]
    fn await_head(&mut self, cx: &mut Context<'_>) -> Output {
        self.scan.incomplete(cx.input.len());
        if self.persistence.has_ended() {
            return self.finish(&TRUNCATED);
        }
        let at = self.clock.head(cx.now, self.limits.times.head_timeout);
        if cx.now >= at {
            return self.refuse_unread(cx, &HEAD_TIMED_OUT);
        }
        self.wait(cx, Some(Deadline { at, reason: DeadlineReason::Head }))
    }

    /// RFC 9112 §2.2: skips an empty line before a request.
    #[cold]
    fn skip_empty_line(&mut self, cx: &mut Context<'_>) -> Output {
        let failure = match cx.input.unread() {
            [b'\r'] => return self.await_head(cx),
            [b'\r', b'\n', ..] if self.scan.empty_lines < self.limits.heads.empty_lines_count => {
                self.scan.skip_empty_line();
                cx.input.consume(2);
                return self.go_on(cx);
            }
            [b'\r', b'\n', ..] => &EMPTY_LINES,
            [b'\r', ..] => &BARE_CR,
            _ => &BARE_LF,
        };
        self.refuse_unread(cx, failure)
    }
}
