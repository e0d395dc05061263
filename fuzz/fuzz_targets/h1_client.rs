//! RFC 9112: whatever a server answers, however it is split, a client reports the same, never panics,
//! never spins, and is at its end when the server is.
//!
//! The first byte says how many of the following are lengths of pieces; the rest is what is answered
//! to GET, HEAD, an upgrade request and nothing more.

#![no_main]

use std::sync::Arc;

use std::time::Instant;

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_h1::{Connection, Limits};
use bolide_semantics::{
    Context, End, ExchangeEvent, FieldName, FieldRef, Head, Output, RequestHead, Role,
};
use http::Method;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((count, rest)) = data.split_first() else { return };
    let (lengths, bytes) = rest.split_at(usize::from(*count).min(rest.len()));
    let whole = receive(&[bytes]);
    let mut pieces = Vec::new();
    let mut left = bytes;
    for length in lengths {
        let (piece, rest) = left.split_at(usize::from(*length).min(left.len()));
        pieces.push(piece);
        left = rest;
    }
    pieces.push(left);
    assert_eq!(receive(&pieces), whole);
});

/// Returns what a client reports, and the content it received.
fn receive(pieces: &[&[u8]]) -> (Vec<String>, Vec<u8>) {
    let now = Instant::now();
    let mut connection = Connection::new(Role::Client, &Arc::new(Limits::default()), now);
    let mut input = ReceiveBuffer::new(64 * 1024);
    let mut output = SendQueue::new();
    let mut head = Head::default();
    let (mut reports, mut content) = (Vec::new(), Vec::new());
    let mut rest = Box::default();
    for turn in 0..=pieces.len() {
        let piece = pieces.get(turn).copied().unwrap_or_default();
        input.start(&rest);
        input.extend(piece);
        let mut cx = Context {
            input: &mut input,
            output: &mut output,
            output_limit: 1 << 20,
            head: &mut head,
            now,
        };
        if turn == 0 {
            ask(&mut connection, &mut cx);
            cx.output.flush(&mut Vec::new()).expect("memory takes everything");
        }
        if turn == pieces.len() {
            connection.receive_eof();
        }
        let polls_max = cx.input.len() + 16;
        let mut polls = 0;
        loop {
            polls += 1;
            assert!(polls <= polls_max, "the connection spins");
            match connection.poll(&mut cx) {
                Output::Exchange(id, ExchangeEvent::Data(data, end)) => {
                    content.extend_from_slice(&data);
                    connection.consumed(&mut cx, id, data.len());
                    if end == End::Yes {
                        reports.push(format!("{id:?} end"));
                    }
                }
                Output::Exchange(id, event) => {
                    let head = match event {
                        ExchangeEvent::Aborted(_) => String::new(),
                        _ => format!("{:?}", cx.head),
                    };
                    reports.push(format!("{id:?} {event:?} {head}"));
                }
                Output::Connection(event) => reports.push(format!("{event:?}")),
                Output::Closed(reason) => {
                    assert!(!connection.wants_input());
                    reports.push(format!("{reason:?}"));
                    reports.dedup();
                    break;
                }
                Output::Wait(_) => {
                    let is_tunnel = reports.iter().any(|report| report.ends_with(" end"));
                    assert!(
                        turn < pieces.len() || is_tunnel,
                        "the server has ended and is waited for"
                    );
                    break;
                }
            }
        }
        rest = input.take_rest();
    }
    (reports, content)
}

/// Sends three requests, the last of which asks for another protocol.
fn ask(connection: &mut Connection, cx: &mut Context<'_>) {
    for (method, upgrade) in [(&Method::GET, false), (&Method::HEAD, false), (&Method::GET, true)] {
        let upgrade = upgrade.then_some(FieldRef::known(FieldName::Upgrade, b"websocket"));
        let head = RequestHead {
            method,
            scheme: "http",
            authority: "example",
            path: "/",
            protocol: None,
            fields: upgrade.as_slice(),
        };
        connection.send_request(cx, &head, End::Yes).expect("the connection is new");
    }
}
