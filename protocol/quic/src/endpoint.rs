//! RFC 9000 §5, §8: what one UDP socket is: connections are told apart, accepted and begun.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use aws_lc_rs::{hkdf, hmac};
use bolide_buffers::{Datagram, DatagramBatch};
use bolide_tls::{ClientTls, ServerTls, WallClock, full_handshakes_count};
use bytes::BytesMut;
use quinn_proto::congestion::{BbrConfig, CubicConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, EndpointConfig,
    Incoming, ServerConfig, TimeSource, TransportConfig, VarInt,
};

use crate::connection::{Connection, batch};
use crate::facts::{Congestion, CongestionControl, Membership, QuicError, Secret};
use crate::identifiers::{Identifiers, Owner};
use crate::limits;
use crate::windows::Receiving;

/// How many times what came may be sent to an address that is not validated (RFC 9000 §8.1).
const AMPLIFICATION: usize = 3;

/// The size of packets before more is known of a path (RFC 9000 §14.1), in bytes.
const FIRST_PACKET_BYTES: u64 = 1200;

/// The protocol that is agreed on (RFC 9114 §3.1).
const HTTP3: &[u8] = b"h3";

/// The name of a connection at its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub(crate) ConnectionHandle);

impl Key {
    /// A small number, which no other connection of the endpoint has at the same time.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.0
    }
}

/// Something for a connection: it is to be [delivered](Connection::deliver).
#[derive(Debug)]
pub struct Delivery {
    pub(crate) event: ConnectionEvent,
    /// Of the datagram.
    pub(crate) bytes: usize,
    /// What the datagram permits to be sent before its sender's address is validated, in bytes; `None`: it may validate it.
    pub(crate) allowance: Option<usize>,
}

/// RFC 9000 §8.1: what a datagram permits to be sent to an address that is not validated, in bytes. `None`: it begins with
/// something else than an Initial packet, which only who has received from here can protect.
fn allowance(bytes: &[u8]) -> Option<usize> {
    let is_initial = bytes.first().is_some_and(|first| first & 0xb0 == 0x80);
    is_initial.then_some(bytes.len() * AMPLIFICATION)
}

/// What a datagram led to.
pub enum Arrived {
    /// Nothing that the caller must do.
    Nothing,
    /// It is for a connection of the endpoint that this worker has.
    Elsewhere(usize, Datagram),
    /// It is for an earlier process, by its number: for the worker whose number is the remainder of this one, if that is
    /// known; else it belongs to a handshake, which may have begun there.
    Earlier(u8, Option<u16>, Datagram),
    /// It begins a connection, and those are the successor's.
    Unclaimed(Datagram),
    /// It is for this connection.
    For(Key, Delivery),
    /// A client begins a connection.
    New(Key, Box<Connection>),
    /// The endpoint itself has something to send: a Retry, a version negotiation, a stateless reset. The datagram is in
    /// the buffer.
    Reply(DatagramBatch),
}

impl fmt::Debug for Arrived {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("Nothing"),
            Self::Elsewhere(worker, _) => write!(formatter, "Elsewhere({worker})"),
            Self::Earlier(process, worker, _) => {
                write!(formatter, "Earlier({process}, {worker:?})")
            }
            Self::Unclaimed(_) => formatter.write_str("Unclaimed"),
            Self::For(key, _) => write!(formatter, "For({key:?})"),
            Self::New(key, _) => write!(formatter, "New({key:?})"),
            Self::Reply(outgoing) => write!(formatter, "Reply({outgoing:?})"),
        }
    }
}

/// The connections of one UDP socket, in both roles.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) inner: quinn_proto::Endpoint,
    /// What connections that are begun here allow themselves, by what may come on one stream.
    outward: (u32, Arc<TransportConfig>),
    /// Of connections that are accepted.
    congestion: Congestion,
    identifiers: Identifiers,
    /// Where the settings of connections that are accepted come from, and how often those were replaced.
    server: Option<(ServerTls, u64)>,
    /// The settings of connections that are accepted while there is no room.
    frugal: Option<Arc<ServerConfig>>,
    clock: WallClock,
    /// Handshakes of clients whose addresses are not validated.
    pub(crate) unvalidated: usize,
    unvalidated_max: usize,
    accepts: bool,
    has_room: bool,
    member: Membership,
    /// Until when handshakes may have begun in the process before, once it has given one back.
    asks_until: Option<Instant>,
    /// Another process accepts connections now.
    leaves: bool,
}

