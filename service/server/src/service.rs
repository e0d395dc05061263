//! What a worker shares among its sessions, and how the event loop drives them.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bolide_buffers::{Datagram, DatagramSink, Flush, ReceiveBuffer, SendQueue};
use bolide_connection::{Connection, ServerTls};
use bolide_eventloop::{
    Accepted, Address as SocketAddress, After, Agenda, Arriving, CloseCause, DatagramFlush,
    Measured, Meter, Outbound as BegunOutbound, Routed, Service, Stats, Token, Turn,
};
use bolide_semantics::{AbortReason, Blame, Context, Date, ExchangeId, Head, Role};

use crate::announced::Announced;
use crate::clients::ClientConnections;
use crate::ends::Ends;
use crate::ingress::Gate;
use crate::limits::PASS_EVENTS_COUNT;
use crate::observe::{Observed, Observer};
use crate::outward::{Dials, Outbound, Outward};
use crate::quic::{Advertised, Endpoints};
use crate::responder::{Address, Change, MessageKind, Reload};
use crate::session::Session;
use crate::tuning::WindowMemory;
use crate::work::Work;
use crate::{Ingress, Limits, Message, Profile, ProxyProtocol, Router};
use bolide_observability::{ENCODE, HANDLER, LOOP, PARSE, ProfileShard, TLS_OPEN, TLS_SEAL};

mod announced;
mod counted;

/// How large the block is that plaintext is opened into, in bytes.
const PLAIN_BLOCK_BYTES: usize = 256 * 1024;

/// What a handler's answer needs of its worker.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) date: Date,
    /// Answers tell what they took.
    pub(crate) server_timing: bool,
    /// What is taken from peers, if anything is.
    pub(crate) gate: Option<Gate>,
    /// What clients over TLS are told of HTTP/3.
    pub(crate) advertised: Vec<Advertised>,
}

/// One worker's server: router, buffers and settings for all of its sessions.
#[derive(Debug)]
pub(crate) struct HttpService {
    router: Router,
    shared: Shared,
    /// The TLS settings of each listener, by its index.
    tls: Vec<Option<ServerTls>>,
    /// Whether connections begin with a PROXY header, likewise; those beyond the end don't.
    proxy_protocols: Vec<ProxyProtocol>,
    endpoints: Endpoints,
    head: Head,
    plain: ReceiveBuffer,
    wall_clock: fn() -> SystemTime,
    /// The date is looked at again from this time on.
    date_due: Instant,
    dials: Dials,
    observer: Observer,
    /// What the turns are measured by, and where it is noted.
    meter: Rc<Meter>,
    measured: Option<Arc<ProfileShard>>,
    /// What the receive windows may take.
    window_memory: WindowMemory,
    /// The connections that each client has, with all workers together.
    clients: Arc<ClientConnections>,
    /// Sessions that are told to end lose no request that is on its way.
    leaves: bool,
}

/// The owner of a socket of the worker.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "clients are many, and theirs is the one in place")]
pub(crate) enum Owner {
    /// A client's.
    Client(Session),
    /// A client's, once its PROXY header has come.
    Announced(Box<Announced>),
    /// One that a handler asked for.
    Handler(HandlerOwned),
}

/// What a handler has put on a connection.
pub(crate) struct HandlerOwned(Box<dyn Outbound>);

impl fmt::Debug for HandlerOwned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HandlerOwned")
    }
}

impl HttpService {
    pub(crate) fn new(
        router: Router,
        limits: Limits,
        tls: Vec<Option<ServerTls>>,
        wall_clock: fn() -> SystemTime,
        now: Instant,
    ) -> Self {
        Self::observed(router, limits, tls, wall_clock, now, &Observed::default())
    }

