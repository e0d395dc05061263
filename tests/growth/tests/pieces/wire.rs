//! Requests and frames as bytes.

/// How HTTP/2 begins, with these settings.
pub(crate) fn preface(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(self::settings(settings));
    bytes
}

/// A SETTINGS frame.
pub(crate) fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let entry =
        |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(4, 0, 0, &settings.iter().flat_map(entry).collect::<Vec<_>>())
}

/// SETTINGS_INITIAL_WINDOW_SIZE.
pub(crate) const INITIAL_WINDOW: u16 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A DATA frame without END_STREAM.
pub(crate) fn data(stream: u32, payload: &[u8]) -> Vec<u8> {
    frame(0, 0, stream, payload)
}

/// A HEADERS frame whose fields are literals. `end`: nothing follows.
pub(crate) fn headers(stream: u32, fields: &[(&str, &str)], end: bool) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    frame(1, if end { 5 } else { 4 }, stream, &block)
}

/// A request of HTTP/2.
pub(crate) fn request(stream: u32, method: &str, path: &str, end: bool) -> Vec<u8> {
    let fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a")];
    headers(stream, &fields, end)
}

/// An extended CONNECT for a WebSocket on stream 1 (RFC 8441).
pub(crate) fn websocket_over_h2() -> Vec<u8> {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/ws"),
        (":authority", "a"),
        ("sec-websocket-version", "13"),
    ];
    headers(1, &fields, false)
}

pub(crate) const WEBSOCKET_OVER_HTTP1: &[u8] =
    b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A masked WebSocket frame of one byte that begins with `first`.
pub(crate) fn websocket_frame(first: u8) -> Vec<u8> {
    vec![first, 0x81, 0, 0, 0, 0, b'x']
}

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
