//! From the engine's request to `http::Request`.

use std::sync::Arc;

use bolide_server::{Bytes, Head, HeaderMap, HeaderName, HeaderValue, Request, Version};
use http::uri::{Authority, Parts, PathAndQuery, Scheme, Uri};

use crate::body::{Body, Feed, body};
use crate::wake::Bell;

/// The request as tower knows it, and the worker's end of its body. `None` when the target is none
/// that `http` allows.
pub(crate) fn translate(
    request: &Request<'_>,
    bell: &Arc<Bell>,
) -> Option<(http::Request<Body>, Option<Feed>)> {
    let head = request.head();
    // One copy, of which every part is a slice.
    let text = Text { from: head.text(), to: Bytes::copy_from_slice(head.text()) };
    let (body, feed) = if request.has_body() {
        let (body, feed) = body(request.body_length(), bell);
        (body, Some(feed))
    } else {
        (Body::empty(), None)
    };
    let mut made = http::Request::new(body);
    *made.method_mut() = head.method().clone();
    *made.uri_mut() = uri(head, &text)?;
    *made.version_mut() = head.version();
    *made.headers_mut() = fields(head, &text);
    if let Some(protocol) = head.protocol() {
        made.extensions_mut().insert(hyper::ext::Protocol::from(protocol));
    }
    Some((made, feed))
}

/// The fields of trailers.
pub(crate) fn trailers(head: &Head) -> HeaderMap {
    fields(head, &Text { from: head.text(), to: Bytes::copy_from_slice(head.text()) })
}

/// A head's text and its copy.
struct Text<'a> {
    from: &'a [u8],
    to: Bytes,
}

impl Text<'_> {
    /// The part of the copy that is `part` of the text.
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
        if let (Ok(name), Ok(mut value)) = (
            HeaderName::from_lowercase(field.name.as_bytes()),
            HeaderValue::from_maybe_shared(text.shared(field.value)),
        ) {
            value.set_sensitive(field.sensitive);
            map.append(name, value);
        }
    }
    map
}

/// The target in the form in which it was sent: HTTP/2 and absolute targets with scheme and
/// authority, CONNECT with its authority alone.
fn uri(head: &Head, text: &Text<'_>) -> Option<Uri> {
    let path = head.path_and_query();
    let is_whole = head.version() == Version::HTTP_2 || head.scheme().is_some() || path.is_empty();
    if !is_whole {
        return Uri::from_maybe_shared(text.shared(path.as_bytes())).ok();
    }
    let mut parts = Parts::default();
    if let Some(authority) = head.authority() {
        parts.authority =
            Some(Authority::from_maybe_shared(text.shared(authority.as_bytes())).ok()?);
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
