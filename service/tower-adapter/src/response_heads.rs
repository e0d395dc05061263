//! Heads of responses that are sent repeatedly, in the form in which connections remember them.
//!
//! Most responses of a service have the same few fields. Their map is made anew for each of them, but once the same
//! lines have come twice they are [`Fields`], of which the engine sends what it sent before.

use bolide_server::{Fields, HeaderMap};
use http::header::CONTENT_LENGTH;

/// How many heads of responses a worker remembers.
const REMEMBERED_COUNT: usize = 8;

/// The names and values of a head that is remembered have at most so many bytes in all.
const HEAD_BYTES_MAX: usize = 1024;

/// The heads of responses that a worker remembers.
#[derive(Debug, Default)]
pub(crate) struct ResponseHeads {
    places: [Place; REMEMBERED_COUNT],
    /// Position of the one that was found last.
    latest: usize,
}

#[derive(Debug, Default)]
struct Place {
    /// Of the head that came last, unless that was the one below.
    seen: u64,
    fields: Option<Fields>,
}

impl ResponseHeads {
    /// The lines of `map` but its `Content-Length`, which the engine adds: `announced` is what it will say. `None`
    /// when they are sent as they are given: the first time, when one of them is a secret, when there are too many,
    /// or when what the engine adds would be another length, or stand elsewhere.
    #[inline]
    pub(crate) fn find(&mut self, map: &HeaderMap, announced: Option<u64>) -> Option<&Fields> {
        if !self.places[self.latest].is(map, announced) {
            self.latest = self.search(map, announced)?;
        }
        self.places[self.latest].fields.as_ref()
    }

    /// The number of the place where the lines stand, or stand now.
    fn search(&mut self, map: &HeaderMap, announced: Option<u64>) -> Option<usize> {
        let Sample { hash, lines_count } = sample(map, announced)?;
        let number = (hash >> 56) as usize % REMEMBERED_COUNT;
        let place = &mut self.places[number];
        if !place.is(map, announced) {
            if std::mem::replace(&mut place.seen, hash) != hash {
                return None;
            }
            let lines = map.iter().take(lines_count);
            let own = Fields::new(lines.map(|(name, value)| (name.clone(), value.clone())));
            *place = Place { seen: 0, fields: Some(own) };
        }
        Some(number)
    }
}

impl Place {
    /// Returns whether these lines stand here.
    #[inline]
    fn is(&self, map: &HeaderMap, announced: Option<u64>) -> bool {
        let Some(fields) = &self.fields else { return false };
        let mut given = map.iter();
        for line in fields.iter() {
            match given.next() {
                Some(given) if given == line && !given.1.is_sensitive() => {}
                _ => return false,
            }
        }
        match given.next() {
            None => true,
            Some((name, value)) => {
                *name == CONTENT_LENGTH
                    && given.next().is_none()
                    && announced.is_some_and(|announced| says(value.as_bytes(), announced))
            }
        }
    }
}

/// Sample that tells most heads apart at a glance.
struct Sample {
    hash: u64,
    /// Without `Content-Length`.
    lines_count: usize,
}

#[inline]
fn sample(map: &HeaderMap, announced: Option<u64>) -> Option<Sample> {
    let (mut hash, mut lines_count, mut bytes) = (1_u64, 0, 0);
    for (name, value) in map {
        if *name == CONTENT_LENGTH {
            // The last one, for no line comes after it.
            if lines_count + 1 != map.len() || !says(value.as_bytes(), announced?) {
                return None;
            }
            break;
        }
        if value.is_sensitive() {
            return None;
        }
        lines_count += 1;
        bytes += name.as_str().len() + value.len();
        hash = mix(hash, value.as_bytes());
    }
    (bytes <= HEAD_BYTES_MAX).then_some(Sample { hash, lines_count })
}

