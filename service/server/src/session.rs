//! One client's connection, driven by the event loop.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bolide_connection::Connection;
use bolide_semantics::{AbortReason, Blame, End, ExchangeEvent, ExchangeId, Head, Output};
use bytes::Bytes;
use http::{Method, StatusCode};

use crate::ends::Ends;
use crate::events_left::take_event;
use crate::exchange::{Active, Io, Kind, Phase, State};
use crate::handler::call;
use crate::local_waker::Calls;
use crate::observe::{Observer, Subject};
use crate::patience::Patience;
use crate::refusal::refuse;
use crate::request::Request;
use crate::responder::{Address, MessageKind};
use crate::router::{Found, RouteId, Router};
use crate::tuning::Tuning;
use crate::work::Work;
use crate::{Exchange, Message, Reply, Response};
use bolide_observability::{ENCODE, HANDLER, LOOP, PARSE, ROUTE};
use offer::Offer;
use timing::Timing;

mod alternatives;
mod held;
mod late;
mod offer;
mod replies;
mod slowed_body;
mod timing;

/// The stack of one socket and the exchanges that are open on it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) ends: Ends,
    /// Exchanges that were not answered at once, by rising number.
    exchanges: Vec<Active>,
    pub(crate) closed: Option<Ended>,
    /// Tuning of its receive windows.
    pub(crate) tuning: Tuning,
    /// Messages of others to the exchanges; made when the first can be told something.
    pub(crate) calls: Option<Calls>,
    /// This call's events are used up, and there may be more.
    pub(crate) cut: bool,
    /// It counts among its client's connections.
    pub(crate) is_counted: bool,
    /// The handlers were told that the client has ended its side.
    client_ended: bool,
    /// Notes about the connection, if any.
    pub(crate) subject: Option<Box<Subject>>,
}

/// The connection is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// It must not look like an orderly end.
    pub(crate) resets: bool,
}

impl Session {
    pub(crate) fn new(connection: Connection, ends: Ends) -> Self {
        Self {
            connection,
            ends,
            exchanges: Vec::new(),
            closed: None,
            tuning: Tuning::default(),
            calls: None,
            cut: false,
            is_counted: false,
            client_ended: false,
            subject: None,
        }
    }

    /// Handles everything that the connection has to report. Returns the deadline that it waits
    /// for.
    pub(crate) fn drive(
        &mut self,
        work: &mut Work<'_>,
        router: &Router,
    ) -> Option<std::time::Instant> {
        self.take_calls(work);
        loop {
            if work.events_left.get() == 0 {
                self.cut = true;
                return None;
            }
            work.meter.enter(PARSE);
            match self.connection.poll(&mut work.cx, &work.shared.limits.connection) {
                Output::Exchange(id, event) => {
                    take_event(work.events_left);
                    self.exchange(id, event, work, router);
                }
                Output::Connection(_) => {}
                Output::Closed(reason) => {
                    let subject = self.subject.as_deref();
                    let observer = &mut *work.observer;
                    observer.connection_ended(subject, &self.connection, self.ends.peer(), &reason);
                    self.closed = Some(Ended { resets: reason.reset });
                    return None;
                }
                Output::Wait(_) if self.connection.has_ended() && self.watches_client() => {
                    self.client_end(work);
                }
                Output::Wait(deadline) => {
                    let deadline = deadline.map(|deadline| deadline.at);
                    match self.next_end(&work.shared.limits) {
                        None => return deadline,
                        Some(end) if end > work.cx.now => {
                            return Some(deadline.map_or(end, |deadline| deadline.min(end)));
                        }
                        // What that says to the client has to leave, and may end the connection.
                        Some(_) => {
                            self.ring_alarms(work);
                            self.end_late_exchanges(work);
                        }
                    }
                }
            }
        }
    }

