//! RFC 9113 §6.9: WINDOW_UPDATE.

use super::{FrameHeader, kind, read_u32};

/// The length of the payload, in bytes.
pub(crate) const PAYLOAD_BYTES: u32 = 4;

/// The largest window there can be, in bytes.
pub(crate) const WINDOW_BYTES_MAX: u32 = 0x7fff_ffff;

/// The increment of a WINDOW_UPDATE frame, which may be zero.
#[inline]
pub(crate) fn parse(payload: &[u8]) -> u32 {
    read_u32(payload) & 0x7fff_ffff
}

/// Appends a WINDOW_UPDATE frame; `stream` is zero for the connection.
pub(crate) fn write(out: &mut Vec<u8>, stream: u32, increment: u32) {
    debug_assert!(increment != 0 && increment <= WINDOW_BYTES_MAX, "not an increment");
    FrameHeader { length: PAYLOAD_BYTES, kind: kind::WINDOW_UPDATE, flags: 0, stream }.write(out);
    out.extend_from_slice(&increment.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_back_as_it_was_written() {
        let mut out = Vec::new();
        write(&mut out, 1, 0x7fff_ffff);
        assert_eq!(out[..9], [0, 0, 4, 8, 0, 0, 0, 0, 1]);
        assert_eq!(parse(&out[9..]), 0x7fff_ffff);
        assert_eq!(parse(&[0x80, 0, 0, 1]), 1);
    }
}
