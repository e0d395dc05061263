//! RFC 6455: the handshake and frames of a client.

/// The handshake over HTTP/1.1, with `more` fields.
pub fn upgrade(path: &str, more: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
    .into_bytes()
}

/// A frame that begins with `first`, with a mask of zeros.
pub fn websocket(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len();
    let mut bytes = match length {
        0..126 => vec![first, 128 | length as u8],
        126..65_536 => [&[first, 128 | 126][..], &(length as u16).to_be_bytes()].concat(),
        _ => [&[first, 128 | 127][..], &(length as u64).to_be_bytes()].concat(),
    };
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(payload);
    bytes
}
