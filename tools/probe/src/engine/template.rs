//! Text that differs from request to request: placeholders, and what replaces them.

use std::fmt::Write as _;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fastrand::Rng;
use smallvec::SmallVec;

use crate::nearest::nearest;

/// The number of a connection, and of a request on it. No two connections of a run have the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) connection: u64,
    pub(super) request: u64,
}

/// Values of placeholders.
#[derive(Debug)]
pub(super) struct Values<'a> {
    pub(super) numbers: Numbers,
    /// The number of the user.
    pub(super) user: u64,
    /// The user's row of data.
    pub(super) row: &'a [Box<str>],
    /// Values that the user has captured so far, by place.
    pub(super) captured: &'a [Option<Box<str>>],
    pub(super) random: &'a mut Rng,
}

impl<'a> Values<'a> {
    /// Of a request that belongs to no user.
    pub(super) fn of(numbers: Numbers, random: &'a mut Rng) -> Self {
        Self { numbers, user: 0, row: &[], captured: &[], random }
    }
}

/// How values from data and from responses are written, so that they stay values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// As they are.
    Plain,
    /// In a field: control characters become spaces (RFC 9110 §5.5).
    Field,
    /// In a path or a query: what neither may have is percent-encoded.
    Path,
    /// As a value of `application/x-www-form-urlencoded`; text around the placeholders, too.
    Form,
    /// As the inside of a JSON string.
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Connection,
    Request,
    User,
    /// A number from the first one on, of so many.
    Random(u64, u64),
    Uuid,
    /// A column of the user's row.
    Row(usize, Escape),
    /// Value that the user has captured at this place.
    Captured(usize, Escape),
}

/// The names that placeholders of a scenario may have.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The columns of the data: `{row.NAME}`.
    pub columns: &'a [String],
    /// Names of captures, by place: `{NAME}`.
    pub captures: &'a [String],
}

/// Text with placeholders.
#[derive(Debug, Clone, Default)]
pub struct Template {
    parts: Vec<Part>,
    /// The whole is written in base64 after the word Basic (RFC 7617).
    is_basic: bool,
}

/// Content that is made for each request.
#[derive(Debug, Clone)]
pub enum Content {
    /// The same for every user.
    Bytes(Bytes),
    /// Each user's own.
    Text(Template),
}

/// The word in braces with which `text`, which follows an opening brace, may begin.
fn word(text: &str) -> Option<&str> {
    let (word, _) = text.split_once('}')?;
    let is_of = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    let begins = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && word.chars().all(is_of)).then_some(word)
}