impl Secret {
    /// The key of stateless resets (RFC 9000 §10.3).
    fn of_resets(self) -> Arc<hmac::Key> {
        let mut key = [0; 32];
        let expanded = self.of_tokens();
        // As many bytes as the hash gives at once: that does not fail.
        if let Ok(bytes) = expanded.expand(&[b"stateless reset"], hkdf::HKDF_SHA256) {
            let _ = bytes.fill(&mut key);
        }
        Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    /// The key of tokens (RFC 9000 §8.1).
    fn of_tokens(self) -> hkdf::Prk {
        hkdf::Salt::new(hkdf::HKDF_SHA256, b"bolide quic").extract(&self.0)
    }
}

impl Endpoint {
    /// An endpoint that accepts connections if it has a server's TLS settings, and begins some. Tokens expire by `clock`; `seed` decides the
    /// identifiers and what else is random in the packets, but for keys.
    ///
    /// # Errors
    ///
    /// When the TLS settings have no TLS 1.3.
    pub fn new(
        server: Option<&ServerTls>,
        clock: WallClock,
        seed: [u8; 32],
    ) -> Result<Self, QuicError> {
        Self::of(server, clock, seed, Membership::default())
    }

    /// The same for one of several with the same port: the identifiers of its connections name it.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn of(
        server: Option<&ServerTls>,
        clock: WallClock,
        seed: [u8; 32],
        member: Membership,
    ) -> Result<Self, QuicError> {
        let (secret, congestion) = (member.secret, Congestion::default());
        let config = |tls| server_config(tls, clock, secret, congestion);
        let config = server.map(config).transpose()?;
        let frugal = config.as_deref().map(|config| frugal(config, congestion));
        let identifiers = Identifiers::new(member.worker.0, member.worker.1, member.process);
        let mut endpoint = EndpointConfig::default();
        if let Some(secret) = secret {
            endpoint.reset_key(secret.of_resets());
        }
        endpoint.rng_seed(Some(seed)).cid_generator(move || Box::new(identifiers));
        let inner = quinn_proto::Endpoint::new(Arc::new(endpoint), config, true, Some(seed));
        let unvalidated_max = limits::UNVALIDATED_HANDSHAKES_COUNT;
        let server = server.map(|tls| (tls.clone(), tls.replaced_count()));
        Ok(Self {
            inner,
            outward: outward(limits::STREAM_WINDOW_BYTES),
            congestion,
            identifiers,
            server,
            frugal,
            clock,
            unvalidated: 0,
            unvalidated_max,
            accepts: true,
            has_room: true,
            member,
            asks_until: None,
            leaves: false,
        })
    }

