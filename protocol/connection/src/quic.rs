//! RFC 9114 §3: HTTP/3 above QUIC: the connections of one UDP socket, and what comes for each.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::time::Instant;

use bolide_buffers::{Datagram, DatagramSink, Flush};
use bolide_quic::{Arrived, Congestion, Delivery, Endpoint, Key, Membership, QuicError, QuicStats};
use bolide_semantics::{CloseReason, Role};
use bolide_tls::{ClientTls, ServerTls, WallClock};

use crate::Limits;
use crate::connection::{Connection, Stack};
use crate::http3::{Http3, Unsent};

/// Places for datagrams that a connection's inbox keeps between two turns, in number.
const INBOX_KEPT_COUNT: usize = 16;

/// Result of a datagram.
#[derive(Debug)]
pub enum Arrival<N> {
    /// Nothing that the caller must do.
    Nothing,
    /// The connection that was [named](QuicEndpoint::name) so has something to do. Said once for all datagrams until it is
    /// [brought up to date](Connection::receive_datagrams).
    For(N),
    /// A client begins a connection: it is to be named, or [forgotten](QuicEndpoint::forget).
    New(Box<NewConnection>),
    /// It is for a connection of the endpoint that this worker has.
    Elsewhere(usize, Datagram),
    /// As [`Arrived::Earlier`].
    Earlier(u8, Option<u16>, Datagram),
    /// As [`Arrived::Unclaimed`].
    Unclaimed(Datagram),
}

/// A connection that a client has begun.
#[derive(Debug)]
pub struct NewConnection(bolide_quic::Connection);

/// Datagrams that have come for one connection, and its owner's name for it.
#[derive(Debug)]
struct Entry<N> {
    name: Option<N>,
    inbox: Vec<Delivery>,
}

/// The connections of one UDP socket. Its datagrams come here, and what they mean for a connection waits until that is
/// [brought up to date](Connection::receive_datagrams). Owners give their connections names of their own.
#[derive(Debug)]
pub struct QuicEndpoint<N> {
    endpoint: Endpoint,
    /// Its owner's number for it.
    place: usize,
    entries: Vec<Entry<N>>,
    buffer: Vec<u8>,
}

impl<N: Copy> QuicEndpoint<N> {
    /// An endpoint that accepts connections by these settings, if there are any, as one of several with the same port.
    /// `seed` decides what is random in its packets, but for keys; `place` is what its connections say of where they
    /// [belong](Connection::endpoint).
    ///
    /// # Errors
    ///
    /// When the settings can't be used with QUIC.
    pub fn new(
        tls: Option<&ServerTls>,
        clock: WallClock,
        seed: [u8; 32],
        (place, member): (usize, Membership),
    ) -> Result<Self, QuicError> {
        let endpoint = Endpoint::of(tls, clock, seed, member)?;
        Ok(Self { endpoint, place, entries: Vec::new(), buffer: Vec::new() })
    }

    /// The same with this congestion control for connections that are accepted.
    #[must_use]
    pub fn with_congestion(self, congestion: Congestion) -> Self {
        Self { endpoint: self.endpoint.with_congestion(congestion), ..self }
    }

    /// Sets whether connections are accepted: those of clients that come while they are not are refused. Those that come while
    /// there is room may send more on a stream before it is read.
    pub fn accept(&mut self, accepts: bool, has_room: bool) {
        self.endpoint.accept(accepts, has_room);
    }

    /// Another process accepts connections from here on.
    pub fn leave(&mut self) {
        self.endpoint.leave();
    }

    /// A datagram came. `is_passed_on`: from another worker or process. What the endpoint itself replies leaves by `sink`.
    pub fn receive(
        &mut self,
        datagram: Datagram,
        is_passed_on: bool,
        now: Instant,
        sink: &mut dyn DatagramSink,
    ) -> Arrival<N> {
        match self.endpoint.receive(datagram, is_passed_on, now, &mut self.buffer) {
            Arrived::Nothing => Arrival::Nothing,
            Arrived::Elsewhere(worker, datagram) => Arrival::Elsewhere(worker, datagram),
            Arrived::Earlier(process, worker, datagram) => {
                Arrival::Earlier(process, worker, datagram)
            }
            Arrived::Unclaimed(datagram) => Arrival::Unclaimed(datagram),
            Arrived::New(_, quic) => Arrival::New(Box::new(NewConnection(*quic))),
            Arrived::Reply(batch) => {
                // A full socket loses it, and the peer sends again.
                let _ = sink.send(&batch, &self.buffer);
                Arrival::Nothing
            }
            Arrived::For(key, delivery) => {
                let entry = self.entry(key);
                let is_first = entry.inbox.is_empty();
                entry.inbox.push(delivery);
                entry.name.filter(|_| is_first).map_or(Arrival::Nothing, Arrival::For)
            }
        }
    }

    fn entry(&mut self, key: Key) -> &mut Entry<N> {
        while self.entries.len() <= key.index() {
            self.entries.push(Entry { name: None, inbox: Vec::new() });
        }
        &mut self.entries[key.index()]
    }

    /// A server's connection of a client that has begun one, by the name of its owner.
    pub fn name(
        &mut self,
        new: NewConnection,
        name: N,
        limits: &Limits,
        now: Instant,
    ) -> Connection {
        self.entry(new.0.key()).name = Some(name);
        Connection::over_quic(Role::Server, (new.0, self.place), limits, now)
    }

