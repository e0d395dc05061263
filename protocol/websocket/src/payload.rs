//! RFC 6455 §5.3, §5.4: a piece of a message.

use bytes::Bytes;

use crate::mask::MaskKey;

/// A piece of a message, unmasked when it is looked at: counting bytes costs nothing more.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    bytes: Bytes,
    key: MaskKey,
}

impl Payload {
    pub(crate) fn plain(bytes: Bytes) -> Self {
        Self { bytes, key: MaskKey::NONE }
    }

    pub(crate) fn masked(bytes: Bytes, key: MaskKey) -> Self {
        Self { bytes, key }
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes: shared with what was received, or a copy where they had to be unmasked.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        if self.key == MaskKey::NONE {
            return self.bytes;
        }
        let mut copy = Vec::new();
        self.append_to(&mut copy);
        copy.into()
    }

    /// Appends a copy of the bytes.
    pub fn append_to(&self, to: &mut Vec<u8>) {
        self.key.append(&self.bytes, to);
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Payload({} bytes)", self.len())
    }
}
