//! Pieces over HTTP/3, between two ends without sockets.

use bolide_h3::Quic;
use bolide_quic_pair::World;
use bolide_semantics::{Content, End, ExchangeEvent, ExchangeId, ResponseHead};
use bolide_server::{Bytes, StatusCode};
use http::Method;

use crate::cost::Cost;
use crate::table::Carrier;

pub(crate) const CARRIERS: &[Carrier] = &[
    Carrier::new("HTTP/3: DATA frames of 17 bytes", 2000, frames),
    Carrier::new("HTTP/3: the same that a handler leaves", 500, frames_left),
    Carrier::new("HTTP/3: a DATA frame, byte by byte, in a datagram each", 1000, bytewise),
    Carrier::new("HTTP/3: requests", 1000, requests),
    Carrier::new("HTTP/3: requests that are reset", 40, resets),
    Carrier::new("HTTP/3: DATA frames of 17 bytes of a response", 2000, response),
    Carrier::new("HTTP/3: datagrams (RFC 9221) of 17 bytes", 1000, datagrams),
];

const PIECE: &[u8] = &[b'x'; 17];

/// The largest number of pieces that are on their way at once.
const AHEAD_COUNT: usize = 50;

/// Returns what one side was given of bodies, in bytes.
fn take(world: &mut World, at: usize, consumes: bool) -> usize {
    let now = world.now;
    let side = &mut world.sides[at];
    let mut taken = 0;
    for (id, event) in std::mem::take(&mut side.seen) {
        if let ExchangeEvent::Data(bytes, _) = event {
            taken += bytes.len();
            if consumes {
                side.with(now, |http, cx| http.consumed(cx, id, bytes.len()));
            }
        }
    }
    taken
}

fn alive(world: &World) {
    let closed = world.sides.each_ref().map(|side| side.closed);
    assert_eq!(closed, [None, None]);
}

/// One side sends so many pieces, each in a frame of its own, and the other takes them.
fn carry(world: &mut World, (from, id): (usize, ExchangeId), count: usize, consumes: bool) {
    let (mut sent, mut received) = (0, 0);
    while received < count * PIECE.len() {
        while sent < count && sent * PIECE.len() < received + AHEAD_COUNT * PIECE.len() {
            let (now, data) = (world.now, Bytes::from_static(PIECE));
            let side = &mut world.sides[from];
            if side.with(now, |http, cx| http.send_data(cx, id, data, End::No)).is_err() {
                break;
            }
            sent += 1;
        }
        world.step();
        received += take(world, 1 - from, consumes);
        alive(world);
    }
}

fn body(count: usize, consumes: bool) -> Cost {
    let mut world = World::connected(1);
    Cost::of(|| {
        let now = world.now;
        let id = world.client().request(now, &Method::POST, "/", End::No);
        carry(&mut world, (0, id), count, consumes);
    })
}

fn frames(count: usize) -> Cost {
    body(count, true)
}

fn frames_left(count: usize) -> Cost {
    body(count, false)
}

fn bytewise(count: usize) -> Cost {
    let mut world = World::connected(1);
    // A HEADERS frame of a POST (RFC 9204 §B.1: static entries), and a DATA frame of 16,000 bytes.
    let opening = [1, 8, 0, 0, 0xd4, 0xd7, 0xc1, 0x50, 1, b'a', 0, 0x7e, 0x80];
    let stream = world.client().quic.as_mut().and_then(Quic::open_bidirectional).expect("a stream");
    let write = |world: &mut World, bytes: &[u8]| {
        let taken = world.client().quic.as_mut().map_or(0, |quic| quic.write(stream, bytes));
        assert_eq!(taken, bytes.len());
        world.flush(0);
    };
    Cost::of(|| {
        write(&mut world, &opening);
        let (mut sent, mut received) = (0, 0);
        while received < count {
            if sent < count && sent < received + AHEAD_COUNT {
                write(&mut world, b"x");
                sent += 1;
                continue;
            }
            world.step();
            received += take(&mut world, 1, true);
            alive(&world);
        }
    })
}

/// Answers what has been asked.
fn respond(world: &mut World) {
    let now = world.now;
    let server = world.server();
    for (id, event) in std::mem::take(&mut server.seen) {
        if let ExchangeEvent::Head(End::Yes) = event {
            let head = ResponseHead::new(StatusCode::OK, &[]);
            let content = Content::Whole(&mut Bytes::from_static(PIECE).into());
            let sent = server.with(now, |http, cx| http.send_response(cx, id, &head, content));
            assert!(sent.is_ok(), "{sent:?}");
        }
    }
}

/// How many responses have ended at the client.
fn ended(world: &mut World) -> usize {
    let now = world.now;
    let client = world.client();
    let mut count = 0;
    for (id, event) in std::mem::take(&mut client.seen) {
        if let ExchangeEvent::Data(bytes, end) = event {
            client.with(now, |http, cx| http.consumed(cx, id, bytes.len()));
            count += usize::from(end == End::Yes);
        }
    }
    count
}

fn requests(count: usize) -> Cost {
    let mut world = World::connected(1);
    Cost::of(|| {
        let (mut sent, mut done) = (0, 0);
        while done < count {
            let now = world.now;
            while sent < count && sent < done + AHEAD_COUNT && world.client().available() > 0 {
                world.client().request(now, &Method::GET, "/", End::Yes);
                sent += 1;
            }
            world.step();
            respond(&mut world);
            done += ended(&mut world);
            alive(&world);
        }
    })
}

fn resets(count: usize) -> Cost {
    let mut world = World::connected(1);
    Cost::of(|| {
        for _ in 0..count {
            world.until("a stream", |world| world.client().available() > 0);
            let now = world.now;
            let id = world.client().request(now, &Method::GET, "/", End::No);
            world.until("the request", |world| !world.server().seen.is_empty());
            let now = world.now;
            world.client().with(now, |http, cx| http.abort(cx, id));
            world.until("the reset", |world| world.server().http.exchanges_open() == 0);
            world.server().seen.clear();
            alive(&world);
        }
    })
}

fn response(count: usize) -> Cost {
    let mut world = World::connected(1);
    Cost::of(|| {
        let now = world.now;
        world.client().request(now, &Method::GET, "/", End::Yes);
        world.until("the request", |world| !world.server().seen.is_empty());
        let (now, head) = (world.now, ResponseHead::new(StatusCode::OK, &[]));
        let id: ExchangeId = world.server().seen[0].0;
        let begun = world
            .server()
            .with(now, |http, cx| http.send_response(cx, id, &head, Content::Follows));
        assert!(begun.is_ok(), "{begun:?}");
        carry(&mut world, (1, id), count, true);
    })
}

fn datagrams(count: usize) -> Cost {
    let mut world = World::connected(1);
    Cost::of(|| {
        for nth in 0..count {
            let datagram = Bytes::from_static(PIECE);
            if let Some(quic) = &mut world.client().quic {
                quic.send_datagram(datagram);
            }
            if nth % AHEAD_COUNT == 0 {
                world.step();
                alive(&world);
            }
        }
        world.settle();
        alive(&world);
    })
}
