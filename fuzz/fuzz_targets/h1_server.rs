//! RFC 9112: whatever a client sends, however it is split, a server reports and answers the same, never
//! panics, never spins, and is at its end when the client is.
//!
//! The first byte says how many of the following are lengths of pieces; the rest is what is sent.

#![no_main]

use std::sync::Arc;

use std::time::Instant;

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_h1::{Connection, Limits};
use bolide_semantics::{
    Content, Context, End, ExchangeEvent, ExchangeId, Head, Output, ResponseHead, Role,
};
use bytes::Bytes;
use http::StatusCode;
use libfuzzer_sys::fuzz_target;

/// Record of a connection: everything it reported, and everything it sent.
#[derive(Debug, Default, PartialEq)]
struct Account {
    reports: Vec<String>,
    content: Vec<u8>,
    sent: Vec<u8>,
}

fuzz_target!(|data: &[u8]| {
    let Some((count, rest)) = data.split_first() else { return };
    let (lengths, bytes) = rest.split_at(usize::from(*count).min(rest.len()));
    let whole = serve(&[bytes]);
    let mut pieces = Vec::new();
    let mut left = bytes;
    for length in lengths {
        let (piece, rest) = left.split_at(usize::from(*length).min(left.len()));
        pieces.push(piece);
        left = rest;
    }
    pieces.push(left);
    assert_eq!(serve(&pieces), whole);
});

fn serve(pieces: &[&[u8]]) -> Account {
    let now = Instant::now();
    let mut connection = Connection::new(Role::Server, &Arc::new(Limits::default()), now);
    let mut input = ReceiveBuffer::new(64 * 1024);
    let mut output = SendQueue::new();
    let mut head = Head::default();
    let mut account = Account::default();
    let mut rest = Box::default();
    for turn in 0..=pieces.len() {
        let piece = pieces.get(turn).copied().unwrap_or_default();
        if turn == pieces.len() {
            connection.receive_eof();
        }
        input.start(&rest);
        input.extend(piece);
        let mut cx = Context {
            input: &mut input,
            output: &mut output,
            output_limit: 1 << 20,
            head: &mut head,
            now,
        };
        // A byte can't be worth more than one report, and an end not more than a few.
        let polls_max = cx.input.len() + 8;
        let mut polls = 0;
        loop {
            polls += 1;
            assert!(polls <= polls_max, "the connection spins");
            match connection.poll(&mut cx) {
                Output::Exchange(id, event) => {
                    handle(&mut connection, &mut cx, id, &event, &mut account)
                }
                Output::Connection(event) => account.reports.push(format!("{event:?}")),
                Output::Closed(reason) => {
                    assert!(!connection.wants_input());
                    account.reports.push(format!("{reason:?}"));
                    account.reports.dedup();
                    break;
                }
                Output::Wait(_) => {
                    assert!(turn < pieces.len(), "the client has ended and is waited for");
                    break;
                }
            }
        }
        rest = input.take_rest();
    }
    output.flush(&mut account.sent).expect("a vector takes everything");
    account
}

/// Returns what a head says; its mark is of one connection alone.
fn said(head: &Head) -> String {
    let fields: Vec<_> = head.fields().map(|field| (field.name, field.value)).collect();
    let (version, method) = (head.version(), head.method());
    let target = (head.scheme(), head.authority_bytes(), head.path_and_query_bytes());
    format!("{version:?} {method} {target:?} {fields:?}")
}

/// Notes a report; consumes bodies; answers what is complete or rejected.
fn handle(
    connection: &mut Connection,
    cx: &mut Context<'_>,
    id: ExchangeId,
    event: &ExchangeEvent,
    account: &mut Account,
) {
    let (status, complete) = match event {
        ExchangeEvent::Head(end) => {
            account.reports.push(format!("{id:?} {}", said(cx.head)));
            (StatusCode::OK, *end == End::Yes)
        }
        ExchangeEvent::Data(data, end) => {
            account.content.extend_from_slice(data);
            connection.consumed(cx, id, data.len());
            (StatusCode::OK, *end == End::Yes)
        }
        ExchangeEvent::Trailers => {
            account.reports.push(format!("{id:?} {}", said(cx.head)));
            (StatusCode::OK, true)
        }
        ExchangeEvent::Rejected(status) => {
            account.reports.push(format!("{id:?} {status}"));
            (*status, true)
        }
        other => {
            account.reports.push(format!("{id:?} {other:?}"));
            return;
        }
    };
    if complete {
        let head = ResponseHead { length: Some(4), ..ResponseHead::new(status, &[]) };
        let body = Content::Whole(&mut Bytes::from_static(b"pong").into());
        let sent = connection.send_response(cx, id, &head, body);
        assert!(sent.is_ok(), "{sent:?}");
    }
}
