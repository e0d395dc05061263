//! RFC 6455 §5.3: masking, eight bytes at a time.

use fastrand::Rng;

/// How much is copied before it is unmasked, in bytes: it is still in the first cache then.
const COPY_BYTES: usize = 8 * 1024;

/// The key of a frame, turned to where in the frame it is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaskKey(pub(crate) [u8; 4]);

impl MaskKey {
    /// The key that changes nothing.
    pub(crate) const NONE: Self = Self([0; 4]);

    /// The key for what comes `count` bytes later.
    #[inline]
    pub(crate) fn advanced(mut self, count: usize) -> Self {
        self.0.rotate_left(count % 4);
        self
    }

    /// Masks or unmasks.
    #[inline]
    pub(crate) fn apply(self, bytes: &mut [u8]) {
        let [a, b, c, d] = self.0;
        let word = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
        let (words, rest) = bytes.as_chunks_mut::<8>();
        for chunk in words {
            *chunk = (u64::from_ne_bytes(*chunk) ^ word).to_ne_bytes();
        }
        for (byte, key) in rest.iter_mut().zip(self.0.iter().cycle()) {
            *byte ^= key;
        }
    }

    /// Appends `from` to `to`, masked or unmasked.
    pub(crate) fn append(self, from: &[u8], to: &mut Vec<u8>) {
        to.reserve(from.len());
        // The pieces are a multiple of four bytes: the key stays as it is.
        for piece in from.chunks(COPY_BYTES) {
            let start = to.len();
            to.extend_from_slice(piece);
            if self != Self::NONE {
                self.apply(&mut to[start..]);
            }
        }
    }
}

/// Source of a client's keys.
#[derive(Debug, Clone)]
pub(crate) struct MaskKeys(Rng);

impl MaskKeys {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// The next frame's key.
    pub(crate) fn next(&mut self) -> MaskKey {
        MaskKey(self.0.u32(..).to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn byte_by_byte(bytes: &[u8], key: [u8; 4]) -> Vec<u8> {
        bytes.iter().enumerate().map(|(at, byte)| byte ^ key[at % 4]).collect()
    }

    proptest! {
        #[test]
        fn words_mask_as_bytes_do(
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
            key in any::<[u8; 4]>(),
            cut in 0_usize..100,
        ) {
            let cut = cut.min(bytes.len());
            let mut masked = bytes.clone();
            let (first, second) = masked.split_at_mut(cut);
            MaskKey(key).apply(first);
            MaskKey(key).advanced(cut).apply(second);
            prop_assert_eq!(masked, byte_by_byte(&bytes, key));
        }
    }

    #[test]
    fn a_copy_longer_than_a_piece_is_masked_throughout() {
        let bytes: Vec<u8> = (0..COPY_BYTES * 2 + 5).map(|at| at as u8).collect();
        let mut copy = vec![1, 2];
        MaskKey([1, 2, 3, 4]).append(&bytes, &mut copy);
        assert_eq!(copy[..2], [1, 2]);
        assert_eq!(copy[2..], byte_by_byte(&bytes, [1, 2, 3, 4]));
    }

    #[test]
    fn keys_differ_from_frame_to_frame_and_seed_to_seed() {
        let mut keys = MaskKeys::new(1);
        let (first, second) = (keys.next(), keys.next());
        assert_ne!(first, second);
        assert_ne!(MaskKeys::new(2).next(), first);
    }
}
