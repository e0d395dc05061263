//! Common parts of the end-to-end tests: what to send, and how to compare what comes back.

use std::path::{Path, PathBuf};

use bolide_launcher::{root, skip};
use fastrand::Rng;

/// Sizes at which something changes: nothing, one byte, a frame, a default window, a block, and
/// what needs many of all of them.
pub const SIZES: &[usize] =
    &[0, 1, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1024 * 1024, 8 * 1024 * 1024];

/// Bytes that no compression and no pattern helps with; the same for the same seed.
pub fn random(count: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; count];
    Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// Compares content by bytes, and names the first difference.
#[track_caller]
pub fn assert_same(got: &[u8], sent: &[u8], what: &str) {
    let first = got.iter().zip(sent).position(|(a, b)| a != b);
    let shorter = got.len().min(sent.len());
    let first = first.or(if got.len() == sent.len() { None } else { Some(shorter) });
    if let Some(at) = first {
        panic!("{what}: {} bytes came of {}; the first wrong one is {at}", got.len(), sent.len());
    }
}

/// A file with random bytes.
pub fn random_file(directory: &Path, count: usize) -> PathBuf {
    let path = directory.join(format!("random-{count}"));
    std::fs::write(&path, random(count, count as u64)).expect("target can be written");
    path
}

/// Returns what starts programs of Debian 13, by their names, if one that `test` needs is among those that `cargo xtask tools` has
/// installed.
pub fn debian_13(program: &str, test: &str) -> Option<PathBuf> {
    let directory = root().join("target/tools/debian-13");
    if directory.join("tree/usr/bin").join(program).exists() {
        return Some(directory.join("run"));
    }
    skip(&format!("{program} of Debian 13 is not installed ({test})"));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_repeat_by_seed() {
        assert_eq!(random(1000, 7), random(1000, 7));
        assert_ne!(random(1000, 7), random(1000, 8));
        assert_eq!(random(13, 1).len(), 13);
    }

    #[test]
    #[should_panic(expected = "the first wrong one is 1")]
    fn a_wrong_byte_is_found() {
        assert_same(b"abc", b"aXc", "three bytes");
    }

    #[test]
    #[should_panic(expected = "the first wrong one is 2")]
    fn a_missing_byte_is_found() {
        assert_same(b"ab", b"abc", "three bytes");
    }
}