    fn exchange(
        &mut self,
        id: ExchangeId,
        event: ExchangeEvent,
        work: &mut Work<'_>,
        router: &Router,
    ) {
        match event {
            ExchangeEvent::Head(_)
                if self.connection.is_early() && !permits_early(work.cx.head) =>
            {
                self.reject(id, StatusCode::TOO_EARLY, work);
            }
            ExchangeEvent::Head(end) => self.begin(id, end, work, router),
            ExchangeEvent::Data(data, end) => self.data(id, data, end, work),
            ExchangeEvent::Rejected(status) => self.reject(id, status, work),
            ExchangeEvent::Trailers => self.trailers(id, work),
            ExchangeEvent::Sendable => self.with(id, work, |active, io| {
                io.sendable();
                if io.is_sendable()
                    && let Some(driver) = &mut active.driver
                {
                    driver.on_sendable(io);
                }
            }),
            ExchangeEvent::Aborted(reason) => {
                work.observer.stream_ended(self.ends.peer(), &reason);
                self.abandon(id, reason, work.observer);
            }
            ExchangeEvent::Informational => {}
        }
    }

    /// A request can't be served as it stands.
    #[cold]
    fn reject(&mut self, id: ExchangeId, status: StatusCode, work: &mut Work<'_>) {
        work.observer.refused(self.ends.peer(), status.as_u16());
        work.meter.count();
        let state = &mut State::new(&Method::GET, 0, RouteId::REFUSED);
        // What was wrong may have come in the middle of a body that a handler reads.
        let what = "the rest of the request was wrong, or late";
        let reason = AbortReason::new(Blame::Peer, "rest-refused", what);
        match self.take(id, reason, work.observer) {
            Some(before) if before.phase.is_unanswered() => state.record = before.record,
            Some(mut before) => {
                before.record.aborted = Some(reason.name);
                self.ended(&mut before, None, work.observer);
                state.record.route = None;
            }
            None => {}
        }
        self.answer(id, state, &mut Response::error(status), false, work);
    }

    /// A request's head has arrived.
    #[inline]
    fn begin(&mut self, id: ExchangeId, end: End, work: &mut Work<'_>, router: &Router) {
        work.meter.count();
        work.meter.enter(ROUTE);
        let mut timing = work.shared.server_timing.then(Timing::new);
        let body_follows = end == End::No;
        let gate = work.shared.gate.as_ref();
        let request_id = gate.and_then(|gate| gate.admit(work.cx.head, &self.ends));
        let head = &*work.cx.head;
        let mut parameters = None;
        let (route, found) = if router.is_disguised(head) {
            (RouteId::REFUSED, Found::Disguised)
        } else if router.has_alternatives() {
            self.find_alternative(id, (head, body_follows), router, &mut parameters, work)
        } else {
            router.find(head, &mut parameters)
        };
        let method = head.method();
        let handler = match found {
            Found::Handler(handler) => handler,
            refusal => {
                let response = &mut refuse(&refusal, head);
                let state = &mut State { request_id, ..State::new(method, 0, route) };
                return self.turn_down(id, state, response, work, router);
            }
        };
        let mut offer = Offer::nothing(work.shared.limits.body_bytes_max);
        if body_follows
            && let Err(status) = self.offer(id, handler, (head, work.cx.input), &mut offer)
        {
            if status == StatusCode::PAYLOAD_TOO_LARGE {
                work.observer.limit(self.ends.peer(), "body-bytes-max", None);
            }
            let state = &mut State { request_id, ..State::new(method, 0, route) };
            self.note_refusal(id, handler, state, work);
            let response = &mut Response::error(status);
            return self.answer(id, state, response, true, work);
        }
        let whole_bytes = offer.whole.as_ref().map_or(0, Bytes::len);
        let mut state = State { request_id, ..State::new(method, offer.bytes_max, route) };
        state.has_body = body_follows;
        if offer.continues {
            state.phase = Phase::Expected;
        }
        let mut request = Request {
            head,
            connection: &self.connection,
            ends: &self.ends,
            parameters: parameters.as_ref(),
            body_follows,
            whole: offer.whole,
            now: work.cx.now,
            address: Address { exchange: id, ..work.address },
            policy: &state.policy,
            ingress: gate.map(|gate| &*gate.settings),
        };
        work.meter.enter(HANDLER);
        timing.iter_mut().for_each(Timing::routed);
        let mut reply = Reply::Later;
        let returned = call(handler, &mut request, &mut reply);
        let whole = (whole_bytes, request.whole.take());
        if !returned {
            work.observer.panicked(Some(route), Some(router));
            let response = Response::error(StatusCode::INTERNAL_SERVER_ERROR);
            return self.carry_out(id, &mut Reply::Now(response), &mut state, work);
        }
        if let Some(timing) = timing {
            timing.handled(&mut reply, &mut state);
        }
        self.handled(id, &mut reply, whole, &mut state, work);
    }