    pub(crate) fn observed(
        mut router: Router,
        limits: Limits,
        tls: Vec<Option<ServerTls>>,
        wall_clock: fn() -> SystemTime,
        now: Instant,
        observed: &Observed,
    ) -> Self {
        let (limits, window_memory) = with_window_memory(limits);
        let (meter, measured) = match observed.profile.as_ref().map(Profile::add_worker) {
            Some((meter, shard)) => (meter, Some(shard)),
            None => Default::default(),
        };
        Self {
            observer: Observer::new(observed, &mut router, now),
            meter,
            measured,
            router,
            shared: Shared {
                limits,
                date: Date::new(wall_clock()),
                server_timing: observed.server_timing,
                gate: None,
                advertised: Vec::new(),
            },
            tls,
            proxy_protocols: Vec::new(),
            endpoints: Endpoints::default(),
            head: Head::default(),
            plain: ReceiveBuffer::new(PLAIN_BLOCK_BYTES),
            wall_clock,
            date_due: now,
            dials: Dials::default(),
            window_memory,
            clients: Arc::default(),
            leaves: false,
        }
    }

    /// The same with counts of clients' connections that it shares with other workers.
    pub(crate) fn sharing(mut self, clients: &Arc<ClientConnections>) -> Self {
        self.clients = Arc::clone(clients);
        self
    }

    /// The same with listeners, by their indexes, that take PROXY headers, and with what is taken from peers.
    pub(crate) fn behind(mut self, proxy_protocols: Vec<ProxyProtocol>, ingress: &Ingress) -> Self {
        self.proxy_protocols = proxy_protocols;
        self.set_ingress(ingress);
        self
    }

    /// The same with connections of HTTP/3, of which clients over TLS are told.
    pub(crate) fn with_http3(mut self, endpoints: Endpoints, advertised: Vec<Advertised>) -> Self {
        self.endpoints = endpoints;
        self.shared.advertised = advertised;
        self
    }

    fn set_ingress(&mut self, ingress: &Ingress) {
        self.shared.gate = Gate::new(ingress);
        let settings = self.shared.gate.as_ref().map(|gate| Arc::clone(&gate.settings));
        self.observer.set_ingress(settings);
    }

