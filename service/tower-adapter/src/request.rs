//! From the engine's request to `http::Request`.

use std::sync::LazyLock;

use bolide_server::{
    ByMark, Bytes, FieldName, Head, HeadMark, HeaderMap, HeaderName, HeaderValue, Version,
};
use bytes::BytesMut;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme, Uri};

use crate::body::Body;

/// How large the block is that the texts of heads are copied into, in bytes. A service that keeps a
/// field keeps a block.
const BLOCK_BYTES: usize = 4 * 1024;

/// A longer text gets memory of its own, in bytes.
const SHARED_BYTES_MAX: usize = BLOCK_BYTES / 4;

/// The interned names as `http` has them, by their numbers.
static NAMES: LazyLock<Vec<HeaderName>> = LazyLock::new(|| {
    FieldName::ALL.iter().map(|name| HeaderName::from_static(name.as_str())).collect()
});

/// How many heads of HTTP/1.1 a worker remembers what it made of them. A client sends the same again and again, or
/// the same but for the target.
const REMEMBERED_COUNT: usize = 8;

/// A head that came, and what was made of it once it had come twice.
#[derive(Debug, Default)]
struct Remembered {
    head: Head,
    made: Option<Parts>,
}

/// What a worker keeps for the translation of requests.
#[derive(Debug, Default)]
pub(crate) struct Translator {
    /// What was made of heads of HTTP/2: those that come again and again have marks that stay.
    marked: ByMark<Parts>,
    /// What was made of heads of HTTP/1.1, found by their octets: of these only the one that came last has a mark.
    remembered: [Remembered; REMEMBERED_COUNT],
    /// That mark, and the number of what was made of it: the same mark again, and nothing has to be compared.
    latest: Option<(HeadMark, usize)>,
    /// Texts of heads stand in it, one after another. When all of its requests are gone it is used
    /// from its beginning again.
    block: BytesMut,
    /// That of the request before: most ask for the same.
    authority: Option<Authority>,
}

impl Translator {
    /// The request as tower knows it, with this body. `None` when the target is none that `http` allows.
    #[inline]
    pub(crate) fn translate(&mut self, head: &Head, body: Body) -> Option<http::Request<Body>> {
        if let Some(mark) = head.mark().filter(|_| head.version() == Version::HTTP_2) {
            return Some(http::Request::from_parts(self.by_mark(mark, head)?, body));
        }
        let number = match self.latest {
            Some((mark, number)) if head.mark() == Some(mark) => Some(number),
            _ => self.search(head),
        };
        if let Some(number) = number
            && let Some(made) = &self.remembered[number].made
        {
            return Some(http::Request::from_parts(made.clone(), body));
        }
        let text = self.text(head);
        Some(http::Request::from_parts(self.make(head, &text)?, body))
    }

    #[inline]
    fn by_mark(&mut self, mark: HeadMark, head: &Head) -> Option<Parts> {
        if let Some(made) = self.marked.get(mark) {
            return Some(made.clone());
        }
        if !may_stay(head) {
            let text = self.text(head);
            return self.make(head, &text);
        }
        let made = self.make_own(head)?;
        self.marked.insert(mark, made.clone());
        Some(made)
    }

    /// The number of what was made of an equal head. What has come twice is remembered from then on.
    fn search(&mut self, head: &Head) -> Option<usize> {
        let length = head.text().len();
        let number = (length + head.field_count()) % REMEMBERED_COUNT;
        let place = &mut self.remembered[number];
        if !(place.head.says_the_same(head) && place.head.method() == head.method()) {
            if may_stay(head) {
                place.head.copy_from(head);
                place.made = None;
                self.latest = self.latest.filter(|(_, latest)| *latest != number);
            }
            return None;
        }
        if place.made.is_none() {
            self.remembered[number].made = Some(self.make_own(head)?);
        }
        self.latest = head.mark().map(|mark| (mark, number));
        Some(number)
    }