    /// Answers a request that no route takes.
    #[cold]
    fn turn_down(
        &mut self,
        id: ExchangeId,
        state: &mut State,
        response: &mut Response,
        work: &mut Work<'_>,
        router: &Router,
    ) {
        if let Some(handler) = router.of_refusals() {
            self.note_refusal(id, handler, state, work);
        }
        self.answer(id, state, response, true, work);
    }

    /// Does what a handler has decided. The worker's head is the request's.
    ///
    /// Responses are large, and a processor that copies what it has written just before waits for it to be
    /// written; so they stay where they are.
    #[inline]
    fn carry_out(
        &mut self,
        id: ExchangeId,
        reply: &mut Reply,
        state: &mut State,
        work: &mut Work<'_>,
    ) {
        if let Reply::Now(response) = reply {
            state.body_left = 0;
            return self.answer(id, state, response, true, work);
        }
        self.carry_on(id, reply, state, work);
    }

    /// Answers at once; keeps what can't be sent yet. `head_stands`: the worker's head is the request's.
    #[inline]
    fn answer(
        &mut self,
        id: ExchangeId,
        state: &mut State,
        response: &mut Response,
        head_stands: bool,
        work: &mut Work<'_>,
    ) {
        work.meter.enter(ENCODE);
        let calls = &mut self.calls;
        work.io(&mut self.connection, &self.ends, id, state, calls).answer(response);
        self.answered(id, state, head_stands, work);
    }

    /// A response was given, all of it or what can be sent yet.
    #[inline]
    fn answered(
        &mut self,
        id: ExchangeId,
        state: &mut State,
        head_stands: bool,
        work: &mut Work<'_>,
    ) {
        work.meter.enter(LOOP);
        if state.is_done() {
            let head = if head_stands { Some(&*work.cx.head) } else { None };
            self.ended(state, head, work.observer);
        } else {
            if head_stands {
                state.record.entry = work.observer.keep(work.cx.head, &self.ends);
            }
            self.open(id, state, None, work);
        }
    }

    /// An exchange is over: it counts.
    #[inline]
    fn ended(&mut self, state: &mut State, head: Option<&Head>, observer: &mut Observer) {
        if self.subject.is_some() {
            observer.exchange_ended(&mut self.subject, &self.connection, &self.ends, state, head);
        }
    }

    /// A piece of a request's body, or of a tunnel, has arrived.
    fn data(&mut self, id: ExchangeId, data: Bytes, end: End, work: &mut Work<'_>) {
        let Ok(index) = self.index(id) else {
            // Answered already, or discarded.
            return self.connection.consumed(&mut work.cx, id, data.len());
        };
        let active = &mut self.exchanges[index];
        active.state.record.note_received(end, work.cx.now);
        if active.driver.is_none() && !active.state.phase.is_unanswered() {
            // The response is under way, and what else the client has to say is not read.
            return self.connection.consumed(&mut work.cx, id, data.len());
        }
        let length = data.len() as u64;
        if length > active.state.body_left {
            work.observer.limit(self.ends.peer(), "body-bytes-max", None);
            self.connection.consumed(&mut work.cx, id, data.len());
            self.with(id, work, |active, io| {
                *active.driver = None;
                io.respond(Response::error(StatusCode::PAYLOAD_TOO_LARGE));
                io.abort();
            });
            return;
        }
        active.state.body_left -= length;
        active.state.record.received_bytes += length;
        active.patience.request_moved(end, work.cx.now);
        if active.driver.is_none() {
            if let Some(body) = active.waiting_body() {
                body.bytes.extend_from_slice(&data);
                body.has_ended |= end == End::Yes;
                return;
            }
            return self.connection.consumed(&mut work.cx, id, data.len());
        }
        self.deliver(id, data, end, work);
    }

