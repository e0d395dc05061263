//! RFC 9000, RFC 9001, RFC 9114: a client and a server with everything above UDP, over a network that loses and reorders;
//! a seed replays it but for the keys.

#![allow(clippy::expect_used, clippy::panic, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use allocation_counter::measure;
use bolide_buffers::{Datagram, DatagramBatch};
use bolide_h3::{Connection as Http, Context, Limits, Quic};
use bolide_quic::limits::STREAM_WINDOW_BYTES;
use bolide_quic::{Arrived, Connection, Endpoint};
use bolide_semantics::{End, ExchangeEvent, ExchangeId, Head, Output, RequestHead, Role};
use bolide_tls::{ClientTls, Identity, ServerTls, Trust, WallClock};
use bytes::BytesMut;
use fastrand::Rng;
use http::Method;

/// A time at which certificates that rcgen makes are valid.
pub const CLOCK: WallClock =
    WallClock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));

/// When every run begins.
#[allow(clippy::disallowed_methods, reason = "an Instant can't be made from a number")]
pub fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// A certificate for `localhost`, and the trust in it.
pub fn identity() -> (Identity, Trust) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()])
        .and_then(|parameters| parameters.self_signed(&key))
        .expect("a certificate");
    let pem = certificate.pem();
    let identity = Identity::from_pem(pem.as_bytes(), key.serialize_pem().as_bytes());
    (identity.expect("what rcgen made"), Trust::Pem(pem.into_bytes()))
}

/// TLS for a server, and for a client that trusts it.
pub fn tls() -> (ServerTls, ClientTls) {
    let (identity, trust) = identity();
    let server = ServerTls::new(&identity, CLOCK).expect("settings");
    let client = ClientTls::new(&trust, &[], CLOCK).expect("settings");
    (server, client)
}

/// The address of an end, by its port.
pub fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

/// One end: everything that a worker has for one connection.
#[derive(Debug)]
pub struct Side {
    /// Endpoint that routes its datagrams.
    pub endpoint: Endpoint,
    /// The connection, once there is one.
    pub quic: Option<Connection>,
    /// HTTP/3 above it.
    pub http: Http,
    head: Head,
    /// Address that its datagrams come from.
    pub address: SocketAddr,
    /// Events, until they are taken.
    pub seen: Vec<(ExchangeId, ExchangeEvent)>,
    /// Why the connection has ended, if it has.
    pub closed: Option<&'static str>,
    /// Bytes that were allocated by its own work and are not free again.
    pub allocated_bytes: i64,
}

impl Side {
    /// An end without a connection; a server has settings for TLS.
    pub fn new(role: Role, tls: Option<&ServerTls>, seed: u8) -> Self {
        let endpoint = Endpoint::new(tls, CLOCK, [seed; 32]).expect("settings that have TLS 1.3");
        let http = Http::new(role, &Arc::new(Limits::default()), start());
        let (head, seen) = (Head::default(), Vec::new());
        let address = address(if role == Role::Server { 443 } else { 50_000 });
        let (quic, closed, allocated_bytes) = (None, None, 0);
        Self { endpoint, quic, http, head, address, seen, closed, allocated_bytes }
    }

    /// Calls HTTP/3 with what it works on.
    pub fn with<T>(
        &mut self,
        now: Instant,
        run: impl FnOnce(&mut Http, &mut Context<'_, Connection>) -> T,
    ) -> T {
        let Self { quic, http, head, .. } = self;
        let quic = quic.as_mut().expect("there is a connection");
        run(http, &mut Context { quic, head, now })
    }

    /// Does something whose memory counts as its own.
    pub fn counted<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let mut result = None;
        let counted = measure(|| result = Some(run(self)));
        self.allocated_bytes += counted.bytes_current;
        result.expect("it ran")
    }

    /// Returns what the connection's account is charged with, in bytes.
    pub fn held_bytes(&self) -> usize {
        let quic = self.quic.as_ref().map_or(0, Connection::held_bytes);
        quic + self.http.held_bytes() + self.http.unconsumed_bytes()
    }

    /// Returns whether the handshake is over.
    pub fn is_connected(&self) -> bool {
        self.quic.as_ref().is_some_and(|quic| !quic.is_handshaking())
    }

