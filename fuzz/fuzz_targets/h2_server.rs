//! RFC 9113: any bytes at a server, divided anywhere.
//!
//! The first byte says how the rest is divided, the second whether a valid beginning comes before it.

#![no_main]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_h2::{Connection, Limits};
use bolide_semantics::{
    Content, Context, End, ExchangeEvent, Head, Misuse, Output, ResponseHead, Role,
};
use bytes::Bytes;
use http::StatusCode;
use libfuzzer_sys::fuzz_target;

/// More events than this from one piece of input would mean that polling does not end.
const EVENTS_COUNT_MAX: usize = 1_000_000;

/// Polls until nothing is left to report; answers every other request at once, the rest in the end.
fn turn(connection: &mut Connection, cx: &mut Context<'_>) -> bool {
    for _ in 0..EVENTS_COUNT_MAX {
        match connection.poll(cx) {
            Output::Wait(deadline) => {
                assert!(deadline.is_some(), "an open connection waits for something");
                return true;
            }
            Output::Closed(reason) => {
                assert_eq!(connection.poll(cx), Output::Closed(reason));
                return false;
            }
            Output::Exchange(id, event) => {
                let ended = match &event {
                    ExchangeEvent::Head(end) => {
                        assert!(cx.head.authority().is_some());
                        *end == End::Yes || id.0 % 4 == 1
                    }
                    ExchangeEvent::Data(bytes, end) => {
                        connection.consumed(cx, id, bytes.len());
                        *end == End::Yes
                    }
                    ExchangeEvent::Trailers | ExchangeEvent::Rejected(_) => true,
                    _ => false,
                };
                if ended {
                    let head = ResponseHead::new(StatusCode::OK, &[]);
                    match connection.send_response(cx, id, &head, Content::Follows) {
                        Ok(_) => {
                            let body = Bytes::from_static(&[b'x'; 3000]);
                            let given = connection.send_data(cx, id, body, End::Yes);
                            assert!(
                                given.is_ok() || given == Err(Misuse::WrongLength),
                                "{given:?}"
                            );
                            if given.is_err() {
                                connection.abort(cx, id);
                            }
                        }
                        // Answered already.
                        Err(misuse) => {
                            let answered = [Misuse::UnknownExchange, Misuse::OutOfOrder];
                            assert!(answered.contains(&misuse), "{misuse:?}");
                        }
                    }
                }
            }
            Output::Connection(_) => {}
        }
    }
    panic!("polling does not end");
}

fuzz_target!(|bytes: &[u8]| {
    let [division, begins, bytes @ ..] = bytes else { return };
    let mut now = Instant::now();
    let mut connection = Connection::new(Role::Server, &Arc::new(Limits::default()), now);
    let mut input = ReceiveBuffer::new(64 * 1024);
    let mut output = SendQueue::new();
    let mut head = Head::default();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";
    let preface = if begins % 2 == 0 { &preface[..] } else { b"" };
    let pieces = bytes.chunks(usize::from(*division) + 1);
    let mut rest = Box::default();
    for piece in [preface].into_iter().chain(pieces) {
        input.start(&rest);
        input.extend(piece);
        let mut cx = Context {
            input: &mut input,
            output: &mut output,
            output_limit: 20_000,
            head: &mut head,
            now,
        };
        let open = turn(&mut connection, &mut cx);
        rest = input.take_rest();
        assert!(output.len() < 1 << 20, "responses pile up");
        if begins % 4 < 2 {
            output.flush(&mut std::io::sink()).expect("a sink takes everything");
        }
        if !open {
            return;
        }
        now += Duration::from_millis(u64::from(*begins));
    }
});
