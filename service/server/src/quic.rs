//! HTTP/3: the endpoints of one worker, one for each listener that has a UDP socket.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::outward::OutwardQuic;
use bolide_buffers::{Datagram, DatagramSink, Flush};
use bolide_connection::{
    Arrival, Congestion, Connection, Limits, Membership, NewConnection, QuicEndpoint, Secret,
    ServerTls, WallClock,
};
use bolide_eventloop::{Arriving, DatagramFlush, DatagramPipe, Routed, Token, random_seed};

/// Secrets that processes share that follow one another at the same UDP ports.
#[derive(Debug, Clone)]
pub(crate) struct Lineage {
    /// The number of this process.
    pub(crate) process: u8,
    pub(crate) secret: Secret,
    /// The number of the process that this one has taken over from.
    pub(crate) follows: Option<u8>,
    /// To the workers of earlier processes that may have connections, by the processes' numbers.
    pub(crate) earlier: BTreeMap<u8, Vec<Arc<DatagramPipe>>>,
}

impl Default for Lineage {
    fn default() -> Self {
        let secret = Secret(random_seed());
        Self { process: 0, secret, follows: None, earlier: BTreeMap::new() }
    }
}

/// The endpoints, by the listeners' indexes.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    endpoints: Vec<Option<Endpoint>>,
    /// A connection that a client has begun, until its session is opened.
    arrived: Option<(usize, NewConnection)>,
    worker: usize,
    earlier: BTreeMap<u8, Vec<Arc<DatagramPipe>>>,
    /// To the process that accepts connections in place of this one.
    successor: Option<Arc<DatagramPipe>>,
    /// That of connections to other servers, which accepts none.
    pub(crate) outward: OutwardQuic,
}

/// The endpoint of one listener.
#[derive(Debug)]
struct Endpoint {
    quic: QuicEndpoint<Token>,
    /// The address of its socket.
    local: SocketAddr,
}

impl Endpoints {
    /// Those of a worker, by its number and that of all, for listeners that have sockets for it, at these addresses, with
    /// this congestion control.
    pub(crate) fn new(
        tls: &[Option<ServerTls>],
        sockets: &[Option<SocketAddr>],
        wall_clock: fn() -> SystemTime,
        (worker, lineage): ((usize, usize), &Lineage),
        congestion: Congestion,
    ) -> Self {
        let Lineage { process, secret, follows, earlier } = lineage.clone();
        let member = Membership { worker, process, follows, secret: Some(secret) };
        let endpoint = |place: usize, tls: &Option<ServerTls>| {
            let local = sockets.get(place).copied().flatten()?;
            let (tls, member) = (tls.as_ref()?, member.clone());
            let clock = WallClock(wall_clock);
            // Settings that have no TLS 1.3 can't be made.
            let quic = QuicEndpoint::new(Some(tls), clock, random_seed(), (place, member)).ok()?;
            Some(Endpoint { quic: quic.with_congestion(congestion), local })
        };
        let endpoints = tls.iter().enumerate().map(|(place, tls)| endpoint(place, tls)).collect();
        Self { endpoints, worker: worker.0, earlier, ..Self::default() }
    }

    /// The endpoint of this listener, if it has one.
    fn at(&mut self, listener: usize) -> Option<&mut QuicEndpoint<Token>> {
        Some(&mut self.endpoints.get_mut(listener)?.as_mut()?.quic)
    }

    /// Another process accepts connections from here on.
    pub(crate) fn leave(&mut self, successor: Arc<DatagramPipe>) {
        self.endpoints.iter_mut().flatten().for_each(|endpoint| endpoint.quic.leave());
        self.successor = Some(successor);
    }

