//! State that a worker shares among its sessions, and how the event loop drives them.

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
use bolide_semantics::{AbortReason, Blame, Date, Head, Role};

use crate::advertised::Advertised;
use crate::announced::Announced;
use crate::changes::{Change, Changes};
use crate::clients::ClientConnections;
use crate::ends::Ends;
use crate::ingress::Gate;
use crate::observe::{Observed, Observer};
use crate::outward::{Dials, Outbound};
use crate::quic::Endpoints;
use crate::responder::MessageKind;
use crate::response_settings::Shared;
use crate::session::Session;
use crate::tuning::{WindowMemory, with_window_memory};
use crate::{Ingress, Limits, Message, Profile, ProxyProtocol, Router};
use bolide_observability::{ENCODE, HANDLER, ProfileShard, TLS_OPEN, TLS_SEAL};

mod announced;
mod counted;
mod pass;

/// How large the block is that plaintext is opened into, in bytes.
const PLAIN_BLOCK_BYTES: usize = 256 * 1024;

/// State that the workers of a server share.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfServer {
    /// The connections that each client has.
    pub(crate) clients: Arc<ClientConnections>,
    pub(crate) changes: Changes,
}

/// One worker's server: router, buffers and settings for all of its sessions.
#[derive(Debug)]
pub(crate) struct HttpService {
    router: Router,
    shared: Shared,
    /// The TLS settings of each listener, by its index.
    tls: Vec<Option<ServerTls>>,
    /// PROXY headers at the start of connections, likewise; those beyond the end don't.
    proxy_protocols: Vec<ProxyProtocol>,
    endpoints: Endpoints,
    head: Head,
    plain: ReceiveBuffer,
    wall_clock: fn() -> SystemTime,
    /// The date is looked at again from this time on.
    date_due: Instant,
    dials: Dials,
    observer: Observer,
    /// Meter of the turns, and where it is noted.
    meter: Rc<Meter>,
    measured: Option<Arc<ProfileShard>>,
    /// Memory that the receive windows may take.
    window_memory: WindowMemory,
    of_server: OfServer,
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

/// Owner that a handler has put on a connection.
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
            of_server: OfServer::default(),
            leaves: false,
        }
    }

    /// The same with what it shares with other workers.
    pub(crate) fn sharing(mut self, of_server: &OfServer) -> Self {
        self.of_server = of_server.clone();
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
}

impl HttpService {
    /// Takes over what the server was given anew.
    #[cold]
    fn change(&mut self, change: Change) {
        match change {
            Change::Routes(routes) => {
                // They were made before: a panic now leaves the old ones.
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
            MessageKind::Changed(done) => {
                if let Some(change) = self.of_server.changes.current() {
                    self.change(change);
                }
                drop(done);
            }
            MessageKind::HandOverLog(done) => {
                self.observer.hand_over_log();
                drop(done);
            }
            MessageKind::Leave(successor) => {
                self.leaves = true;
                if let Some(successor) = successor {
                    self.endpoints.leave(successor);
                }
            }
            // Its end is the response.
            MessageKind::Pulse(response) => drop(response),
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
                    self.observer.limit(session.ends.peer(), "held-bytes-max", None);
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