    /// Tells one exchange.
    fn message(&mut self, message: Message, work: &mut Work<'_>) {
        match message.kind {
            MessageKind::Respond(response) => {
                self.drop_waiting_body(message.exchange, work);
                self.with(message.exchange, work, |_, io| io.respond(*response));
            }
            MessageKind::Wake => self.wake(message.exchange, work),
            MessageKind::Encoded => self.with(message.exchange, work, |active, io| {
                if io.collect_encoded()
                    && let Some(driver) = &mut active.driver
                {
                    driver.on_sendable(io);
                }
            }),
            MessageKind::PassOn => self.pass_on(message.exchange, work),
            // These are for the worker, not for a session.
            MessageKind::Changed(_)
            | MessageKind::HandOverLog(_)
            | MessageKind::Leave(_)
            | MessageKind::Pulse(_) => {}
        }
    }

    fn wake(&mut self, id: ExchangeId, work: &mut Work<'_>) {
        self.with(id, work, |active, io| {
            io.pull();
            if let Some(driver) = &mut active.driver {
                driver.on_wake(io);
            }
        });
    }

    /// Tells the exchanges what others have for them.
    #[inline]
    fn take_calls(&mut self, work: &mut Work<'_>) {
        let Some(mut calls) = self.calls.as_ref().map(Calls::take) else { return };
        for message in calls.drain(..) {
            self.message(message, work);
        }
        if let Some(list) = &self.calls {
            list.give(calls);
        }
    }

    /// Returns whether a handler wants to know when the client ends its side.
    pub(crate) fn watches_client(&self) -> bool {
        let watches = |active: &Active| {
            active.state.kind != Kind::Tunnel
                && active.driver.as_ref().is_some_and(|driver| driver.watches_client())
        };
        !self.client_ended && self.exchanges.iter().any(watches)
    }

    /// The client has ended its side: tells the handlers that want to know.
    #[cold]
    fn client_end(&mut self, work: &mut Work<'_>) {
        self.client_ended = true;
        let ids: Vec<ExchangeId> = self.exchanges.iter().map(|active| active.id).collect();
        for id in ids {
            self.with(id, work, |active, io| {
                if let Some(driver) =
                    active.driver.as_mut().filter(|driver| driver.watches_client())
                    && io.state.kind != Kind::Tunnel
                {
                    driver.on_client_end(io);
                    if let Some(reason) = &mut io.state.record.aborted {
                        *reason = "eof";
                    }
                }
            });
        }
    }

    /// Returns whether an exchange is open here.
    pub(crate) fn has_exchanges(&self) -> bool {
        !self.exchanges.is_empty()
    }

    fn open(
        &mut self,
        id: ExchangeId,
        state: &mut State,
        driver: Option<Box<dyn Exchange>>,
        work: &Work<'_>,
    ) {
        let mut state = std::mem::replace(state, State::new(&Method::GET, 0, RouteId::REFUSED));
        state.record.began.get_or_insert(work.cx.now);
        work.observer.under_way();
        if self.exchanges.capacity() == 0 {
            // Over HTTP/1.1 there is never a second one.
            self.exchanges.reserve_exact(1);
        }
        let at = self.exchanges.partition_point(|active| active.id < id);
        let patience = Patience::new(work.cx.now, !state.has_body);
        self.exchanges.insert(at, Active { id, driver, state, patience, or_else: None });
    }

    fn index(&self, id: ExchangeId) -> Result<usize, usize> {
        self.exchanges.binary_search_by_key(&id, |active| active.id)
    }

