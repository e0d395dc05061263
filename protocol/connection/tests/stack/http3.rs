//! RFC 9114: the stack over QUIC, both roles, in memory: the same orders and events as over the other versions.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bolide_buffers::{Datagram, DatagramBatch, DatagramSink, Flush, ReceiveBuffer, SendQueue};
use bolide_connection::{
    Alpn, Arrival, ClientTls, Connection, Limits, Membership, QuicEndpoint, Secret, ServerTls,
    Trust,
};
use bolide_semantics::{
    Content, Context, End, ExchangeEvent, ExchangeId, FieldRef, Head, Output, RequestHead,
    ResponseHead,
};
use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode, Version};

use crate::both_roles::{CLOCK, identity};

const SECOND: Duration = Duration::from_secs(1);
const CLIENT: usize = 0;
const SERVER: usize = 1;

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], [50_000, 443][side]))
}

/// A socket that has room for so many batches.
#[derive(Default)]
struct Wire {
    room: usize,
    datagrams: Vec<Vec<u8>>,
    refused: usize,
}

impl DatagramSink for Wire {
    fn send(&mut self, batch: &DatagramBatch, buffer: &[u8]) -> io::Result<()> {
        if self.room == 0 {
            self.refused += 1;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.room -= 1;
        let bytes = &buffer[..batch.bytes];
        let piece = batch.segment_bytes.unwrap_or(bytes.len());
        self.datagrams.extend(bytes.chunks(piece).map(<[u8]>::to_vec));
        Ok(())
    }
}

/// One end, as a worker with one connection.
struct Side {
    endpoint: QuicEndpoint<u32>,
    connection: Option<Connection>,
    wire: Wire,
    deadline: Option<Instant>,
    head: Head,
    seen: Vec<(ExchangeId, ExchangeEvent)>,
    closed: Option<&'static str>,
}

/// Both ends; every datagram arrives at once, unless it is lost.
struct World {
    now: Instant,
    limits: Limits,
    sides: [Side; 2],
    /// Every so many-th datagram is lost; 0: none.
    loses: usize,
    carried: usize,
    /// Batches that a socket takes in a turn.
    room: usize,
}

#[allow(clippy::disallowed_methods, reason = "an Instant can't be made from a number")]
fn start() -> Instant {
    Instant::now()
}

impl World {
    fn new() -> Self {
        let (server, client) = settings();
        Self::between(&server, &client)
    }

    fn between(server: &ServerTls, client: &ClientTls) -> Self {
        let now = start();
        let limits = Limits::default();
        let side = |tls: Option<&ServerTls>, seed| Side {
            endpoint: QuicEndpoint::new(tls, CLOCK, [seed; 32], (0, Membership::default()))
                .unwrap(),
            connection: None,
            wire: Wire::default(),
            deadline: None,
            head: Head::default(),
            seen: Vec::new(),
            closed: None,
        };
        let mut sides = [side(None, 1), side(Some(server), 2)];
        let to = (client, address(SERVER), "localhost");
        sides[CLIENT].connection =
            Some(sides[CLIENT].endpoint.connect(to, 7, &limits, now).unwrap());
        Self { now, limits, sides, loses: 0, carried: 0, room: usize::MAX }
    }

