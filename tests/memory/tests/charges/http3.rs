//! HTTP/3's charges: both ends of a connection without sockets, of which the server's end is counted.

use std::time::Duration;

use bolide_h3::Quic;
use bolide_quic_pair::World;
use bolide_semantics::{Content, End, ExchangeEvent, ResponseHead};
use bolide_server::{Bytes, StatusCode};
use http::Method;

use crate::rows::{Driven, Figures, judge, look_up};

/// Requests that a client may have open.
const REQUESTS: usize = 100;

/// Something that a client makes a server keep.
struct Charge {
    what: &'static str,
    /// The limits that bound it.
    bound: &'static str,
    /// Bound of their sum, in bytes.
    bound_bytes: usize,
    fill: fn(&mut World),
}

const CHARGES: &[Charge] = &[
    Charge {
        what: "bodies over HTTP/3 that are not consumed",
        bound: "`STREAM_UNCONSUMED_BYTES` each, `STALLED_BYTES`, and `FIRST_WINDOW_BYTES`, grown to `CONNECTION_WINDOWS_COUNT` windows",
        bound_bytes: 25 << 20,
        fill: bodies,
    },
    Charge {
        what: "the same in frames of one byte, each behind one that is lost",
        bound: "`FIRST_WINDOW_BYTES` and its pieces",
        bound_bytes: 96 << 10,
        fill: gaps,
    },
    Charge {
        what: "header sections of HTTP/3 that are not complete",
        bound: "`FIRST_WINDOW_BYTES` and what was read of them",
        bound_bytes: 3 << 20,
        fill: half_heads,
    },
    Charge {
        what: "open exchanges over HTTP/3: 100 requests whose handlers wait",
        bound: "`BIDIRECTIONAL_STREAMS_COUNT`, and `FIRST_WINDOW_BYTES`",
        bound_bytes: 200 << 10,
        fill: exchanges,
    },
    Charge {
        what: "responses over HTTP/3 whose windows are closed",
        bound: "`BIDIRECTIONAL_STREAMS_COUNT` pieces of 256 KiB, and `SEND_WINDOW_BYTES_MAX`",
        bound_bytes: 27 << 20,
        fill: responses,
    },
];

fn bodies(world: &mut World) {
    let now = world.now;
    for _ in 0..16 {
        let id = world.client().request(now, &Method::POST, "/", End::No);
        let body = Bytes::from(vec![7; 5 << 20]);
        let sent = world.client().with(now, |http, cx| http.send_data(cx, id, body, End::No));
        assert!(sent.is_ok(), "{sent:?}");
    }
    (0..3).for_each(|_| world.settle());
}

/// Writes to a stream of the client's, as its HTTP/3 would not.
fn write(world: &mut World, stream: u64, bytes: &[u8]) -> usize {
    world.client().quic.as_mut().map_or(0, |quic| quic.write(stream, bytes))
}

fn open(world: &mut World) -> u64 {
    world.client().quic.as_mut().and_then(Quic::open_bidirectional).expect("a stream")
}

fn gaps(world: &mut World) {
    let stream = open(world);
    let mut is_lost = true;
    for _ in 0..400 {
        if write(world, stream, b"x") == 0 {
            break;
        }
        world.loss_percent = if is_lost { 100 } else { 0 };
        world.flush(0);
        is_lost = !is_lost;
    }
    // Nothing is acknowledged, so nothing is sent again.
    for (_, at, bytes) in std::mem::take(&mut world.wire) {
        world.arrive(at, &bytes);
    }
    world.turn();
}

fn half_heads(world: &mut World) {
    for _ in 0..REQUESTS {
        let stream = open(world);
        // A HEADERS frame (RFC 9114 §7.2.2) of 16,000 bytes, whose last one does not come; a literal without an end.
        let mut bytes = vec![1, 0x7e, 0x80, 0, 0, 0x27, 0x80, 0x01];
        bytes.resize(15_000, b'a');
        let mut written = 0;
        while written < bytes.len() {
            written += write(world, stream, &bytes[written..]);
            world.step();
        }
    }
    world.settle();
}

fn exchanges(world: &mut World) {
    let now = world.now;
    for _ in 0..REQUESTS {
        world.client().request(now, &Method::POST, "/", End::No);
    }
    world.settle();
}

fn responses(world: &mut World) {
    exchanges(world);
    let now = world.now;
    let head = ResponseHead::new(StatusCode::OK, &[]);
    world.server().counted(|server| {
        for (id, event) in std::mem::take(&mut server.seen) {
            assert!(matches!(event, ExchangeEvent::Head(End::No)), "{event:?}");
            let sent = server.with(now, |http, cx| {
                let begun = http.send_response(cx, id, &head, Content::Follows);
                begun.and_then(|_| http.send_data(cx, id, Bytes::from(vec![7; 256 << 10]), End::No))
            });
            assert!(sent.is_ok(), "{sent:?}");
        }
    });
    world.settle();
}

impl Charge {
    /// Returns what the connection was charged with, and what the allocator counted.
    fn drive(&self) -> Figures {
        let mut world = World::connected(1);
        // What is overtaken would be taken for lost.
        world.jitter = Duration::ZERO;
        let before = (world.server().held_bytes(), world.server().allocated_bytes);
        (self.fill)(&mut world);
        let server = world.server();
        assert_eq!(server.closed, None, "{}", self.what);
        let held = server.held_bytes() - before.0;
        let allocated = usize::try_from(server.allocated_bytes - before.1).unwrap_or(0);
        Figures { held, allocated }
    }
}

#[test]
fn every_charge_of_http3_is_within_its_bound_and_the_allocator_agrees() {
    judge(CHARGES.iter().map(|charge| {
        let Charge { what, bound, bound_bytes, .. } = *charge;
        Driven { what, bound, bound_bytes, connections: 1, figures: charge.drive() }
    }));
}

#[test]
fn the_page_has_a_row_for_every_charge_of_http3() {
    look_up(CHARGES.iter().map(|charge| (charge.what, charge.bound)));
}