    /// One that accepts connections whose packets are not protected, for a fuzzer.
    ///
    /// # Errors
    ///
    /// None.
    #[cfg(any(test, fuzzing))]
    pub fn unprotected(clock: WallClock, seed: [u8; 32]) -> Result<Self, QuicError> {
        let mut endpoint = Self::new(None, clock, seed)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crate::unprotected::Unprotected));
        let transport = transport(limits::STREAM_WINDOW_BYTES_MAX, endpoint.congestion);
        config.transport_config(Arc::new(transport));
        endpoint.inner.set_server_config(Some(Arc::new(config)));
        Ok(endpoint)
    }

    /// The same with another limit than [`UNVALIDATED_HANDSHAKES_COUNT`](limits::UNVALIDATED_HANDSHAKES_COUNT).
    #[must_use]
    pub fn with_unvalidated_max(self, count: usize) -> Self {
        Self { unvalidated_max: count, ..self }
    }

    /// The same with this congestion control for connections that are accepted.
    #[must_use]
    pub fn with_congestion(mut self, congestion: Congestion) -> Self {
        if self.congestion != congestion {
            self.congestion = congestion;
            self.configure();
        }
        self
    }

    /// Begins a connection to a server that has this name, and that may send `stream_bytes` on one stream before they are
    /// read.
    ///
    /// # Errors
    ///
    /// When the TLS settings have no TLS 1.3, or the name or address can't be a server's.
    pub fn connect(
        &mut self,
        tls: &ClientTls,
        to: SocketAddr,
        name: &str,
        stream_bytes: u32,
        now: Instant,
    ) -> Result<(Key, Connection), QuicError> {
        let crypto = QuicClientConfig::try_from(tls.quic(HTTP3))
            .map_err(|error| QuicError::Tls(error.to_string()))?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        if self.outward.0 != stream_bytes {
            self.outward = outward(stream_bytes);
        }
        config.transport_config(Arc::clone(&self.outward.1));
        let (handle, connection) = self
            .inner
            .connect(now, config, to, name)
            .map_err(|error| QuicError::Connect(to, error.to_string()))?;
        let receiving = Receiving::of_client(stream_bytes, outward_window(stream_bytes));
        Ok((Key(handle), Connection::new(handle, connection, now, receiving, None)))
    }

    /// Whether connections are accepted: those of clients that come while they are not are refused. Those that come while
    /// there is room may send more on a stream before it is read.
    pub fn accept(&mut self, accepts: bool, has_room: bool) {
        self.accepts = accepts;
        self.has_room = has_room;
    }

    /// Another process accepts connections from here on.
    pub fn leave(&mut self) {
        self.leaves = true;
    }

    /// A datagram came. `is_passed_on`: from another worker or process, so that it is for this one or for nobody. What the
    /// endpoint replies is in `buffer`, which is emptied first.
    pub fn receive(
        &mut self,
        datagram: Datagram,
        is_passed_on: bool,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Arrived {
        buffer.clear();
        // A client's is alone at its socket, and a server's stateless resets begin as anything may.
        let owner = match self.server {
            Some(_) => self.identifiers.owner(&datagram.bytes),
            None => Owner::Own,
        };
        let unclaimed = match owner {
            Owner::Own => None,
            Owner::Worker(worker) if !is_passed_on => return Arrived::Elsewhere(worker, datagram),
            Owner::Process(process, tag) if !is_passed_on => {
                return Arrived::Earlier(process, Some(tag), datagram);
            }
            Owner::Handshake if self.leaves => {
                Some(Datagram { bytes: BytesMut::from(&datagram.bytes[..]), ..datagram })
            }
            Owner::Handshake => match self.asks(is_passed_on, now) {
                Some(process) => return Arrived::Earlier(process, None, datagram),
                None => None,
            },
            Owner::Worker(_) | Owner::Process(..) => None,
        };
        let Datagram { from, to, ecn, bytes } = datagram;
        let ecn = EcnCodepoint::from_bits(ecn);
        let (allowance, length) = (allowance(&bytes), bytes.len());
        match self.inner.handle(now, from, to, ecn, bytes, buffer) {
            None => Arrived::Nothing,
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                Arrived::For(Key(handle), Delivery { event, bytes: length, allowance })
            }
            Some(DatagramEvent::Response(transmit)) => Arrived::Reply(batch(&transmit)),
            Some(DatagramEvent::NewConnection(incoming)) => match unclaimed {
                None => self.incoming(incoming, (length, allowance), now, buffer),
                Some(datagram) => {
                    self.inner.ignore(incoming);
                    Arrived::Unclaimed(datagram)
                }
            },
        }
    }

    /// The process that may have begun the handshake that a datagram belongs to. It gives back what it does not know, and has
    /// begun none since the first that it gave back.
    fn asks(&mut self, is_passed_on: bool, now: Instant) -> Option<u8> {
        let process = self.member.follows?;
        if is_passed_on {
            self.asks_until.get_or_insert(now + limits::TAKEOVER);
            return None;
        }
        if self.asks_until.is_some_and(|until| until <= now) {
            self.member.follows = None;
            return None;
        }
        Some(process)
    }

    /// Takes over TLS settings that were replaced.
    fn follow_settings(&mut self) {
        let Some((tls, replaced_count)) = &mut self.server else { return };
        let count = tls.replaced_count();
        if *replaced_count != count {
            *replaced_count = count;
            self.configure();
        }
    }

    /// Nothing is accepted any more where the TLS settings don't allow QUIC.
    fn configure(&mut self) {
        let Some((tls, _)) = &self.server else { return };
        let config = server_config(tls, self.clock, self.member.secret, self.congestion).ok();
        self.frugal = config.as_deref().map(|config| frugal(config, self.congestion));
        self.inner.set_server_config(config);
    }

    /// A client begins a connection: above a number of handshakes it must prove its address first.
    fn incoming(
        &mut self,
        incoming: Incoming,
        (length, allowance): (usize, Option<usize>),
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Arrived {
        if !self.accepts {
            return Arrived::Reply(batch(&self.inner.refuse(incoming, buffer)));
        }
        let validated = incoming.remote_address_validated();
        if !validated && self.unvalidated >= self.unvalidated_max {
            if !incoming.may_retry() {
                self.inner.ignore(incoming);
                return Arrived::Nothing;
            }
            return match self.inner.retry(incoming, buffer) {
                Ok(transmit) => Arrived::Reply(batch(&transmit)),
                Err(error) => {
                    self.inner.ignore(error.into_incoming());
                    Arrived::Nothing
                }
            };
        }
        self.follow_settings();
        let full = full_handshakes_count();
        let (stream_bytes, config) = match &self.frugal {
            Some(frugal) if !self.has_room => (limits::STREAM_WINDOW_BYTES, Some(frugal.clone())),
            _ => (limits::STREAM_WINDOW_BYTES_MAX, None),
        };
        match self.inner.accept(incoming, now, buffer, config) {
            Ok((handle, connection)) => {
                self.unvalidated += usize::from(!validated);
                let allowance = allowance.filter(|_| !validated);
                let receiving = Receiving::of_server(length, stream_bytes);
                let connection = Connection::new(handle, connection, now, receiving, allowance)
                    .with_full_handshake(full_handshakes_count() != full);
                Arrived::New(Key(handle), Box::new(connection))
            }
            Err(error) => match error.response {
                Some(transmit) => Arrived::Reply(batch(&transmit)),
                None => Arrived::Nothing,
            },
        }
    }
}

