//! RFC 9000, RFC 9001, RFC 9114: a client and a server with everything above UDP, over a network that loses and reorders;
//! a seed replays it but for the keys.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use bolide_buffers::{Datagram, DatagramBatch};
use bolide_h3::{Connection as Http, Context, Limits, Quic};
use bolide_quic::{Arrived, Connection, Endpoint, Membership, Secret, limits};
use bolide_semantics::{
    Content, End, ExchangeEvent, ExchangeId, FieldRef, Head, Output, RequestHead, ResponseHead,
    Role,
};
use bolide_tls::{ClientTls, Identity, ServerTls, Trust, WallClock};
use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};

/// A time at which certificates that rcgen makes are valid.
const CLOCK: WallClock = WallClock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));

#[allow(clippy::disallowed_methods, reason = "an Instant can't be made from a number")]
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// A small generator of numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn tls() -> (ServerTls, ClientTls) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()])
        .and_then(|parameters| parameters.self_signed(&key))
        .expect("a certificate");
    let pem = certificate.pem();
    let identity = Identity::from_pem(pem.as_bytes(), key.serialize_pem().as_bytes());
    let server = ServerTls::new(&identity.expect("what rcgen made"), CLOCK).expect("settings");
    let trust = Trust::Pem(pem.into_bytes());
    let client = ClientTls::new(&trust, &[], CLOCK).expect("settings");
    (server, client)
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

/// One end: everything that a worker has for one connection.
struct Side {
    endpoint: Endpoint,
    quic: Option<Connection>,
    http: Http,
    head: Head,
    address: SocketAddr,
    seen: Vec<(ExchangeId, ExchangeEvent)>,
    closed: Option<&'static str>,
}

impl Side {
    fn new(role: Role, tls: Option<&ServerTls>, seed: u8) -> Self {
        let endpoint = Endpoint::new(tls, CLOCK, [seed; 32]).expect("settings that have TLS 1.3");
        let http = Http::new(role, &Arc::new(Limits::default()), start());
        let (head, seen) = (Head::default(), Vec::new());
        let address = address(if role == Role::Server { 443 } else { 50_000 });
        Self { endpoint, quic: None, http, head, address, seen, closed: None }
    }

