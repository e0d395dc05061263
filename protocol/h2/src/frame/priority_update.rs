//! RFC 9218 §7.1: PRIORITY_UPDATE.

use super::read_u32;

/// A PRIORITY_UPDATE frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PriorityUpdate<'a> {
    /// The stream whose priority changes.
    pub(crate) stream: u32,
    /// A `Priority` field value.
    pub(crate) value: &'a [u8],
}

impl<'a> PriorityUpdate<'a> {
    /// `None` when the payload is too short.
    pub(crate) fn parse(payload: &'a [u8]) -> Option<Self> {
        let value = payload.get(4..)?;
        Some(Self { stream: read_u32(payload) & 0x7fff_ffff, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_and_a_value() {
        let update = PriorityUpdate { stream: 9, value: b"u=1" };
        assert_eq!(PriorityUpdate::parse(b"\x80\0\0\x09u=1"), Some(update));
        assert_eq!(PriorityUpdate::parse(b"\0\0\0"), None);
    }
}
