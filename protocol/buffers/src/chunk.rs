//! A piece of a body on its way out, and whose memory it is.

use bytes::Bytes;

/// Bytes that are to be sent, and whether they may wait as they are.
///
/// Bytes are *lent* unless said otherwise: they may be a slice of a
/// [`ReceiveBuffer`](crate::ReceiveBuffer), of which a few would keep a whole block alive, so whoever has to
/// keep them [detaches](crate::detach) them. Bytes of one's own, a file in memory say, are shared as long as
/// they wait, however many wait for the same.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    /// The bytes.
    pub bytes: Bytes,
    /// Whether they are no slice of a block that is read into.
    pub is_own: bool,
}

impl Chunk {
    /// Bytes that are no slice of a block that is read into: they are never copied to wait.
    #[inline]
    #[must_use]
    pub fn own(bytes: Bytes) -> Self {
        Self { bytes, is_own: true }
    }

    /// The same, ready to wait for longer than the turn.
    #[must_use]
    pub fn detach(self) -> Self {
        let Self { bytes, is_own } = self;
        if is_own { Self::own(bytes) } else { Self::own(crate::detach(bytes)) }
    }
}

impl From<Bytes> for Chunk {
    #[inline]
    fn from(bytes: Bytes) -> Self {
        Self { bytes, is_own: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_copied_to_wait_and_what_is_own_is_shared() {
        let bytes = Bytes::from(vec![1; 4096]);
        let lent = Chunk::from(bytes.clone()).detach();
        assert_eq!(lent.bytes, bytes);
        assert_ne!(lent.bytes.as_ptr(), bytes.as_ptr());
        let own = Chunk::own(bytes.clone()).detach();
        assert_eq!(own.bytes.as_ptr(), bytes.as_ptr());
    }

    #[test]
    fn nothing_is_copied_twice() {
        let once = Chunk::from(Bytes::from(vec![1; 100])).detach();
        let address = once.bytes.as_ptr();
        assert_eq!(once.detach().bytes.as_ptr(), address);
    }
}
