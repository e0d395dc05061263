//! Response of a handler.

mod conversions;

use std::sync::{Arc, LazyLock};

use bolide_connection::SharedFields;
use bolide_semantics::{FieldName, FieldRef};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use smallvec::SmallVec;

use crate::FilePiece;
#[cfg(doc)]
use crate::SharedFile;

/// A response: status, fields and body.
///
/// `Content-Length` and `Date` are added; a body is left out where there can be none (HEAD, 204,
/// 304).
///
/// ```
/// use bolide_server::{Response, StatusCode};
///
/// let response = Response::new(StatusCode::CREATED).header("location", "/users/7").body("made");
/// assert_eq!(response.status(), StatusCode::CREATED);
/// ```
#[derive(Debug)]
pub struct Response {
    pub(crate) status: StatusCode,
    pub(crate) fields: OwnFields,
    /// Fields that other responses have too; sent before the own ones.
    pub(crate) shared: Option<Fields>,
    pub(crate) body: Body,
    pub(crate) kind: ResponseKind,
}

/// Treatment of a response before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseKind {
    /// It is sent as it is.
    Plain,
    /// It has the text of [`Response::error`], and may get another page.
    Error,
    /// A field could not be made: it becomes a 500.
    Invalid,
}

/// The fields of one response alone, as they were given: those of a map stay there.
#[derive(Debug, Default)]
pub(crate) enum OwnFields {
    #[default]
    None,
    Few(SmallVec<[(HeaderName, HeaderValue); 2]>),
    Map(HeaderMap),
}

impl OwnFields {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::Few(few) => few.is_empty(),
            Self::Map(map) => map.is_empty(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, name: HeaderName, value: HeaderValue) {
        match self {
            Self::None => {
                *self = Self::Few(SmallVec::new());
                self.push(name, value);
            }
            Self::Few(few) => few.push((name, value)),
            Self::Map(map) => {
                map.append(name, value);
            }
        }
    }

    /// Puts lines before the others, as far as these have an order.
    fn prepend(&mut self, lines: impl IntoIterator<Item = (HeaderName, HeaderValue)>) {
        match self {
            Self::None => *self = Self::Few(lines.into_iter().collect()),
            Self::Few(few) => few.insert_many(0, lines),
            Self::Map(map) => lines.into_iter().for_each(|(name, value)| {
                map.append(name, value);
            }),
        }
    }

    fn extend(&mut self, fields: HeaderMap) {
        if self.is_empty() {
            *self = Self::Map(fields);
            return;
        }
        let mut latest = None;
        for (name, value) in fields {
            // Further values of a name come without it.
            if name.is_some() {
                latest = name;
            }
            if let Some(name) = &latest {
                self.push(name.clone(), value);
            }
        }
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let (few, map) = match self {
            Self::None => (None, None),
            Self::Few(few) => (Some(few), None),
            Self::Map(map) => (None, Some(map)),
        };
        let few = few.into_iter().flatten().map(|(name, value)| (name, value));
        few.chain(map.into_iter().flatten())
    }
}

/// Field lines that many responses have in common, made once: a response with them costs no
/// allocation.
///
/// ```
/// use bolide_server::{Fields, HeaderName, HeaderValue, Response};
///
/// let type_of = HeaderName::from_static("content-type");
/// let fields = Fields::new([(type_of, HeaderValue::from_static("text/css"))]);
/// let response = Response::text("").with_fields(&fields);
/// assert_eq!(response.headers().count(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct Fields(Made);

