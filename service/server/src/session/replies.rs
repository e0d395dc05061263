//! Replies that are not the response: it comes later, or piece by piece, or from another handler.

use bolide_semantics::{End, ExchangeId};
use http::StatusCode;

use super::Session;
use crate::exchange::{OrElse, State, WaitingBody};
use crate::handler::call;
use crate::request::Request;
use crate::responder::Address;
use crate::work::Work;
use crate::{Reply, Response};
use bolide_observability::HANDLER;

impl Session {
    /// The response comes later, or the exchange goes on with an object.
    pub(super) fn carry_on(
        &mut self,
        id: ExchangeId,
        reply: &mut Reply,
        state: &mut State,
        work: &mut Work<'_>,
    ) {
        match std::mem::replace(reply, Reply::Later) {
            Reply::Now(_) => {}
            Reply::Exchange(driver) => {
                state.record.entry = work.observer.keep(work.cx.head, &self.ends);
                self.open(id, state, Some(driver), work);
                self.with(id, work, |active, io| {
                    if let Some(driver) = &mut active.driver {
                        if driver.continues_at_once() {
                            io.send_continue();
                        }
                        driver.on_start(io);
                    }
                });
            }
            Reply::Later => {
                state.take_expectation();
                state.record.entry = work.observer.keep(work.cx.head, &self.ends);
                self.open(id, state, None, work);
            }
            Reply::LaterOr(handler) => {
                let body = state.has_body.then(WaitingBody::default);
                let head = work.cx.head.clone();
                state.record.entry = work.observer.keep(work.cx.head, &self.ends);
                self.open(id, state, None, work);
                if let Ok(index) = self.index(id) {
                    self.exchanges[index].or_else = Some(Box::new(OrElse { head, handler, body }));
                }
            }
        }
    }

    /// Passes the request on, as its first handler wishes.
    pub(super) fn pass_on(&mut self, id: ExchangeId, work: &mut Work<'_>) {
        let Ok(index) = self.index(id) else { return };
        let Some(other) = self.exchanges[index].or_else.take() else {
            return self.with(id, work, |_, io| io.respond(Response::error(StatusCode::NOT_FOUND)));
        };
        let mut state = self.exchanges.remove(index).state;
        work.observer.no_longer_under_way();
        let OrElse { head, handler, body } = *other;
        let mut request = Request {
            head: &head,
            connection: &self.connection,
            ends: &self.ends,
            parameters: None,
            body_follows: body.is_some(),
            whole: None,
            now: work.cx.now,
            address: Address { exchange: id, ..work.address },
            policy: &state.policy,
            ingress: work.shared.gate.as_ref().map(|gate| &*gate.settings),
        };
        work.meter.enter(HANDLER);
        let mut reply = Reply::Later;
        if !call(&*handler, &mut request, &mut reply) {
            work.observer.panicked(state.record.route, None);
            reply = Reply::Now(Response::error(StatusCode::INTERNAL_SERVER_ERROR));
        }
        // A handler of a handler may want to know more than the head of the last request.
        *work.cx.head = head;
        if body.is_none() {
            state.body_left = 0;
        }
        self.carry_out(id, &mut reply, &mut state, work);
        if let Some(body) = body {
            self.hand_over(id, body, work);
        }
    }

    /// Gives what has come of a request's body to its handler.
    fn hand_over(&mut self, id: ExchangeId, body: WaitingBody, work: &mut Work<'_>) {
        let length = body.bytes.len();
        let active = self.index(id).ok().map(|index| &mut self.exchanges[index]);
        match active {
            Some(active) if active.driver.is_some() => {}
            Some(active) => match active.waiting_body() {
                // It waits for the next one.
                Some(next) => return *next = body,
                None => return self.connection.consumed(&mut work.cx, id, length),
            },
            None => return self.connection.consumed(&mut work.cx, id, length),
        }
        let ends = body.has_ended && body.trailers.is_none();
        if length > 0 || ends {
            let (data, end) = (body.bytes.into(), if ends { End::Yes } else { End::No });
            self.deliver(id, data, end, work);
        }
        if let Some(trailers) = body.trailers
            && let Some(trailers) = self.keep_trailers(id, trailers, work)
        {
            self.with_driver(id, work, |driver, io| driver.on_trailers(&trailers, io));
        }
    }

    /// The body that waits is not wanted.
    pub(super) fn drop_waiting_body(&mut self, id: ExchangeId, work: &mut Work<'_>) {
        let Ok(index) = self.index(id) else { return };
        if let Some(OrElse { body: Some(body), .. }) =
            self.exchanges[index].or_else.take().as_deref()
        {
            self.connection.consumed(&mut work.cx, id, body.bytes.len());
        }
    }
}