/// Takes length, first, middle and last bytes of a value into a hash.
#[inline]
fn mix(hash: u64, value: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let word = |at: usize| value[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let length = value.len();
    let text = if length >= 8 {
        word(0) ^ word(length / 2 - 4).rotate_left(13) ^ word(length - 8).rotate_left(29)
    } else {
        value.iter().fold(0, |text, byte| text << 8 | u64::from(*byte))
    };
    (hash.rotate_left(5) ^ text ^ length as u64).wrapping_mul(FACTOR)
}

/// Returns whether a value is this number as the engine writes it.
#[inline]
fn says(value: &[u8], number: u64) -> bool {
    let mut left = number;
    for byte in value.iter().rev() {
        if u64::from(byte.wrapping_sub(b'0')) != left % 10 {
            return false;
        }
        left /= 10;
    }
    left == 0 && (value.len() == 1 || value.first().is_some_and(|first| *first != b'0'))
}

#[cfg(test)]
mod tests {
    use bolide_server::{HeaderName, HeaderValue};

    use super::*;

    fn map(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        map
    }

    /// Returns what is found for the lines when they have come often.
    fn found(lines: &[(&'static str, &str)], announced: Option<u64>) -> Option<String> {
        let mut heads = ResponseHeads::default();
        let map = map(lines);
        assert!(heads.find(&map, announced).is_none(), "the first time");
        heads.find(&map, announced);
        let shown = |fields: &Fields| format!("{:?}", fields.iter().collect::<Vec<_>>());
        heads.find(&map, announced).map(shown)
    }

    #[test]
    fn the_lines_are_those_of_the_map_without_the_length() {
        let lines =
            [("set-cookie", "a"), ("x-a", "long enough to be sampled"), ("set-cookie", "b")];
        let plain = format!("{:?}", map(&lines).iter().collect::<Vec<_>>());
        assert_eq!(found(&lines, None), Some(plain.clone()));
        assert_eq!(found(&lines, Some(7)), Some(plain.clone()));
        let with_length = [&lines[..], &[("content-length", "70")]].concat();
        assert_eq!(found(&with_length, Some(70)), Some(plain));
    }

    #[test]
    fn another_length_or_another_place_of_it_is_left_as_it_is() {
        for value in ["7", "700", "070", "7o", "+70", ""] {
            assert_eq!(
                found(&[("x-a", "1"), ("content-length", value)], Some(70)),
                None,
                "{value}"
            );
        }
        assert_eq!(found(&[("x-a", "1"), ("content-length", "70")], None), None);
        assert_eq!(found(&[("content-length", "70"), ("x-a", "1")], Some(70)), None);
        let twice = [("content-length", "70"), ("content-length", "70")];
        assert_eq!(found(&twice, Some(70)), None);
        assert!(found(&[("content-length", "0")], Some(0)).is_some());
        assert_eq!(found(&[("content-length", "00")], Some(0)), None);
    }

    #[test]
    fn what_differs_is_told_apart_whatever_its_sample() {
        let mut heads = ResponseHeads::default();
        // Equal length, beginning, middle and end.
        let values = ["01234567a.89abcdef.b76543210", "01234567c.89abcdef.d76543210"];
        for value in values.iter().cycle().take(8) {
            let map = map(&[("etag", value)]);
            assert!(heads.find(&map, None).is_none(), "another one stands there");
            for _ in 0..2 {
                assert!(heads.find(&map, None).unwrap().iter().eq(&map), "{value}");
            }
        }
    }

    #[test]
    fn secrets_and_long_heads_are_not_remembered() {
        let mut heads = ResponseHeads::default();
        let mut secret = map(&[("x-a", "1")]);
        secret.iter_mut().for_each(|(_, value)| value.set_sensitive(true));
        let long = map(&[("x-a", &"x".repeat(HEAD_BYTES_MAX))]);
        for map in [&secret, &long] {
            for _ in 0..3 {
                assert!(heads.find(map, None).is_none());
            }
        }
        assert!(heads.places.iter().all(|place| place.fields.is_none()));
    }

    #[test]
    fn what_has_become_a_secret_is_none_that_is_known() {
        let mut heads = ResponseHeads::default();
        let mut map = map(&[("x-a", "1")]);
        heads.find(&map, None);
        assert!(heads.find(&map, None).is_some());
        map.iter_mut().for_each(|(_, value)| value.set_sensitive(true));
        assert!(heads.find(&map, None).is_none());
    }

    #[test]
    fn heads_that_never_come_again_make_nothing() {
        let mut heads = ResponseHeads::default();
        for number in 0..1000 {
            assert!(heads.find(&map(&[("x-request-id", &number.to_string())]), None).is_none());
        }
    }
}