/// Owner of the lines.
#[derive(Debug, Clone)]
enum Made {
    /// Those that have them.
    Shared(Arc<Lines>),
    /// The process's: its users are not counted.
    Fixed(&'static Lines),
}

/// The lines of a response that says its type and nothing else.
fn of_type(content_type: &'static str) -> Lines {
    Lines::new([(CONTENT_TYPE, HeaderValue::from_static(content_type))])
}

static TEXT: LazyLock<Lines> = LazyLock::new(|| of_type("text/plain; charset=utf-8"));
static HTML: LazyLock<Lines> = LazyLock::new(|| of_type("text/html; charset=utf-8"));
static BINARY: LazyLock<Lines> = LazyLock::new(|| of_type("application/octet-stream"));

/// The lines, and what is looked for among them with every response.
#[derive(Debug)]
struct Lines {
    lines: Box<[NamedField]>,
    /// As each version sends them, where they are not for each response to decide.
    shared: Option<SharedFields>,
    has_date: bool,
    has_length: bool,
}

/// A line whose name has been looked up.
#[derive(Debug)]
struct NamedField {
    known: Option<FieldName>,
    name: HeaderName,
    value: HeaderValue,
}

impl Lines {
    fn new(lines: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Self {
        let look_up = |(name, value): (HeaderName, HeaderValue)| {
            let known = FieldName::lookup(name.as_str().as_bytes());
            NamedField { known, name, value }
        };
        let lines: Box<[NamedField]> = lines.into_iter().map(look_up).collect();
        let has = |name| lines.iter().any(|line| line.known == Some(name));
        let (has_date, has_length) = (has(FieldName::Date), has(FieldName::ContentLength));
        let shared = SharedFields::new(lines.iter().map(NamedField::field));
        Self { lines, shared, has_date, has_length }
    }
}

impl NamedField {
    /// The line as it is sent.
    #[inline]
    fn field(&self) -> FieldRef<'_> {
        FieldRef {
            known: self.known,
            name: self.name.as_str(),
            value: self.value.as_bytes(),
            sensitive: self.value.is_sensitive(),
        }
    }
}

impl Fields {
    /// These lines, in this order.
    #[must_use]
    pub fn new(lines: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Self {
        Self(Made::Shared(Arc::new(Lines::new(lines))))
    }

    #[inline]
    fn lines(&self) -> &Lines {
        match &self.0 {
            Made::Shared(lines) => lines,
            Made::Fixed(lines) => lines,
        }
    }

    /// The lines.
    pub fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.lines().lines.iter().map(|line| (&line.name, &line.value))
    }

    /// Returns whether `Date` is among them, and `Content-Length`.
    #[inline]
    pub(crate) fn has_date_and_length(&self) -> (bool, bool) {
        (self.lines().has_date, self.lines().has_length)
    }

    /// The lines in the form in which connections send them, unless one of them is for each response to decide.
    #[inline]
    pub(crate) fn shared(&self) -> Option<&SharedFields> {
        self.lines().shared.as_ref()
    }

    /// The lines as they are sent.
    pub(crate) fn refs(&self) -> impl Iterator<Item = FieldRef<'_>> {
        self.lines().lines.iter().map(NamedField::field)
    }
}

/// The body of a [`Response`].
#[derive(Debug, Default)]
pub enum Body {
    /// None, or of length zero.
    #[default]
    Empty,
    /// All of it at once. What has to wait for the client is copied, for it may be a slice of the request's body,
    /// and those of a worker share large blocks.
    Bytes(Bytes),
    /// All of it at once, and no slice of a request's body: shared with all who have it, however long it
    /// waits. A file in memory, say.
    Own(Bytes),
    /// All of it at once as [`Self::Bytes`], and then trailers.
    Trailed(Box<Trailed>),
    /// Piece by piece, as the client takes it.
    Stream(Box<dyn BodyStream>),
}

impl Body {
    /// Bytes that may be a slice of a request's body.
    #[inline]
    fn lent(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::Empty } else { Self::Bytes(bytes) }
    }

    /// Bytes that are none.
    #[inline]
    fn own(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::Empty } else { Self::Own(bytes) }
    }
}

/// A body that ends with trailers.
#[derive(Debug)]
pub struct Trailed {
    pub(crate) bytes: Bytes,
    /// Length that is announced, in bytes.
    pub(crate) length: Option<u64>,
    pub(crate) trailers: HeaderMap,
}

/// Result of [`BodyStream::pull`].
#[derive(Debug)]
pub enum Pull {
    /// The next piece, not empty and not longer than asked for where that is possible.
    Data(Bytes),
    /// The last piece.
    Last(Bytes),
    /// The end.
    End,
    /// The end, with trailers (RFC 9110 §6.5).
    Trailers(HeaderMap),
    /// Nothing yet: [`Waker::wake`](crate::Waker::wake) will ask again.
    Pending,
    /// The body can't be completed: the client sees the message break off.
    Failed,
}

