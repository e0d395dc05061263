//! RFC 9113 §6.10: CONTINUATION.

use super::{FrameHeader, flag, kind};

/// The header of a CONTINUATION frame with `length` bytes of a header block.
pub(crate) fn header(stream: u32, length: u32, end_headers: bool) -> FrameHeader {
    let flags = if end_headers { flag::END_HEADERS } else { 0 };
    FrameHeader { length, kind: kind::CONTINUATION, flags, stream }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_one_ends_the_block() {
        assert!(!header(1, 2, false).has(flag::END_HEADERS));
        assert!(header(1, 2, true).has(flag::END_HEADERS));
    }
}