    /// Lends the worker's things to a session for one turn.
    #[inline]
    fn work(
        &mut self,
        session: &mut Session,
        turn: &mut Turn<'_, Message>,
        act: impl FnOnce(&mut Session, &mut Work<'_>, &Router) -> Option<Instant>,
    ) -> After {
        let tls = session.connection.is_tls();
        // Before records are opened: what they take from the input has been received, too.
        let received = turn.input.len();
        session.cut = false;
        if tls {
            self.meter.enter(TLS_OPEN);
            session.cut = session.connection.open_some_records(turn.input, &mut self.plain);
            if let Some(subject) = &mut session.subject {
                self.observer.received(subject, &session.connection);
            }
        }
        if let Some(place) = session.connection.endpoint() {
            self.meter.enter(TLS_OPEN);
            self.endpoints.receive(place, &mut session.connection, turn.now);
            if let Some(subject) = &mut session.subject {
                self.observer.received(subject, &session.connection);
            }
        }
        if turn.eof && !session.cut {
            session.connection.receive_eof();
        }
        if session.tuning.is_due(received) {
            session.tuning.tune(&mut session.connection, &mut self.window_memory, turn.rtt());
        }
        self.meter.enter(PARSE);
        let events_left = Cell::new(PASS_EVENTS_COUNT);
        let input = if tls { &mut self.plain } else { &mut *turn.input };
        let mut work = Work {
            cx: Context {
                input,
                output: turn.output,
                output_limit: turn.output_limit,
                head: &mut self.head,
                now: turn.now,
            },
            shared: &self.shared,
            address: Address { mailbox: turn.mailbox, token: turn.token, exchange: ExchangeId(0) },
            outward: Outward { agenda: turn.agenda, dials: &mut self.dials },
            observer: &mut self.observer,
            path: turn.path,
            meter: &self.meter,
            events_left: &events_left,
        };
        let deadline = act(session, &mut work, &self.router);
        let unread = work.cx.input.len();
        if tls {
            self.meter.enter(TLS_OPEN);
            session.connection.keep_records(&mut self.plain);
        }
        self.meter.enter(LOOP);
        let is_idle = session.connection.is_idle() && !session.has_exchanges();
        if let Some(subject) = &mut session.subject {
            self.observer.pass_ended(subject, &mut session.connection, is_idle);
        }
        after(session, turn, deadline, unread, is_idle)
    }
}

/// The same limits for connections whose receive windows share the worker's memory, and that memory.
fn with_window_memory(mut limits: Limits) -> (Limits, WindowMemory) {
    let h2 = Arc::make_mut(&mut limits.connection.h2);
    let (window, window_max) =
        (h2.windows.connection_window_bytes, h2.windows.connection_window_bytes_max);
    let window_memory = WindowMemory::new(limits.windows_bytes, window, window_max);
    h2.connection_window_is_granted = true;
    // No handler takes datagrams (RFC 9297).
    Arc::make_mut(&mut limits.connection.h3).datagrams_count = 0;
    (limits, window_memory)
}

/// What the loop is to do with the session next.
#[inline]
fn after(
    session: &mut Session,
    turn: &Turn<'_, Message>,
    deadline: Option<Instant>,
    unread: usize,
    is_idle: bool,
) -> After {
    let held_bytes = if is_idle { 0 } else { session.held_bytes() };
    match session.closed {
        None => {}
        // The peer of a TLS connection misses the closing alert.
        Some(ended) if ended.resets => return After::RESET,
        Some(_) => {
            session.connection.finish();
            return After { held_bytes, ..After::FINISHED };
        }
    }
    After {
        // Reading is the only way to learn that a client is gone.
        wants_input: session.connection.wants_input() || (unread == 0 && session.watches_client()),
        more: turn.output.len() >= turn.output_limit,
        cut: session.cut,
        deadline,
        expects: session.connection.expects().saturating_sub(unread as u64),
        idle: is_idle && !session.cut,
        held_bytes,
        close: None,
    }
}

impl HttpService {
    /// Takes over what the server was given anew.
    #[cold]
    fn change(&mut self, change: Change) {
        match change {
            Change::Routes(routes) => {
                // Whoever makes them has made them before: a panic now leaves the old ones.
                if let Ok(router) = catch_unwind(AssertUnwindSafe(|| routes())) {
                    self.router = router;
                    self.observer.set_routes(&mut self.router);
                }
            }
            Change::Limits(limits) => {
                let (limits, window_memory) = with_window_memory(*limits);
                self.shared.limits = limits;
                self.window_memory.change(&window_memory);
            }
            Change::ServerTiming(tells) => self.shared.server_timing = tells,
            Change::Ingress(ingress) => self.set_ingress(&ingress),
            Change::AccessLog => self.observer.hand_over_log(),
        }
    }
}

impl Service for HttpService {
    type Session = Owner;
    type Message = Message;

    const METERED: bool = true;

    fn meter(&self) -> Rc<Meter> {
        Rc::clone(&self.meter)
    }

    fn turn_measured(&mut self, measured: &Measured) {
        if let Some(shard) = &self.measured {
            shard.add(measured);
        }
        self.observer.turn_measured(measured);
    }

    #[inline]
    fn turn_started(&mut self, now: Instant, _: &mut Agenda) {
        self.observer.turn_started(now);
        if now >= self.date_due {
            let wall = (self.wall_clock)();
            self.observer.set_time(wall, now);
            self.shared.date.update(wall);
            let into = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let nanoseconds = u64::from(1_000_000_000 - into.subsec_nanos());
            self.date_due = now + Duration::from_nanos(nanoseconds);
        }
    }

    #[inline]
    fn turn_ended(&mut self, stats: &Stats, agenda: &mut Agenda) {
        self.observer.turn_ended(stats, self.meter.is_on(), agenda);
    }

