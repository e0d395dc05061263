//! RFC 9110 §6.2, §6.3: a head that is to be sent.

use std::num::NonZeroU32;

use http::{HeaderName, HeaderValue, Method, StatusCode};

use crate::{Field, FieldName};

/// One field line to be sent.
#[derive(Debug, Clone, Copy)]
pub struct FieldRef<'a> {
    /// The interned name, when it has one.
    pub known: Option<FieldName>,
    /// The name in lower case.
    pub name: &'a str,
    /// The value, without white space around it.
    pub value: &'a [u8],
    /// Whether the value is a secret: it never enters a compression table (RFC 7541 §7.1.3).
    pub sensitive: bool,
}

impl<'a> FieldRef<'a> {
    /// A line with an interned name.
    #[inline]
    #[must_use]
    pub fn known(name: FieldName, value: &'a [u8]) -> Self {
        Self { known: Some(name), name: name.as_str(), value, sensitive: false }
    }
}

impl<'a> From<(&'a HeaderName, &'a HeaderValue)> for FieldRef<'a> {
    #[inline]
    fn from((name, value): (&'a HeaderName, &'a HeaderValue)) -> Self {
        let text = name.as_str();
        Self {
            known: FieldName::lookup(text.as_bytes()),
            name: text,
            value: value.as_bytes(),
            sensitive: value.is_sensitive(),
        }
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

/// What an outgoing head begins with.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// A request.
    Request {
        /// The method.
        method: &'a Method,
        /// `http` or `https`. HTTP/1.1 sends it only in absolute form, which it never does.
        scheme: &'a str,
        /// Host and port: `:authority`, or the `Host` field in HTTP/1.1.
        authority: &'a str,
        /// Path and query; `*` for a server-wide OPTIONS; empty for a plain CONNECT.
        path: &'a str,
        /// `:protocol` of an extended CONNECT (RFC 8441).
        protocol: Option<&'a str>,
    },
    /// A response, interim (1xx) or final.
    Response {
        /// The status.
        status: StatusCode,
    },
}

/// Stands for the head of a final response: two that have the same name are the same, line for line, as long as
/// the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadName {
    /// The status.
    pub status: StatusCode,
    /// Field lines that were made once, with no `Content-Length` among them: their number, which no others of
    /// the process have.
    pub lines: NonZeroU32,
    /// The value of the `Content-Length` that follows them, if one does.
    pub length: Option<u64>,
    /// The second of the `Date` after that, since the epoch; any if there is one among the lines.
    pub second: u32,
}

/// A head to be sent: `fields` are written in their order.
///
/// The connection adds what its version needs to frame the message (`Host`, `Transfer-Encoding`,
/// `Connection`), drops connection-specific fields, and refuses field values that could be read as
/// anything else. It never adds `Content-Length`, `Date` or `Server`: these are the caller's.
#[derive(Debug, Clone)]
pub struct OutgoingHead<'a, I> {
    /// Start line or pseudo-fields.
    pub start: Start<'a>,
    /// The field lines.
    pub fields: I,
}
