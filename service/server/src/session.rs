//! One client's connection, driven by the event loop.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bolide_connection::Connection;
use bolide_eventloop::Path;
use bolide_semantics::{
    AbortReason, Blame, Context, End, ExchangeEvent, ExchangeId, FieldName, Output,
    parse_content_length,
};
use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderValue, Method, StatusCode};

use crate::exchange::{Active, Ends, Io, Phase, State};
use crate::local_waker::WokenList;
use crate::outward::Outward;
use crate::patience::Patience;
use crate::request::{Request, split_query};
use crate::responder::{Address, MessageKind};
use crate::router::{Found, Router};
use crate::service::Shared;
use crate::{Exchange, Handler, Limits, Message, Reply, Response};

/// The stack of one socket and the exchanges that are open on it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) ends: Ends,
    /// Exchanges that were not answered at once, by rising number.
    exchanges: Vec<Active>,
    pub(crate) closed: Option<Ended>,
    /// Bytes received since the round-trip time was asked for.
    received_bytes: usize,
    /// Exchanges that others of this worker have woken; made when the first asks for a waker.
    woken: Option<WokenList>,
    /// The handlers were told that the client has ended its side.
    client_ended: bool,
}

/// The connection is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// It must not look like an orderly end.
    pub(crate) resets: bool,
}

/// The kernel is asked for the round-trip time again after this many received bytes: receive
/// windows follow it, and small requests never pay for it.
const RTT_AFTER_BYTES: usize = 1024 * 1024;

/// What a session works with during one turn: its worker's things.
pub(crate) struct Work<'a> {
    pub(crate) cx: Context<'a>,
    pub(crate) shared: &'a Shared,
    pub(crate) address: Address<'a>,
    pub(crate) outward: Outward<'a>,
    pub(crate) path: &'a dyn Path,
}

impl Work<'_> {
    fn io<'s>(
        &'s mut self,
        connection: &'s mut Connection,
        ends: Ends,
        id: ExchangeId,
        state: &'s mut State,
        woken: &'s mut Option<WokenList>,
    ) -> Io<'s> {
        Io {
            connection,
            cx: self.cx.reborrow(),
            id,
            state,
            date: &self.shared.date,
            address: Address { exchange: id, ..self.address },
            ends,
            path: self.path,
            outward: Outward { agenda: self.outward.agenda, dials: self.outward.dials },
            woken,
        }
    }
}

impl Session {
    pub(crate) fn new(connection: Connection, ends: Ends) -> Self {
        Self {
            connection,
            ends,
            exchanges: Vec::new(),
            closed: None,
            received_bytes: 0,
            woken: None,
            client_ended: false,
        }
    }

    /// Counts received bytes; whether it is time to ask for the round-trip time.
    #[inline]
    pub(crate) fn wants_rtt(&mut self, received_bytes: usize) -> bool {
        self.received_bytes += received_bytes;
        let wants = self.received_bytes >= RTT_AFTER_BYTES;
        if wants {
            self.received_bytes = 0;
        }
        wants
    }

