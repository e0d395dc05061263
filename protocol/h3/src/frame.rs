//! RFC 9114 §7: frames, whose headers arrive in pieces of any size.

use bytes::{Buf, Bytes};

use crate::varint;

/// RFC 9114 §7.2, RFC 9218 §7.2: the types of frames.
pub(crate) mod kind {
    pub(crate) const DATA: u64 = 0x00;
    pub(crate) const HEADERS: u64 = 0x01;
    pub(crate) const CANCEL_PUSH: u64 = 0x03;
    pub(crate) const SETTINGS: u64 = 0x04;
    pub(crate) const PUSH_PROMISE: u64 = 0x05;
    pub(crate) const GOAWAY: u64 = 0x07;
    pub(crate) const MAX_PUSH_ID: u64 = 0x0d;
    pub(crate) const PRIORITY_UPDATE_REQUEST: u64 = 0xf_0700;
    pub(crate) const PRIORITY_UPDATE_PUSH: u64 = 0xf_0701;

    /// RFC 9114 §7.2.8: HTTP/2's PRIORITY, PING, WINDOW_UPDATE and CONTINUATION.
    pub(crate) fn is_of_http2(kind: u64) -> bool {
        matches!(kind, 0x02 | 0x06 | 0x08 | 0x09)
    }
}

/// Two integers of eight bytes.
const HEADER_BYTES_MAX: usize = 16;

/// The frame that a stream is in, or the beginning of the next one's header.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The type of the frame, and how much of its payload is to come.
    pub(crate) current: Option<(u64, u64)>,
    partial: [u8; HEADER_BYTES_MAX],
    partial_bytes: u8,
}

impl Frames {
    /// Returns whether the stream is between two frames.
    pub(crate) fn is_between(&self) -> bool {
        self.current.is_none() && self.partial_bytes == 0
    }

    /// Reads the header of the next frame: its type and the length of its payload. `None` when the input ends before.
    #[inline]
    pub(crate) fn header(&mut self, input: &mut Bytes) -> Option<(u64, u64)> {
        if self.partial_bytes == 0
            && let Some((header, length)) = parse(input)
        {
            input.advance(length);
            self.current = Some(header);
            return Some(header);
        }
        while !input.is_empty() {
            let place = self.partial.get_mut(usize::from(self.partial_bytes))?;
            *place = input.get_u8();
            self.partial_bytes += 1;
            if let Some((header, _)) = parse(&self.partial[..usize::from(self.partial_bytes)]) {
                self.partial_bytes = 0;
                self.current = Some(header);
                return Some(header);
            }
        }
        None
    }

    /// Takes what has come of the payload. The frame is over with its last byte.
    #[inline]
    pub(crate) fn payload(&mut self, input: &mut Bytes) -> Bytes {
        let Some((_, left)) = &mut self.current else { return Bytes::new() };
        let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
        *left -= length as u64;
        if *left == 0 {
            self.current = None;
        }
        input.split_to(length)
    }
}

fn parse(bytes: &[u8]) -> Option<((u64, u64), usize)> {
    let (kind, first) = varint::read(bytes)?;
    let (length, second) = varint::read(&bytes[first..])?;
    Some(((kind, length), first + second))
}

/// Appends the header of a frame.
#[inline]
pub(crate) fn write_header(kind: u64, length: u64, out: &mut Vec<u8>) {
    varint::write(kind, out);
    varint::write(length, out);
}

/// Appends a frame whose payload is one integer.
pub(crate) fn write_integer(kind: u64, value: u64, out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(8);
    varint::write(value, &mut payload);
    write_header(kind, payload.len() as u64, out);
    out.extend_from_slice(&payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_in_single_bytes_is_the_same() {
        let mut bytes = Vec::new();
        write_header(kind::PRIORITY_UPDATE_REQUEST, 70_000, &mut bytes);
        let mut at_once = Frames::default();
        let header = at_once.header(&mut Bytes::from(bytes.clone()));
        assert_eq!(header, Some((kind::PRIORITY_UPDATE_REQUEST, 70_000)));
        let mut slow = Frames::default();
        for (index, byte) in bytes.iter().enumerate() {
            let got = slow.header(&mut Bytes::copy_from_slice(&[*byte]));
            assert_eq!(got, if index + 1 == bytes.len() { header } else { None });
        }
        let mut input = Bytes::from(vec![0; 70_003]);
        assert_eq!(slow.payload(&mut input).len(), 70_000);
        assert!(slow.is_between());
        assert_eq!(input.len(), 3);
    }
}
