//! Text that differs from request to request: placeholders, and what replaces them.

use std::fmt::Write as _;
use std::ops::Range;

use smallvec::SmallVec;

use super::random::Random;

/// The number of a connection, and of a request on it. No two connections of a run have the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) connection: u64,
    pub(super) request: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Connection,
    Request,
    /// A number from the first one on, of so many.
    Random(u64, u64),
    Uuid,
}

/// Text with at least one placeholder.
#[derive(Debug)]
pub(crate) struct Template(Vec<Part>);

/// The placeholder that the inside of braces is, if it is one.
fn placeholder(word: &str) -> Option<Part> {
    match word {
        "connection" => Some(Part::Connection),
        "request" => Some(Part::Request),
        "uuid" => Some(Part::Uuid),
        _ => {
            let (first, last) = word.strip_prefix("random:")?.split_once("..")?;
            let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
            let count = last.checked_sub(first)?.checked_add(1)?;
            Some(Part::Random(first, count))
        }
    }
}

impl Template {
    /// Parses `text`; `None`: it has no placeholder. Other braces are text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            plain.push_str(before);
            let inside = after.split_once('}');
            match inside.and_then(|(word, after)| Some((placeholder(word)?, after))) {
                Some((part, after)) => {
                    parts.extend([Part::Text(std::mem::take(&mut plain).into()), part]);
                    rest = after;
                }
                None => {
                    plain.push('{');
                    rest = after;
                }
            }
        }
        if parts.is_empty() {
            return None;
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain.into()));
        parts.retain(|part| *part != Part::Text("".into()));
        Some(Self(parts))
    }

    /// Whether `text` has a brace that belongs to no placeholder.
    pub(crate) fn leaves_braces(text: &str) -> bool {
        let has_brace = |text: &str| text.contains(['{', '}']);
        match Self::parse(text) {
            None => has_brace(text),
            Some(Self(parts)) => {
                parts.iter().any(|part| matches!(part, Part::Text(text) if has_brace(text)))
            }
        }
    }

    #[inline]
    fn write(&self, numbers: Numbers, random: &mut Random, text: &mut String) {
        let mut digits = itoa::Buffer::new();
        for part in &self.0 {
            text.push_str(match part {
                Part::Text(text) => text,
                Part::Connection => digits.format(numbers.connection),
                Part::Request => digits.format(numbers.request),
                Part::Random(first, count) => digits.format(first + random.below(*count)),
                Part::Uuid => {
                    write_uuid(random, text);
                    continue;
                }
            });
        }
    }
}

/// A random UUID (RFC 9562 §5.4).
fn write_uuid(random: &mut Random, text: &mut String) {
    let (high, low) = (random.next(), random.next());
    let (first, second, third) = (high >> 32, high >> 16 & 0xffff, high & 0xfff);
    let (fourth, fifth) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    // A text takes all that is written to it.
    let _ = write!(text, "{first:08x}-{second:04x}-4{third:03x}-{fourth:04x}-{fifth:012x}");
}

/// The templates of one request with their placeholders replaced, in their order.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    text: String,
    /// Where each ends in the text.
    ends: SmallVec<[usize; 8]>,
}

impl Rendered {
    /// Renders `templates`; what was rendered before is dropped, its memory is used again.
    #[inline]
    pub(super) fn render<'a>(
        &mut self,
        templates: impl Iterator<Item = &'a Template>,
        numbers: Numbers,
        random: &mut Random,
    ) {
        self.text.clear();
        self.ends.clear();
        for template in templates {
            template.write(numbers, random, &mut self.text);
            self.ends.push(self.text.len());
        }
    }

    /// Each rendered text.
    #[inline]
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let begin_of = |index: usize| if index == 0 { 0 } else { self.ends[index - 1] };
        let range = move |(index, end): (usize, &usize)| -> Range<usize> { begin_of(index)..*end };
        self.ends.iter().enumerate().map(range).map(|range| &self.text[range])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn rendered(text: &str) -> String {
        let mut rendered = Rendered::default();
        let template = Template::parse(text).unwrap();
        let numbers = Numbers { connection: 7, request: 1234 };
        rendered.render([&template].into_iter(), numbers, &mut Random::new(1, 0));
        rendered.texts().next().unwrap().to_owned()
    }

    #[test]
    fn placeholders_are_replaced_and_other_braces_are_text() {
        assert_eq!(rendered("/{request}?c={connection}&again={request}"), "/1234?c=7&again=1234");
        assert_eq!(rendered("{request}{connection}"), "12347");
        assert_eq!(rendered("{\"n\":{request},\"x\":{}}"), "{\"n\":1234,\"x\":{}}");
        for text in [
            "",
            "/ping",
            "{}",
            "{ request }",
            "{requests}",
            "{connection",
            "{random:2..1}",
            "{random:1..18446744073709551616}",
        ] {
            assert!(Template::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn random_numbers_keep_to_their_range_and_uuids_to_their_form() {
        let template = Template::parse("{random:3..5} {uuid}").unwrap();
        let (mut rendered, mut random) = (Rendered::default(), Random::new(1, 0));
        let (mut numbers, mut uuids) = (BTreeSet::new(), BTreeSet::new());
        for request in 0..100 {
            rendered.render(
                [&template].into_iter(),
                Numbers { connection: 0, request },
                &mut random,
            );
            let (number, uuid) = rendered.texts().next().unwrap().split_once(' ').unwrap();
            numbers.insert(number.parse::<u64>().unwrap());
            let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
            assert_eq!(&uuid[14..15], "4", "{uuid}");
            assert!("89ab".contains(&uuid[19..20]), "{uuid}");
            uuids.insert(uuid.to_owned());
        }
        assert_eq!((numbers, uuids.len()), (BTreeSet::from([3, 4, 5]), 100));
    }

    #[test]
    fn a_brace_outside_of_placeholders_is_found() {
        for text in ["", "/a", "/{request}", "/{random:1..2}{uuid}"] {
            assert!(!Template::leaves_braces(text), "{text}");
        }
        for text in ["/{", "/}", "/{id}", "/{request}}", "/{random:2..1}", "{{uuid}"] {
            assert!(Template::leaves_braces(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "[{}a-z:.0-9]{0,40}|\\PC{0,20}") {
            let _ = Template::leaves_braces(&text);
            if let Some(template) = Template::parse(&text) {
                let mut rendered = Rendered::default();
                let numbers = Numbers { connection: u64::MAX, request: u64::MAX };
                rendered.render([&template].into_iter(), numbers, &mut Random::new(1, 0));
            }
        }
    }

    #[test]
    fn the_texts_of_one_request_come_in_order() {
        let templates = ["a{request}", "{connection}b"].map(|text| Template::parse(text).unwrap());
        let (mut rendered, mut random) = (Rendered::default(), Random::new(1, 0));
        for request in [9, 10] {
            let numbers = Numbers { connection: 1, request };
            rendered.render(templates.iter(), numbers, &mut random);
            let right = [format!("a{request}"), "1b".to_owned()];
            assert!(rendered.texts().eq(right.iter().map(String::as_str)), "{rendered:?}");
        }
        let numbers = Numbers { connection: 0, request: 0 };
        rendered.render(std::iter::empty(), numbers, &mut random);
        assert_eq!(rendered.texts().count(), 0);
    }
}
