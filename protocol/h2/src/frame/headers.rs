//! RFC 9113 §6.2: HEADERS.

use std::ops::Range;

use super::{FrameHeader, flag, kind, read_u32};
use crate::error::Fault;

/// Position of the header block in a HEADERS frame's payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) fragment: Range<usize>,
    /// The stream on which this one depends, when the frame says so (deprecated).
    pub(crate) depends_on: Option<u32>,
}

impl Layout {
    #[inline]
    pub(crate) fn of(header: FrameHeader, payload: &[u8]) -> Result<Self, Fault> {
        let mut start = 0;
        let mut end = payload.len();
        if header.flags & (flag::PADDED | flag::PRIORITY) == 0 {
            return Ok(Self { fragment: start..end, depends_on: None });
        }
        if header.has(flag::PADDED) {
            let Some(padding) = payload.first() else {
                return Err(Fault::frame_size("a padded HEADERS frame without payload"));
            };
            start = 1;
            end = end.saturating_sub(usize::from(*padding));
        }
        let mut depends_on = None;
        if header.has(flag::PRIORITY) {
            if payload.len() < start + 5 {
                return Err(Fault::frame_size("a HEADERS frame too short for its priority"));
            }
            depends_on = Some(read_u32(&payload[start..]) & 0x7fff_ffff);
            start += 5;
        }
        if start > end {
            return Err(Fault::protocol("a HEADERS frame's padding is longer than the frame"));
        }
        Ok(Self { fragment: start..end, depends_on })
    }
}

/// Writes the header of the HEADERS frame whose block of `length` bytes follows it in one piece.
#[inline]
pub(crate) fn header(stream: u32, length: u32, end_stream: bool, end_headers: bool) -> FrameHeader {
    let mut flags = if end_headers { flag::END_HEADERS } else { 0 };
    if end_stream {
        flags |= flag::END_STREAM;
    }
    FrameHeader { length, kind: kind::HEADERS, flags, stream }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(flags: u8, payload: &[u8]) -> Result<Layout, Fault> {
        let length = payload.len() as u32;
        Layout::of(FrameHeader { length, kind: kind::HEADERS, flags, stream: 1 }, payload)
    }

    #[test]
    fn padding_and_priority_are_told_from_the_block() {
        let plain = Layout { fragment: 0..3, depends_on: None };
        assert_eq!(layout(flag::END_HEADERS, b"abc"), Ok(plain));
        let padded = Layout { fragment: 1..2, depends_on: None };
        assert_eq!(layout(flag::PADDED, &[2, 7, 0, 0]), Ok(padded));
        let priority = Layout { fragment: 5..6, depends_on: Some(3) };
        assert_eq!(layout(flag::PRIORITY, &[0x80, 0, 0, 3, 16, 7]), Ok(priority));
        let both = Layout { fragment: 6..7, depends_on: Some(3) };
        assert_eq!(layout(flag::PADDED | flag::PRIORITY, &[1, 0, 0, 0, 3, 16, 7, 0]), Ok(both));
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        assert!(layout(flag::PADDED, &[]).is_err());
        assert!(layout(flag::PADDED, &[1]).is_err());
        assert!(layout(flag::PRIORITY, &[0, 0, 0, 3]).is_err());
        assert!(layout(flag::PADDED | flag::PRIORITY, &[2, 0, 0, 0, 3, 16, 7]).is_err());
    }
}