    fn with<T>(
        &mut self,
        side: usize,
        act: impl FnOnce(&mut Connection, &mut Context<'_>, &Limits) -> T,
    ) -> T {
        let Side { connection, head, .. } = &mut self.sides[side];
        let mut cx = Context {
            input: &mut ReceiveBuffer::new(64),
            output: &mut SendQueue::new(),
            output_limit: 1 << 20,
            head,
            now: self.now,
        };
        let value = act(connection.as_mut().expect("a connection"), &mut cx, &self.limits);
        assert!(cx.output.is_empty(), "everything leaves in datagrams");
        value
    }

    /// Brings a side up to date, lets it poll, and sends.
    fn turn(&mut self, at: usize) {
        let Side { endpoint, connection: Some(connection), .. } = &mut self.sides[at] else {
            return;
        };
        connection.receive_datagrams(endpoint, self.now);
        while self.sides[at].closed.is_none() {
            match self.with(at, |connection, cx, limits| connection.poll(cx, limits)) {
                Output::Wait(_) => break,
                Output::Closed(reason) => self.sides[at].closed = Some(reason.name),
                Output::Connection(_) => {}
                Output::Exchange(id, event) => self.sides[at].seen.push((id, event)),
            }
        }
        let Side { endpoint, connection: Some(connection), wire, deadline, .. } =
            &mut self.sides[at]
        else {
            return;
        };
        wire.room = self.room;
        let flushed = connection.flush_datagrams(endpoint, wire);
        assert_eq!(flushed.flush == Flush::Blocked, wire.room == 0 && wire.refused > 0);
        wire.refused = 0;
        *deadline = flushed.deadline;
    }

    fn carry(&mut self, from: usize) -> bool {
        let datagrams = std::mem::take(&mut self.sides[from].wire.datagrams);
        let any = !datagrams.is_empty();
        for bytes in datagrams {
            self.carried += 1;
            if self.loses > 0 && self.carried.is_multiple_of(self.loses) {
                continue;
            }
            let bytes = BytesMut::from(&bytes[..]);
            let datagram = Datagram { from: address(from), to: None, ecn: 0, bytes };
            let Side { endpoint, connection, wire, .. } = &mut self.sides[1 - from];
            wire.room = self.room;
            match endpoint.receive(datagram, false, self.now, wire) {
                Arrival::Nothing => {}
                Arrival::For(name) => assert_eq!(name, if from == CLIENT { 8 } else { 7 }),
                Arrival::New(new) => {
                    *connection = Some(endpoint.name(*new, 8, &self.limits, self.now));
                }
                other => panic!("there is one worker, and no other process: {other:?}"),
            }
        }
        any
    }

    #[track_caller]
    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..20_000 {
            if done(self) {
                return;
            }
            self.turn(CLIENT);
            self.turn(SERVER);
            let moved = [CLIENT, SERVER].map(|side| self.carry(side));
            if !moved.contains(&true) {
                let next = self.sides.iter().filter_map(|side| side.deadline).min();
                self.now = self.now.max(next.expect("something is waited for"));
            }
        }
        let closed = self.sides.each_ref().map(|side| side.closed);
        panic!("it never comes to {what}: {closed:?}");
    }

