//! RFC 9113 §6.8: GOAWAY.

use super::{FrameHeader, kind, read_u32};
use crate::error::ErrorCode;

/// The payload without debug data, in bytes.
pub(crate) const PAYLOAD_BYTES_MIN: u32 = 8;

/// The last stream that a GOAWAY frame leaves standing, and its error code.
pub(crate) fn parse(payload: &[u8]) -> (u32, u32) {
    (read_u32(payload) & 0x7fff_ffff, read_u32(payload.get(4..).unwrap_or_default()))
}

/// Appends a GOAWAY frame.
pub(crate) fn write(out: &mut Vec<u8>, last: u32, code: ErrorCode, debug: &str) {
    let length = PAYLOAD_BYTES_MIN + debug.len() as u32;
    FrameHeader { length, kind: kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&(code as u32).to_be_bytes());
    out.extend_from_slice(debug.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_back_as_it_was_written() {
        let mut out = Vec::new();
        write(&mut out, 7, ErrorCode::EnhanceYourCalm, "why");
        assert_eq!(out[..9], [0, 0, 11, 7, 0, 0, 0, 0, 0]);
        assert_eq!(parse(&out[9..]), (7, 0xb));
        assert!(out.ends_with(b"why"));
    }
}
