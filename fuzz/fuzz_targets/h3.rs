//! RFC 9114: anything on any streams of a connection of either role, in any pieces, with orders in between.
//!
//! The first byte says the role. Then steps of two bytes: a stream's number in the low five bits of the first and what
//! happens in its others; the second is a length or a code.

#![no_main]

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bolide_h3::{Connection, Context, Limits, QuicEvent};
use bolide_semantics::{
    Content, End, ExchangeEvent, ExchangeId, Head, Output, RequestHead, ResponseHead, Role,
};
use bytes::Bytes;
use http::{Method, StatusCode};
use libfuzzer_sys::fuzz_target;

#[path = "../../protocol/h3/tests/suite/network.rs"]
#[allow(dead_code, reason = "the suite looks at more than this does")]
mod network;

use network::Network;

fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// Handles an event as the caller does.
fn answer(connection: &mut Connection, cx: &mut Context<'_, Network>, output: Output, role: Role) {
    let Output::Exchange(id, event) = output else { return };
    match event {
        ExchangeEvent::Head(_) | ExchangeEvent::Rejected(_) if role == Role::Server => {
            let content = match id.0 % 3 {
                0 => Content::None,
                1 => Content::Whole(&mut Bytes::from_static(&[7; 100]).into()),
                _ => Content::Follows,
            };
            let head = ResponseHead::new(StatusCode::OK, &[]);
            let _ = connection.send_response(cx, id, &head, content);
        }
        ExchangeEvent::Data(bytes, _) => {
            connection.consumed(cx, id, bytes.len() / 2);
            let _ = connection.send_data(cx, id, bytes, End::No);
        }
        ExchangeEvent::Trailers => _ = connection.send_trailers(cx, id, &[]),
        _ => {}
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((first, mut rest)) = input.split_first() else { return };
    let role = if first & 1 == 0 { Role::Server } else { Role::Client };
    let mut connection = Connection::new(role, &Arc::new(Limits::default()), start());
    let (mut quic, mut head, mut now) =
        (Network::new(role == Role::Server), Head::default(), start());
    if role == Role::Client {
        for _ in 0..2 {
            let (method, scheme, authority, path) = (&Method::POST, "https", "a", "/");
            let request =
                RequestHead { method, scheme, authority, path, protocol: None, fields: &[] };
            let cx = &mut Context { quic: &mut quic, head: &mut head, now };
            let _ = connection.send_request(cx, &request, End::No);
        }
    }
    while let Some(([step, number], after)) = rest.split_first_chunk::<2>() {
        rest = after;
        let stream = u64::from(step & 0x1f);
        let (ours, one_way) = ((stream & 1 == 1) == (role == Role::Server), stream & 2 == 2);
        let comes = !ours || (!one_way && role == Role::Client && stream < 8);
        match step >> 5 {
            0 => now += Duration::from_millis(u64::from(*number) * 20),
            1 if comes => quic.ends(stream),
            2 if comes => quic.resets(stream, 0x100 + u64::from(number & 15)),
            3 if !one_way => quic.stops(stream, 0x100 + u64::from(number & 15)),
            4 => quic.gives_room(usize::from(*number) * 16),
            5 => {
                let (datagram, after) = rest.split_at(usize::from(*number % 8).min(rest.len()));
                rest = after;
                quic.events.push_back(QuicEvent::Datagram(Bytes::copy_from_slice(datagram)));
            }
            _ if comes => {
                let (piece, after) = rest.split_at(usize::from(*number).min(rest.len()));
                rest = after;
                quic.arrives(stream, piece);
            }
            _ => {
                let cx = &mut Context { quic: &mut quic, head: &mut head, now };
                connection.cancel(cx, ExchangeId(u32::from(number & 7)));
            }
        }
        loop {
            let cx = &mut Context { quic: &mut quic, head: &mut head, now };
            match connection.poll(cx) {
                Output::Wait(_) => break,
                Output::Closed(_) => return,
                output => answer(&mut connection, cx, output, role),
            }
        }
        let held = connection.held_bytes();
        assert!(held < 512 * 1024, "{held} bytes are held");
        while connection.take_datagram().is_some() {}
    }
});
