//! RFC 9113 §6.7: PING.

use super::{FrameHeader, flag, kind};

/// The length of the payload, in bytes.
pub(crate) const PAYLOAD_BYTES: u32 = 8;

/// Appends a PING frame, or the acknowledgement of one.
pub(crate) fn write(out: &mut Vec<u8>, payload: [u8; 8], ack: bool) {
    let flags = if ack { flag::ACK } else { 0 };
    FrameHeader { length: PAYLOAD_BYTES, kind: kind::PING, flags, stream: 0 }.write(out);
    out.extend_from_slice(&payload);
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_bytes_of_an_acknowledgement() {
        let mut out = Vec::new();
        super::write(&mut out, *b"12345678", true);
        assert_eq!(out, b"\0\0\x08\x06\x01\0\0\0\x0012345678");
    }
}
