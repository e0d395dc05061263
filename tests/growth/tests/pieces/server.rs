//! Pieces that come from clients.

use bolide_frames::{
    INITIAL_WINDOW_SIZE, PING, client_preface, data, frame, headers, request, upgrade, websocket,
    websocket_request, window_update,
};
use bolide_server::{Bytes, End, Exchange, Io, Reply, Request, Router};
use bolide_simnet::Simulation;

use crate::cost::Cost;
use crate::table::Carrier;
use crate::talk::{Pace, Talk, measure, network, simulation};
use crate::wire::{CHUNK, chunked, websocket_head};

/// Memory that is kept of a head that is not complete, at most: the limit of its name.
const HEAD_BYTES: usize = 32 * 1024;

/// The same of a frame.
const FRAME_BYTES: usize = 16 * 1024;

pub(crate) const CARRIERS: &[Carrier] = &[
    Carrier::new("HTTP/1.1 chunks of 1 byte, echoed", 5000, |count| {
        echoed_chunks(count, Pace::AtOnce)
    }),
    Carrier::new("the same, one for each turn", 5000, |count| echoed_chunks(count, Pace::OneByOne)),
    Carrier::new("HTTP/1.1 chunks of 1 byte that a handler leaves", 20_000, |count| {
        play(Talk::new(chunked("/left")).pieces(count, Pace::AtOnce, CHUNK), count)
    }),
    Carrier::new("a field of HTTP/1.1, byte by byte", 4000, |count| {
        let greeting = "GET /ping HTTP/1.1\r\nhost: a\r\nx: ";
        play(Talk::new(greeting).pieces(count, Pace::OneByOne, "x"), count)
    })
    .keeping(HEAD_BYTES),
    Carrier::new("an extension of a chunk, byte by byte", 2000, |count| {
        let greeting = [chunked("/echo"), b"1;".to_vec()].concat();
        play(Talk::new(greeting).pieces(count, Pace::OneByOne, "x"), count)
    }),
    Carrier::new("a HEADERS frame, byte by byte", 2000, |count| {
        let fields =
            [(":method", "GET"), (":scheme", "http"), (":path", "/ping"), (":authority", "a")];
        let start = headers(1, true, &fields);
        let block = [&start[9..], &[0, 1, b'x', 0x7f, 0x81, 0x7d]].concat();
        let length = (block.len() as u32 + 16_000).to_be_bytes();
        let head = [&length[1..], &[1, 5, 0, 0, 0, 1], &block].concat();
        let greeting = [client_preface(&[]), head].concat();
        play(Talk::new(greeting).pieces(count, Pace::OneByOne, "x"), count)
    })
    .keeping(FRAME_BYTES),
    Carrier::new("a DATA frame, byte by byte", 4000, |count| {
        let greeting = [client_preface(&[]), request(1, "POST", "/left", false)].concat();
        let opening = [0, 0x3f, 0xff, 0, 0, 0, 0, 0, 1];
        let talk = Talk::new(greeting).opening(opening);
        play(talk.pieces(count, Pace::OneByOne, "x"), count)
    }),
    Carrier::new("a WebSocket message in one frame, byte by byte", 4000, |count| {
        let talk = Talk::new(upgrade("/ws", "")).opening(websocket_head(100_000));
        play(talk.pieces(count, Pace::OneByOne, "x"), count)
    }),
    Carrier::new("requests of HTTP/1.1, pipelined", 4000, |count| {
        let ask = "GET /ping HTTP/1.1\r\nhost: a\r\n\r\n";
        play(Talk::new(ask).pieces(count, Pace::AtOnce, ask), count)
    }),
    Carrier::new("requests of HTTP/2", 2000, |count| {
        let ask = |nth: usize| request(nth as u32 * 2 + 1, "GET", "/ping", true);
        play(Talk::new(client_preface(&[])).each_piece(count, Pace::AtOnce, ask), count)
    }),
    Carrier::new("PING frames", 2000, |count| {
        let ping = frame(PING, 0, 0, &[0; 8]);
        play(Talk::new(client_preface(&[])).pieces(count, Pace::OneByOne, ping), count)
    }),
    Carrier::new("WINDOW_UPDATE frames of 1 byte while a response waits", 2000, |count| {
        let greeting =
            [client_preface(&[(INITIAL_WINDOW_SIZE, 0)]), request(1, "GET", "/1000000", true)];
        let update = window_update(1, 1);
        play(Talk::new(greeting.concat()).pieces(count, Pace::OneByOne, update), count)
    }),
    Carrier::new("DATA frames of 1 byte, echoed", 2000, |count| {
        body_over_h2("/echo", count, Pace::OneByOne)
    }),
    Carrier::new("DATA frames of 1 byte that a handler leaves", 2000, |count| {
        body_over_h2("/left", count, Pace::OneByOne)
    }),
    Carrier::new("WebSocket messages of 1 byte, echoed", 5000, |count| {
        let talk = Talk::new(upgrade("/ws", ""));
        play(talk.pieces(count, Pace::AtOnce, websocket(0x82, b"x")), count)
    }),
    Carrier::new("the same to a client that doesn't read", 20_000, |count| {
        let talk = Talk::new(upgrade("/ws", "")).deaf();
        play(talk.pieces(count, Pace::AtOnce, websocket(0x82, b"x")), count)
    }),
    Carrier::new("fragments of 1 byte of one WebSocket message", 5000, |count| {
        let talk = Talk::new(upgrade("/ws", "")).opening(websocket(0x02, b"x"));
        play(talk.pieces(count, Pace::OneByOne, websocket(0x00, b"x")), count)
    }),
    Carrier::new(
        "WebSocket over HTTP/2, a message of 1 byte in each DATA frame, echoed",
        2000,
        |count| {
            let greeting = [client_preface(&[]), websocket_request(1, "/ws")].concat();
            let piece = data(1, false, &websocket(0x82, b"x"));
            play(Talk::new(greeting).pieces(count, Pace::AtOnce, piece), count)
        },
    ),
    Carrier::new(
        "WebSocket over HTTP/2, frames of 1 byte that wait for their reader",
        10_000,
        |count| waiting_tunnel(count, Pace::AtOnce),
    ),
    Carrier::new("the same, one for each turn", 10_000, |count| {
        waiting_tunnel(count, Pace::OneByOne)
    }),
];

