//! RFC 9114: two connections, one of each role, over a transport that splits and interleaves at random; a seed replays a
//! failure.

use std::collections::BTreeMap;

use bolide_h3::{Limits, QuicEvent};
use bolide_semantics::{Content, End, ExchangeId, FieldRef, Role};
use fastrand::Rng;
use http::Method;

use crate::network::Outgoing;
use crate::subject::{Seen, Subject};

/// Bytes that have been carried over from one end.
#[derive(Default)]
struct Carried {
    streams: BTreeMap<u64, Outgoing>,
    stops: usize,
    datagrams: usize,
}

/// Carries a part of what one end has sent to the other.
fn carry(from: &mut Subject, to: &mut Subject, done: &mut Carried, random: &mut Rng) {
    let mut streams: Vec<u64> = from.quic.sent.keys().copied().collect();
    while !streams.is_empty() {
        let id = streams.swap_remove(random.usize(..streams.len()));
        let sent = &from.quic.sent[&id];
        let carried = done.streams.entry(id).or_default();
        let rest = &sent.bytes[carried.bytes.len()..];
        let count =
            if random.u64(..3) == 0 { rest.len() } else { random.usize(..40).min(rest.len()) };
        if count > 0 {
            to.quic.arrives(id, &rest[..count]);
            carried.bytes.extend_from_slice(&rest[..count]);
        }
        if carried.bytes.len() == sent.bytes.len()
            && sent.ended
            && !carried.ended
            && random.u64(..2) == 0
        {
            to.quic.ends(id);
            carried.ended = true;
        }
        if let (Some(code), None) = (sent.reset, carried.reset) {
            to.quic.resets(id, code);
            carried.reset = Some(code);
        }
    }
    for (id, code) in from.quic.stopped[done.stops..].iter().copied() {
        // What has ended needs no stop.
        if !to.quic.sent[&id].ended && to.quic.sent[&id].reset.is_none() {
            to.quic.stops(id, code);
        }
    }
    done.stops = from.quic.stopped.len();
    for datagram in &from.quic.datagrams[done.datagrams..] {
        to.quic.events.push_back(QuicEvent::Datagram(datagram.clone()));
    }
    done.datagrams = from.quic.datagrams.len();
    if random.u64(..2) == 0 {
        from.quic.gives_room(random.usize(..5000));
    }
}

/// An exchange as the client sees it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Exchange {
    body: Vec<u8>,
    trailers: bool,
    ended: bool,
}

fn body_of(id: u32) -> Vec<u8> {
    (0..id as usize * 977 % 30_000).map(|at| (at as u32 ^ id) as u8).collect()
}

/// The server echoes each request's body, with trailers for every third one.
fn serve(
    server: &mut Subject,
    bodies: &mut BTreeMap<u32, (Vec<u8>, bool)>,
    sent: &mut BTreeMap<u32, usize>,
    random: &mut Rng,
) {
    for seen in server.poll() {
        match seen {
            Seen::Head(id, _, end) => {
                bodies.insert(id, (Vec::new(), end == End::Yes));
                assert_eq!(server.respond(id, 200, Content::Follows).map(|_| ()), Ok(()));
                sent.insert(id, 0);
            }
            Seen::Data(id, bytes, end) => {
                server.consume(id, bytes.len());
                let body = bodies.get_mut(&id).expect("a head came first");
                body.0.extend(bytes);
                body.1 |= end == End::Yes;
            }
            Seen::Trailers(id, _) => bodies.get_mut(&id).expect("a head came first").1 = true,
            Seen::Sendable(_) => {}
            other => panic!("{other:?}"),
        }
    }
    for (id, at) in sent.clone() {
        let (body, ended) = &bodies[&id];
        let piece = &body[at..(at + 1 + random.usize(..9000)).min(body.len())];
        let trailers = id.is_multiple_of(3);
        let last = *ended && at + piece.len() == body.len();
        if piece.is_empty() && !last {
            continue;
        }
        match server.give(id, piece, if last && !trailers { End::Yes } else { End::No }) {
            Ok(_) if last && trailers => {
                let fields = [FieldRef::named("x-sum", b"the same in every response")];
                let result = server
                    .with(|connection, cx| connection.send_trailers(cx, ExchangeId(id), &fields));
                assert_eq!(result, Ok(()));
                sent.remove(&id);
            }
            Ok(_) if last => _ = sent.remove(&id),
            Ok(_) => _ = sent.insert(id, at + piece.len()),
            Err(bolide_semantics::Misuse::Busy) => {}
            Err(misuse) => panic!("{misuse:?}"),
        }
    }
}