    /// How many requests it may send.
    pub fn available(&self) -> u32 {
        self.quic.as_ref().map_or(0, |quic| self.http.exchanges_available(quic))
    }

    /// Sends the head of a request.
    pub fn request(&mut self, now: Instant, method: &Method, path: &str, end: End) -> ExchangeId {
        let (scheme, authority, fields) = ("https", "localhost", &[][..]);
        let head = RequestHead { method, scheme, authority, path, protocol: None, fields };
        self.with(now, |http, cx| http.send_request(cx, &head, end)).expect("a stream")
    }

    fn poll(&mut self, now: Instant) {
        while self.closed.is_none() {
            match self.with(now, |http, cx| http.poll(cx)) {
                Output::Wait(_) => return,
                Output::Closed(reason) => self.closed = Some(reason.name),
                Output::Connection(_) => {}
                Output::Exchange(id, event) => self.seen.push((id, event)),
            }
        }
    }

    /// One datagram arrives; what is to be sent at once.
    fn arrive(&mut self, received: Datagram, now: Instant) -> Option<(DatagramBatch, Vec<u8>)> {
        let mut buffer = Vec::new();
        match self.endpoint.receive(received, false, now, &mut buffer) {
            Arrived::Nothing
            | Arrived::Elsewhere(..)
            | Arrived::Earlier(..)
            | Arrived::Unclaimed(_) => {}
            Arrived::For(key, delivery) => {
                if let Some(quic) = self.quic.as_mut().filter(|quic| quic.key() == key) {
                    quic.deliver(&mut self.endpoint, delivery, now);
                }
            }
            // A damaged Initial may seem to be another client's.
            Arrived::New(..) if self.quic.is_some() => {}
            Arrived::New(_, quic) => self.quic = Some(*quic),
            Arrived::Reply(outgoing) => return Some((outgoing, buffer)),
        }
        None
    }
}

/// Both ends and what is between them.
#[derive(Debug)]
pub struct World {
    /// The time, which moves when nothing else does.
    pub now: Instant,
    /// The client and the server.
    pub sides: [Side; 2],
    /// When it arrives, at which side, and what.
    pub wire: Vec<(Instant, usize, Vec<u8>)>,
    /// Decides what is lost, and when the rest arrives.
    pub random: Rng,
    /// How many of 100 datagrams are lost.
    pub loss_percent: u64,
    /// How long every datagram is on its way at least.
    pub delay: Duration,
    /// How much longer it may be on its way: those that are sent later overtake it.
    pub jitter: Duration,
    /// The largest datagram that arrives, in bytes.
    pub mtu: usize,
    /// Treatment of the ECN bits by the network of all datagrams (RFC 3168 §5).
    pub ecn: u8,
    /// How many datagrams were sent in batches.
    pub batched: usize,
    /// Counts of what each side has sent.
    pub sent: [Sent; 2],
    /// Bytes that were sent to addresses where neither side is.
    pub strays: BTreeMap<SocketAddr, usize>,
    buffer: Vec<u8>,
}

/// Counts of what a side has sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sent {
    /// The ECN bits of the last datagrams.
    pub ecn: u8,
    /// The size of the last datagrams, in bytes.
    pub bytes: usize,
}

impl World {
    /// A client that has begun to connect.
    pub fn new(seed: u64, loss_percent: u64) -> Self {
        let (server, client) = tls();
        Self::between(Side::new(Role::Server, Some(&server), 1), &client, seed, loss_percent)
    }

    /// The same with this server.
    pub fn between(server: Side, tls: &ClientTls, seed: u64, loss_percent: u64) -> Self {
        let mut client = Side::new(Role::Client, None, 2);
        let (_, quic) = client
            .endpoint
            .connect(tls, server.address, "localhost", STREAM_WINDOW_BYTES, start())
            .expect("a name");
        client.quic = Some(quic);
        let random = Rng::with_seed(seed);
        let (sides, wire) = ([client, server], Vec::new());
        Self {
            now: start(),
            sides,
            wire,
            random,
            loss_percent,
            delay: Duration::from_millis(5),
            jitter: Duration::from_millis(4),
            mtu: usize::MAX,
            ecn: 0,
            batched: 0,
            sent: [Sent::default(); 2],
            strays: BTreeMap::new(),
            buffer: Vec::with_capacity(1 << 16),
        }
    }

