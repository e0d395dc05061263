//! RFC 9112 §9: one report at a time, and how long is waited for the next.

use bolide_semantics::{
    Context, Deadline, DeadlineReason, ExchangeEvent, ExchangeId, Output, Role,
};

use crate::connection::{Connection, Reading};
use crate::error::{Failure, IDLE, LAST, WRITE_TIMED_OUT};
use crate::progress::Progress;

impl Connection {
    /// Reads and advances until there is one thing to report. Call until it waits or has closed.
    #[inline]
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Output {
        if let Some(failure) = self.ending {
            return self.wind_up(failure);
        }
        if cx.output.is_empty() {
            self.progress.drained();
        }
        if self.sending.is_blocked() && cx.output_room() > 0 {
            return self.report_room();
        }
        match self.reading {
            Reading::Head | Reading::Held if self.role == Role::Server => self.poll_request(cx),
            Reading::Head | Reading::Held => self.poll_response(cx),
            Reading::Body(_) => self.poll_body(cx),
            Reading::Discard(..) => self.poll_discard(cx),
            Reading::Complete | Reading::Refused(_) => self.wait(cx, None),
        }
    }

    /// There is nothing to report, but something else to do. (A loop in [`Self::poll`] would move each
    /// report once more, which costs as much as reading a field line.)
    #[cold]
    #[inline(never)]
    pub(crate) fn go_on(&mut self, cx: &mut Context<'_>) -> Output {
        self.poll(cx)
    }

    /// The connection is over.
    #[cold]
    pub(crate) fn finish(&mut self, failure: &'static Failure) -> Output {
        self.end(failure);
        self.wind_up(self.ending.unwrap_or(failure))
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

    /// The output has room again for the message that is being sent.
    fn report_room(&mut self) -> Output {
        self.sending.unblock();
        let id = ExchangeId(self.exchanges.total());
        Output::Exchange(id, ExchangeEvent::Sendable)
    }

    /// Nothing until more bytes come, or until a deadline.
    #[inline]
    pub(crate) fn wait(&mut self, cx: &Context<'_>, until: Option<Deadline>) -> Output {
        let (timeout, rate) = (self.limits.times.write_timeout, self.limits.times.body_rate_bytes);
        match self.progress.look(cx.output.len(), cx.now, timeout, rate) {
            Progress::Drained => Output::Wait(until),
            Progress::Until(at) => {
                let write = Deadline { at, reason: DeadlineReason::Write };
                Output::Wait(Deadline::earlier(until, Some(write)))
            }
            Progress::Stalled => self.finish(&WRITE_TIMED_OUT),
        }
    }

    /// No message has begun.
    #[inline]
    pub(crate) fn wait_idle(&mut self, cx: &Context<'_>) -> Output {
        let at = self.clock.idle(cx.now, self.limits.times.idle_timeout);
        if cx.now < at {
            self.wait(cx, Some(Deadline { at, reason: DeadlineReason::Idle }))
        } else if cx.output.is_empty() {
            self.finish(&IDLE)
        } else {
            // The last response has not left: the deadline for writing holds.
            self.wait(cx, None)
        }
    }
}