/// The placeholder that needs no scenario, if the word is one.
fn common(word: &str) -> Option<Part> {
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

/// Returns what `word` stands for in a scenario.
fn named(word: &str, names: &Names<'_>, escape: Escape) -> Result<Part, String> {
    let place = |list: &[String], name: &str| list.iter().position(|known| known == name);
    let column = word.strip_prefix("row.").and_then(|name| place(names.columns, name));
    let part = match (common(word), column, place(names.captures, word)) {
        (Some(part), ..) => Some(part),
        (_, Some(column), _) => Some(Part::Row(column, escape)),
        (.., Some(place)) => Some(Part::Captured(place, escape)),
        _ => (word == "user").then_some(Part::User),
    };
    if let Some(part) = part {
        return Ok(part);
    }
    if word.starts_with("random") {
        return Err(format!(
            "`{{{word}}}` is not a range: use `{{random:1..100}}`, the least number first"
        ));
    }
    let rows = names.columns.iter().map(|column| format!("row.{column}"));
    let words = ["user", "request", "connection", "uuid", "random:1..100"].map(str::to_owned);
    let known: Vec<String> = rows.chain(names.captures.iter().cloned()).chain(words).collect();
    let hint = match nearest(word, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{{{near}}}`?"),
        None => format!("known are {{{}}}; `{{{{` stands for a brace", known.join("}, {")),
    };
    Err(format!("`{{{word}}}` is not a placeholder: {hint}"))
}

impl Template {
    /// Parses `text`; `None`: it has no placeholder. Other braces are text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mut template, mut rest) = (Self::default(), text);
        let mut has_placeholder = false;
        while let Some((before, after)) = rest.split_once('{') {
            template.push_text(before);
            match word(after).and_then(|word| Some((word, common(word)?))) {
                Some((word, part)) => {
                    template.parts.push(part);
                    has_placeholder = true;
                    rest = &after[word.len() + 1..];
                }
                None => {
                    template.push_text("{");
                    rest = after;
                }
            }
        }
        template.push_text(rest);
        has_placeholder.then_some(template)
    }

    /// Parses a text of a scenario: a word in braces has to be a placeholder, and `{{` stands for a brace.
    ///
    /// # Errors
    ///
    /// The first word that is none, and what may be meant.
    pub fn named(text: &str, names: &Names<'_>, escape: Escape) -> Result<Self, String> {
        let (mut template, mut rest) = (Self::default(), text);
        let plain = |text: &str| match escape {
            Escape::Form => form_urlencoded::byte_serialize(text.as_bytes()).collect(),
            _ => text.to_owned(),
        };
        while let Some((before, after)) = rest.split_once('{') {
            template.push_text(&plain(before));
            if let Some(word) = word(after) {
                template.parts.push(named(word, names, escape)?);
                rest = &after[word.len() + 1..];
            } else {
                template.push_text(&plain("{"));
                rest = after.strip_prefix('{').unwrap_or(after);
            }
        }
        template.push_text(&plain(rest));
        Ok(template)
    }

    /// The same text for every request.
    pub fn constant(text: &str) -> Self {
        let mut template = Self::default();
        template.push_text(text);
        template
    }

    /// The whole as credentials of the scheme Basic.
    pub fn into_basic(self) -> Self {
        Self { is_basic: true, ..self }
    }

    /// Adds what follows.
    pub fn append(&mut self, other: Self) {
        for part in other.parts {
            match part {
                Part::Text(text) => self.push_text(&text),
                part => self.parts.push(part),
            }
        }
    }

    fn push_text(&mut self, more: &str) {
        if more.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text(text)) => *text = format!("{text}{more}").into(),
            _ => self.parts.push(Part::Text(more.into())),
        }
    }

    /// The text that is the same for every request.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            _ => None,
        })
    }

    /// The places of what has to be captured before.
    pub fn captures(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().filter_map(|part| match part {
            Part::Captured(place, _) => Some(*place),
            _ => None,
        })
    }

    /// Returns whether `text` has a brace that belongs to no placeholder.
    pub fn leaves_braces(text: &str) -> bool {
        let has_brace = |text: &str| text.contains(['{', '}']);
        match Self::parse(text) {
            None => has_brace(text),
            Some(template) => template.texts().any(has_brace),
        }
    }

    #[inline]
    pub(super) fn write(&self, values: &mut Values<'_>, text: &mut String) {
        let begin = text.len();
        let mut digits = itoa::Buffer::new();
        for part in &self.parts {
            text.push_str(match part {
                Part::Text(text) => text,
                Part::Connection => digits.format(values.numbers.connection),
                Part::Request => digits.format(values.numbers.request),
                Part::User => digits.format(values.user),
                Part::Random(first, count) => digits.format(first + values.random.u64(..*count)),
                Part::Uuid => {
                    write_uuid(values.random, text);
                    continue;
                }
                Part::Row(column, escape) => {
                    let value = values.row.get(*column).map_or("", |value| value);
                    escape.write(value, text);
                    continue;
                }
                Part::Captured(place, escape) => {
                    let value = values.captured.get(*place).and_then(Option::as_deref);
                    escape.write(value.unwrap_or_default(), text);
                    continue;
                }
            });
        }
        if self.is_basic {
            let encoded = STANDARD.encode(&text[begin..]);
            text.truncate(begin);
            text.push_str("Basic ");
            text.push_str(&encoded);
        }
    }
}

impl Content {
    /// Makes the content of one request.
    pub(super) fn write(parts: &[Self], values: &mut Values<'_>) -> Bytes {
        let (mut content, mut text) = (Vec::new(), String::new());
        for part in parts {
            match part {
                Self::Bytes(bytes) => content.extend_from_slice(bytes),
                Self::Text(template) => {
                    text.clear();
                    template.write(values, &mut text);
                    content.extend_from_slice(text.as_bytes());
                }
            }
        }
        content.into()
    }
}

impl Escape {
    /// Returns whether a byte may stay as it is.
    #[inline]
    fn keeps(self, byte: u8) -> bool {
        match self {
            Self::Plain => true,
            Self::Field => byte.is_ascii() && !byte.is_ascii_control(),
            Self::Path => byte.is_ascii_graphic() && byte != b'#',
            Self::Form => byte.is_ascii_alphanumeric(),
            Self::Json => byte >= b' ' && byte != b'"' && byte != b'\\',
        }
    }

    fn write(self, value: &str, text: &mut String) {
        // Nearly every value: one copy.
        if value.bytes().all(|byte| self.keeps(byte)) {
            return text.push_str(value);
        }
        match self {
            Self::Plain => text.push_str(value),
            Self::Field => {
                text.extend(value.chars().map(|c| if c.is_control() { ' ' } else { c }));
            }
            Self::Path => {
                for byte in value.bytes() {
                    if self.keeps(byte) {
                        text.push(char::from(byte));
                    } else {
                        // A text takes all that is written to it.
                        let _ = write!(text, "%{byte:02X}");
                    }
                }
            }
            Self::Form => text.extend(form_urlencoded::byte_serialize(value.as_bytes())),
            Self::Json => {
                let quoted = serde_json::to_string(value).unwrap_or_default();
                text.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
            }
        }
    }
}

/// A random UUID (RFC 9562 §5.4).
fn write_uuid(random: &mut Rng, text: &mut String) {
    let mut bytes = random.u128(..).to_be_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(digit(byte >> 4));
        text.push(digit(byte & 0x0f));
    }
}

/// The templates of one request with their placeholders replaced, in their order.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    text: String,
    /// End of each in the text.
    ends: SmallVec<[usize; 8]>,
}

impl Rendered {
    /// Renders `templates`; what was rendered before is dropped, its memory is used again.
    #[inline]
    pub(super) fn render<'a>(
        &mut self,
        templates: impl Iterator<Item = &'a Template>,
        values: &mut Values<'_>,
    ) {
        self.text.clear();
        self.ends.clear();
        for template in templates {
            template.write(values, &mut self.text);
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
    use fastrand::Rng;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn render(template: &Template) -> String {
        let mut rendered = Rendered::default();
        let numbers = Numbers { connection: 7, request: 1234 };
        let row = ["a b".into(), "\u{e9}&\"#".into()];
        let captured = [None, Some("t&k\r\n\"".into())];
        let mut random = Rng::with_seed(1);
        let mut values =
            Values { user: 5, row: &row, captured: &captured, ..Values::of(numbers, &mut random) };
        rendered.render([template].into_iter(), &mut values);
        rendered.texts().next().unwrap().to_owned()
    }

    fn rendered(text: &str) -> String {
        render(&Template::parse(text).unwrap())
    }

    fn named(text: &str, escape: Escape) -> Result<String, String> {
        let columns = ["name".to_owned(), "word".to_owned()];
        let captures = ["none".to_owned(), "token".to_owned()];
        let names = Names { columns: &columns, captures: &captures };
        Template::named(text, &names, escape).map(|template| render(&template))
    }

    #[test]
    fn values_stay_values_wherever_they_are_written() {
        let text = "{user} {row.name}={token}";
        assert_eq!(named(text, Escape::Plain).unwrap(), "5 a b=t&k\r\n\"");
        assert_eq!(named(text, Escape::Field).unwrap(), "5 a b=t&k  \"");
        let path = named("/{row.word}/{token}", Escape::Path).unwrap();
        assert_eq!(path, "/%C3%A9&\"%23/t&k%0D%0A\"");
        assert_eq!(named("a&{row.word}", Escape::Form).unwrap(), "a%26%C3%A9%26%22%23");
        let json = named("{\"t\":{\"u\":\"{token}\"}}", Escape::Json).unwrap();
        assert_eq!(json, "{\"t\":{\"u\":\"t&k\\r\\n\\\"\"}}");
        let names = Names { columns: &["name".to_owned()], captures: &[] };
        let basic = Template::named("{row.name}:{user}", &names, Escape::Plain).unwrap();
        assert_eq!(render(&basic.into_basic()), "Basic YSBiOjU=");
    }

    #[test]
    fn a_word_in_braces_has_to_be_known_in_a_scenario() {
        assert_eq!(named("{{user} {\"a\":1} {", Escape::Plain).unwrap(), "{user} {\"a\":1} {");
        for (text, hint) in [
            ("{tokn}", "did you mean `{token}`?"),
            ("{row.nam}", "did you mean `{row.name}`?"),
            ("{zzzz}", "known are {row.name}"),
            ("{random:5..1}", "use `{random:1..100}`"),
        ] {
            let said = named(text, Escape::Plain).unwrap_err();
            assert!(said.contains(hint), "{said}");
        }
    }

    #[test]
    fn content_may_have_bytes_that_are_no_text() {
        let numbers = Numbers { connection: 1, request: 2 };
        let parts = [
            Content::Bytes(Bytes::from_static(b"\xff")),
            Content::Text(Template::parse("{request}").unwrap()),
        ];
        let content = Content::write(&parts, &mut Values::of(numbers, &mut Rng::with_seed(1)));
        assert_eq!(content, &b"\xff2"[..]);
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
        let (mut rendered, mut random) = (Rendered::default(), Rng::with_seed(1));
        let (mut numbers, mut uuids) = (BTreeSet::new(), BTreeSet::new());
        for request in 0..100 {
            let place = Numbers { connection: 0, request };
            rendered.render([&template].into_iter(), &mut Values::of(place, &mut random));
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
                let mut random = Rng::with_seed(1);
                rendered.render([&template].into_iter(), &mut Values::of(numbers, &mut random));
            }
            let names = Names { columns: &["row".to_owned()], captures: &["a".to_owned()] };
            for escape in [Escape::Plain, Escape::Path, Escape::Form, Escape::Json] {
                let _ = Template::named(&text, &names, escape);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_escaped_comes_back(value in "[a-z0-9 \\\\\"#%&=+\\PC]{0,24}") {
            let written = |escape: Escape| {
                let mut text = String::new();
                escape.write(&value, &mut text);
                text
            };
            let json = format!("\"{}\"", written(Escape::Json));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), &*value);
            let form = written(Escape::Form);
            let (name, empty) = form_urlencoded::parse(form.as_bytes()).next().unwrap_or_default();
            prop_assert_eq!((&*name, &*empty), (&*value, ""));
            prop_assert!(written(Escape::Path).bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'));
        }
    }

    #[test]
    fn the_texts_of_one_request_come_in_order() {
        let templates = ["a{request}", "{connection}b"].map(|text| Template::parse(text).unwrap());
        let (mut rendered, mut random) = (Rendered::default(), Rng::with_seed(1));
        for request in [9, 10] {
            let numbers = Numbers { connection: 1, request };
            rendered.render(templates.iter(), &mut Values::of(numbers, &mut random));
            let right = [format!("a{request}"), "1b".to_owned()];
            assert!(rendered.texts().eq(right.iter().map(String::as_str)), "{rendered:?}");
        }
        let numbers = Numbers { connection: 0, request: 0 };
        rendered.render(std::iter::empty(), &mut Values::of(numbers, &mut random));
        assert_eq!(rendered.texts().count(), 0);
    }
}