/// A body that is made while it is sent.
///
/// It is asked for the next piece only when the connection can send it, so that a slow client
/// holds one piece in memory and no more.
pub trait BodyStream: std::fmt::Debug + Send {
    /// The length in bytes of the whole body, if it is known: sent as `Content-Length`, and held
    /// to.
    fn length(&self) -> Option<u64> {
        None
    }

    /// The next piece, of at most about `bytes_max` bytes.
    fn pull(&mut self, bytes_max: usize) -> Pull;

    /// The next piece as a range of an open file, of at most about `bytes_max` bytes: asked for before
    /// [`pull`](Self::pull) where the connection can send it without reading it. `None`: pull it. Sending waits for the
    /// disk when the range is not [in memory](SharedFile::is_cached), and then all connections of the worker
    /// wait. Default: `None`.
    fn pull_file(&mut self, bytes_max: usize) -> Option<FilePiece> {
        let _ = bytes_max;
        None
    }
}

impl Response {
    /// A response without a body.
    #[inline]
    #[must_use]
    pub fn new(status: StatusCode) -> Self {
        Self {
            status,
            fields: OwnFields::default(),
            shared: None,
            body: Body::Empty,
            kind: ResponseKind::Plain,
        }
    }

    /// A response with these fields, which were made before, and this body.
    ///
    /// ```
    /// use bolide_server::{Fields, HeaderName, HeaderValue, Response, StatusCode};
    ///
    /// let type_of = HeaderName::from_static("content-type");
    /// let fields = Fields::new([(type_of, HeaderValue::from_static("text/css"))]);
    /// let response = Response::of_fields(StatusCode::OK, &fields, "a {}");
    /// assert_eq!(response.headers().count(), 1);
    /// ```
    #[inline]
    #[must_use]
    pub fn of_fields(status: StatusCode, fields: &Fields, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self {
            status,
            fields: OwnFields::default(),
            shared: Some(fields.clone()),
            body: if body.is_empty() { Body::Empty } else { Body::Bytes(body) },
            kind: ResponseKind::Plain,
        }
    }