    fn open(&mut self, accepted: &Accepted, now: Instant) -> Option<(Owner, After)> {
        let inet = |address| match address {
            SocketAddress::Inet(address) => Some(address),
            SocketAddress::Unix => None,
        };
        let ends = Ends::new(inet(accepted.peer), inet(accepted.local));
        if accepted.by_datagram {
            let is_counted = self.count(&ends)?;
            let limits = &self.shared.limits.connection;
            let timeout = limits.opening.handshake_timeout;
            let Some(connection) = self.endpoints.begin(accepted.token, limits, now) else {
                self.uncount(&ends, is_counted);
                return None;
            };
            let mut session = Session::new(connection, ends);
            session.is_counted = is_counted;
            session.subject = self.observer.opened(true);
            return Some((Owner::Client(session), After::READ.by(Some(now + timeout))));
        }
        let wanted = self.proxy_protocols.get(accepted.listener);
        if let Some(wanted @ (ProxyProtocol::Optional | ProxyProtocol::Required)) = wanted {
            let is_required = *wanted == ProxyProtocol::Required;
            let gate = self.shared.gate.as_ref();
            let peer = ends.peer().map(|peer| peer.ip());
            match gate.is_some_and(|gate| gate.settings.trusted.contains(peer)) {
                true => return Some(self.announce(accepted.listener, ends, is_required, now)),
                false if is_required => {
                    self.observer.turned_away(ends.peer(), "proxy-header-untrusted");
                    return None;
                }
                false => {}
            }
        }
        let tls = match self.tls.get(accepted.listener).and_then(Option::as_ref) {
            None => None,
            Some(settings) => Some(settings.accept().ok()?),
        };
        let timeout = if tls.is_some() {
            self.shared.limits.connection.opening.handshake_timeout
        } else {
            self.shared.limits.connection.h1.times.idle_timeout
        };
        let is_counted = self.count(&ends)?;
        let subject = self.observer.opened(tls.is_some());
        let mut session = Session::new(Connection::new(Role::Server, tls, now), ends);
        (session.subject, session.is_counted) = (subject, is_counted);
        Some((Owner::Client(session), After::READ.by(Some(now + timeout))))
    }

    fn datagram(
        &mut self,
        listener: Option<usize>,
        datagram: Datagram,
        arriving: Arriving,
        now: Instant,
        sink: &mut dyn DatagramSink,
    ) -> Routed {
        let Some(listener) = listener else {
            return self.endpoints.route_outward(datagram, now, sink);
        };
        let before = self.meter.enter(TLS_OPEN);
        let routed = self.endpoints.route(listener, datagram, arriving, now, sink);
        self.meter.enter(before);
        routed
    }

    fn flush_datagrams(&mut self, owner: &mut Owner, sink: &mut dyn DatagramSink) -> DatagramFlush {
        self.meter.enter(TLS_SEAL);
        match owner {
            Owner::Client(session) => self.endpoints.flush(&mut session.connection, sink),
            Owner::Handler(outbound) => {
                outbound.0.flush_datagrams(&mut self.endpoints.outward, sink)
            }
            Owner::Announced(_) => DatagramFlush { flush: Flush::Drained, deadline: None },
        }
    }

    fn connecting(&mut self, outbound: &BegunOutbound, now: Instant) -> Option<(Owner, After)> {
        let dialled = self.dials.take(outbound.tag)?;
        let (owner, after) = dialled.begin(outbound, &mut self.endpoints.outward, now)?;
        Some((Owner::Handler(HandlerOwned(owner)), after))
    }

    fn connect_failed(&mut self, tag: u64, error: io::Error, agenda: &mut Agenda) {
        if let Some(dialled) = self.dials.take(tag) {
            dialled.failed(error, agenda);
        }
    }

    #[inline]
    fn turn(&mut self, owner: &mut Owner, turn: &mut Turn<'_, Message>) -> After {
        match owner {
            Owner::Client(session) => self.work(session, turn, Session::drive),
            Owner::Announced(_) => self.arrive(owner, turn),
            Owner::Handler(outbound) => {
                self.meter.enter(HANDLER);
                outbound.0.turn(turn, &mut self.endpoints.outward)
            }
        }
    }