    /// In memory of its own, for it stays.
    fn make_own(&mut self, head: &Head) -> Option<Parts> {
        self.make(head, &Text { from: head.text(), to: Bytes::copy_from_slice(head.text()) })
    }

    fn make(&mut self, head: &Head, text: &Text<'_>) -> Option<Parts> {
        let (mut parts, ()) = http::Request::new(()).into_parts();
        parts.method = head.method().clone();
        parts.uri = self.uri(head, text)?;
        parts.version = head.version();
        parts.headers = fields(head, text);
        if let Some(protocol) = head.protocol() {
            parts.extensions.insert(hyper::ext::Protocol::from(protocol));
        }
        Some(parts)
    }

    /// The fields of trailers.
    pub(crate) fn trailers(&mut self, head: &Head) -> HeaderMap {
        fields(head, &self.text(head))
    }

    /// One copy of a head's text, of which every part is a slice.
    fn text<'a>(&mut self, head: &'a Head) -> Text<'a> {
        let from = head.text();
        if from.len() > SHARED_BYTES_MAX {
            return Text { from, to: Bytes::copy_from_slice(from) };
        }
        if self.block.capacity() < from.len() {
            self.block.reserve(BLOCK_BYTES);
        }
        self.block.extend_from_slice(from);
        Text { from, to: self.block.split().freeze() }
    }

    /// The target in the form in which it was sent: HTTP/2 and absolute targets with scheme and
    /// authority, CONNECT with its authority alone.
    fn uri(&mut self, head: &Head, text: &Text<'_>) -> Option<Uri> {
        let path = head.path_and_query();
        let is_whole =
            head.version() == Version::HTTP_2 || head.scheme().is_some() || path.is_empty();
        if !is_whole {
            return Uri::from_maybe_shared(text.shared(path.as_bytes())).ok();
        }
        let mut parts = http::uri::Parts::default();
        if let Some(authority) = head.authority() {
            parts.authority = Some(self.authority(authority)?);
        }
        if !path.is_empty() {
            parts.path_and_query =
                Some(PathAndQuery::from_maybe_shared(text.shared(path.as_bytes())).ok()?);
            // `http` has a scheme only together with an authority.
            if let Some(scheme) = head.scheme()
                && parts.authority.is_some()
            {
                parts.scheme = Some(Scheme::try_from(scheme).ok()?);
            }
        }
        Uri::from_parts(parts).ok()
    }

    fn authority(&mut self, name: &str) -> Option<Authority> {
        // To the octet: `Authority` itself compares without case.
        if let Some(known) = self.authority.as_ref().filter(|known| known.as_str() == name) {
            return Some(known.clone());
        }
        let made: Authority = name.parse().ok()?;
        self.authority = Some(made.clone());
        Some(made)
    }
}

/// Whether a head may be remembered: it is short, and says nothing secret.
fn may_stay(head: &Head) -> bool {
    head.text().len() <= SHARED_BYTES_MAX && !head.fields().any(|field| field.sensitive)
}

/// A head's text and its copy.
struct Text<'a> {
    from: &'a [u8],
    to: Bytes,
}

impl Text<'_> {
    /// The part of the copy that is `part` of the text.
    #[inline]
    fn shared(&self, part: &[u8]) -> Bytes {
        let start = (part.as_ptr() as usize).wrapping_sub(self.from.as_ptr() as usize);
        match start.checked_add(part.len()) {
            Some(end) if end <= self.to.len() => self.to.slice(start..end),
            // Empty parts, and text that stands elsewhere.
            _ => Bytes::copy_from_slice(part),
        }
    }
}