    /// The server is to end: who has no end of its own should come to one.
    /// `leaves`: a request that is on its way is not lost.
    pub(crate) fn shut_down(&mut self, leaves: bool, work: &mut Work<'_>) {
        if leaves {
            self.connection.leave(&mut work.cx);
        } else {
            self.connection.shut_down(&mut work.cx);
        }
        let ids: Vec<ExchangeId> = self.exchanges.iter().map(|active| active.id).collect();
        for id in ids {
            self.with_driver(id, work, |driver, io| driver.on_shut_down(io));
        }
    }

    /// The connection is gone: every handler that is at work learns it.
    pub(crate) fn abandon_all(&mut self, reason: AbortReason, observer: &mut Observer) {
        while let Some(active) = self.exchanges.last() {
            self.abandon(active.id, reason, observer);
        }
    }

    /// Ends an exchange that its client, or the connection, has given up.
    fn abandon(&mut self, id: ExchangeId, reason: AbortReason, observer: &mut Observer) {
        if let Some(mut state) = self.take(id, reason, observer) {
            state.record.aborted = Some(reason.name);
            self.ended(&mut state, None, observer);
        }
    }

    /// Takes an exchange away from its handler.
    fn take(&mut self, id: ExchangeId, reason: AbortReason, observer: &Observer) -> Option<State> {
        let index = self.index(id).ok()?;
        let Active { driver, state, .. } = self.exchanges.remove(index);
        observer.no_longer_under_way();
        if let Some(mut driver) = driver {
            // A panic here could only be about an exchange that is over.
            let _ = catch_unwind(AssertUnwindSafe(|| driver.on_abort(reason)));
        }
        Some(state)
    }

    /// Does something with an open exchange and forgets it when that completed it.
    fn with(
        &mut self,
        id: ExchangeId,
        work: &mut Work<'_>,
        act: impl FnOnce(&mut Driven<'_>, &mut Io<'_>),
    ) {
        let Ok(index) = self.index(id) else { return };
        let Active { driver, state, .. } = &mut self.exchanges[index];
        let mut driven = Driven { driver };
        let mut io = work.io(&mut self.connection, &self.ends, id, state, &mut self.calls);
        let mut panicked = false;
        let before = io.meter.enter(HANDLER);
        if catch_unwind(AssertUnwindSafe(|| act(&mut driven, &mut io))).is_err() {
            panicked = true;
            *driven.driver = None;
            io.respond(Response::error(StatusCode::INTERNAL_SERVER_ERROR));
            io.state.record.aborted = Some("handler-panic");
            io.abort();
        }
        if io.state.encoded.is_some() {
            io.pause();
            if io.state.has_ended() {
                // What is left to do is not the handler's.
                *driven.driver = None;
            }
        }
        io.meter.enter(before);
        let limit = io.limit.take();
        if io.yields {
            io.calls.get_or_insert_default().again(id);
            self.cut = true;
        }
        if let Some(limit) = limit {
            work.observer.limit(self.ends.peer(), limit, None);
        }
        if self.exchanges[index].state.is_done() {
            let mut active = self.exchanges.remove(index);
            if panicked {
                work.observer.panicked(active.state.record.route, None);
            }
            work.observer.no_longer_under_way();
            self.ended(&mut active.state, None, work.observer);
        }
    }

    fn with_driver(
        &mut self,
        id: ExchangeId,
        work: &mut Work<'_>,
        act: impl FnOnce(&mut dyn Exchange, &mut Io<'_>),
    ) {
        self.with(id, work, |active, io| {
            if let Some(driver) = &mut active.driver {
                act(&mut **driver, io);
            }
        });
    }
}

/// RFC 8470 §3, §5.1: whether a replay of a request does no harm; if so, the request says to handlers and upstreams that it may
/// be one.
#[cold]
fn permits_early(head: &mut Head) -> bool {
    let is_safe = head.method().is_safe();
    if is_safe {
        head.append("early-data", b"1");
    }
    is_safe
}

/// The handler's part of an open exchange.
struct Driven<'a> {
    driver: &'a mut Option<Box<dyn Exchange>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_small() {
        assert!(size_of::<Session>() <= 328, "{}", size_of::<Session>());
    }
}
