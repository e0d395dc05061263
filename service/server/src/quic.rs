//! HTTP/3: the endpoints of one worker, one for each listener that has a UDP socket.

use std::time::{Instant, SystemTime};

use bolide_buffers::{Datagram, DatagramSink, Flush};
use bolide_connection::{
    Arrival, Connection, Limits, NewConnection, QuicEndpoint, ServerTls, WallClock,
};
use bolide_eventloop::{DatagramFlush, Routed, Token, random_seed};

/// How long clients may remember that HTTP/3 is served, in seconds.
const REMEMBERED_SECONDS: u32 = 86_400;

/// The endpoints, by the listeners' indexes.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    endpoints: Vec<Option<QuicEndpoint<Token>>>,
    /// A connection that a client has begun, until its session is opened.
    arrived: Option<(usize, NewConnection)>,
}

impl Endpoints {
    /// Those of a worker, by its number and that of all, for listeners that have sockets for it.
    pub(crate) fn new(
        tls: &[Option<ServerTls>],
        has_socket: &[bool],
        wall_clock: fn() -> SystemTime,
        worker: (usize, usize),
    ) -> Self {
        let endpoint = |place: usize, tls: &Option<ServerTls>| {
            let tls = tls.as_ref().filter(|_| has_socket.get(place) == Some(&true));
            // Settings that have no TLS 1.3 can't be made.
            QuicEndpoint::new(Some(tls?), WallClock(wall_clock), random_seed(), (place, worker))
                .ok()
        };
        let endpoints = tls.iter().enumerate().map(|(place, tls)| endpoint(place, tls)).collect();
        Self { endpoints, arrived: None }
    }

    /// The endpoint of this listener, if it has one.
    fn at(&mut self, listener: usize) -> Option<&mut QuicEndpoint<Token>> {
        self.endpoints.get_mut(listener)?.as_mut()
    }

    /// Finds out what a datagram is.
    pub(crate) fn route(
        &mut self,
        listener: usize,
        datagram: Datagram,
        accepts: bool,
        now: Instant,
        sink: &mut dyn DatagramSink,
    ) -> Routed {
        self.forget_arrived();
        let Some(endpoint) = self.at(listener) else { return Routed::Nothing };
        endpoint.accept(accepts);
        match endpoint.receive(datagram, now, sink) {
            Arrival::Nothing => Routed::Nothing,
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

/// RFC 7838 §3: what a response over TLS says of HTTP/3 at the same port.
#[derive(Debug, Clone)]
pub(crate) struct Advertised {
    port: u16,
    value: String,
}

impl Advertised {
    pub(crate) fn new(port: u16) -> Self {
        Self { port, value: format!("h3=\":{port}\"; ma={REMEMBERED_SECONDS}") }
    }

    /// What a client is told that has connected to this port.
    pub(crate) fn at(advertised: &[Self], port: u16) -> Option<&str> {
        advertised.iter().find(|one| one.port == port).map(|one| &*one.value)
    }
}
