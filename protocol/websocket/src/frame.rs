//! RFC 6455 §5.2: the heads of frames.

use bolide_semantics::Role;

use crate::CloseCode;
use crate::failure::Failure;
use crate::mask::MaskKey;

/// The longest head: two bytes, a length of eight, a key of four.
pub(crate) const HEAD_BYTES_MAX: usize = 14;

/// The longest content of a control frame (RFC 6455 §5.5), in bytes.
pub(crate) const CONTROL_BYTES_MAX: usize = 125;

const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;
const RSV2_AND_3: u8 = 0x30;
const MASKED: u8 = 0x80;
const LENGTH_OF_2: u8 = 126;
const LENGTH_OF_8: u8 = 127;

/// Type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    fn parse(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    pub(crate) fn is_control(self) -> bool {
        self as u8 >= 8
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHead {
    pub(crate) fin: bool,
    /// RSV1: the message is compressed (RFC 7692 §6).
    pub(crate) compressed: bool,
    pub(crate) opcode: Opcode,
    pub(crate) key: Option<MaskKey>,
    pub(crate) length: u64,
}

const fn wrong(what: &'static str) -> Failure {
    Failure { code: CloseCode::PROTOCOL, what, limit: None }
}

static RESERVED: Failure = wrong("a frame has a reserved bit set that no extension uses");
static UNKNOWN: Failure = wrong("a frame has an opcode that RFC 6455 does not define");
static CONTROL_FRAGMENT: Failure = wrong("a control frame is fragmented");
static CONTROL_LENGTH: Failure = wrong("a control frame has more than 125 bytes");
static UNMASKED: Failure = wrong("a client's frame is not masked");
static MASKED_BY_SERVER: Failure = wrong("a server's frame is masked");
static NOT_MINIMAL: Failure = wrong("a frame's length is not in its shortest form");
static TOO_LONG: Failure = wrong("a frame's length has its highest bit set");

impl FrameHead {
    /// Reads a head that `peer` has sent: it, and its length in bytes. `None` when more must come.
    pub(crate) fn parse(bytes: &[u8], peer: Role) -> Result<Option<(Self, usize)>, Failure> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        if first & RSV2_AND_3 != 0 {
            return Err(RESERVED);
        }
        let opcode = Opcode::parse(first & 0x0f).ok_or(UNKNOWN)?;
        let fin = first & FIN != 0;
        let compressed = first & RSV1 != 0;
        if opcode.is_control() && !fin {
            return Err(CONTROL_FRAGMENT);
        }
        if compressed && (opcode.is_control() || opcode == Opcode::Continuation) {
            return Err(RESERVED);
        }
        let Some(&second) = bytes.get(1) else { return Ok(None) };
        let masked = second & MASKED != 0;
        match peer {
            Role::Client if !masked => return Err(UNMASKED),
            Role::Server if masked => return Err(MASKED_BY_SERVER),
            Role::Client | Role::Server => {}
        }
        let short = second & !MASKED;
        if opcode.is_control() && usize::from(short) > CONTROL_BYTES_MAX {
            return Err(CONTROL_LENGTH);
        }
        let Some((length, used)) = length(short, &bytes[2..])? else { return Ok(None) };
        let at = 2 + used;
        let key = match bytes.get(at..at + 4) {
            _ if !masked => None,
            Some(&[a, b, c, d]) => Some(MaskKey([a, b, c, d])),
            _ => return Ok(None),
        };
        let end = if masked { at + 4 } else { at };
        Ok(Some((Self { fin, compressed, opcode, key, length }, end)))
    }

    /// The head as it is sent, and its length.
    pub(crate) fn encoded(&self) -> ([u8; HEAD_BYTES_MAX], usize) {
        let fin = if self.fin { FIN } else { 0 };
        let compressed = if self.compressed { RSV1 } else { 0 };
        let masked = if self.key.is_some() { MASKED } else { 0 };
        let mut head = [0; HEAD_BYTES_MAX];
        head[0] = fin | compressed | self.opcode as u8;
        let mut end = 2;
        match (u8::try_from(self.length), u16::try_from(self.length)) {
            (Ok(short), _) if short < LENGTH_OF_2 => head[1] = masked | short,
            (_, Ok(medium)) => {
                head[1] = masked | LENGTH_OF_2;
                head[2..4].copy_from_slice(&medium.to_be_bytes());
                end = 4;
            }
            _ => {
                head[1] = masked | LENGTH_OF_8;
                head[2..10].copy_from_slice(&self.length.to_be_bytes());
                end = 10;
            }
        }
        if let Some(key) = self.key {
            head[end..end + 4].copy_from_slice(&key.0);
            end += 4;
        }
        (head, end)
    }
}

/// The length of the content, and how many bytes more than one it takes.
fn length(short: u8, rest: &[u8]) -> Result<Option<(u64, usize)>, Failure> {
    match short {
        LENGTH_OF_2 => {
            let Some(bytes) = rest.first_chunk::<2>() else { return Ok(None) };
            let length = u16::from_be_bytes(*bytes);
            if length < u16::from(LENGTH_OF_2) {
                return Err(NOT_MINIMAL);
            }
            Ok(Some((u64::from(length), 2)))
        }
        LENGTH_OF_8 => {
            let Some(bytes) = rest.first_chunk::<8>() else { return Ok(None) };
            let length = u64::from_be_bytes(*bytes);
            if length >> 63 != 0 {
                return Err(TOO_LONG);
            }
            if length <= u64::from(u16::MAX) {
                return Err(NOT_MINIMAL);
            }
            Ok(Some((length, 8)))
        }
        short => Ok(Some((u64::from(short), 0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_length_comes_back() {
        for length in [0, 1, 125, 126, 65_535, 65_536, u64::MAX >> 1] {
            for key in [None, Some(MaskKey([1, 2, 3, 4]))] {
                let opcode = Opcode::Binary;
                let head = FrameHead { fin: true, compressed: true, opcode, key, length };
                let (bytes, end) = head.encoded();
                let bytes = &bytes[..end];
                let peer = if key.is_some() { Role::Client } else { Role::Server };
                for cut in 0..bytes.len() {
                    assert_eq!(FrameHead::parse(&bytes[..cut], peer), Ok(None), "{length} {cut}");
                }
                assert_eq!(FrameHead::parse(bytes, peer), Ok(Some((head, bytes.len()))));
            }
        }
    }

    #[test]
    fn what_rfc_6455_forbids_is_refused() {
        let refused = |bytes: &[u8], peer| FrameHead::parse(bytes, peer).unwrap_err().what;
        assert_eq!(refused(&[0xa2], Role::Server), RESERVED.what);
        assert_eq!(refused(&[0xc9], Role::Server), RESERVED.what);
        assert_eq!(refused(&[0xc0], Role::Server), RESERVED.what);
        for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
            assert_eq!(refused(&[0x80 | opcode], Role::Server), UNKNOWN.what);
        }
        assert_eq!(refused(&[0x09], Role::Server), CONTROL_FRAGMENT.what);
        assert_eq!(refused(&[0x89, 126], Role::Server), CONTROL_LENGTH.what);
        assert_eq!(refused(&[0x82, 0], Role::Client), UNMASKED.what);
        assert_eq!(refused(&[0x82, 0x80], Role::Server), MASKED_BY_SERVER.what);
        assert_eq!(refused(&[0x82, 126, 0, 125], Role::Server), NOT_MINIMAL.what);
        let short = [0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        assert_eq!(refused(&short, Role::Server), NOT_MINIMAL.what);
        let long = [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(refused(&long, Role::Server), TOO_LONG.what);
    }
}
