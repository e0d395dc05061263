//! RFC 9113 §4.1 and §6: frames.

use crate::block;

/// First bytes of a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[allow(missing_docs, reason = "the names are the RFC's")]
mod names {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
    pub const PRIORITY_UPDATE: u8 = 0x10;

    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY_FLAG: u8 = 0x20;

    pub const INITIAL_WINDOW_SIZE: u16 = 4;
}

pub use names::*;

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// HEADERS with a whole block.
pub fn headers(stream: u32, end_stream: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let flags = END_HEADERS | if end_stream { END_STREAM } else { 0 };
    frame(HEADERS, flags, stream, &block(fields))
}

/// The head of a request to the authority `a`.
pub fn request(stream: u32, method: &str, path: &str, end_stream: bool) -> Vec<u8> {
    let fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a")];
    headers(stream, end_stream, &fields)
}

/// An extended CONNECT to a WebSocket at `path` (RFC 8441).
pub fn websocket_request(stream: u32, path: &str) -> Vec<u8> {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a"),
        ("sec-websocket-version", "13"),
    ];
    headers(stream, false, &fields)
}

/// DATA.
pub fn data(stream: u32, end_stream: bool, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, if end_stream { END_STREAM } else { 0 }, stream, bytes)
}

/// SETTINGS.
pub fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entry =
        |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &entries.iter().flat_map(entry).collect::<Vec<_>>())
}

/// How a client begins.
pub fn client_preface(entries: &[(u16, u32)]) -> Vec<u8> {
    [PREFACE, &settings(entries)].concat()
}

/// `RST_STREAM`.
pub fn rst_stream(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// `WINDOW_UPDATE`.
pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}
