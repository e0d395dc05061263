//! RFC 9113 §6.3: PRIORITY, which is deprecated and has no effect.

use super::read_u32;

/// The length of the payload, in bytes.
pub(crate) const PAYLOAD_BYTES: u32 = 5;

/// The stream that the frame's stream would depend on.
pub(crate) fn depends_on(payload: &[u8]) -> u32 {
    read_u32(payload) & 0x7fff_ffff
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_exclusive_flag_is_no_part_of_the_stream() {
        assert_eq!(super::depends_on(&[0x80, 0, 0, 5, 1]), 5);
    }
}
