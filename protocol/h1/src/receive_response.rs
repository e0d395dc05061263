//! RFC 9112 §4, §9.2, §9.3: responses, in the order of their requests, as a client reads them.

use bolide_semantics::{Context, End, ExchangeEvent, ExchangeId, Output};
use http::StatusCode;

use crate::connection::{Connection, Reading};
use crate::error::{
    EOF, SHUT_DOWN, SPEAKS_TLS, Stop, TOO_MANY_INTERIM, TRUNCATED, UNANSWERED, UNASKED_SWITCH,
    UNSOLICITED,
};
use crate::exchanges::Kind;
use crate::gate::Gate;
use crate::persistence::Wish;
use crate::response_head::{self, ResponseHead};

impl Connection {
    /// Reads the next response's head.
    #[inline]
    pub(crate) fn poll_response(&mut self, cx: &mut Context<'_>) -> Output {
        let Some((id, kind)) = self.exchanges.oldest() else {
            return self.await_exchange(cx);
        };
        let unread = cx.input.unread();
        if !unread.is_empty() && !self.is_begun(cx, id) {
            return self.finish(&UNSOLICITED);
        }
        // A TLS record of an alert or a handshake; no status line begins so.
        if let [0x15 | 0x16, 3, ..] = unread {
            return self.finish(&SPEAKS_TLS);
        }
        let limits = [self.limits.heads.head_bytes; 2];
        if !unread.is_empty() && self.scan.is_worthwhile(unread, limits) {
            match response_head::read(unread, cx.head, kind, &self.limits) {
                Ok(response) => return self.answered(cx, id, kind, &response),
                Err(Stop::Incomplete) => {}
                Err(Stop::Fault(failure)) => return self.finish(failure),
            }
        }
        self.scan.incomplete(cx.input.len());
        if self.persistence.has_ended() {
            return self.finish(if cx.input.is_empty() { &UNANSWERED } else { &TRUNCATED });
        }
        self.wait(cx, None)
    }

    /// Returns whether open request `id` has begun to be written. Before, the server can't respond to it; behind a part of
    /// it, it can refuse it.
    #[inline]
    fn is_begun(&self, cx: &Context<'_>, id: ExchangeId) -> bool {
        self.exchanges.start(id) < self.progress.written(cx.output.len())
    }

    /// No request waits for its response. One that was answered early may have to be sent to its end: that it moves is
    /// waited for as long as for the next.
    fn await_exchange(&mut self, cx: &Context<'_>) -> Output {
        if !cx.input.is_empty() {
            self.finish(&UNSOLICITED)
        } else if self.persistence.has_ended() {
            self.finish(&EOF)
        } else if self.persistence.wish == Wish::Drain && self.sending.is_ready() {
            self.finish(&SHUT_DOWN)
        } else {
            self.wait_idle(cx)
        }
    }

    /// A response's head is complete.
    #[inline]
    fn answered(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        kind: Kind,
        response: &ResponseHead,
    ) -> Output {
        let status = response.status;
        cx.head.set_wire_bytes(response.length);
        cx.input.consume(response.length);
        self.scan.complete();
        let switches = status == StatusCode::SWITCHING_PROTOCOLS;
        if status.is_informational() && !switches {
            return self.informed(id);
        }
        self.current.interim_count = 0;
        self.gate = Gate::default();
        if switches || (kind == Kind::Connect && status.is_success()) {
            if switches && (kind != Kind::Upgrade || !self.sending.is_ready()) {
                return self.finish(&UNASKED_SWITCH);
            }
            self.begin_tunnel();
            return Output::Exchange(id, ExchangeEvent::Head(End::No));
        }
        self.persistence.persists &= response.persists;
        self.persistence.peer_closes |= response.closes;
        let end = match response.body {
            Some(body) => {
                self.reading = Reading::Body(body);
                End::No
            }
            None => {
                self.complete();
                End::Yes
            }
        };
        Output::Exchange(id, ExchangeEvent::Head(end))
    }

    /// An interim response's head is complete.
    fn informed(&mut self, id: ExchangeId) -> Output {
        self.current.interim_count = self.current.interim_count.saturating_add(1);
        if self.current.interim_count > self.limits.heads.interim_count {
            return self.finish(&TOO_MANY_INTERIM);
        }
        Output::Exchange(id, ExchangeEvent::Informational)
    }
}