    fn message(&mut self, owner: &mut Owner, message: Message, token: Token, agenda: &mut Agenda) {
        match owner {
            Owner::Client(session) => {
                session.calls.get_or_insert_default().add(message, token, agenda);
            }
            // Messages are for exchanges: of the others' it says only that they shall look.
            Owner::Announced(_) | Owner::Handler(_) => agenda.call(token),
        }
    }

    fn undelivered(&mut self, message: Message) {
        match message.kind {
            MessageKind::Reload(Reload { change, done }) => {
                self.change(change);
                drop(done);
            }
            MessageKind::Leave(successor) => {
                self.leaves = true;
                if let Some(successor) = successor {
                    self.endpoints.leave(successor);
                }
            }
            // Its end is the answer.
            MessageKind::Pulse(answer) => drop(answer),
            // The exchange is gone.
            MessageKind::Respond(_)
            | MessageKind::Wake
            | MessageKind::Encoded
            | MessageKind::PassOn => {}
        }
    }

    fn shut_down(&mut self, owner: &mut Owner, turn: &mut Turn<'_, Message>) -> After {
        let leaves = self.leaves;
        match owner {
            Owner::Client(session) => self.work(session, turn, |session, work, router| {
                session.shut_down(leaves, work);
                session.drive(work, router)
            }),
            Owner::Announced(_) => After::CLOSED,
            Owner::Handler(outbound) => outbound.0.shut_down(turn, &mut self.endpoints.outward),
        }
    }

    #[inline]
    fn flush(
        &mut self,
        owner: &mut Owner,
        output: &mut SendQueue,
        sink: &mut impl Write,
    ) -> io::Result<Flush> {
        if self.meter.is_on() {
            // The sink tells the kernel's part apart.
            self.meter.enter(match owner {
                Owner::Client(session) if session.connection.is_tls() => TLS_SEAL,
                Owner::Client(_) | Owner::Announced(_) => ENCODE,
                Owner::Handler(_) => HANDLER,
            });
        }
        match owner {
            Owner::Client(session) => session.connection.flush(output, sink),
            Owner::Announced(_) => output.flush(sink),
            Owner::Handler(outbound) => outbound.0.flush(output, sink),
        }
    }

    fn close(&mut self, owner: Owner, cause: CloseCause, agenda: &mut Agenda) {
        match owner {
            Owner::Client(mut session) => {
                session.tuning.give_back(&mut self.window_memory);
                self.uncount(&session.ends, session.is_counted);
                let reason = match cause {
                    CloseCause::Failed(_) => {
                        AbortReason::new(Blame::Peer, "connection-failed", "the connection failed")
                    }
                    CloseCause::Broken => AbortReason::new(
                        Blame::Circumstance,
                        "file-changed",
                        "a file changed while it was sent",
                    ),
                    _ => AbortReason::new(
                        Blame::Circumstance,
                        "connection-closed",
                        "the connection was closed",
                    ),
                };
                if cause == CloseCause::Memory {
                    self.observer.limit(session.ends.peer(), "held-bytes-max");
                }
                session.abandon_all(reason, &mut self.observer);
                if let Some(subject) = session.subject.take() {
                    let cause = if session.closed.is_some() { None } else { Some(cause) };
                    self.observer.closed(subject, &mut session.connection, cause);
                }
                if session.connection.is_quic() {
                    self.endpoints.forget(&mut session.connection, self.date_due);
                }
            }
            Owner::Announced(mut announced) => {
                if let Some(subject) = announced.subject.take() {
                    let cause = if announced.has_ended { None } else { Some(cause) };
                    self.observer.closed(subject, &mut announced.connection, cause);
                }
            }
            Owner::Handler(outbound) => {
                outbound.0.close(cause, &mut self.endpoints.outward, agenda)
            }
        }
    }
}

#[cfg(test)]
mod behind;
#[cfg(test)]
mod deferred;
#[cfg(test)]
mod encoded;
#[cfg(test)]
mod fairness;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod limited;
#[cfg(test)]
mod logged;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod profiled;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod slowed;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tunnels;
#[cfg(test)]
mod uploads;
