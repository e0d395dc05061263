//! Content that is uploaded: bytes that need not be held, and that tell their place.

use std::sync::LazyLock;

use fastrand::Rng;

/// The bytes come again after so many: a prime, so that what is lost or doubled is never a whole turn of it.
const PERIOD: usize = 1_048_573;

static OCTETS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut octets = vec![0; PERIOD];
    Rng::with_seed(1).fill(&mut octets);
    octets
});

/// The next bytes after the first `place`: at least one and at most `count`.
pub(crate) fn octets_at(place: u64, count: usize) -> &'static [u8] {
    let start = (place % PERIOD as u64) as usize;
    &OCTETS[start..PERIOD.min(start + count)]
}

/// Returns whether `octets` are those after the first `place`.
pub(crate) fn are_at(place: u64, mut octets: &[u8]) -> bool {
    let mut place = place;
    while !octets.is_empty() {
        let wanted = octets_at(place, octets.len());
        if !octets.starts_with(wanted) {
            return false;
        }
        octets = &octets[wanted.len()..];
        place += wanted.len() as u64;
    }
    true
}

#[test]
fn a_place_that_is_wrong_by_one_is_seen() {
    let place = PERIOD as u64 * 3 - 2;
    let octets = [octets_at(place, 10), octets_at(0, 4)].concat();
    assert_eq!(octets.len(), 6);
    assert!(are_at(place, &octets));
    assert!(!are_at(place + 1, &octets) && !are_at(place, &octets[1..]));
}
