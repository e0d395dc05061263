//! RFC 9110 §14: range requests in bytes.

use std::fmt;

use crate::limits::{RANGES_COUNT, RANGES_TOTAL_COUNT};

/// A part of a representation, in bytes: `start` belongs to it, `end` doesn't. Never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// One beyond the last byte.
    pub end: u64,
}

impl ByteRange {
    /// How many bytes it has.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.end - self.start
    }

    /// The value of `Content-Range` for this part of `complete_length` bytes (§14.4).
    #[must_use]
    pub fn content_range(&self, complete_length: u64) -> String {
        format!("bytes {self}/{complete_length}")
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.start, self.end - 1)
    }
}

/// The value of `Content-Range` in a 416 response (§14.4).
#[must_use]
pub fn unsatisfied_content_range(complete_length: u64) -> String {
    format!("bytes */{complete_length}")
}

/// The ranges that a `Range` field asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeRequest {
    /// The whole representation: the field is to be ignored, because it is wrong, is in another unit,
    /// or asks for too much.
    Whole,
    /// These parts, in the order in which they were asked for; those that touch or overlap are joined.
    /// At least one.
    Parts(Vec<ByteRange>),
    /// Nothing that there is: 416.
    Unsatisfiable,
}

/// Reads the value of a `Range` field for a representation of `complete_length` bytes.
///
/// An empty representation has no parts: it is sent whole. So is one of which more than
/// [`RANGES_COUNT`] parts are asked for, or more than [`RANGES_TOTAL_COUNT`] times its length in all.
#[must_use]
pub fn parse_range(value: &[u8], complete_length: u64) -> RangeRequest {
    let Some(set) = range_set(value) else { return RangeRequest::Whole };
    if complete_length == 0 {
        return RangeRequest::Whole;
    }
    let mut parts: Vec<ByteRange> = Vec::new();
    let (mut count, mut total) = (0, 0_u64);
    for member in set.split(|byte| *byte == b',') {
        let member = trim(member);
        // §5.6.1.2: empty elements of a list are ignored.
        if member.is_empty() {
            continue;
        }
        count += 1;
        let Some(spec) = Spec::read(member).filter(|_| count <= RANGES_COUNT) else {
            return RangeRequest::Whole;
        };
        if let Some(range) = spec.resolve(complete_length) {
            total = total.saturating_add(range.length());
            parts.push(range);
        }
    }
    if count == 0 || total > complete_length.saturating_mul(RANGES_TOTAL_COUNT) {
        return RangeRequest::Whole;
    }
    if parts.is_empty() {
        return RangeRequest::Unsatisfiable;
    }
    RangeRequest::Parts(joined(parts))
}

/// Returns what follows `bytes=`, in any case.
fn range_set(value: &[u8]) -> Option<&[u8]> {
    let at = value.iter().position(|byte| *byte == b'=')?;
    value[..at].eq_ignore_ascii_case(b"bytes").then(|| &value[at + 1..])
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// One member of a range set (§14.1.1).
#[derive(Debug, Clone, Copy)]
enum Spec {
    /// `first-last`, both inclusive.
    Between(u64, u64),
    /// `first-`.
    From(u64),
    /// `-length`.
    Last(u64),
}

impl Spec {
    fn read(member: &[u8]) -> Option<Self> {
        let at = member.iter().position(|byte| *byte == b'-')?;
        let (first, last) = (&member[..at], &member[at + 1..]);
        match (first.is_empty(), last.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Self::Last(number(last)?)),
            (false, true) => Some(Self::From(number(first)?)),
            (false, false) => {
                let (first_number, last_number) = (number(first)?, number(last)?);
                (first_number <= last_number).then_some(Self::Between(first_number, last_number))
            }
        }
    }

    fn resolve(self, complete_length: u64) -> Option<ByteRange> {
        let (start, end) = match self {
            Self::Between(first, last) => (first, last.saturating_add(1).min(complete_length)),
            Self::From(first) => (first, complete_length),
            Self::Last(length) => (complete_length.saturating_sub(length), complete_length),
        };
        (start < end).then_some(ByteRange { start, end })
    }
}

/// Digits; beyond 64 bits, the largest number: no representation is as long.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    })
}

