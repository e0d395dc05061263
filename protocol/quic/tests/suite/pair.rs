//! RFC 9000, RFC 9001, RFC 9114: a client and a server with everything above UDP, over a network that loses and reorders;
//! a seed replays it but for the keys.

use std::collections::BTreeMap;
use std::time::Duration;

use bolide_buffers::Datagram;
use bolide_quic::{Arrived, Connection, Endpoint, Membership, Secret, limits};
use bolide_quic_pair::{CLOCK, Side, World, address, start, tls};
use bolide_semantics::{Content, End, ExchangeEvent, FieldRef, ResponseHead, Role};
use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};

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
                http.send_response(cx, id, &head, Content::Whole(&mut body.into()))
            });
            assert!(sent.is_ok(), "{sent:?}");
        }
    }
}

fn converse(seed: u64, loss_percent: u64) -> usize {
    let mut world = World::new(seed, loss_percent);
    world.turn();
    world.until("streams", |world| world.sides[0].available() >= REQUESTS);
    let now = world.now;
    for _ in 0..REQUESTS {
        let client = world.client();
        let id = client.request(now, &Method::POST, "/echo", End::No);
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
fn what_has_come_and_was_not_read_is_charged() {
    const BODY_BYTES: usize = 8 << 20;
    let mut world = World::connected(3);
    world.jitter = Duration::ZERO;
    let held = |world: &World| world.sides[1].quic.as_ref().map_or(0, Connection::held_bytes);
    assert!(held(&world) < 1024, "{}", held(&world));
    let now = world.now;
    let id = world.client().request(now, &Method::POST, "/", End::No);
    let body = Bytes::from(vec![7; BODY_BYTES]);
    let sent = world.client().with(now, |http, cx| http.send_data(cx, id, body, End::Yes));
    assert!(sent.is_ok(), "{sent:?}");
    world.settle();
    let charged = held(&world);
    let window = limits::STREAM_WINDOW_BYTES_MAX as usize;
    assert!((window..window + window / 4).contains(&charged), "{charged} bytes are charged");
    let mut came = 0;
    let take = |world: &mut World| {
        let (now, server) = (world.now, &mut world.sides[1]);
        let mut bytes = 0;
        for (id, event) in std::mem::take(&mut server.seen) {
            if let ExchangeEvent::Data(data, _) = event {
                bytes += data.len();
                server.with(now, |http, cx| http.consumed(cx, id, data.len()));
            }
        }
        bytes
    };
    came += take(&mut world);
    // What the transport gives without anything that comes.
    let mut unread = 0;
    loop {
        world.turn();
        match take(&mut world) {
            0 => break,
            bytes => unread += bytes,
        }
    }
    assert!(unread <= charged && charged < unread + unread / 2, "{unread} of {charged} bytes");
    came += unread;
    while came < BODY_BYTES {
        world.step();
        came += take(&mut world);
    }
    assert!(held(&world) < 1024, "{} bytes are charged behind the end", held(&world));
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
    world.until("a connection", |world| world.sides.iter().all(Side::is_connected));
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
        let begun = attacker.connect(&client, server.address, "localhost", 1 << 16, start());
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
        let length = world.random.u64(..1500);
        let noise: Vec<u8> = (0..length).map(|_| world.random.u8(..)).collect();
        world.arrive(round % 2, &noise);
    }
    world.turn();
    world.until("streams", |world| world.sides[0].available() > 0);
    let mut damaged = 0;
    while damaged < 1000 {
        // What is damaged on its way is not taken for what was sent; what was sent comes after it.
        if let Some((_, at, mut bytes)) = world.wire.first().cloned() {
            let place = world.random.usize(..bytes.len());
            bytes[place] ^= 1 << world.random.u64(..8);
            world.arrive(at, &bytes);
            damaged += 1;
        } else if world.sides[0].seen.is_empty() {
            let now = world.now;
            world.client().request(now, &Method::GET, "/", End::Yes);
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
    world.until("a connection", |world| world.sides.iter().all(Side::is_connected));
    world.loss_percent = 100;
    world.until("the end", |world| world.sides[0].closed.is_some());
    assert!(world.now >= start() + Duration::from_secs(30), "{:?}", world.now - start());
    let name = world.sides[0].closed.expect("it has ended");
    assert!(name == "silent" || name == "slow-head" || name == "idle", "{name}");
}
