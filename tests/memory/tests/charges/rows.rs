//! The charges, each with its bound, and what was counted of them.

use std::fmt::Write;
use std::net::TcpStream;

use allocation_counter::measure;

use crate::fills;
use crate::world::World;

/// Memory that connections have of their own before they are charged with anything, and that the worker keeps for the next one, in
/// bytes.
const UNCHARGED_BYTES: usize = 64 * 1024;

/// Something that foreign bytes make a worker keep.
struct Charge {
    what: &'static str,
    /// The limits that bound it.
    bound: &'static str,
    /// Bound for one connection, in bytes.
    bound_bytes: usize,
    /// How many connections do it at once.
    connections: usize,
    world: fn() -> World,
    fill: fn(&mut World, usize) -> Vec<TcpStream>,
}

const CHARGES: &[Charge] = &[
    Charge {
        what: "a head of HTTP/1.1 that is not complete",
        bound: "`HEAD_BYTES`",
        bound_bytes: 32 << 10,
        connections: 16,
        world: fills::server,
        fill: fills::half_heads,
    },
    Charge {
        what: "a header block of HTTP/2 in pieces",
        bound: "`HEADER_BLOCK_BYTES`",
        bound_bytes: 128 << 10,
        connections: 8,
        world: fills::server,
        fill: fills::header_blocks_in_pieces,
    },
    Charge {
        what: "a body over HTTP/1.1 that is not consumed",
        bound: "`UNCONSUMED_BYTES` and one `BLOCK_BYTES`",
        bound_bytes: 512 << 10,
        connections: 4,
        world: fills::server,
        fill: fills::bodies_over_http1,
    },
    Charge {
        what: "the same in chunks of one byte",
        bound: "`UNCONSUMED_BYTES` and one `BLOCK_BYTES`",
        bound_bytes: 512 << 10,
        connections: 4,
        world: fills::server,
        fill: fills::small_pieces_over_http1,
    },
    Charge {
        what: "bodies over HTTP/2 that are not consumed",
        bound: "`CONNECTION_WINDOW_BYTES`, grown to `CONNECTION_WINDOW_BYTES_MAX` for fast readers",
        bound_bytes: 1100 << 10,
        connections: 4,
        world: fills::server,
        fill: fills::bodies_over_http2,
    },
    Charge {
        what: "a body that is collected for its handler",
        bound: "`BODY_BYTES_MAX`, or the route's own",
        bound_bytes: 5 << 20,
        connections: 2,
        world: fills::server,
        fill: fills::collected_bodies,
    },
    Charge {
        what: "open exchanges: 100 requests whose handlers wait",
        bound: "`CONCURRENT_STREAMS_COUNT`",
        bound_bytes: 100 << 10,
        connections: 4,
        world: fills::server,
        fill: fills::exchanges,
    },
    Charge {
        what: "a response over HTTP/1.1 that is not read",
        bound: "`UNSENT_MAX_BYTES` and a piece of the response",
        bound_bytes: 1 << 20,
        connections: 4,
        world: fills::server,
        fill: fills::responses_over_http1,
    },
    Charge {
        what: "responses over HTTP/2 whose windows are closed",
        bound: "`CONCURRENT_STREAMS_COUNT` pieces of 256 KiB",
        bound_bytes: 26 << 20,
        connections: 1,
        world: fills::server,
        fill: fills::responses_over_http2,
    },
    Charge {
        what: "the same on a connection that has broken a rule, until its client closes it",
        bound: "`CONCURRENT_STREAMS_COUNT` pieces of 256 KiB",
        bound_bytes: 26 << 20,
        connections: 1,
        world: fills::server,
        fill: fills::responses_of_an_ended_connection,
    },
    Charge {
        what: "open WebSockets: 100 over HTTP/2",
        bound: "`CONCURRENT_STREAMS_COUNT`",
        bound_bytes: 200 << 10,
        connections: 4,
        world: fills::server,
        fill: fills::websockets_over_http2,
    },
    Charge {
        what: "a WebSocket message in the making",
        bound: "`MESSAGE_BYTES`",
        bound_bytes: 16 << 20,
        connections: 2,
        world: fills::server,
        fill: fills::messages_in_the_making,
    },
    Charge {
        what: "WebSocket frames of one byte that are not read",
        bound: "`UNCONSUMED_BYTES` and one `BLOCK_BYTES`",
        bound_bytes: 512 << 10,
        connections: 4,
        world: fills::server,
        fill: fills::frames_that_nobody_reads,
    },
    Charge {
        what: "WebSocket frames that wait to be sent",
        bound: "`WEBSOCKET_OUTPUT_BYTES`, at `/ws` also `ECHO_AHEAD_BYTES`, and `UNSENT_MAX_BYTES`",
        bound_bytes: 19 << 20,
        connections: 1,
        world: fills::server,
        fill: fills::frames_to_be_sent,
    },
    Charge {
        what: "WebSocket compressors in use",
        bound: "one in each direction",
        bound_bytes: 400 << 10,
        connections: 4,
        world: fills::server,
        fill: fills::compressors,
    },
    Charge {
        what: "measurements of an ndt7 client, for the archive",
        bound: "`NDT7_MEASUREMENTS_BYTES`",
        bound_bytes: 600 << 10,
        connections: 2,
        world: fills::archive,
        fill: fills::measurements,
    },
    Charge {
        what: "a proxied response that is not read",
        bound: "`UNCONSUMED_BYTES` of the upstream, one block, `UNSENT_MAX_BYTES`",
        bound_bytes: 3 << 20,
        connections: 4,
        world: fills::proxy_of_large,
        fill: fills::proxied_responses,
    },
    Charge {
        what: "requests that wait for a connection to their upstream",
        bound: "`CONCURRENT_STREAMS_COUNT` heads, and `WAITING_COUNT` of a worker",
        bound_bytes: 2 << 20,
        connections: 4,
        world: fills::proxy_of_nothing,
        fill: fills::waiting_requests,
    },
    Charge {
        what: "requests about which `forward-auth` has asked",
        bound: "`CONCURRENT_STREAMS_COUNT` heads and the questions, and `FORWARD_WAITING_COUNT` of a route",
        bound_bytes: 4 << 20,
        connections: 2,
        world: fills::forward_auth,
        fill: fills::waiting_requests,
    },
];