    fn with<T>(
        &mut self,
        now: Instant,
        run: impl FnOnce(&mut Http, &mut Context<'_, Connection>) -> T,
    ) -> T {
        let Self { quic, http, head, .. } = self;
        let quic = quic.as_mut().expect("there is a connection");
        run(http, &mut Context { quic, head, now })
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
}

/// Both ends and what is between them.
struct World {
    now: Instant,
    sides: [Side; 2],
    /// When it arrives, at which side, and what.
    wire: Vec<(Instant, usize, Vec<u8>)>,
    random: Random,
    loss_percent: u64,
    /// How many datagrams were sent in batches.
    batched: usize,
}

impl World {
    fn new(seed: u64, loss_percent: u64) -> Self {
        let (server, client) = tls();
        Self::between(Side::new(Role::Server, Some(&server), 1), &client, seed, loss_percent)
    }

    fn between(server: Side, tls: &ClientTls, seed: u64, loss_percent: u64) -> Self {
        let mut client = Side::new(Role::Client, None, 2);
        let (_, quic) =
            client.endpoint.connect(tls, server.address, "localhost", start()).expect("a name");
        client.quic = Some(quic);
        let random = Random(seed * 2 + 1);
        let (sides, wire) = ([client, server], Vec::new());
        Self { now: start(), sides, wire, random, loss_percent, batched: 0 }
    }

    fn client(&mut self) -> &mut Side {
        &mut self.sides[0]
    }

    /// Puts the datagrams at the end of a buffer on the wire.
    fn put(&mut self, from: usize, outgoing: DatagramBatch, buffer: &[u8]) {
        let bytes = &buffer[..outgoing.bytes];
        let pieces = bytes.chunks(outgoing.segment_bytes.unwrap_or_else(|| bytes.len().max(1)));
        self.batched += pieces.len() - 1;
        for piece in pieces {
            if self.random.below(100) < self.loss_percent {
                continue;
            }
            let delay = Duration::from_micros(5000 + self.random.below(4000));
            self.wire.push((self.now + delay, 1 - from, piece.to_vec()));
        }
    }

    /// One datagram arrives.
    fn arrive(&mut self, at: usize, bytes: &[u8]) {
        let (now, from) = (self.now, self.sides[1 - at].address);
        let side = &mut self.sides[at];
        let received = Datagram { from, to: None, ecn: 0, bytes: BytesMut::from(bytes) };
        let mut buffer = Vec::new();
        match side.endpoint.receive(received, false, now, &mut buffer) {
            Arrived::Nothing
            | Arrived::Elsewhere(..)
            | Arrived::Earlier(..)
            | Arrived::Unclaimed(_) => {}
            Arrived::For(key, delivery) => {
                let Side { endpoint, quic: Some(quic), .. } = side else { return };
                if key != quic.key() {
                    return;
                }
                quic.deliver(endpoint, delivery, now);
            }
            // A damaged Initial may seem to be another client's.
            Arrived::New(..) if side.quic.is_some() => {}
            Arrived::New(_, quic) => side.quic = Some(*quic),
            Arrived::Reply(outgoing) => self.put(at, outgoing, &buffer),
        }
    }

    /// To the next time at which something happens.
    fn step(&mut self) {
        let deadlines = self.sides.iter_mut().filter_map(|side| side.quic.as_mut()?.deadline());
        let next = deadlines.chain(self.wire.iter().map(|(at, ..)| *at)).min();
        self.now = self.now.max(next.unwrap_or(self.now + Duration::from_millis(1)));
        let now = self.now;
        let due = self.wire.extract_if(.., |(at, ..)| *at <= now).collect::<Vec<_>>();
        for (_, at, bytes) in due {
            self.arrive(at, &bytes);
        }
        self.turn();
    }

    /// Each side looks at the time, lets HTTP/3 poll, and sends.
    fn turn(&mut self) {
        for at in 0..2 {
            let side = &mut self.sides[at];
            let Some(quic) = &mut side.quic else { continue };
            quic.advance(&mut side.endpoint, self.now);
            side.poll(self.now);
            let mut buffer = Vec::new();
            while let Side { endpoint, quic: Some(quic), .. } = &mut self.sides[at]
                && let Some(outgoing) = quic.send(endpoint, &mut buffer)
            {
                self.put(at, outgoing, &buffer);
            }
        }
    }

    #[track_caller]
    fn until(&mut self, what: &str, done: impl Fn(&mut Self) -> bool) {
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

const REQUESTS: u32 = 8;

fn body_of(id: u32) -> Vec<u8> {
    (0..id * 9001 % 50_000).map(|at| (at ^ id) as u8).collect()
}

/// The server sends back what it gets, once all of it has come.
fn echo(world: &mut World, bodies: &mut BTreeMap<u32, Vec<u8>>) {
    let now = world.now;
    let server = &mut world.sides[1];
    for (id, event) in std::mem::take(&mut server.seen) {
        let end = match event {
            ExchangeEvent::Head(end) => end,
            ExchangeEvent::Data(bytes, end) => {
                bodies.entry(id.0).or_default().extend(&bytes);
                server.with(now, |http, cx| http.consumed(cx, id, bytes.len()));
                end
            }
            other => panic!("{other:?}"),
        };
        if end == End::Yes {
            let body = Bytes::from(bodies.remove(&id.0).unwrap_or_default());
            let own = [FieldRef::named("x-server", b"the same in every response")];
            let head = ResponseHead::new(StatusCode::OK, &own);
            let sent = server.with(now, |http, cx| {
                http.send_response(cx, id, &head, Content::Whole(body.into()))
            });
            assert!(sent.is_ok(), "{sent:?}");
        }
    }
}

fn converse(seed: u64, loss_percent: u64) -> usize {
    let mut world = World::new(seed, loss_percent);
    world.turn();
    world.until("streams", |world| {
        world.sides[0]
            .quic
            .as_ref()
            .is_some_and(|quic| world.sides[0].http.exchanges_available(quic) >= REQUESTS)
    });
    let now = world.now;
    for _ in 0..REQUESTS {
        let (method, scheme, authority, path) = (&Method::POST, "https", "localhost", "/echo");
        let head = RequestHead { method, scheme, authority, path, protocol: None, fields: &[] };
        let client = world.client();
        let id =
            client.with(now, |http, cx| http.send_request(cx, &head, End::No)).expect("a stream");
        let body = Bytes::from(body_of(id.0));
        let sent = client.with(now, |http, cx| http.send_data(cx, id, body, End::Yes));
        assert!(sent.is_ok(), "{sent:?}");
    }
    let (mut bodies, mut back) = (BTreeMap::new(), BTreeMap::<u32, Vec<u8>>::new());
    let mut ended = 0;
    for round in 0.. {
        assert!(round < 20_000, "seed {seed} goes on and on");
        world.step();
        echo(&mut world, &mut bodies);
        let now = world.now;
        for (id, event) in std::mem::take(&mut world.client().seen) {
            match event {
                ExchangeEvent::Head(end) => ended += u32::from(end == End::Yes),
                ExchangeEvent::Data(bytes, end) => {
                    back.entry(id.0).or_default().extend(&bytes);
                    world.client().with(now, |http, cx| http.consumed(cx, id, bytes.len()));
                    ended += u32::from(end == End::Yes);
                }
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        if ended == REQUESTS {
            break;
        }
    }
    for id in 1..=REQUESTS {
        assert!(back.remove(&id).unwrap_or_default() == body_of(id), "seed {seed}, exchange {id}");
    }
    let now = world.now;
    world.client().with(now, |http, cx| http.shut_down(cx));
    world.until("the end", |world| world.sides.iter().all(|side| side.closed.is_some()));
    assert_eq!(world.sides[0].closed, Some("drained"), "seed {seed}");
    world.until("oblivion", |world| {
        world.sides.iter().all(|side| side.quic.as_ref().is_some_and(Connection::is_over))
    });
    world.batched
}

#[test]
fn exchanges_over_a_network_that_loses_and_reorders() {
    let mut batched = 0;
    for seed in 0..12 {
        batched += converse(seed, [0, 3, 10][seed as usize % 3]);
    }
    assert!(batched > 100, "{batched} datagrams left in batches");
}

#[test]
fn what_may_come_unread_is_charged_and_grows_with_what_is_read() {
    const BODY_BYTES: usize = 2 << 20;
    let mut world = World::new(3, 0);
    world.turn();
    world.until("a stream", |world| {
        let client = &world.sides[0];
        client.quic.as_ref().is_some_and(|quic| client.http.exchanges_available(quic) > 0)
    });
    let held = |world: &World| world.sides[1].quic.as_ref().map_or(0, |quic| quic.held_bytes(100));
    let first = limits::FIRST_WINDOW_BYTES as usize;
    assert!((first..first + 1024).contains(&held(&world)), "{}", held(&world));
    let (method, scheme, authority, path) = (&Method::POST, "https", "localhost", "/");
    let head = RequestHead { method, scheme, authority, path, protocol: None, fields: &[] };
    let now = world.now;
    let client = world.client();
    let id = client.with(now, |http, cx| http.send_request(cx, &head, End::No)).expect("a stream");
    let mut left = Bytes::from(vec![7; BODY_BYTES]);
    let (mut came, mut most) = (0, 0);
    while came < BODY_BYTES {
        let now = world.now;
        if !left.is_empty() {
            let piece = left.slice(..left.len().min(64 * 1024));
            let length = piece.len();
            let end = if length == left.len() { End::Yes } else { End::No };
            let sent = world.client().with(now, |http, cx| http.send_data(cx, id, piece, end));
            if sent.is_ok() {
                left = left.slice(length..);
            }
        }
        world.step();
        let now = world.now;
        let server = &mut world.sides[1];
        let unread = came;
        for (id, event) in std::mem::take(&mut server.seen) {
            if let ExchangeEvent::Data(bytes, _) = event {
                came += bytes.len();
                server.with(now, |http, cx| http.consumed(cx, id, bytes.len()));
            }
        }
        most = most.max(came - unread);
        assert!(came - unread <= held(&world), "{} bytes came at once", came - unread);
    }
    let last = limits::CONNECTION_WINDOW_BYTES as usize;
    assert!((last..last + 1024).contains(&held(&world)), "{} after {most}", held(&world));
}

#[test]
fn a_client_proves_its_address_when_too_many_have_not() {
    let (tls, client) = tls();
    let mut server = Side::new(Role::Server, Some(&tls), 1);
    server.endpoint = server.endpoint.with_unvalidated_max(0);
    let mut world = World::between(server, &client, 7, 0);
    world.turn();
    // The Initial, the Retry, and the Initial with its token.
    world.until("a Retry", |world| world.wire.iter().any(|(_, at, _)| *at == 0));
    assert!(world.sides[1].quic.is_none(), "nothing is kept of the client");
    world.until("a connection", |world| {
        world.sides.iter().all(|side| side.quic.as_ref().is_some_and(|quic| !quic.is_handshaking()))
    });
}

#[test]
fn a_token_of_one_process_is_good_in_the_next_with_the_same_secret() {
    let (tls, client) = tls();
    let process = |process: u8, secret: u8| {
        let secret = Some(Secret([secret; 32]));
        let member = Membership { process, secret, ..Membership::default() };
        let endpoint = Endpoint::of(Some(&tls), CLOCK, [process; 32], member);
        endpoint.expect("settings that have TLS 1.3").with_unvalidated_max(0)
    };
    for (secret, is_good) in [(5, true), (6, false)] {
        let mut server = Side::new(Role::Server, Some(&tls), 1);
        server.endpoint = process(0, 5);
        let mut world = World::between(server, &client, 7, 0);
        world.turn();
        world.until("a Retry", |world| world.wire.iter().any(|(_, at, _)| *at == 0));
        world.sides[1].endpoint = process(1, secret);
        world.until("an end", |world| {
            world.sides[1].quic.is_some() || world.sides[0].closed.is_some()
        });
        assert_eq!(world.sides[1].quic.is_some(), is_good);
    }
}

#[test]
fn an_initial_flood_is_answered_by_retries() {
    let (tls, client) = tls();
    let mut server = Side::new(Role::Server, Some(&tls), 1);
    let mut kept = Vec::new();
    let mut retries = 0;
    for number in 0..300_u16 {
        let mut attacker = Endpoint::new(None, CLOCK, [number as u8; 32]).expect("an endpoint");
        let begun = attacker.connect(&client, server.address, "localhost", start());
        let (_, mut quic) = begun.expect("a name");
        let mut initial = Vec::new();
        let outgoing = quic.send(&mut attacker, &mut initial).expect("an Initial");
        initial.truncate(outgoing.segment_bytes.unwrap_or(outgoing.bytes));
        let from = address(1024 + number);
        let received = Datagram { from, to: None, ecn: 0, bytes: BytesMut::from(&initial[..]) };
        let mut buffer = Vec::new();
        match server.endpoint.receive(received, false, start(), &mut buffer) {
            Arrived::New(_, mut quic) => {
                // RFC 9000 §8.1: at most three times what came, until the address is validated.
                let (mut sent, mut bytes) = (Vec::new(), 0);
                while let Some(outgoing) = quic.send(&mut server.endpoint, &mut sent) {
                    bytes += outgoing.bytes;
                }
                assert!(bytes <= 3 * initial.len(), "{bytes} for {}", initial.len());
                kept.push(quic);
            }
            Arrived::Reply(outgoing) => {
                assert!(outgoing.bytes < initial.len(), "a Retry is smaller than what it answers");
                retries += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(kept.len(), limits::UNVALIDATED_HANDSHAKES_COUNT);
    assert_eq!(retries, 300 - kept.len());
    // They end in time, and others may come.
    for quic in &mut kept {
        while let Some(deadline) = quic.deadline() {
            quic.advance(&mut server.endpoint, deadline);
        }
        assert!(quic.is_over());
    }
    let mut world = World::between(server, &client, 3, 0);
    world.turn();
    world.until("a connection without a Retry", |world| world.sides[1].quic.is_some());
}

#[test]
fn a_server_that_is_not_trusted_is_told_so() {
    let (tls_of_server, _) = tls();
    let (_, other) = tls();
    let server = Side::new(Role::Server, Some(&tls_of_server), 1);
    let mut world = World::between(server, &other, 5, 0);
    world.turn();
    world.until("the end", |world| world.sides.iter().all(|side| side.closed.is_some()));
    assert_eq!(world.sides[0].closed, Some("transport-error"));
    assert_eq!(world.sides[1].closed, Some("peer-error"));
}

#[test]
fn any_datagrams_do_no_harm() {
    let mut world = World::new(9, 0);
    for round in 0..500 {
        let length = world.random.below(1500);
        let noise: Vec<u8> = (0..length).map(|_| world.random.below(256) as u8).collect();
        world.arrive(round % 2, &noise);
    }
    world.turn();
    let has_streams = |world: &mut World| {
        let client = &world.sides[0];
        client.quic.as_ref().is_some_and(|quic| client.http.exchanges_available(quic) > 0)
    };
    world.until("streams", has_streams);
    let mut damaged = 0;
    while damaged < 1000 {
        // What is damaged on its way is not taken for what was sent; what was sent comes after it.
        if let Some((_, at, mut bytes)) = world.wire.first().cloned() {
            let place = world.random.below(bytes.len() as u64) as usize;
            bytes[place] ^= 1 << world.random.below(8);
            world.arrive(at, &bytes);
            damaged += 1;
        } else if world.sides[0].seen.is_empty() {
            let (now, method, path) = (world.now, &Method::GET, "/");
            let (scheme, authority, fields) = ("https", "localhost", &[][..]);
            let head = RequestHead { method, scheme, authority, path, protocol: None, fields };
            let sent = world.client().with(now, |http, cx| http.send_request(cx, &head, End::Yes));
            assert!(sent.is_ok(), "{sent:?}");
            world.turn();
            continue;
        }
        if damaged % 20 == 0 {
            world.step();
        }
        assert!(world.sides.iter().all(|side| side.closed.is_none()));
    }
    world.until("the request", |world| !world.sides[1].seen.is_empty());
}

#[test]
fn a_peer_that_falls_silent_is_given_up() {
    let mut world = World::new(11, 0);
    world.turn();
    world.until("a connection", |world| {
        world.sides.iter().all(|side| side.quic.as_ref().is_some_and(|quic| !quic.is_handshaking()))
    });
    world.loss_percent = 100;
    world.until("the end", |world| world.sides[0].closed.is_some());
    assert!(world.now >= start() + Duration::from_secs(30), "{:?}", world.now - start());
    let name = world.sides[0].closed.expect("it has ended");
    assert!(name == "silent" || name == "slow-head" || name == "idle", "{name}");
}
