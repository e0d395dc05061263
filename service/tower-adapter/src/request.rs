//! From the engine's request to `http::Request`.

use std::sync::LazyLock;

use bolide_server::{Bytes, FieldName, Head, HeaderMap, HeaderName, HeaderValue, Version};
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

/// State of a worker for the translation of requests.
#[derive(Debug, Default)]
pub(crate) struct Translator {
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
        let text = self.text(head);
        Some(http::Request::from_parts(self.make(head, &text)?, body))
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

    /// The target in the form in which it was sent: HTTP/2, HTTP/3 and absolute targets with scheme and
    /// authority, CONNECT with its authority alone.
    fn uri(&mut self, head: &Head, text: &Text<'_>) -> Option<Uri> {
        let path = head.path_and_query();
        let is_whole =
            head.version() >= Version::HTTP_2 || head.scheme().is_some() || path.is_empty();
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
        // To the byte: `Authority` itself compares without case.
        if let Some(known) = self.authority.as_ref().filter(|known| known.as_str() == name) {
            return Some(known.clone());
        }
        let made: Authority = name.parse().ok()?;
        self.authority = Some(made.clone());
        Some(made)
    }
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
    use bolide_server::Method;

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
            head.append("x-a", text.as_bytes());
        }
        head.push_field(FieldName::ContentType, b"text/plain");
        head
    }

    /// The target and all fields.
    fn said(translator: &mut Translator, head: &Head) -> String {
        let made = translator.translate(head, Body::empty()).unwrap();
        format!("{} {} {:?}", made.method(), made.uri(), made.headers())
    }

    #[test]
    fn every_head_is_translated_as_if_it_were_the_first() {
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
}
