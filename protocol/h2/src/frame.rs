//! RFC 9113 §4, §6: frames as bytes and as structs, without any state.

use bolide_semantics::Context;

pub(crate) mod continuation;
pub(crate) mod data;
pub(crate) mod goaway;
pub(crate) mod headers;
pub(crate) mod ping;
pub(crate) mod priority;
pub(crate) mod priority_update;
pub(crate) mod rst_stream;
pub(crate) mod settings;
pub(crate) mod window_update;

/// Size of a frame's header, in bytes (RFC 9113 §4.1).
pub(crate) const HEADER_BYTES: usize = 9;

/// First bytes of a client's connection (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The types of frames (RFC 9113 §6, RFC 9218 §7.1).
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0x0;
    pub(crate) const HEADERS: u8 = 0x1;
    pub(crate) const PRIORITY: u8 = 0x2;
    pub(crate) const RST_STREAM: u8 = 0x3;
    pub(crate) const SETTINGS: u8 = 0x4;
    pub(crate) const PUSH_PROMISE: u8 = 0x5;
    pub(crate) const PING: u8 = 0x6;
    pub(crate) const GOAWAY: u8 = 0x7;
    pub(crate) const WINDOW_UPDATE: u8 = 0x8;
    pub(crate) const CONTINUATION: u8 = 0x9;
    pub(crate) const PRIORITY_UPDATE: u8 = 0x10;
}

/// The flags of frames.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Of the payload, in bytes.
    pub(crate) length: u32,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    /// Without the reserved bit.
    pub(crate) stream: u32,
}

impl FrameHeader {
    #[inline]
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        Self {
            length: u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]),
            kind: bytes[3],
            flags: bytes[4],
            stream: u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]) & 0x7fff_ffff,
        }
    }

    #[inline]
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [_, l0, l1, l2] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind, self.flags, s0, s1, s2, s3]
    }

    #[inline]
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }

    #[inline]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The big-endian number at the start of `bytes`, or zero when there are fewer than four.
#[inline]
pub(crate) fn read_u32(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |chunk| u32::from_be_bytes(*chunk))
}

/// The payload of a frame whose length is known to be small, if all of it is there.
#[inline]
pub(crate) fn payload<'a>(cx: &'a Context<'_>, header: FrameHeader) -> Option<&'a [u8]> {
    cx.input.unread().get(HEADER_BYTES..HEADER_BYTES + header.length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_as_it_was_written() {
        let header = FrameHeader { length: 0x01_0203, kind: 7, flags: 5, stream: 0x7fff_fffd };
        assert_eq!(FrameHeader::parse(&header.to_bytes()), header);
        assert_eq!(header.to_bytes(), [1, 2, 3, 7, 5, 0x7f, 0xff, 0xff, 0xfd]);
    }

    #[test]
    fn the_reserved_bit_is_ignored() {
        assert_eq!(FrameHeader::parse(&[0, 0, 0, 0, 0, 0x80, 0, 0, 1]).stream, 1);
    }
}