    /// Handles everything that the connection has to report. Returns the deadline that it waits
    /// for.
    pub(crate) fn drive(
        &mut self,
        work: &mut Work<'_>,
        router: &Router,
    ) -> Option<std::time::Instant> {
        loop {
            match self.connection.poll(&mut work.cx, &work.shared.limits.connection) {
                Output::Exchange(id, event) => self.exchange(id, event, work, router),
                Output::Connection(_) => {}
                Output::Closed(reason) => {
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
            ExchangeEvent::Head(end) => self.begin(id, end, work, router),
            ExchangeEvent::Data(data, end) => self.data(id, data, end, work),
            ExchangeEvent::Rejected(status) => {
                // What was wrong may have come in the middle of a body that a handler reads.
                self.abandon(
                    id,
                    AbortReason {
                        blame: Blame::Peer,
                        untouched: false,
                        what: "the rest of the request was wrong, or late",
                    },
                );
                self.answer(id, &Method::GET, Response::error(status), work);
            }
            ExchangeEvent::Trailers => {
                // The trailers stand in the context's head, which the orders may use again.
                let trailers = std::mem::take(work.cx.head);
                self.with_driver(id, work, |driver, io| driver.on_trailers(&trailers, io));
                *work.cx.head = trailers;
            }
            ExchangeEvent::Sendable => self.with(id, work, |active, io| {
                io.sendable();
                if io.is_sendable()
                    && let Some(driver) = &mut active.driver
                {
                    driver.on_sendable(io);
                }
            }),
            ExchangeEvent::Aborted(reason) => self.abandon(id, reason),
            ExchangeEvent::Informational => {}
        }
    }

    /// A request's head has arrived.
    #[inline]
    fn begin(&mut self, id: ExchangeId, end: End, work: &mut Work<'_>, router: &Router) {
        let head = &*work.cx.head;
        let method = head.method().clone();
        let path = split_query(head.path_and_query()).0;
        let (handler, parameters) = match router.find(&method, path) {
            Found::Handler(handler, parameters) => (handler, parameters),
            refusal => {
                let response = refuse(&refusal, &method, path);
                return self.answer(id, &method, response, work);
            }
        };
        let body_follows = end == End::No;
        let body_bytes_max = handler.body_bytes_max().unwrap_or(work.shared.limits.body_bytes_max);
        let mut continues = false;
        if body_follows {
            if let Some(expectation) = head.get(FieldName::Expect) {
                continues = expectation.eq_ignore_ascii_case(b"100-continue");
                if !continues {
                    let response = Response::error(StatusCode::EXPECTATION_FAILED);
                    return self.answer(id, &method, response, work);
                }
            }
            let length = head.get(FieldName::ContentLength).and_then(parse_content_length);
            if length.is_some_and(|length| length > body_bytes_max) {
                let response = Response::error(StatusCode::PAYLOAD_TOO_LARGE);
                return self.answer(id, &method, response, work);
            }
        }
        let mut request = Request {
            head,
            connection: &self.connection,
            ends: self.ends,
            parameters,
            body_follows,
            now: work.cx.now,
            address: Address { exchange: id, ..work.address },
        };
        let reply = call(handler, &mut request);
        match reply {
            Reply::Now(response) => self.answer(id, &method, response, work),
            Reply::Exchange(driver) => {
                let mut state = State::new(&method, body_bytes_max);
                state.awaits_continue = continues;
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
            Reply::Later => self.open(id, State::new(&method, body_bytes_max), None, work),
        }
    }

    /// Answers at once; keeps what can't be sent yet.
    #[inline]
    fn answer(&mut self, id: ExchangeId, method: &Method, response: Response, work: &mut Work<'_>) {
        let mut state = State::new(method, 0);
        let woken = &mut self.woken;
        work.io(&mut self.connection, self.ends, id, &mut state, woken).respond(response);
        if !state.is_done() {
            self.open(id, state, None, work);
        }
    }

    /// A piece of a request's body, or of a tunnel, has arrived.
    fn data(&mut self, id: ExchangeId, data: Bytes, end: End, work: &mut Work<'_>) {
        let Ok(index) = self.index(id) else {
            // Answered already, or discarded.
            return self.connection.consumed(&mut work.cx, id, data.len());
        };
        let active = &mut self.exchanges[index];
        let length = data.len() as u64;
        if length > active.state.body_left {
            self.connection.consumed(&mut work.cx, id, data.len());
            self.with(id, work, |active, io| {
                *active.driver = None;
                io.respond(Response::error(StatusCode::PAYLOAD_TOO_LARGE));
                io.abort();
            });
            return;
        }
        active.state.body_left -= length;
        active.patience.request_moved(work.cx.now);
        if active.driver.is_none() {
            return self.connection.consumed(&mut work.cx, id, data.len());
        }
        self.with_driver(id, work, |driver, io| driver.on_data(data, end, io));
    }

    /// A message from another thread.
    pub(crate) fn message(&mut self, message: Message, work: &mut Work<'_>) {
        match message.kind {
            MessageKind::Respond(response) => {
                self.with(message.exchange, work, |_, io| io.respond(*response));
            }
            MessageKind::Wake => self.wake(message.exchange, work),
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

    /// Wakes the exchanges that others of this worker have asked for.
    #[inline]
    pub(crate) fn wake_woken(&mut self, work: &mut Work<'_>) {
        let Some(list) = self.woken.as_ref().filter(|list| !list.borrow().is_empty()) else {
            return;
        };
        let woken = std::mem::take(&mut *list.borrow_mut());
        for id in &woken {
            self.wake(*id, work);
        }
        // The list keeps its memory, unless it was filled meanwhile.
        if let Some(list) = &self.woken {
            let mut list = list.borrow_mut();
            if list.is_empty() {
                *list = woken;
                list.clear();
            }
        }
    }

    /// Whether a handler wants to know when the client ends its side.
    pub(crate) fn watches_client(&self) -> bool {
        let watches = |active: &Active| {
            !active.state.is_tunnel
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
                    && !io.state.is_tunnel
                {
                    driver.on_client_end(io);
                }
            });
        }
    }

    /// Whether an exchange is open here.
    pub(crate) fn has_exchanges(&self) -> bool {
        !self.exchanges.is_empty()
    }

    fn open(
        &mut self,
        id: ExchangeId,
        state: State,
        driver: Option<Box<dyn Exchange>>,
        work: &Work<'_>,
    ) {
        let at = self.exchanges.partition_point(|active| active.id < id);
        let patience = Patience::new(work.cx.now);
        self.exchanges.insert(at, Active { id, driver, state, patience });
    }

    fn index(&self, id: ExchangeId) -> Result<usize, usize> {
        self.exchanges.binary_search_by_key(&id, |active| active.id)
    }

    /// When the first of the open exchanges is to be ended, or woken.
    #[inline]
    fn next_end(&self, limits: &Limits) -> Option<std::time::Instant> {
        let times = |active: &Active| {
            let answered = active.state.phase != Phase::Unanswered;
            [active.patience.ends(answered, limits), active.state.alarm]
        };
        self.exchanges.iter().flat_map(times).flatten().min()
    }

    /// Wakes the exchanges whose time has come.
    #[cold]
    fn ring_alarms(&mut self, work: &mut Work<'_>) {
        let now = work.cx.now;
        let due =
            |active: &mut Active| active.state.alarm.take_if(|at| *at <= now).map(|_| active.id);
        let due: Vec<ExchangeId> = self.exchanges.iter_mut().filter_map(due).collect();
        for id in due {
            self.wake(id, work);
        }
    }

    /// The server is to end: who has no end of its own should come to one.
    pub(crate) fn shut_down(&mut self, work: &mut Work<'_>) {
        self.connection.shut_down(&mut work.cx);
        let ids: Vec<ExchangeId> = self.exchanges.iter().map(|active| active.id).collect();
        for id in ids {
            self.with_driver(id, work, |driver, io| driver.on_shut_down(io));
        }
    }

    /// Ends the exchanges whose time is over: by 503 where nothing was answered, else by breaking off.
    #[cold]
    fn end_late_exchanges(&mut self, work: &mut Work<'_>) {
        let (limits, now) = (&work.shared.limits, work.cx.now);
        let is_late = |active: &&Active| {
            let answered = active.state.phase != Phase::Unanswered;
            active.patience.ends(answered, limits).is_some_and(|end| end <= now)
        };
        let late: Vec<ExchangeId> =
            self.exchanges.iter().filter(is_late).map(|active| active.id).collect();
        for id in late {
            self.with(id, work, |active, io| {
                if let Some(mut driver) = active.driver.take() {
                    driver.on_abort(AbortReason {
                        blame: Blame::Caller,
                        untouched: false,
                        what: "the answer took too long",
                    });
                }
                io.respond(Response::error(StatusCode::SERVICE_UNAVAILABLE));
                io.abort();
            });
        }
    }

    /// The connection is gone: every handler that is at work learns it.
    pub(crate) fn abandon_all(&mut self, reason: AbortReason) {
        while let Some(active) = self.exchanges.last() {
            self.abandon(active.id, reason);
        }
    }

    /// Takes an exchange away from its handler.
    fn abandon(&mut self, id: ExchangeId, reason: AbortReason) {
        if let Ok(index) = self.index(id)
            && let Some(mut driver) = self.exchanges.remove(index).driver
        {
            // A panic here could only be about an exchange that is over.
            let _ = catch_unwind(AssertUnwindSafe(|| driver.on_abort(reason)));
        }
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
        let mut io = work.io(&mut self.connection, self.ends, id, state, &mut self.woken);
        if catch_unwind(AssertUnwindSafe(|| act(&mut driven, &mut io))).is_err() {
            *driven.driver = None;
            io.respond(Response::error(StatusCode::INTERNAL_SERVER_ERROR));
            io.abort();
        }
        if self.exchanges[index].state.is_done() {
            self.exchanges.remove(index);
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

/// The handler's part of an open exchange.
struct Driven<'a> {
    driver: &'a mut Option<Box<dyn Exchange>>,
}

/// Calls the handler; a panic in it is a 500 and nothing more.
#[inline]
fn call(handler: &dyn Handler, request: &mut Request<'_>) -> Reply {
    catch_unwind(AssertUnwindSafe(|| handler.handle(request)))
        .unwrap_or_else(|_| Reply::Now(Response::error(StatusCode::INTERNAL_SERVER_ERROR)))
}

/// The answer to what no handler takes.
#[cold]
fn refuse(refusal: &Found<'_, '_>, method: &Method, path: &str) -> Response {
    let with_allow = |status: StatusCode, allow: &HeaderValue| {
        Response::from(status).header(ALLOW, allow.clone())
    };
    match refusal {
        // RFC 9110 §9.3.7: a ping of the server as a whole.
        Found::Nothing if path == "*" => Response::new(StatusCode::NO_CONTENT),
        Found::Options(allow) => with_allow(StatusCode::NO_CONTENT, allow),
        // RFC 9110 §9.1: a method nobody here knows is not implemented, rather than not allowed.
        Found::MethodNotAllowed(_) if !is_standard(method) => {
            Response::error(StatusCode::NOT_IMPLEMENTED)
        }
        Found::MethodNotAllowed(allow) => with_allow(StatusCode::METHOD_NOT_ALLOWED, allow),
        Found::Nothing | Found::Handler(..) if !is_standard(method) => {
            Response::error(StatusCode::NOT_IMPLEMENTED)
        }
        Found::Nothing | Found::Handler(..) => Response::error(StatusCode::NOT_FOUND),
    }
}

/// Whether RFC 9110 §9.3 or RFC 5789 defines the method.
fn is_standard(method: &Method) -> bool {
    [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::CONNECT,
        Method::OPTIONS,
        Method::TRACE,
        Method::PATCH,
    ]
    .contains(method)
}