/// Figures of one charge, in bytes.
pub(crate) struct Figures {
    pub(crate) held: usize,
    pub(crate) allocated: usize,
}

impl Charge {
    fn drive(&self) -> Figures {
        let mut world = (self.world)();
        // What a worker allocates once.
        let mut first = (self.fill)(&mut world, 1);
        first.iter_mut().for_each(|stream| world.drain(stream));
        drop(first);
        world.settle();
        let before = world.stats.held_bytes;
        let mut streams = Vec::new();
        let counted = measure(|| streams = (self.fill)(&mut world, self.connections));
        assert_eq!(world.stats.closed.memory, 0, "{}", self.what);
        let held = world.stats.held_bytes.saturating_sub(before) as usize;
        drop(streams);
        Figures { held, allocated: usize::try_from(counted.bytes_current).unwrap_or(0) }
    }
}

/// A charge that was driven.
pub(crate) struct Driven {
    pub(crate) what: &'static str,
    pub(crate) bound: &'static str,
    pub(crate) bound_bytes: usize,
    pub(crate) connections: usize,
    pub(crate) figures: Figures,
}

/// A row in `docs/MEMORY.md`, up to what was counted.
fn row(what: &str, bound: &str) -> String {
    format!("| {what} | {bound} |")
}

/// Prints the rows, with what one connection was charged with and what the allocator counted, in KiB; and checks them.
pub(crate) fn judge(charges: impl Iterator<Item = Driven>) {
    let (mut table, mut wrong) = (String::new(), String::new());
    let (mut held_bytes, mut allocated_bytes) = (0, 0);
    for charge in charges {
        let Driven { what, bound, bound_bytes, connections, figures } = charge;
        let Figures { held, allocated } = figures;
        let one = held / connections;
        let kib = [one >> 10, (allocated / connections) >> 10];
        writeln!(table, "{} {} | {} |", row(what, bound), kib[0], kib[1]).unwrap();
        if one > bound_bytes {
            writeln!(wrong, "{what}: {one} bytes, above its bound").unwrap();
        }
        if one < bound_bytes / 4 {
            writeln!(wrong, "{what}: {one} bytes, far from its bound").unwrap();
        }
        if allocated > held * 13 / 10 + UNCHARGED_BYTES {
            writeln!(wrong, "{what}: {allocated} allocated, {held} charged").unwrap();
        }
        held_bytes += held;
        allocated_bytes += allocated;
    }
    let total = allocated_bytes as f64 / held_bytes as f64;
    println!("{table}\nallocated to charged: {total:.2}");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(total <= 1.3, "{total}");
}

/// Checks that the page has a row for each of them.
pub(crate) fn look_up(charges: impl Iterator<Item = (&'static str, &'static str)>) {
    let page = std::fs::read_to_string("../../docs/MEMORY.md").unwrap();
    for (what, bound) in charges {
        let row = row(what, bound);
        assert!(page.contains(&row), "docs/MEMORY.md has no row\n{row}");
    }
}

#[test]
fn every_charge_is_within_its_bound_and_the_allocator_agrees() {
    judge(CHARGES.iter().map(|charge| {
        let Charge { what, bound, bound_bytes, connections, .. } = *charge;
        Driven { what, bound, bound_bytes, connections, figures: charge.drive() }
    }));
}

#[test]
fn the_page_has_a_row_for_every_charge() {
    look_up(CHARGES.iter().map(|charge| (charge.what, charge.bound)));
}