fn converse(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let (mut client, mut server) = (
        Subject::new(Role::Client, Limits::default()),
        Subject::new(Role::Server, Limits::default()),
    );
    let (mut forth, mut back) = (Carried::default(), Carried::default());
    let (mut bodies, mut responses) = (BTreeMap::new(), BTreeMap::new());
    let mut sending: BTreeMap<u32, usize> = BTreeMap::new();
    let mut seen: BTreeMap<u32, Exchange> = BTreeMap::new();
    let requests = 12;
    let mut round = 0;
    while seen.values().filter(|exchange| exchange.ended).count() < requests {
        round += 1;
        assert!(round < 20_000, "seed {seed} goes on and on: {seen:?}");
        if seen.len() < requests && random.u64(..3) == 0 {
            let fields = [FieldRef::named("x-client", b"a name that every request repeats")];
            let id = client.request(&Method::POST, &fields, End::No).expect("room for a request");
            seen.insert(id, Exchange::default());
            sending.insert(id, 0);
        }
        for (id, at) in sending.clone() {
            let body = body_of(id);
            let piece = &body[at..(at + 1 + random.usize(..7000)).min(body.len())];
            let last = at + piece.len() == body.len();
            match client.give(id, piece, if last { End::Yes } else { End::No }) {
                Ok(_) if last => _ = sending.remove(&id),
                Ok(_) => _ = sending.insert(id, at + piece.len()),
                Err(bolide_semantics::Misuse::Busy) => {}
                Err(misuse) => panic!("{misuse:?}"),
            }
        }
        carry(&mut client, &mut server, &mut forth, &mut random);
        serve(&mut server, &mut bodies, &mut responses, &mut random);
        carry(&mut server, &mut client, &mut back, &mut random);
        for event in client.poll() {
            match event {
                Seen::Head(..) | Seen::Sendable(_) | Seen::Concurrency(_) => {}
                Seen::Data(id, bytes, end) => {
                    client.consume(id, bytes.len());
                    let exchange = seen.get_mut(&id).expect("of a request");
                    exchange.body.extend(bytes);
                    exchange.ended |= end == End::Yes;
                }
                Seen::Trailers(id, fields) => {
                    let exchange = seen.get_mut(&id).expect("of a request");
                    exchange.trailers = fields == 1;
                    exchange.ended = true;
                }
                other => panic!("seed {seed}: {other:?}"),
            }
        }
    }
    for (id, exchange) in &seen {
        assert!(exchange.body == body_of(*id), "seed {seed}, exchange {id}");
        assert_eq!(exchange.trailers, id.is_multiple_of(3), "seed {seed}, exchange {id}");
    }
    for subject in [&client, &server] {
        assert_eq!(subject.connection.unconsumed_bytes(), 0);
        assert_eq!(subject.quic.closed, None);
    }
}

#[test]
fn both_roles_understand_each_other_over_any_transport() {
    for seed in 0..60 {
        converse(seed);
    }
}

#[test]
fn any_bytes_on_any_streams_do_no_harm() {
    for seed in 1..400 {
        let mut random = Rng::with_seed(seed);
        let role = if seed % 2 == 0 { Role::Server } else { Role::Client };
        let mut subject = Subject::new(role, Limits::default());
        if role == Role::Client {
            let _ = subject.request(&Method::POST, &[], End::No);
        }
        for _ in 0..60 {
            let stream = random.u64(..20);
            let ours = (stream & 1 == 1) == (role == Role::Server);
            if ours && (stream & 2 == 2 || stream > 0) {
                continue;
            }
            let bytes: Vec<u8> = (0..random.u64(..30)).map(|_| random.u8(..14)).collect();
            match random.u64(..12) {
                0 => subject.quic.resets(stream, 0x10c),
                1 => subject.quic.ends(stream),
                _ => subject.quic.arrives(stream, &bytes),
            }
            let seen = subject.poll();
            assert!(subject.connection.held_bytes() < 100_000);
            if matches!(seen.last(), Some(Seen::Closed(_))) {
                break;
            }
            for seen in seen {
                if let Seen::Head(id, ..) = seen {
                    let _ = subject.respond(id, 200, Content::None);
                }
            }
        }
    }
}
