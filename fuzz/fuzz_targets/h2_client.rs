//! RFC 9113: any bytes at a client that has asked for four things, divided anywhere.
//!
//! The first byte says how the rest is divided.

#![no_main]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_h2::{Connection, Limits};
use bolide_semantics::{Context, End, ExchangeEvent, ExchangeId, Head, Output, RequestHead, Role};
use bytes::Bytes;
use http::Method;
use libfuzzer_sys::fuzz_target;

fn ask(connection: &mut Connection, cx: &mut Context<'_>) {
    for method in [Method::GET, Method::HEAD, Method::POST, Method::CONNECT] {
        let path = if method == Method::CONNECT { "" } else { "/" };
        let (scheme, authority) = ("https", "a:443");
        let body = method == Method::POST || method == Method::CONNECT;
        let end = if body { End::No } else { End::Yes };
        let head =
            RequestHead { method: &method, scheme, authority, path, protocol: None, fields: &[] };
        connection.send_request(cx, &head, end).expect("a fresh connection takes four requests");
    }
    let body = Bytes::from_static(&[b'x'; 100_000]);
    let more = connection.send_data(cx, ExchangeId(5), body, End::No);
    assert_eq!(more, Ok(false), "100,000 bytes fit into no initial window");
}

fuzz_target!(|bytes: &[u8]| {
    let [division, bytes @ ..] = bytes else { return };
    let mut now = Instant::now();
    let mut connection = Connection::new(Role::Client, &Arc::new(Limits::default()), now);
    let mut input = ReceiveBuffer::new(64 * 1024);
    let mut output = SendQueue::new();
    let mut head = Head::default();
    let mut rest = Box::default();
    let settings = b"\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";
    let pieces = bytes.chunks(usize::from(*division) + 1);
    let mut ended = Vec::new();
    for (index, piece) in [&settings[..]].into_iter().chain(pieces).enumerate() {
        input.start(&rest);
        input.extend(piece);
        let mut cx = Context {
            input: &mut input,
            output: &mut output,
            output_limit: 20_000,
            head: &mut head,
            now,
        };
        if index == 0 {
            ask(&mut connection, &mut cx);
        }
        loop {
            match connection.poll(&mut cx) {
                Output::Wait(deadline) => {
                    assert!(deadline.is_some(), "an open connection waits for something");
                    break;
                }
                Output::Closed(_) => return,
                Output::Exchange(id, event) => {
                    assert!(!ended.contains(&id), "an event after the end");
                    match event {
                        ExchangeEvent::Data(bytes, End::No) => {
                            connection.consumed(&mut cx, id, bytes.len());
                        }
                        ExchangeEvent::Aborted(_) => ended.push(id),
                        ExchangeEvent::Sendable => {
                            let body = Bytes::from_static(b"more");
                            connection
                                .send_data(&mut cx, id, body, End::No)
                                .expect("more may be given");
                        }
                        _ => {}
                    }
                }
                Output::Connection(_) => {}
            }
        }
        rest = input.take_rest();
        output.flush(&mut std::io::sink()).expect("a sink takes everything");
        now += Duration::from_millis(u64::from(*division) * 10);
    }
});
