//! RFC 9113 §6.4: RST_STREAM.

use super::{FrameHeader, kind};
use crate::error::ErrorCode;

/// The length of the payload, in bytes.
pub(crate) const PAYLOAD_BYTES: u32 = 4;

/// Appends a RST_STREAM frame.
pub(crate) fn write(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    FrameHeader { length: PAYLOAD_BYTES, kind: kind::RST_STREAM, flags: 0, stream }.write(out);
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_reset() {
        let mut out = Vec::new();
        write(&mut out, 3, ErrorCode::Cancel);
        assert_eq!(out, [0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8]);
    }
}