/// What connections that are accepted begin with, where there is room.
fn server_config(
    tls: &ServerTls,
    clock: WallClock,
    secret: Option<Secret>,
    congestion: Congestion,
) -> Result<Arc<ServerConfig>, QuicError> {
    if !tls.allows_quic() {
        return Err(QuicError::Tls(
            "the settings do not allow TLS 1.3 with its first suite".to_owned(),
        ));
    }
    let crypto = QuicServerConfig::try_from(tls.quic(HTTP3))
        .map_err(|error| QuicError::Tls(error.to_string()))?;
    let crypto = Arc::new(crypto);
    let mut config = match secret {
        Some(secret) => ServerConfig::new(crypto, Arc::new(secret.of_tokens())),
        None => ServerConfig::with_crypto(crypto),
    };
    let transport = Arc::new(transport(limits::STREAM_WINDOW_BYTES_MAX, congestion));
    config.transport_config(transport).time_source(Arc::new(Clock(clock)));
    Ok(Arc::new(config))
}

/// The same where there is none.
fn frugal(config: &ServerConfig, congestion: Congestion) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.transport_config(Arc::new(transport(limits::STREAM_WINDOW_BYTES, congestion)));
    Arc::new(config)
}

/// The time of day, by which tokens expire.
#[derive(Debug)]
struct Clock(WallClock);

impl TimeSource for Clock {
    fn now(&self) -> SystemTime {
        (self.0.0)()
    }
}

/// What every connection announces and allows itself, where so much may come on one stream before it is read.
fn transport(stream_bytes: u32, congestion: Congestion) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let initial_window = u64::from(congestion.initial_packets) * FIRST_PACKET_BYTES;
    match congestion.control {
        CongestionControl::Cubic => {
            let mut cubic = CubicConfig::default();
            cubic.initial_window(initial_window);
            transport.congestion_controller_factory(Arc::new(cubic));
        }
        CongestionControl::Bbr => {
            let mut bbr = BbrConfig::default();
            bbr.initial_window(initial_window);
            transport.congestion_controller_factory(Arc::new(bbr));
        }
    }
    let silence = VarInt::from_u32(limits::SILENCE.as_millis() as u32);
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(limits::BIDIRECTIONAL_STREAMS_COUNT))
        .max_concurrent_uni_streams(VarInt::from_u32(limits::UNIDIRECTIONAL_STREAMS_COUNT))
        .stream_receive_window(VarInt::from_u32(stream_bytes))
        .receive_window(VarInt::from_u32(limits::FIRST_WINDOW_BYTES))
        .send_window(limits::SEND_WINDOW_BYTES)
        .datagram_receive_buffer_size(Some(limits::DATAGRAM_BYTES))
        .max_idle_timeout(Some(silence.into()));
    transport
}

/// What a server may send on all streams of a connection, where one stream may have so many bytes.
fn outward_window(stream_bytes: u32) -> u32 {
    limits::OUTWARD_WINDOW_BYTES.max(stream_bytes)
}

/// The same of those that are begun here, with what a server may send on one stream.
fn outward(stream_bytes: u32) -> (u32, Arc<TransportConfig>) {
    let mut outward = transport(stream_bytes, Congestion::default());
    outward
        .keep_alive_interval(Some(limits::KEEP_ALIVE))
        .receive_window(VarInt::from_u32(outward_window(stream_bytes)));
    (stream_bytes, Arc::new(outward))
}