/// Takes nothing of a request's body.
#[derive(Debug)]
struct Leaves;

impl Exchange for Leaves {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, _: Bytes, _: End, _: &mut Io<'_>) {}
}

fn router() -> Router {
    let router = bolide_measurement::routes(Router::new());
    router.post("/left", |_: &mut Request<'_>| Reply::Exchange(Box::new(Leaves)))
}

fn play(talk: Talk, count: usize) -> Cost {
    let mut simulation = simulation(network(64 * 1024), router);
    connect(&mut simulation, talk);
    measure(simulation, count)
}

pub(crate) fn connect<S: bolide_eventloop::Service>(simulation: &mut Simulation<S>, talk: Talk) {
    simulation.connect(talk);
}

fn echoed_chunks(count: usize, pace: Pace) -> Cost {
    play(Talk::new(chunked("/echo")).pieces(count, pace, CHUNK), count)
}

fn body_over_h2(path: &str, count: usize, pace: Pace) -> Cost {
    let greeting = [client_preface(&[]), request(1, "POST", path, false)].concat();
    play(Talk::new(greeting).pieces(count, pace, data(1, false, b"x")), count)
}

/// The echo of a message can't leave, so that nothing more is received.
fn waiting_tunnel(count: usize, pace: Pace) -> Cost {
    let greeting =
        [client_preface(&[(INITIAL_WINDOW_SIZE, 0)]), websocket_request(1, "/ws")].concat();
    let stuck = [websocket_head(10_000), vec![b'x'; 10_000]].concat();
    let opening = data(1, false, &stuck);
    play(Talk::new(greeting).opening(opening).pieces(count, pace, data(1, false, b"x")), count)
}
