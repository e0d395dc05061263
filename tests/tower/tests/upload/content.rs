//! Content that is uploaded: bytes that need not be held, and that tell their place.

use std::sync::LazyLock;

use fastrand::Rng;

/// The bytes come again after so many: a prime, so that what is lost or doubled is never a whole turn of it.
const PERIOD: usize = 1_048_573;

static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = vec![0; PERIOD];
    Rng::with_seed(1).fill(&mut bytes);
    bytes
});

/// The next bytes after the first `place`: at least one and at most `count`.
pub(crate) fn bytes_at(place: u64, count: usize) -> &'static [u8] {
    let start = (place % PERIOD as u64) as usize;
    &BYTES[start..PERIOD.min(start + count)]
}

/// Returns whether `bytes` are those after the first `place`.
pub(crate) fn are_at(place: u64, mut bytes: &[u8]) -> bool {
    let mut place = place;
    while !bytes.is_empty() {
        let wanted = bytes_at(place, bytes.len());
        if !bytes.starts_with(wanted) {
            return false;
        }
        bytes = &bytes[wanted.len()..];
        place += wanted.len() as u64;
    }
    true
}

#[test]
fn a_place_that_is_wrong_by_one_is_seen() {
    let place = PERIOD as u64 * 3 - 2;
    let bytes = [bytes_at(place, 10), bytes_at(0, 4)].concat();
    assert_eq!(bytes.len(), 6);
    assert!(are_at(place, &bytes));
    assert!(!are_at(place + 1, &bytes) && !are_at(place, &bytes[1..]));
}