    /// Passes a datagram on to a worker of an earlier process; gives it back if that worker has ended, or there was none.
    fn pass_back(
        &mut self,
        (process, tag): (u8, Option<u16>),
        local: SocketAddr,
        datagram: Datagram,
    ) -> Option<Datagram> {
        let Some(pipes) = self.earlier.get(&process) else { return Some(datagram) };
        // A handshake is at the worker that had the same socket.
        let worker = tag.map_or(self.worker, usize::from);
        pipes[worker % pipes.len()].send(local, &datagram).is_err().then_some(datagram)
    }

    /// Finds out which connection to another server a datagram is for.
    pub(crate) fn route_outward(
        &mut self,
        datagram: Datagram,
        now: Instant,
        sink: &mut dyn DatagramSink,
    ) -> Routed {
        let Some(quic) = &mut self.outward else { return Routed::Nothing };
        match quic.receive(datagram, true, now, sink) {
            Arrival::For(token) => Routed::For(token),
            _ => Routed::Nothing,
        }
    }

    /// Finds out what a datagram is.
    pub(crate) fn route(
        &mut self,
        listener: usize,
        datagram: Datagram,
        arriving: Arriving,
        now: Instant,
        sink: &mut dyn DatagramSink,
    ) -> Routed {
        self.forget_arrived();
        let Arriving { accepts, has_room, is_passed_on } = arriving;
        let endpoint = self.endpoints.get_mut(listener).and_then(Option::as_mut);
        let Some(Endpoint { quic, local }) = endpoint else { return Routed::Nothing };
        quic.accept(accepts, has_room);
        let local = *local;
        match quic.receive(datagram, is_passed_on, now, sink) {
            Arrival::Nothing => Routed::Nothing,
            Arrival::Earlier(process, tag, datagram) => {
                let Some(datagram) = self.pass_back((process, tag), local, datagram) else {
                    return Routed::Nothing;
                };
                let arriving = Arriving { is_passed_on: true, ..arriving };
                self.route(listener, datagram, arriving, now, sink)
            }
            Arrival::Unclaimed(datagram) => {
                if let Some(successor) = &self.successor {
                    // A successor that has ended as well takes nothing.
                    let _ = successor.send(local, &datagram);
                }
                Routed::Nothing
            }
            Arrival::For(token) => Routed::For(token),
            Arrival::Elsewhere(worker, datagram) => Routed::Elsewhere(worker, datagram),
            Arrival::New(new) => {
                self.arrived = Some((listener, *new));
                Routed::New
            }
        }
    }

    /// There was no room for a connection that has come before.
    fn forget_arrived(&mut self) {
        if let Some((listener, new)) = self.arrived.take()
            && let Some(endpoint) = self.at(listener)
        {
            endpoint.forget(new);
        }
    }

    /// The connection of the session that is opened, if it came by a datagram.
    pub(crate) fn begin(
        &mut self,
        token: Token,
        limits: &Limits,
        now: Instant,
    ) -> Option<Connection> {
        let (listener, new) = self.arrived.take()?;
        Some(self.at(listener)?.name(new, token, limits, now))
    }

    /// Brings a connection up to date before it is polled.
    pub(crate) fn receive(&mut self, place: usize, connection: &mut Connection, now: Instant) {
        if let Some(endpoint) = self.at(place) {
            connection.receive_datagrams(endpoint, now);
        }
    }

    /// Sends what a connection has to send.
    pub(crate) fn flush(
        &mut self,
        connection: &mut Connection,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        let endpoint = connection.endpoint().and_then(|place| self.at(place));
        let Some(endpoint) = endpoint else {
            return DatagramFlush { flush: Flush::Drained, deadline: None };
        };
        let flushed = connection.flush_datagrams(endpoint, sink);
        DatagramFlush { flush: flushed.flush, deadline: flushed.deadline }
    }

    /// A connection is closed.
    pub(crate) fn forget(&mut self, connection: &mut Connection, now: Instant) {
        if let Some(endpoint) = connection.endpoint().and_then(|place| self.at(place)) {
            connection.forget_datagrams(endpoint, now);
        }
    }
}