fn fields(head: &Head, text: &Text<'_>) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(head.field_count());
    for field in head.fields() {
        let name = match field.known {
            Some(known) => NAMES[known as usize].clone(),
            None => match HeaderName::from_lowercase(field.name.as_bytes()) {
                Ok(name) => name,
                Err(_) => continue,
            },
        };
        if let Ok(mut value) = HeaderValue::from_maybe_shared(text.shared(field.value)) {
            value.set_sensitive(field.sensitive);
            map.append(name, value);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use bolide_server::{HeadMarks, Method};

    use super::*;

    fn head(path: &str, value: &str) -> Head {
        let mut head = Head::default();
        let span = head.push_text(b"http");
        head.set_scheme(span);
        let span = head.push_text(b"a:1");
        head.set_authority(span);
        let span = head.push_text(path.as_bytes());
        head.set_path(span);
        for text in [value, "same"] {
            let name = head.push_text(b"x-a");
            let value = head.push_text(text.as_bytes());
            head.push_named(name, value);
        }
        let value = head.push_text(b"text/plain");
        head.push_known(FieldName::ContentType, value);
        head
    }

    /// The target and all fields.
    fn said(translator: &mut Translator, head: &Head) -> String {
        let made = translator.translate(head, Body::empty()).unwrap();
        format!("{} {} {:?}", made.method(), made.uri(), made.headers())
    }

    #[test]
    fn a_head_that_is_remembered_says_what_it_said() {
        let mut translator = Translator::default();
        let heads = [head("/a", "one"), head("/b", "one"), head("/a", "two"), head("/a", "one")];
        for _ in 0..4 {
            for head in &heads {
                for _ in 0..3 {
                    assert_eq!(said(&mut translator, head), said(&mut Translator::default(), head));
                }
            }
        }
        let mut posted = heads[0].clone();
        posted.set_method(Method::POST);
        for _ in 0..3 {
            assert!(said(&mut translator, &posted).starts_with("POST http://a:1/a {"));
        }
        assert!(said(&mut translator, &heads[0]).starts_with("GET http://a:1/a {"));
    }

    #[test]
    fn a_mark_that_came_last_stands_for_what_was_made_of_it() {
        let mut translator = Translator::default();
        let mut marks = HeadMarks::default();
        let mut marked = |path| {
            let mut head = head(path, "one");
            head.set_mark(marks.make());
            head
        };
        // The last two take the place of each other.
        let heads = [marked("/a"), head("/a", "one"), marked("/a"), marked("/b"), marked("/c")];
        for times in 1..4 {
            for head in heads.iter().cycle().take(15) {
                for _ in 0..times {
                    assert_eq!(said(&mut translator, head), said(&mut Translator::default(), head));
                }
            }
        }
        let latest = heads[4].mark().unwrap();
        assert!(translator.latest.is_some_and(|(mark, _)| mark == latest));
    }

    #[test]
    fn heads_of_http2_are_known_by_their_marks() {
        let mut translator = Translator::default();
        let mut marks = HeadMarks::default();
        // More than are remembered.
        let mut heads: Vec<_> = (0..600).map(|number| head(&format!("/{number}"), "one")).collect();
        heads.extend([head("/0", "one"), head("/0", "two")]);
        heads[7].set_method(Method::POST);
        for head in &mut heads {
            head.set_mark(marks.make());
        }
        for head in heads.iter().chain(&heads).chain(heads.iter().rev()) {
            let made = translator.by_mark(head.mark().unwrap(), head).unwrap();
            let made = format!("{} {} {:?}", made.method, made.uri, made.headers);
            assert_eq!(made, said(&mut Translator::default(), head));
        }
        let made = translator.marked.get(heads[7].mark().unwrap()).expect("it came last");
        assert_eq!((&made.method, made.uri.path()), (&Method::POST, "/7"));
    }

    #[test]
    fn secrets_and_long_heads_are_not_remembered() {
        let mut translator = Translator::default();
        let mut marks = HeadMarks::default();
        let mut secret = head("/a", "one");
        secret.mark_sensitive();
        let long = head("/a", &"x".repeat(SHARED_BYTES_MAX));
        for head in [secret, long] {
            let mark = marks.make();
            for _ in 0..3 {
                said(&mut translator, &head);
                assert_eq!(translator.by_mark(mark, &head).unwrap().uri, "http://a:1/a");
            }
            assert!(translator.marked.get(mark).is_none());
        }
        assert!(translator.remembered.iter().all(|place| place.head.field_count() == 0));
    }
}
