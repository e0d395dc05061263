//! RFC 6455 §7.4: why a connection is closed.

use std::fmt;

use bytes::Bytes;

/// A close code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// The purpose of the connection is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// The end goes away: a server shuts down, a browser leaves the page.
    pub const GOING_AWAY: Self = Self(1001);
    /// The peer broke the protocol.
    pub const PROTOCOL: Self = Self(1002);
    /// A kind of message that isn't understood.
    pub const UNSUPPORTED: Self = Self(1003);
    /// No code was given: never on the wire.
    pub const NONE: Self = Self(1005);
    /// The connection ended without a close frame: never on the wire.
    pub const ABNORMAL: Self = Self(1006);
    /// The content doesn't fit its kind: text that is not UTF-8.
    pub const INVALID_DATA: Self = Self(1007);
    /// A rule of ours was broken.
    pub const POLICY: Self = Self(1008);
    /// A message is too big.
    pub const TOO_BIG: Self = Self(1009);
    /// A condition that the server did not expect.
    pub const INTERNAL: Self = Self(1011);

    /// Returns whether the code may stand in a close frame.
    #[must_use]
    pub fn is_sendable(self) -> bool {
        matches!(self.0, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// How a peer closed the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// Its code; [`CloseCode::NONE`] when it gave none.
    pub code: CloseCode,
    /// Its reason: UTF-8, often empty.
    pub reason: Bytes,
}

impl Close {
    /// The end of a connection on which no close frame came.
    #[must_use]
    pub const fn abnormal() -> Self {
        Self { code: CloseCode::ABNORMAL, reason: Bytes::new() }
    }

    /// The reason as text.
    #[must_use]
    pub fn reason(&self) -> &str {
        std::str::from_utf8(&self.reason).unwrap_or_default()
    }

    /// Reads the content of a close frame. `Err` says what is wrong with it, and the code for that.
    pub(crate) fn parse(content: &[u8]) -> Result<Self, (CloseCode, &'static str)> {
        let (code, reason) = match content {
            [] => return Ok(Self { code: CloseCode::NONE, reason: Bytes::new() }),
            [_] => return Err((CloseCode::PROTOCOL, "a close frame has half a code")),
            [high, low, reason @ ..] => (CloseCode(u16::from_be_bytes([*high, *low])), reason),
        };
        if !code.is_sendable() {
            return Err((CloseCode::PROTOCOL, "a close frame has a code that may not be sent"));
        }
        if simdutf8::basic::from_utf8(reason).is_err() {
            return Err((CloseCode::INVALID_DATA, "the reason of a close frame is not UTF-8"));
        }
        Ok(Self { code, reason: Bytes::copy_from_slice(reason) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_for_the_wire() {
        for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 3000, 4999] {
            assert!(CloseCode(code).is_sendable(), "{code}");
        }
        for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
            assert!(!CloseCode(code).is_sendable(), "{code}");
        }
    }

    #[test]
    fn contents_are_read_or_refused() {
        assert_eq!(Close::parse(b"").unwrap().code, CloseCode::NONE);
        let close = Close::parse(b"\x03\xe8done").unwrap();
        assert_eq!((close.code, close.reason()), (CloseCode::NORMAL, "done"));
        assert_eq!(Close::parse(b"\x03").unwrap_err().0, CloseCode::PROTOCOL);
        assert_eq!(Close::parse(b"\x03\xed").unwrap_err().0, CloseCode::PROTOCOL);
        assert_eq!(Close::parse(b"\x03\xe8\xff").unwrap_err().0, CloseCode::INVALID_DATA);
    }
}
