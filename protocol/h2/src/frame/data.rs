//! RFC 9113 §6.1: DATA.

use super::{FrameHeader, flag, kind};
use crate::error::Fault;

/// How a DATA frame's payload is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes before the data: the padding's length, when there is one.
    pub(crate) before: u32,
    pub(crate) data: u32,
    pub(crate) padding: u32,
}

impl Layout {
    /// `first` is the payload's first byte, which must be known when the frame is padded; without it
    /// `None` is returned.
    #[inline]
    pub(crate) fn of(header: FrameHeader, first: Option<u8>) -> Result<Option<Self>, Fault> {
        if !header.has(flag::PADDED) {
            return Ok(Some(Self { before: 0, data: header.length, padding: 0 }));
        }
        if header.length == 0 {
            return Err(Fault::frame_size("a padded DATA frame without payload"));
        }
        let Some(padding) = first.map(u32::from) else { return Ok(None) };
        match (header.length - 1).checked_sub(padding) {
            Some(data) => Ok(Some(Self { before: 1, data, padding })),
            None => Err(Fault::protocol("a DATA frame's padding is longer than the frame")),
        }
    }
}

/// Appends the header of a DATA frame with `length` bytes.
#[inline]
pub(crate) fn write_header(out: &mut Vec<u8>, stream: u32, length: u32, end_stream: bool) {
    let flags = if end_stream { flag::END_STREAM } else { 0 };
    FrameHeader { length, kind: kind::DATA, flags, stream }.write(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: u32, flags: u8) -> FrameHeader {
        FrameHeader { length, kind: kind::DATA, flags, stream: 1 }
    }

    #[test]
    fn padding_is_told_from_data() {
        let plain = Layout { before: 0, data: 9, padding: 0 };
        assert_eq!(Layout::of(header(9, 0), None), Ok(Some(plain)));
        let padded = Layout { before: 1, data: 5, padding: 3 };
        assert_eq!(Layout::of(header(9, flag::PADDED), Some(3)), Ok(Some(padded)));
        let all = Layout { before: 1, data: 0, padding: 8 };
        assert_eq!(Layout::of(header(9, flag::PADDED), Some(8)), Ok(Some(all)));
        assert_eq!(Layout::of(header(9, flag::PADDED), None), Ok(None));
        assert!(Layout::of(header(9, flag::PADDED), Some(9)).is_err());
        assert!(Layout::of(header(0, flag::PADDED), None).is_err());
    }
}