    /// Begins a connection to a server that has this host name.
    ///
    /// # Errors
    ///
    /// When the settings, the host name or the address can't be used.
    pub fn connect(
        &mut self,
        (tls, to, host): (&ClientTls, SocketAddr, &str),
        name: N,
        limits: &Limits,
        now: Instant,
    ) -> Result<Connection, QuicError> {
        let (key, quic) =
            self.endpoint.connect(tls, to, host, limits.h3.response_window_bytes, now)?;
        self.entry(key).name = Some(name);
        Ok(Connection::over_quic(Role::Client, (quic, self.place), limits, now))
    }

    /// A client's connection is not wanted.
    pub fn forget(&mut self, new: NewConnection) {
        self.forget_quic(new.0);
    }

    fn forget_quic(&mut self, quic: bolide_quic::Connection) {
        *self.entry(quic.key()) = Entry { name: None, inbox: Vec::new() };
        quic.forget(&mut self.endpoint);
    }
}

/// Result of a flush of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramFlush {
    /// Result of the writes: whether the socket took everything.
    pub flush: Flush,
    /// When the transport must be called even if nothing comes.
    pub deadline: Option<Instant>,
}

static FORGOTTEN: CloseReason = CloseReason::orderly("closed", "the connection was closed");

impl Connection {
    fn over_quic(
        role: Role,
        (quic, place): (bolide_quic::Connection, usize),
        limits: &Limits,
        now: Instant,
    ) -> Self {
        let core = bolide_h3::Connection::new(role, &limits.h3, now);
        let stack =
            Stack::H3(Box::new(Http3 { quic, core, place, unsent: None, facts: OnceCell::new() }));
        let mut connection = Self::new(role, None, now);
        connection.stack = stack;
        connection
    }

    /// Returns whether the connection is one of an endpoint's: datagrams come and leave instead of bytes.
    #[inline]
    #[must_use]
    pub fn is_quic(&self) -> bool {
        self.endpoint().is_some()
    }

    /// The number of the endpoint that it is of, if it is over QUIC.
    #[inline]
    #[must_use]
    pub fn endpoint(&self) -> Option<usize> {
        if let Stack::H3(http3) = &self.stack { Some(http3.place) } else { None }
    }

    /// Returns what QUIC has counted, over HTTP/3.
    #[must_use]
    pub fn quic_stats(&self) -> Option<QuicStats> {
        if let Stack::H3(http3) = &self.stack { Some(http3.quic.stats()) } else { None }
    }

    /// Brings a connection of `endpoint` up to date with what has come and with the time: to be called before it is
    /// polled.
    pub fn receive_datagrams<N: Copy>(&mut self, endpoint: &mut QuicEndpoint<N>, now: Instant) {
        let Stack::H3(http3) = &mut self.stack else { return };
        let QuicEndpoint { endpoint, entries, .. } = endpoint;
        if let Some(entry) = entries.get_mut(http3.quic.key().index()) {
            for delivery in entry.inbox.drain(..) {
                http3.quic.deliver(endpoint, delivery, now);
            }
            entry.inbox.shrink_to(INBOX_KEPT_COUNT);
        }
        http3.quic.advance(endpoint, now);
    }

    /// Sends what a connection of `endpoint` has to send, as far as the socket takes it.
    pub fn flush_datagrams<N: Copy>(
        &mut self,
        endpoint: &mut QuicEndpoint<N>,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        let Stack::H3(http3) = &mut self.stack else {
            return DatagramFlush { flush: Flush::Drained, deadline: None };
        };
        let flush = http3.flush(&mut endpoint.endpoint, &mut endpoint.buffer, sink);
        DatagramFlush { flush, deadline: http3.quic.deadline() }
    }

    /// Ends a connection over QUIC at once, whatever is open; the next [flush](Self::flush_datagrams) tells the peer. What has
    /// a socket is ended by closing that.
    pub fn end_datagrams(&mut self) {
        if let Stack::H3(http3) = &mut self.stack {
            http3.quic.end();
            self.closed.get_or_insert(&FORGOTTEN);
        }
    }

    /// A connection of `endpoint` is over for its owner: nothing that comes for it is delivered, and the peer gets a
    /// stateless reset if it does not know (RFC 9000 §10.3).
    pub fn forget_datagrams<N: Copy>(&mut self, endpoint: &mut QuicEndpoint<N>, now: Instant) {
        if !self.is_quic() {
            return;
        }
        self.closed.get_or_insert(&FORGOTTEN);
        let nothing = Stack::Open { since: now, leaving: None };
        if let Stack::H3(http3) = std::mem::replace(&mut self.stack, nothing) {
            endpoint.forget_quic(http3.quic);
        }
    }
}

impl Http3 {
    fn flush(
        &mut self,
        endpoint: &mut Endpoint,
        buffer: &mut Vec<u8>,
        sink: &mut dyn DatagramSink,
    ) -> Flush {
        if let Some(unsent) = &self.unsent {
            if sink.send(&unsent.batch, &unsent.bytes).is_err() {
                return Flush::Blocked;
            }
            self.unsent = None;
        }
        while let Some(batch) = self.quic.send(endpoint, buffer) {
            if sink.send(&batch, buffer).is_err() {
                self.unsent = Some(Unsent { batch, bytes: buffer.clone() });
                return Flush::Blocked;
            }
        }
        Flush::Drained
    }
}
