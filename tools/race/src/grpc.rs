//! gRPC over HTTP/2, as far as an echo needs it: a message in its frame, and the status in trailers.

/// A call's body: one uncompressed message whose field 1 is `payload`, in a frame.
pub(crate) fn message(payload: &[u8]) -> Vec<u8> {
    // Protocol Buffers: field 1, wire type 2 (length-delimited), and the length as a varint.
    let mut content = vec![0x0a];
    let mut length = payload.len();
    while length >= 0x80 {
        content.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    content.push(length as u8);
    content.extend_from_slice(payload);
    let mut frame = vec![0];
    frame.extend_from_slice(&(content.len() as u32).to_be_bytes());
    frame.extend_from_slice(&content);
    frame
}

/// Returns what is wrong with the status of a call that should have succeeded.
pub(crate) fn complaint(trailers: &[(String, Vec<u8>)]) -> Option<String> {
    match trailers.iter().find(|(name, _)| name == "grpc-status") {
        Some((_, value)) if value == b"0" => None,
        Some((_, value)) => Some(format!("grpc-status {}, not 0", String::from_utf8_lossy(value))),
        None => Some("no grpc-status in the trailers".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stands_in_its_frame() {
        assert_eq!(message(b"abc"), b"\0\0\0\0\x05\x0a\x03abc");
        let long = message(&[7; 300]);
        assert_eq!(long[..8], [0, 0, 0, 1, 47, 0x0a, 0xac, 0x02]);
        assert_eq!(long.len(), 5 + 3 + 300);
    }

    #[test]
    fn a_call_succeeds_by_its_trailers() {
        let status = |value: &str| vec![("grpc-status".to_owned(), value.as_bytes().to_vec())];
        assert_eq!(complaint(&status("0")), None);
        assert_eq!(complaint(&status("13")).as_deref(), Some("grpc-status 13, not 0"));
        assert_eq!(complaint(&[]).as_deref(), Some("no grpc-status in the trailers"));
    }
}
