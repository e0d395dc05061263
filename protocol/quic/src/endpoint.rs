//! RFC 9000 §5, §8: what one UDP socket is: connections are told apart, accepted and begun.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bolide_tls::{ClientTls, ServerTls, WallClock};
use bytes::BytesMut;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, EndpointConfig,
    Incoming, ServerConfig, TimeSource, TransportConfig, VarInt,
};
use thiserror::Error;

use crate::connection::{Connection, Outgoing};
use crate::limits;

/// The protocol that is agreed on (RFC 9114 §3.1).
const HTTP3: &[u8] = b"h3";

/// Why an endpoint or a connection can't be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuicError {
    /// The TLS settings can't be used with QUIC.
    #[error("these TLS settings can't be used with QUIC: {0}")]
    Tls(String),
    /// The connection can't be begun.
    #[error("no connection to {0} can be begun: {1}")]
    Connect(SocketAddr, String),
}

/// The name of a connection at its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub(crate) ConnectionHandle);

/// A datagram that came, or several of one sender's in a row.
#[derive(Debug)]
pub struct Received {
    /// Who sent it.
    pub from: SocketAddr,
    /// The address that it was sent to, where that is known.
    pub to: Option<IpAddr>,
    /// The two bits of ECN (RFC 3168 §5).
    pub ecn: u8,
    /// Its bytes.
    pub bytes: BytesMut,
}

/// Something for a connection: it is to be [delivered](Connection::deliver).
#[derive(Debug)]
pub struct Delivery(pub(crate) ConnectionEvent);

/// What a datagram led to.
pub enum Arrived {
    /// Nothing that the caller must do.
    Nothing,
    /// It is for this connection.
    For(Key, Delivery),
    /// A client begins a connection.
    New(Key, Box<Connection>),
    /// The endpoint itself has something to send: a Retry, a version negotiation, a stateless reset. The datagram is in
    /// the buffer.
    Reply(Outgoing),
}

impl fmt::Debug for Arrived {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("Nothing"),
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
    transport: Arc<TransportConfig>,
    /// Handshakes of clients whose addresses are not validated.
    pub(crate) unvalidated: usize,
    unvalidated_max: usize,
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
        let transport = Arc::new(transport());
        let server = match server {
            None => None,
            Some(tls) => {
                let crypto = QuicServerConfig::try_from(tls.quic(HTTP3))
                    .map_err(|error| QuicError::Tls(error.to_string()))?;
                let mut config = ServerConfig::with_crypto(Arc::new(crypto));
                config.transport_config(Arc::clone(&transport)).time_source(Arc::new(Clock(clock)));
                Some(Arc::new(config))
            }
        };
        let mut config = EndpointConfig::default();
        config.rng_seed(Some(seed));
        let inner = quinn_proto::Endpoint::new(Arc::new(config), server, true, Some(seed));
        let unvalidated_max = limits::UNVALIDATED_HANDSHAKES_COUNT;
        Ok(Self { inner, transport, unvalidated: 0, unvalidated_max })
    }

    /// The same with another limit than [`UNVALIDATED_HANDSHAKES_COUNT`](limits::UNVALIDATED_HANDSHAKES_COUNT).
    #[must_use]
    pub fn with_unvalidated_max(self, count: usize) -> Self {
        Self { unvalidated_max: count, ..self }
    }

    /// Begins a connection to a server that has this name.
    ///
    /// # Errors
    ///
    /// When the TLS settings have no TLS 1.3, or the name or address can't be a server's.
    pub fn connect(
        &mut self,
        tls: &ClientTls,
        to: SocketAddr,
        name: &str,
        now: Instant,
    ) -> Result<(Key, Connection), QuicError> {
        let crypto = QuicClientConfig::try_from(tls.quic(HTTP3))
            .map_err(|error| QuicError::Tls(error.to_string()))?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::clone(&self.transport));
        let (handle, connection) = self
            .inner
            .connect(now, config, to, name)
            .map_err(|error| QuicError::Connect(to, error.to_string()))?;
        Ok((Key(handle), Connection::new(handle, connection, now, false)))
    }

    /// A datagram came. What the endpoint replies is in `buffer`, which is emptied first.
    pub fn receive(&mut self, received: Received, now: Instant, buffer: &mut Vec<u8>) -> Arrived {
        buffer.clear();
        let Received { from, to, ecn, bytes } = received;
        let ecn = EcnCodepoint::from_bits(ecn);
        match self.inner.handle(now, from, to, ecn, bytes, buffer) {
            None => Arrived::Nothing,
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                Arrived::For(Key(handle), Delivery(event))
            }
            Some(DatagramEvent::Response(transmit)) => Arrived::Reply(Outgoing::new(&transmit)),
            Some(DatagramEvent::NewConnection(incoming)) => self.incoming(incoming, now, buffer),
        }
    }

    /// A client begins a connection: above a number of handshakes it must prove its address first.
    fn incoming(&mut self, incoming: Incoming, now: Instant, buffer: &mut Vec<u8>) -> Arrived {
        let validated = incoming.remote_address_validated();
        if !validated && self.unvalidated >= self.unvalidated_max {
            if !incoming.may_retry() {
                self.inner.ignore(incoming);
                return Arrived::Nothing;
            }
            return match self.inner.retry(incoming, buffer) {
                Ok(transmit) => Arrived::Reply(Outgoing::new(&transmit)),
                Err(error) => {
                    self.inner.ignore(error.into_incoming());
                    Arrived::Nothing
                }
            };
        }
        match self.inner.accept(incoming, now, buffer, None) {
            Ok((handle, connection)) => {
                self.unvalidated += usize::from(!validated);
                let connection = Connection::new(handle, connection, now, !validated);
                Arrived::New(Key(handle), Box::new(connection))
            }
            Err(error) => match error.response {
                Some(transmit) => Arrived::Reply(Outgoing::new(&transmit)),
                None => Arrived::Nothing,
            },
        }
    }
}

/// The time of day, by which tokens expire.
#[derive(Debug)]
struct Clock(WallClock);

impl TimeSource for Clock {
    fn now(&self) -> SystemTime {
        (self.0.0)()
    }
}

/// What every connection announces and allows itself.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    let silence = VarInt::from_u32(limits::SILENCE.as_millis() as u32);
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(limits::BIDIRECTIONAL_STREAMS_COUNT))
        .max_concurrent_uni_streams(VarInt::from_u32(limits::UNIDIRECTIONAL_STREAMS_COUNT))
        .stream_receive_window(VarInt::from_u32(limits::STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(limits::CONNECTION_WINDOW_BYTES))
        .send_window(limits::SEND_WINDOW_BYTES)
        .datagram_receive_buffer_size(Some(limits::DATAGRAM_BYTES))
        .max_idle_timeout(Some(silence.into()));
    transport
}
