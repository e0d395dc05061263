//! RFC 9110 §6.2, §6.3: heads that are to be sent.

use bolide_buffers::Chunk;
use http::{HeaderName, HeaderValue, Method, StatusCode};

use crate::{Field, FieldName};

/// One field to be sent.
#[derive(Debug, Clone, Copy)]
pub struct FieldRef<'a> {
    /// The interned name, when it has one.
    pub known: Option<FieldName>,
    /// The name in lower case.
    pub name: &'a str,
    /// The value, without white space around it.
    pub value: &'a [u8],
    /// True if the value is a secret: it never enters a compression table (RFC 7541 §7.1.3).
    pub sensitive: bool,
}

impl<'a> FieldRef<'a> {
    /// A field with an interned name.
    #[inline]
    #[must_use]
    pub fn known(name: FieldName, value: &'a [u8]) -> Self {
        Self { known: Some(name), name: name.as_str(), value, sensitive: false }
    }

    /// A field whose name is text in lower case; it is looked up among the interned ones.
    #[inline]
    #[must_use]
    pub fn named(name: &'a str, value: &'a [u8]) -> Self {
        Self { known: FieldName::lookup(name.as_bytes()), name, value, sensitive: false }
    }
}

impl<'a> From<(&'a HeaderName, &'a HeaderValue)> for FieldRef<'a> {
    #[inline]
    fn from((name, value): (&'a HeaderName, &'a HeaderValue)) -> Self {
        let sensitive = value.is_sensitive();
        Self { sensitive, ..Self::named(name.as_str(), value.as_bytes()) }
    }
}

impl<'a> From<Field<'a>> for FieldRef<'a> {
    #[inline]
    fn from(field: Field<'a>) -> Self {
        let secret =
            matches!(field.known, Some(FieldName::Authorization | FieldName::ProxyAuthorization));
        let sensitive = field.sensitive || secret;
        Self { known: field.known, name: field.name, value: field.value, sensitive }
    }
}

/// The head of a request: its fields are written in their order.
///
/// The connection adds what its version needs to frame the message (`Host`, `Transfer-Encoding`,
/// `Connection`), drops connection-specific fields, and refuses field values that could be read as
/// anything else. It never adds `Content-Length`.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// `http` or `https`. HTTP/1.1 sends it only in absolute form, which it never does.
    pub scheme: &'a str,
    /// Host and port: `:authority`, or the `Host` field in HTTP/1.1.
    pub authority: &'a str,
    /// Path and query; `*` for a server-wide OPTIONS; empty for a plain CONNECT.
    pub path: &'a str,
    /// `:protocol` of an extended CONNECT (RFC 8441).
    pub protocol: Option<&'a str>,
    /// The fields.
    pub fields: &'a [FieldRef<'a>],
}

/// The head of a final response: status, length, date, the fields that many responses share, and its own; a version
/// sends them in the order that costs it least. `S` is the form in which a version has the shared fields.
///
/// The connection frames the message, drops connection-specific fields, and refuses field values that could be read
/// as anything else.
#[derive(Debug)]
pub struct ResponseHead<'a, S> {
    /// The status.
    pub status: StatusCode,
    /// Fields that were checked and serialized when they were made.
    pub shared: Option<&'a S>,
    /// Fields of this response alone.
    pub own: &'a [FieldRef<'a>],
    /// The value of `Content-Length`, in bytes, unless it is unknown or among `own`.
    pub length: Option<u64>,
    /// The value of `Date`, unless that is among the fields.
    pub date: Option<&'a [u8; 29]>,
}

impl<S> Clone for ResponseHead<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for ResponseHead<'_, S> {}

impl<'a, S> ResponseHead<'a, S> {
    /// A head with fields of its own and nothing else.
    #[must_use]
    pub fn new(status: StatusCode, own: &'a [FieldRef<'a>]) -> Self {
        Self { status, shared: None, own, length: None, date: None }
    }

    /// The same head with the shared fields in another form.
    #[inline]
    #[must_use]
    pub fn with_shared<T>(self, form: impl FnOnce(&'a S) -> &'a T) -> ResponseHead<'a, T> {
        let Self { status, shared, own, length, date } = self;
        ResponseHead { status, shared: shared.map(form), own, length, date }
    }
}

/// The content after the head of a final response.
#[derive(Debug)]
pub enum Content<'a> {
    /// Nothing: the message ends with its head.
    None,
    /// All of it, which is at hand: head and content leave together where they can. What has to wait is taken out of it.
    Whole(&'a mut Chunk),
    /// Pieces, by later calls; or a tunnel's bytes.
    Follows,
}
