//! Requests and pieces as bytes.

/// The head of a masked WebSocket message of so many bytes.
pub(crate) fn websocket_head(bytes: usize) -> Vec<u8> {
    [&[0x82, 0xff][..], &(bytes as u64).to_be_bytes(), &[0; 4]].concat()
}

/// A request with a chunked body.
pub(crate) fn chunked(path: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes()
}

/// A chunk of one byte.
pub(crate) const CHUNK: &[u8] = b"1\r\nx\r\n";