/// Joins ranges that touch or overlap; each takes the place of the first that it was made from.
fn joined(ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let mut parts: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for mut range in ranges {
        // A range can bridge several parts that were apart until now.
        let mut place = None;
        let mut at = 0;
        while at < parts.len() {
            let part = parts[at];
            if part.start > range.end || range.start > part.end {
                at += 1;
                continue;
            }
            range = ByteRange { start: part.start.min(range.start), end: part.end.max(range.end) };
            parts.remove(at);
            place.get_or_insert(at);
            at = 0;
        }
        parts.insert(place.unwrap_or(parts.len()).min(parts.len()), range);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(value: &str, length: u64) -> Option<Vec<(u64, u64)>> {
        match parse_range(value.as_bytes(), length) {
            RangeRequest::Parts(parts) => {
                Some(parts.iter().map(|part| (part.start, part.end - 1)).collect())
            }
            RangeRequest::Whole => None,
            RangeRequest::Unsatisfiable => Some(Vec::new()),
        }
    }

    #[test]
    fn the_examples_of_the_rfc() {
        assert_eq!(parts("bytes=0-499", 10_000), Some(vec![(0, 499)]));
        assert_eq!(parts("bytes=500-999", 10_000), Some(vec![(500, 999)]));
        assert_eq!(parts("bytes=-500", 10_000), Some(vec![(9500, 9999)]));
        assert_eq!(parts("bytes=9500-", 10_000), Some(vec![(9500, 9999)]));
        assert_eq!(parts("bytes=0-0,-1", 10_000), Some(vec![(0, 0), (9999, 9999)]));
        assert_eq!(parts("bytes= 0-999, 4500-5499, -1000", 10_000).unwrap().len(), 3);
        assert_eq!(parts("bytes=500-600,601-999", 10_000), Some(vec![(500, 999)]));
        assert_eq!(parts("bytes=500-700,601-999", 10_000), Some(vec![(500, 999)]));
        assert_eq!(ByteRange { start: 0, end: 500 }.content_range(1234), "bytes 0-499/1234");
        assert_eq!(unsatisfied_content_range(47_022), "bytes */47022");
    }

    #[test]
    fn what_lies_beyond_the_end() {
        assert_eq!(parts("bytes=0-999", 10), Some(vec![(0, 9)]));
        assert_eq!(parts("bytes=-999", 10), Some(vec![(0, 9)]));
        assert_eq!(parts("bytes=10-", 10), Some(vec![]));
        assert_eq!(parts("bytes=10-20,30-", 10), Some(vec![]));
        assert_eq!(parts("bytes=-0", 10), Some(vec![]));
        assert_eq!(parts("bytes=10-,2-3", 10), Some(vec![(2, 3)]));
        assert_eq!(parts("bytes=0-", 0), None);
        assert_eq!(parts("bytes=18446744073709551616-", 10), Some(vec![]));
        assert_eq!(parts("bytes=1-99999999999999999999999", 10), Some(vec![(1, 9)]));
        assert_eq!(parts("bytes=-99999999999999999999999", 10), Some(vec![(0, 9)]));
    }

    #[test]
    fn what_is_no_range_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=--1",
            "bytes=5-2",
            "bytes=a-b",
            "bytes=1",
            "bytes=1-2-3",
            "bytes=1-2;3-4",
            "bytes 0-1",
            "bytes=+1-2",
            "bytes=1 - 2",
            "lines=1-2",
            "bytes=0-1,x",
            "bytes =0-1",
            "octets=0-1",
        ] {
            assert_eq!(parts(value, 100), None, "{value}");
        }
        assert_eq!(parts("BYTES=,1-2 ,\t5-6,", 100), Some(vec![(1, 2), (5, 6)]));
    }

    #[test]
    fn many_ranges_get_the_whole() {
        let ranges = |count: u64| {
            let set: Vec<_> = (0..count).map(|n| format!("{}-{}", 10 * n, 10 * n)).collect();
            parts(&format!("bytes={}", set.join(",")), 100_000)
        };
        assert_eq!(ranges(16).unwrap().len(), 16);
        assert_eq!(ranges(17), None);
        assert_eq!(ranges(10_000), None);
    }

    #[test]
    fn overlapping_ranges_are_joined_or_get_the_whole() {
        assert_eq!(parts("bytes=0-,0-", 100), Some(vec![(0, 99)]));
        assert_eq!(parts("bytes=0-,0-,0-", 100), None);
        assert_eq!(parts("bytes=0-1,8-9,3-4,1-8", 100), Some(vec![(0, 9)]));
        assert_eq!(parts("bytes=50-59,0-9,55-69", 100), Some(vec![(50, 69), (0, 9)]));
    }

    proptest! {
        #[test]
        fn parts_lie_inside_and_apart(
            length in 1..2000_u64,
            ranges in prop::collection::vec((0..2200_u64, prop::option::of(0..2200_u64)), 1..20),
        ) {
            let set: Vec<_> = ranges
                .iter()
                .map(|(first, extent)| match extent {
                    Some(extent) => format!("{first}-{}", first + extent),
                    None => format!("-{first}"),
                })
                .collect();
            let wanted = |byte: u64| ranges.iter().any(|(first, extent)| match extent {
                Some(extent) => (*first..=first + extent).contains(&byte),
                None => byte + first >= length,
            });
            match parse_range(format!("bytes={}", set.join(",")).as_bytes(), length) {
                RangeRequest::Whole => {}
                RangeRequest::Unsatisfiable => prop_assert!(!(0..length).any(wanted)),
                RangeRequest::Parts(parts) => {
                    prop_assert!(!parts.is_empty() && parts.len() <= RANGES_COUNT);
                    for (index, part) in parts.iter().enumerate() {
                        prop_assert!(part.start < part.end && part.end <= length);
                        for other in &parts[index + 1..] {
                            prop_assert!(part.end < other.start || other.end < part.start);
                        }
                    }
                    for byte in 0..length {
                        let sent = parts.iter().any(|part| (part.start..part.end).contains(&byte));
                        prop_assert_eq!(sent, wanted(byte), "byte {}", byte);
                    }
                }
            }
        }

        #[test]
        fn no_value_is_too_strange(value in prop::collection::vec(any::<u8>(), 0..80), length: u64) {
            let mut field = b"bytes=".to_vec();
            field.extend_from_slice(&value);
            for value in [&value, &field] {
                if let RangeRequest::Parts(parts) = parse_range(value, length) {
                    prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= length));
                }
            }
        }
    }
}
