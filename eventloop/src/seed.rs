//! Numbers that can't be predicted.

use std::hash::{BuildHasher, RandomState};

/// A seed that can't be predicted: identifiers may be made from it, keys may not.
#[must_use]
pub fn random_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    for (number, bytes) in seed.chunks_mut(8).enumerate() {
        bytes.copy_from_slice(&RandomState::new().hash_one(number).to_ne_bytes());
    }
    seed
}