    /// Both ends once requests may be sent, on a network that loses nothing.
    pub fn connected(seed: u64) -> Self {
        let mut world = Self::new(seed, 0);
        world.turn();
        world.until("streams", |world| world.sides[0].available() >= 100);
        world
    }

    /// The client's end.
    pub fn client(&mut self) -> &mut Side {
        &mut self.sides[0]
    }

    /// The server's end.
    pub fn server(&mut self) -> &mut Side {
        &mut self.sides[1]
    }

    /// Puts the datagrams at the end of a buffer on the wire.
    fn put(&mut self, from: usize, outgoing: DatagramBatch, buffer: &[u8]) {
        let bytes = &buffer[..outgoing.bytes];
        let pieces = bytes.chunks(outgoing.segment_bytes.unwrap_or_else(|| bytes.len().max(1)));
        self.batched += pieces.len() - 1;
        self.sent[from] = Sent { ecn: outgoing.ecn, bytes: bytes.len().div_ceil(pieces.len()) };
        if outgoing.to != self.sides[1 - from].address {
            *self.strays.entry(outgoing.to).or_default() += bytes.len();
            return;
        }
        for piece in pieces {
            if self.random.u64(..100) < self.loss_percent || piece.len() > self.mtu {
                continue;
            }
            let jitter = self.jitter.as_micros() as u64;
            let more = if jitter == 0 { 0 } else { self.random.u64(..jitter) };
            let at = self.now + self.delay + Duration::from_micros(more);
            self.wire.push((at, 1 - from, piece.to_vec()));
        }
    }

    /// One datagram arrives from the other side.
    pub fn arrive(&mut self, at: usize, bytes: &[u8]) {
        self.arrive_from(self.sides[1 - at].address, at, bytes);
    }

    /// One datagram arrives from this address.
    pub fn arrive_from(&mut self, from: SocketAddr, at: usize, bytes: &[u8]) {
        let (now, ecn) = (self.now, self.ecn);
        let reply = self.sides[at].counted(|side| {
            let received = Datagram { from, to: None, ecn, bytes: BytesMut::from(bytes) };
            side.arrive(received, now)
        });
        if let Some((outgoing, buffer)) = reply {
            self.put(at, outgoing, &buffer);
        }
    }

    /// When something happens next.
    fn next(&mut self) -> Option<Instant> {
        let deadlines = self.sides.iter_mut().filter_map(|side| side.quic.as_mut()?.deadline());
        deadlines.chain(self.wire.iter().map(|(at, ..)| *at)).min()
    }

    /// Steps through what happens within a second.
    pub fn settle(&mut self) {
        let end = self.now + Duration::from_secs(1);
        while self.next().is_some_and(|next| next < end) {
            self.step();
        }
    }

    /// To the next time at which something happens.
    pub fn step(&mut self) {
        let next = self.next().unwrap_or(self.now + Duration::from_millis(1));
        self.now = self.now.max(next);
        let now = self.now;
        let due = self.wire.extract_if(.., |(at, ..)| *at <= now).collect::<Vec<_>>();
        for (_, at, bytes) in due {
            self.arrive(at, &bytes);
        }
        self.turn();
    }

    /// Each side looks at the time, lets HTTP/3 poll, and sends.
    pub fn turn(&mut self) {
        for at in 0..2 {
            let now = self.now;
            self.sides[at].counted(|side| {
                let Some(quic) = &mut side.quic else { return };
                quic.advance(&mut side.endpoint, now);
                side.poll(now);
            });
            self.flush(at);
        }
    }

    /// One side sends what it has.
    pub fn flush(&mut self, at: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let send = |side: &mut Side, buffer: &mut Vec<u8>| {
            side.counted(|side| side.quic.as_mut()?.send(&mut side.endpoint, buffer))
        };
        while let Some(outgoing) = send(&mut self.sides[at], &mut buffer) {
            self.put(at, outgoing, &buffer);
        }
        self.buffer = buffer;
    }

    /// Steps until something is so.
    #[track_caller]
    pub fn until(&mut self, what: &str, done: impl Fn(&mut Self) -> bool) {
        for _ in 0..20_000 {
            if done(self) {
                return;
            }
            self.step();
        }
        let closed = self.sides.each_ref().map(|side| side.closed);
        panic!("it never comes to {what}: {closed:?} after {:?}", self.now - start());
    }
}
