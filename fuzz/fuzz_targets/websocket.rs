//! RFC 6455, RFC 7692: whatever a peer sends, however it is split, either role reports and answers the same,
//! never panics and never spins.
//!
//! The first byte chooses role and compression, the second how many of the following are lengths of pieces;
//! the rest is what is sent.

#![no_main]

use bolide_semantics::{End, Role};
use bolide_websocket::{Codec, Deflate, Event, Limits, Settings};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

/// Record of a connection: what it reported, and everything it sent.
#[derive(Debug, Default, PartialEq)]
struct Account {
    reports: Vec<String>,
    content: Vec<u8>,
    sent: Vec<u8>,
}

fuzz_target!(|data: &[u8]| {
    let [choice, count, rest @ ..] = data else { return };
    let (lengths, bytes) = rest.split_at(usize::from(*count).min(rest.len()));
    let whole = receive(*choice, &[bytes]);
    let mut pieces = Vec::new();
    let mut left = bytes;
    for length in lengths {
        let (piece, rest) = left.split_at(usize::from(*length).min(left.len()));
        pieces.push(piece);
        left = rest;
    }
    pieces.push(left);
    let split = receive(*choice, &pieces);
    // What is inflated before a limit is met depends on how much came at once.
    if choice & 2 == 0 {
        assert_eq!(split, whole);
    }
});

fn receive(choice: u8, pieces: &[&[u8]]) -> Account {
    let role = if choice & 1 == 0 { Role::Server } else { Role::Client };
    let deflate = (choice & 2 != 0).then_some(Deflate {
        server_no_context_takeover: choice & 4 != 0,
        client_no_context_takeover: choice & 4 != 0,
        server_max_window_bits: 15,
        client_max_window_bits: 15,
    });
    let limits = Limits { message_bytes: 1 << 20, fragments_count: 100, ..Limits::default() };
    let mut codec = Codec::new(role, Settings { limits, deflate, mask_seed: 1 });
    let mut account = Account::default();
    let mut message = Vec::new();
    for piece in pieces {
        let mut input = Bytes::copy_from_slice(piece);
        // A byte can't be worth more than a frame or a thousand inflated bytes.
        let mut events_left = 64 + 2 * piece.len();
        while let Some(event) = codec.receive(&mut input) {
            events_left = events_left.checked_sub(1).expect("the codec spins");
            match event {
                // How a message is cut into pieces depends on how it came, and so does how much of one
                // that fails is reported before.
                Event::Message { payload, end, .. } => {
                    payload.append_to(&mut message);
                    if end == End::Yes {
                        account.content.append(&mut message);
                    }
                }
                other => account.reports.push(format!("{other:?}")),
            }
        }
        assert!(input.is_empty(), "input is left");
    }
    while let Some(bytes) = codec.pop_output() {
        account.sent.extend_from_slice(&bytes);
    }
    account
}
