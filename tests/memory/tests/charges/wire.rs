//! Requests and frames as bytes.

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A header block of literals that are not indexed.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            integer(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// RFC 7541 §5.1, with a prefix of seven bits.
fn integer(block: &mut Vec<u8>, mut value: usize) {
    if value < 127 {
        return block.push(value as u8);
    }
    block.push(127);
    value -= 127;
    while value >= 128 {
        block.push(value as u8 | 128);
        value >>= 7;
    }
    block.push(value as u8);
}

pub(crate) fn request(method: &str, path: &str, flags: u8, stream: u32) -> Vec<u8> {
    let fields =
        [(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost")];
    frame(HEADERS, END_HEADERS | flags, stream, &block(&fields))
}

/// The handshake of a WebSocket connection over HTTP/1.1, and `more` fields.
pub(crate) fn upgrade(path: &str, more: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{more}\r\n"
    )
}

/// A WebSocket frame as a client sends it, with a mask of zeros.
pub(crate) fn message(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ ..126 => bytes.push(128 | length as u8),
        length @ ..65_536 => {
            bytes.push(128 | 126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(128 | 127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(payload);
    bytes
}