    /// A `200 OK` with `text/plain`.
    #[inline]
    #[must_use]
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::of_lines(&TEXT, Body::lent(body.into()))
    }

    /// A `200 OK` with `text/html`.
    #[must_use]
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::of_lines(&HTML, Body::lent(body.into()))
    }

    /// A `200 OK` with `application/octet-stream`.
    #[inline]
    #[must_use]
    pub fn bytes(body: impl Into<Bytes>) -> Self {
        Self::of_lines(&BINARY, Body::lent(body.into()))
    }

    /// Made in one place: responses are large, and each move is a copy.
    #[inline]
    fn of_lines(lines: &'static Lines, body: Body) -> Self {
        Self {
            status: StatusCode::OK,
            fields: OwnFields::default(),
            shared: Some(Fields(Made::Fixed(lines))),
            body,
            kind: ResponseKind::Plain,
        }
    }

    /// A `200 OK` with this `Content-Type`.
    #[inline]
    #[must_use]
    pub fn with_type(content_type: HeaderValue, body: impl Into<Bytes>) -> Self {
        let mut response = Self::new(StatusCode::OK).body(body);
        response.fields.push(CONTENT_TYPE, content_type);
        response
    }

    /// A `200 OK` whose body is made while it is sent.
    #[must_use]
    pub fn stream(body: impl BodyStream + 'static) -> Self {
        let mut response = Self::new(StatusCode::OK);
        response.body = Body::Stream(Box::new(body));
        response
    }

    /// The same with this status.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The same with this body.
    #[inline]
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Body::lent(body.into());
        self.is_no_error_text();
        self
    }

    /// The same with this body, which is no slice of a request's body: it is never copied to wait for the
    /// client, so that any number of responses that wait share it.
    #[inline]
    #[must_use]
    pub fn own_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Body::own(body.into());
        self.is_no_error_text();
        self
    }

    /// The same with trailers after its body (RFC 9110 §6.5), which must be at hand. `length` is announced as that
    /// of the body, in bytes; without, the message says its end in another way.
    #[must_use]
    pub fn trailers(mut self, length: Option<u64>, trailers: HeaderMap) -> Self {
        let bytes = match std::mem::take(&mut self.body) {
            Body::Bytes(bytes) | Body::Own(bytes) => bytes,
            Body::Trailed(before) => before.bytes,
            Body::Empty => Bytes::new(),
            Body::Stream(_) => {
                // A stream has trailers of its own.
                self.kind = ResponseKind::Invalid;
                return self;
            }
        };
        self.body = Body::Trailed(Box::new(Trailed { bytes, length, trailers }));
        self.is_no_error_text();
        self
    }

    /// The same with one more field. A name or value that RFC 9110 does not allow makes the whole
    /// response a 500: it is never sent.
    #[must_use]
    pub fn header(
        mut self,
        name: impl TryInto<HeaderName>,
        value: impl TryInto<HeaderValue>,
    ) -> Self {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => self.fields.push(name, value),
            _ => self.kind = ResponseKind::Invalid,
        }
        self
    }

    /// The same with these fields before its own; they take the place of any given so before.
    #[inline]
    #[must_use]
    pub fn with_fields(mut self, fields: &Fields) -> Self {
        if let Some(Fields(Made::Fixed(lines))) = self.shared.replace(fields.clone()) {
            // The type that it began with is one of its own.
            let own = lines.lines.iter().map(|line| (line.name.clone(), line.value.clone()));
            self.fields.prepend(own);
        }
        self.is_no_error_text();
        self
    }

    /// The same with these fields, too.
    #[must_use]
    pub fn fields(mut self, fields: HeaderMap) -> Self {
        self.fields.extend(fields);
        self
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The fields given so far.
    pub fn headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let shared = self.shared.iter().flat_map(Fields::iter);
        shared.chain(self.fields.iter())
    }

    /// An error page that tells the client its status and nothing else.
    #[must_use]
    pub fn error(status: StatusCode) -> Self {
        let reason = match status {
            // RFC 9110 §15.5.14, whose name is younger than the library's.
            StatusCode::PAYLOAD_TOO_LARGE => "Content Too Large",
            status => status.canonical_reason().unwrap_or("Error"),
        };
        let mut response =
            Self::from(format!("{} {reason}\n", status.as_str())).with_status(status);
        response.kind = ResponseKind::Error;
        response
    }

    /// The body is the caller's from here on.
    #[inline]
    fn is_no_error_text(&mut self) {
        if self.kind == ResponseKind::Error {
            self.kind = ResponseKind::Plain;
        }
    }

    /// Takes a page in place of the text of an error.
    pub(crate) fn take_page(&mut self, page: Bytes, media_type: HeaderValue) {
        self.shared = None;
        let fields = std::mem::take(&mut self.fields);
        let kept = fields.iter().filter(|(name, _)| **name != CONTENT_TYPE);
        kept.for_each(|(name, value)| self.fields.push(name.clone(), value.clone()));
        self.fields.push(CONTENT_TYPE, media_type);
        self.body = Body::own(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_fields_keeps_every_value() {
        let mut map = HeaderMap::new();
        for (name, value) in [("set-cookie", "a=1"), ("x-a", "2"), ("set-cookie", "b=3")] {
            map.append(name, HeaderValue::from_static(value));
        }
        let response = Response::text("a").fields(map);
        let mut shown: Vec<_> =
            response.headers().map(|(name, value)| format!("{name}: {value:?}")).collect();
        shown.sort();
        let content_type = "content-type: \"text/plain; charset=utf-8\"";
        assert_eq!(
            shown,
            [content_type, "set-cookie: \"a=1\"", "set-cookie: \"b=3\"", "x-a: \"2\""]
        );
    }

    #[test]
    fn the_type_stays_when_fields_are_given() {
        let fields = Fields::new([(HeaderName::from_static("x-a"), HeaderValue::from_static("1"))]);
        let response = Response::bytes("a").header("x-b", "2").with_fields(&fields);
        let names: Vec<_> = response.headers().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["x-a", "content-type", "x-b"]);
    }

    #[test]
    fn a_field_that_could_split_the_response_is_noticed() {
        assert!(Response::text("a").header("x-a", "b\r\nx-c: d").kind == ResponseKind::Invalid);
        assert!(Response::text("a").header("x a", "b").kind == ResponseKind::Invalid);
        assert!(Response::text("a").header("x-a", "b").kind == ResponseKind::Plain);
    }
}
