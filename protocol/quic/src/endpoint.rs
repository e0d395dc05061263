//! RFC 9000 §5, §8: what one UDP socket is, and what its connections begin with.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use aws_lc_rs::{hkdf, hmac};
use bolide_tls::{ServerTls, WallClock};
use quinn_proto::congestion::{BbrConfig, CubicConfig};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    ConnectionEvent, ConnectionHandle, EndpointConfig, ServerConfig, TimeSource, TransportConfig,
    VarInt,
};

use crate::facts::{Congestion, CongestionControl, Membership, QuicError, Secret};
use crate::identifiers::Identifiers;
use crate::limits;

/// The size of packets before more is known of a path (RFC 9000 §14.1), in bytes.
const FIRST_PACKET_BYTES: u64 = 1200;

/// The protocol that is agreed on (RFC 9114 §3.1).
pub(crate) const HTTP3: &[u8] = b"h3";

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

/// Something for a connection: it is to be [delivered](crate::Connection::deliver).
#[derive(Debug)]
pub struct Delivery {
    pub(crate) event: ConnectionEvent,
    /// Of the datagram.
    pub(crate) bytes: usize,
    /// Bytes that the datagram permits to be sent before its sender's address is validated; `None`: it may validate it.
    pub(crate) allowance: Option<usize>,
}

/// The connections of one UDP socket, in both roles.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) inner: quinn_proto::Endpoint,
    /// Settings of connections that are begun here, by what may come on one stream.
    pub(crate) outward: (u32, Arc<TransportConfig>),
    /// Of connections that are accepted.
    congestion: Congestion,
    pub(crate) identifiers: Identifiers,
    /// Source of the settings of connections that are accepted, and how often those were replaced.
    pub(crate) server: Option<(ServerTls, u64)>,
    /// The settings of connections that are accepted while there is no room.
    pub(crate) frugal: Option<Arc<ServerConfig>>,
    clock: WallClock,
    /// Handshakes of clients whose addresses are not validated.
    pub(crate) unvalidated: usize,
    pub(crate) unvalidated_max: usize,
    pub(crate) accepts: bool,
    pub(crate) has_room: bool,
    member: Membership,
    /// Until when handshakes may have begun in the process before, once one has come that may have.
    asks_until: Option<Instant>,
    /// Another process accepts connections now.
    pub(crate) leaves: bool,
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

    /// Sets whether connections are accepted: those of clients that come while they are not are refused. Those that come while
    /// there is room may send more on a stream before it is read.
    pub fn accept(&mut self, accepts: bool, has_room: bool) {
        self.accepts = accepts;
        self.has_room = has_room;
    }

    /// Another process accepts connections from here on.
    pub fn leave(&mut self) {
        self.leaves = true;
    }

    /// The process that may have begun the handshake that a datagram belongs to. It gives back what it does not know, unless it
    /// hangs.
    pub(crate) fn asks(&mut self, is_passed_on: bool, now: Instant) -> Option<u8> {
        let process = self.member.follows?;
        if *self.asks_until.get_or_insert(now + limits::TAKEOVER) <= now {
            self.member.follows = None;
            return None;
        }
        (!is_passed_on).then_some(process)
    }

    /// Takes over TLS settings that were replaced.
    pub(crate) fn follow_settings(&mut self) {
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
}

/// Returns what connections that are accepted begin with, where there is room.
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

/// Returns what every connection announces and allows itself, where so much may come on one stream before it is read.
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

/// Returns what a server may send on all streams of a connection, where one stream may have so many bytes.
pub(crate) fn outward_window(stream_bytes: u32) -> u32 {
    limits::OUTWARD_WINDOW_BYTES.max(stream_bytes)
}

/// The same of those that are begun here, with what a server may send on one stream.
pub(crate) fn outward(stream_bytes: u32) -> (u32, Arc<TransportConfig>) {
    let mut outward = transport(stream_bytes, Congestion::default());
    outward
        .keep_alive_interval(Some(limits::KEEP_ALIVE))
        .receive_window(VarInt::from_u32(outward_window(stream_bytes)));
    (stream_bytes, Arc::new(outward))
}
