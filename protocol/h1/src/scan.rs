//! RFC 9110 §5.5, RFC 9112 §2.2, §3: where the text of a line ends, eight bytes at a time.

use memchr::memchr;

use crate::error::{Failure, Stop};

const ONES: u64 = u64::MAX / 255;
const HIGHS: u64 = ONES * 0x80;

/// Marks, in the top bit of each byte, those below `limit` (at most 0x80). Above the first marked
/// byte marks may be wrong, so only the lowest one counts.
#[inline]
const fn below(word: u64, limit: u64) -> u64 {
    word.wrapping_sub(ONES * limit) & !word & HIGHS
}

/// As [`below`]: those that equal `byte`.
#[inline]
const fn equal(word: u64, byte: u64) -> u64 {
    below(word ^ (ONES * byte), 1)
}

/// The bytes from `at` on, if there are so many. One comparison says whether there are.
#[inline]
pub(crate) fn chunk_at<const LENGTH: usize>(bytes: &[u8], at: usize) -> Option<&[u8; LENGTH]> {
    bytes.get(at..at + LENGTH).and_then(|chunk| chunk.first_chunk())
}

macro_rules! first {
    ($bytes:ident, $from:ident, $marks:expr, $stops:expr) => {{
        let mut at = $from;
        while let Some(chunk) = chunk_at::<8>($bytes, at) {
            let marks = $marks(u64::from_le_bytes(*chunk));
            if marks != 0 {
                return at + marks.trailing_zeros() as usize / 8;
            }
            at += 8;
        }
        while let Some(byte) = $bytes.get(at) {
            if $stops(*byte) {
                break;
            }
            at += 1;
        }
        at
    }};
}

/// The place, at or after `from`, of the first control byte; the length when there is none.
#[inline]
pub(crate) fn control(bytes: &[u8], mut from: usize) -> usize {
    let is_control = |byte: &u8| *byte < 0x20 || *byte == 0x7f;
    let marks = |word: u64| below(word, 0x20) | equal(word, 0x7f);
    // All sixteen are looked at without a branch, which is a few instructions.
    while let Some(chunk) = chunk_at::<16>(bytes, from) {
        if chunk.iter().fold(false, |some, byte| some | is_control(byte)) {
            let both = u128::from_le_bytes(*chunk);
            let (first, second) = (marks(both as u64), marks((both >> 64) as u64));
            let place = if first != 0 {
                first.trailing_zeros() / 8
            } else {
                8 + second.trailing_zeros() / 8
            };
            return from + place as usize;
        }
        from += 16;
    }
    first!(bytes, from, marks, |byte| is_control(&byte))
}

/// The place, at or after `from`, of the first byte that can't stand in a field value; the length
/// when there is none.
#[inline]
pub(crate) fn value_end(bytes: &[u8], from: usize) -> usize {
    let mut at = control(bytes, from);
    while bytes.get(at) == Some(&b'\t') {
        at = control(bytes, at + 1);
    }
    at
}

/// The place, at or after `from`, of the first byte that can't stand in a request target.
#[inline]
pub(crate) fn target_end(bytes: &[u8], from: usize) -> usize {
    first!(
        bytes,
        from,
        |word| below(word, 0x21) | equal(word, 0x7f) | equal(word, b'#'.into()) | (word & HIGHS),
        |byte: u8| !(0x21..0x7f).contains(&byte) || byte == b'#'
    )
}

/// A fault in the line of which `at` is a part. It counts once the line is complete: so the same
/// bytes come to the same verdict however they were split.
#[cold]
pub(crate) fn fault(bytes: &[u8], at: usize, failure: &'static Failure) -> Stop {
    let rest = bytes.get(at..).unwrap_or_default();
    if memchr(b'\n', rest).is_some() { Stop::Fault(failure) } else { Stop::Incomplete }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::BARE_LF;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_ends_are_those_of_a_plain_loop(
            bytes in proptest::collection::vec(
                prop_oneof![
                    9 => 0x20_u8..0x7f,
                    1 => any::<u8>(),
                    1 => Just(b'\t'),
                    1 => 0x80_u8..,
                ],
                0..60,
            ),
            from in 0_usize..60,
        ) {
            let from = from.min(bytes.len());
            let plain = |stops: fn(u8) -> bool| {
                bytes[from..].iter().position(|byte| stops(*byte)).map_or(bytes.len(), |at| from + at)
            };
            let value = plain(|byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f);
            prop_assert_eq!(value_end(&bytes, from), value);
            let target = plain(|byte| !bolide_semantics::is_valid_target(&[byte]));
            prop_assert_eq!(target_end(&bytes, from), target);
        }
    }

    #[test]
    fn a_fault_waits_for_the_end_of_its_line() {
        assert_eq!(fault(b"a b", 1, &BARE_LF), Stop::Incomplete);
        assert_eq!(fault(b"a b\n", 1, &BARE_LF), Stop::Fault(&BARE_LF));
    }
}