    fn connected() -> Self {
        let mut world = Self::new();
        world.until("streams", |world| {
            let client = world.sides[CLIENT].connection.as_ref();
            client.is_some_and(|client| client.exchanges_available() > 0)
        });
        world
    }
}

fn settings() -> (ServerTls, ClientTls) {
    let (identity, pem) = identity();
    let client = ClientTls::new(&Trust::Pem(pem.into_bytes()), &[], CLOCK).unwrap();
    (ServerTls::new(&identity, CLOCK).unwrap(), client)
}

const BODY_BYTES: usize = 1 << 20;

/// A POST whose body comes back, with trailers behind it.
fn echo(world: &mut World) {
    let body: Bytes = (0..BODY_BYTES).map(|at| (at ^ (at >> 9)) as u8).collect::<Vec<_>>().into();
    let (method, authority, path) = (&Method::POST, "localhost", "/echo");
    let head =
        RequestHead { method, scheme: "https", authority, path, protocol: None, fields: &[] };
    let id = world.with(CLIENT, |client, cx, _| {
        let id = client.send_request(cx, &head, End::No).unwrap();
        client.send_data(cx, id, body.clone(), End::Yes).unwrap();
        id
    });
    let (mut received, mut returned, mut is_over) = (Vec::new(), Vec::new(), false);
    world.until("the end of the response", |world| {
        for (id, event) in std::mem::take(&mut world.sides[SERVER].seen) {
            match event {
                ExchangeEvent::Head(_) => {
                    assert_eq!(world.sides[SERVER].head.path_and_query(), "/echo");
                    assert_eq!(world.sides[SERVER].head.version(), Version::HTTP_3);
                }
                ExchangeEvent::Data(data, end) => {
                    received.extend_from_slice(&data);
                    world.with(SERVER, |server, cx, _| server.consumed(cx, id, data.len()));
                    if end == End::Yes {
                        let body = Bytes::from(std::mem::take(&mut received));
                        world.with(SERVER, |server, cx, _| {
                            let head = ResponseHead::new(StatusCode::OK, &[]);
                            server.send_interim(cx, id, StatusCode::EARLY_HINTS, &[]).unwrap();
                            server.send_response(cx, id, &head, Content::Follows).unwrap();
                            server.send_data(cx, id, body, End::No).unwrap();
                            let trailer = [FieldRef::named("x-sum", b"1")];
                            server.send_trailers(cx, id, &trailer).unwrap();
                            assert!(server.held_bytes() > BODY_BYTES / 2, "it waits");
                        });
                    }
                }
                ExchangeEvent::Sendable => {}
                other => panic!("{other:?}"),
            }
        }
        for (response, event) in std::mem::take(&mut world.sides[CLIENT].seen) {
            assert_eq!(response, id);
            match event {
                ExchangeEvent::Data(data, _) => {
                    returned.extend_from_slice(&data);
                    world.with(CLIENT, |client, cx, _| client.consumed(cx, id, data.len()));
                }
                ExchangeEvent::Trailers => is_over = true,
                ExchangeEvent::Head(_) | ExchangeEvent::Informational => {}
                ExchangeEvent::Sendable => {}
                other => panic!("{other:?}"),
            }
        }
        is_over
    });
    assert!(returned == body, "{} bytes came back", returned.len());
}

#[test]
fn the_same_orders_lead_to_the_same_events() {
    let mut world = World::connected();
    echo(&mut world);
    let server = world.sides[SERVER].connection.as_mut().unwrap();
    assert_eq!(server.version(), Some(Version::HTTP_3));
    assert!(server.is_secure() && !server.is_tls() && server.is_quic());
    let facts = server.tls_facts().expect("the handshake is complete");
    assert_eq!(facts.alpn, Some(Alpn::H3));
    assert_eq!(facts.server_name.as_deref(), Some("localhost"));
    world.until("acknowledgements", |world| {
        world.sides.iter().all(|side| side.connection.as_ref().is_some_and(Connection::is_idle))
    });
    world.with(SERVER, |server, cx, _| server.leave(cx));
    world.until("the end", |world| world.sides.iter().all(|side| side.closed.is_some()));
    assert_eq!(world.sides[CLIENT].closed, Some("goaway"));
}

#[test]
fn datagrams_may_be_lost() {
    for loses in [7, 11, 20] {
        let mut world = World::connected();
        world.loses = loses;
        echo(&mut world);
        let server = world.sides[SERVER].connection.as_ref();
        let stats = server.and_then(Connection::quic_stats).expect("it is over QUIC");
        assert!(stats.packets_lost > 0 && stats.packets_lost < stats.packets_sent, "{stats:?}");
    }
}

#[test]
fn a_version_is_spoken_once_the_handshake_is_complete() {
    let mut world = World::new();
    let client = world.sides[CLIENT].connection.as_ref().unwrap();
    assert_eq!((client.version(), client.exchanges_available()), (None, 0));
    world.until("a version", |world| {
        world.sides[CLIENT].connection.as_ref().is_some_and(|client| client.version().is_some())
    });
    let client = world.sides[CLIENT].connection.as_ref().unwrap();
    let stats = client.quic_stats().unwrap();
    assert!(stats.datagrams_received > 0 && stats.packets_lost == 0, "{stats:?}");
}

#[test]
fn a_certificate_that_is_not_trusted_is_told_in_words() {
    let ((server, _), (_, client)) = (settings(), settings());
    let mut world = World::between(&server, &client);
    world.until("the end", |world| world.sides[CLIENT].closed.is_some());
    assert_eq!(world.sides[CLIENT].closed, Some("transport-error"));
    let client = world.sides[CLIENT].connection.as_ref().unwrap();
    let failure = client.tls_failure().expect("it is TLS that failed");
    assert!(failure.in_handshake && failure.what.contains("certificate"), "{failure:?}");
}

/// The client sends a request without content.
fn get(world: &mut World) {
    let head = RequestHead {
        method: &Method::GET,
        scheme: "https",
        authority: "localhost",
        path: "/",
        protocol: None,
        fields: &[],
    };
    world.with(CLIENT, |client, cx, _| client.send_request(cx, &head, End::Yes).unwrap());
}

#[test]
fn a_connection_that_is_ended_at_once_tells_its_peer() {
    let mut world = World::connected();
    get(&mut world);
    world.sides[CLIENT].connection.as_mut().unwrap().end_datagrams();
    world.until("the end", |world| world.sides[SERVER].closed.is_some());
    assert_eq!(world.sides[SERVER].closed, Some("eof"));
    assert_eq!(world.sides[CLIENT].closed, Some("closed"));
}

#[test]
fn a_batch_that_a_full_socket_refused_leaves_later() {
    let mut world = World::connected();
    world.room = 1;
    echo(&mut world);
    let side = &mut world.sides[SERVER];
    assert_eq!(side.closed, None);
}

#[test]
fn a_connection_that_is_forgotten_is_reset_when_its_peer_speaks() {
    let mut world = World::connected();
    world.until("idle", |world| {
        world.sides.iter().all(|side| side.connection.as_ref().is_some_and(Connection::is_idle))
    });
    let now = world.now;
    let side = &mut world.sides[SERVER];
    let mut server = side.connection.take().unwrap();
    server.forget_datagrams(&mut side.endpoint, now);
    assert_eq!(server.version(), None);
    get(&mut world);
    world.until("a reset", |world| world.sides[CLIENT].closed.is_some());
    assert_eq!(world.sides[CLIENT].closed, Some("reset"));
}

#[test]
fn a_server_that_leaves_ends_once_its_client_has_the_response() {
    let mut world = World::connected();
    let (method, authority, path) = (&Method::GET, "localhost", "/");
    let head =
        RequestHead { method, scheme: "https", authority, path, protocol: None, fields: &[] };
    world.with(CLIENT, |client, cx, _| client.send_request(cx, &head, End::Yes).unwrap());
    world.until("a request", |world| !world.sides[SERVER].seen.is_empty());
    let (id, _) = world.sides[SERVER].seen.remove(0);
    world.with(SERVER, |server, cx, _| {
        let head = ResponseHead::new(StatusCode::OK, &[]);
        let body = Bytes::from(vec![7; BODY_BYTES / 2]);
        server.send_response(cx, id, &head, Content::Whole(&mut body.into())).unwrap();
        server.leave(cx);
    });
    // The transport has it all, the client little of it, and the notice is over.
    world.turn(SERVER);
    world.now += 3 * SECOND;
    world.turn(SERVER);
    let (mut received, mut is_whole) = (0, false);
    world.until("the end", |world| {
        for (id, event) in std::mem::take(&mut world.sides[CLIENT].seen) {
            if let ExchangeEvent::Data(data, end) = event {
                received += data.len();
                is_whole |= end == End::Yes;
                world.with(CLIENT, |client, cx, _| client.consumed(cx, id, data.len()));
            }
        }
        world.sides.iter().all(|side| side.closed.is_some())
    });
    assert!(is_whole && received == BODY_BYTES / 2, "{received} bytes");
}

#[test]
fn an_endpoint_that_accepts_nothing_refuses_at_once() {
    let mut world = World::new();
    world.sides[SERVER].endpoint.accept(false, true);
    world.until("a refusal", |world| world.sides[CLIENT].closed.is_some());
    assert_eq!(world.sides[CLIENT].closed, Some("refused"));
    assert!(world.sides[SERVER].connection.is_none(), "nothing is kept of the client");
}

#[test]
fn a_datagram_of_another_worker_comes_back() {
    let (server, client) = settings();
    let (now, limits) = (start(), Limits::default());
    let member = Membership { worker: (0, 2), ..Membership::default() };
    let mut own = QuicEndpoint::<u32>::new(Some(&server), CLOCK, [1; 32], (0, member)).unwrap();
    let mut wire = Wire { room: usize::MAX, ..Wire::default() };
    let arrival =
        own.receive(from_client(&[0x40, 0, 1, 0, 0, 0, 0, 0, 0, 0]), false, now, &mut wire);
    assert!(matches!(arrival, Arrival::Elsewhere(1, _)), "{arrival:?}");
    let arrival =
        own.receive(from_client(&[0x40, 0, 2, 0, 0, 0, 0, 0, 0, 0]), false, now, &mut wire);
    assert!(matches!(arrival, Arrival::Nothing), "{arrival:?}");
    let mut other =
        QuicEndpoint::<u32>::new(None, CLOCK, [2; 32], (0, Membership::default())).unwrap();
    let to = (&client, address(SERVER), "localhost");
    let mut begun = other.connect(to, 1, &limits, now).unwrap();
    begun.flush_datagrams(&mut other, &mut wire);
    let initial = wire.datagrams.remove(0);
    let arrival = own.receive(from_client(&initial), false, now, &mut wire);
    let Arrival::New(new) = arrival else { panic!("{arrival:?}") };
    own.forget(*new);
}

fn from_client(bytes: &[u8]) -> Datagram {
    Datagram { from: address(CLIENT), to: None, ecn: 0, bytes: BytesMut::from(bytes) }
}

/// The first datagram of a client.
fn initial(client: &ClientTls, seed: u8) -> Vec<u8> {
    let member = Membership::default();
    let mut endpoint = QuicEndpoint::<u32>::new(None, CLOCK, [seed; 32], (0, member)).unwrap();
    let mut wire = Wire { room: usize::MAX, ..Wire::default() };
    let to = (client, address(SERVER), "localhost");
    let mut begun = endpoint.connect(to, 1, &Limits::default(), start()).unwrap();
    begun.flush_datagrams(&mut endpoint, &mut wire);
    wire.datagrams.remove(0)
}

#[test]
fn a_process_that_takes_over_asks_the_one_before_about_handshakes() {
    let (server, client) = settings();
    let (now, limits) = (start(), Limits::default());
    let endpoint = |process: u8, follows: Option<u8>| {
        let secret = Some(Secret([9; 32]));
        let member = Membership { process, follows, secret, ..Membership::default() };
        QuicEndpoint::<u32>::new(Some(&server), CLOCK, [process; 32], (0, member)).unwrap()
    };
    let (mut old, mut new) = (endpoint(255, None), endpoint(0, Some(255)));
    let mut wire = Wire { room: usize::MAX, ..Wire::default() };
    let begun_before = initial(&client, 20);
    let Arrival::New(begun) = old.receive(from_client(&begun_before), false, now, &mut wire) else {
        panic!("it begins")
    };
    let mut connection = old.name(*begun, 1, &limits, now);
    connection.flush_datagrams(&mut old, &mut wire);

    // The old process still accepts: what it is asked about, it begins.
    for bytes in [&begun_before, &initial(&client, 21)] {
        let arrival = new.receive(from_client(bytes), false, now, &mut wire);
        assert!(matches!(arrival, Arrival::Earlier(255, None, _)), "{arrival:?}");
    }
    let arrival = old.receive(from_client(&begun_before), true, now, &mut wire);
    assert!(matches!(arrival, Arrival::For(1)), "{arrival:?}");
    let arrival =
        new.receive(from_client(&[0x40, 3, 4, 255, 0, 0, 0, 0, 0]), false, now, &mut wire);
    assert!(matches!(arrival, Arrival::Earlier(255, Some(0x304), _)), "{arrival:?}");

    // Once it has left, it gives back what it does not know, and the new one begins it.
    old.leave();
    connection.receive_datagrams(&mut old, now);
    let arrival = old.receive(from_client(&begun_before), true, now, &mut wire);
    assert!(matches!(arrival, Arrival::For(1)), "{arrival:?}");
    let later = initial(&client, 22);
    let arrival = old.receive(from_client(&later), true, now, &mut wire);
    let Arrival::Unclaimed(datagram) = arrival else { panic!("{arrival:?}") };
    assert_eq!(&datagram.bytes[..], &later[..]);
    let arrival = new.receive(datagram, true, now, &mut wire);
    assert!(matches!(arrival, Arrival::New(_)), "{arrival:?}");

    // Handshakes of that time may be at the old one for a while.
    let third = initial(&client, 23);
    let arrival = new.receive(from_client(&third), false, now, &mut wire);
    assert!(matches!(arrival, Arrival::Earlier(..)), "{arrival:?}");
    let arrival = new.receive(from_client(&third), false, now + 4 * SECOND, &mut wire);
    assert!(matches!(arrival, Arrival::New(_)), "{arrival:?}");

    // One that hangs keeps nothing from the one that follows it.
    let mut new = endpoint(0, Some(255));
    let arrival = new.receive(from_client(&third), false, now, &mut wire);
    assert!(matches!(arrival, Arrival::Earlier(..)), "{arrival:?}");
    let arrival = new.receive(from_client(&third), false, now + 4 * SECOND, &mut wire);
    assert!(matches!(arrival, Arrival::New(_)), "{arrival:?}");
}
