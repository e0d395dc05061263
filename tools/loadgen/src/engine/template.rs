//! Text that differs from request to request: placeholders, and the numbers that replace them.

use std::ops::Range;

use smallvec::SmallVec;

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
}

/// The placeholders, as they are written.
const PLACEHOLDERS: [(&str, Part); 2] =
    [("{connection}", Part::Connection), ("{request}", Part::Request)];

/// Text with at least one placeholder.
#[derive(Debug)]
pub(super) struct Template(Vec<Part>);

impl Template {
    /// Parses `text`; `None`: it has no placeholder. Other braces are text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((at, name, part)) = PLACEHOLDERS
            .into_iter()
            .filter_map(|(name, part)| Some((rest.find(name)?, name, part)))
            .min_by_key(|(at, ..)| *at)
        {
            parts.push(Part::Text(rest[..at].into()));
            parts.push(part);
            rest = &rest[at + name.len()..];
        }
        if parts.is_empty() {
            return None;
        }
        parts.push(Part::Text(rest.into()));
        parts.retain(|part| *part != Part::Text("".into()));
        Some(Self(parts))
    }

    #[inline]
    fn write(&self, numbers: Numbers, text: &mut String) {
        let mut digits = itoa::Buffer::new();
        for part in &self.0 {
            text.push_str(match part {
                Part::Text(text) => text,
                Part::Connection => digits.format(numbers.connection),
                Part::Request => digits.format(numbers.request),
            });
        }
    }
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
    ) {
        self.text.clear();
        self.ends.clear();
        for template in templates {
            template.write(numbers, &mut self.text);
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

    fn rendered(text: &str) -> String {
        let mut rendered = Rendered::default();
        let template = Template::parse(text).unwrap();
        rendered.render([&template].into_iter(), Numbers { connection: 7, request: 1234 });
        rendered.texts().next().unwrap().to_owned()
    }

    #[test]
    fn placeholders_are_replaced_and_other_braces_are_text() {
        assert_eq!(rendered("/{request}?c={connection}&again={request}"), "/1234?c=7&again=1234");
        assert_eq!(rendered("{request}{connection}"), "12347");
        assert_eq!(rendered("{\"n\":{request},\"x\":{}}"), "{\"n\":1234,\"x\":{}}");
        for text in ["", "/ping", "{}", "{ request }", "{requests}", "{connection"] {
            assert!(Template::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_texts_of_one_request_come_in_order() {
        let templates = ["a{request}", "{connection}b"].map(|text| Template::parse(text).unwrap());
        let mut rendered = Rendered::default();
        for request in [9, 10] {
            rendered.render(templates.iter(), Numbers { connection: 1, request });
            let right = [format!("a{request}"), "1b".to_owned()];
            assert!(rendered.texts().eq(right.iter().map(String::as_str)), "{rendered:?}");
        }
        rendered.render(std::iter::empty(), Numbers { connection: 0, request: 0 });
        assert_eq!(rendered.texts().count(), 0);
    }
}
