//! RFC 6797, and what else a route adds to responses that many routes add alike: pages for errors, and security fields.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bolide_server::{Bytes, HeaderName, HeaderValue, StatusCode};

/// Pages in place of the server's own texts, by status.
#[derive(Clone, Default)]
pub struct ErrorPages(BTreeMap<u16, (Bytes, HeaderValue)>);

impl fmt::Debug for ErrorPages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.keys()).finish()
    }
}

impl ErrorPages {
    /// Adds the page of a status, with its type.
    pub fn add(&mut self, status: StatusCode, page: Bytes, media_type: HeaderValue) {
        self.0.insert(status.as_u16(), (page, media_type));
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, status: StatusCode) -> Option<(Bytes, HeaderValue)> {
        self.0.get(&status.as_u16()).cloned()
    }
}

/// `Strict-Transport-Security`, which is sent over TLS alone (RFC 6797 §7.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hsts(pub(crate) HeaderValue);

impl Hsts {
    /// Browsers use TLS for the host for this time.
    #[must_use]
    pub fn new(max_age: Duration, include_subdomains: bool, preload: bool) -> Self {
        let mut value = format!("max-age={}", max_age.as_secs());
        if include_subdomains {
            value.push_str("; includeSubDomains");
        }
        if preload {
            value.push_str("; preload");
        }
        Self(HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("max-age=0")))
    }
}

pub(crate) static STS: HeaderName = HeaderName::from_static("strict-transport-security");

/// The fields of the preset `security-headers`, which are set where the handler has not: no guessing of types, no
/// paths in `Referer` for other sites, and no frames of other sites around a page. Older browsers know the last by
/// `X-Frame-Options` alone; a `Content-Security-Policy` is the site's own to write.
#[must_use]
pub fn security_fields() -> &'static [(HeaderName, HeaderValue)] {
    static FIELDS: [(HeaderName, HeaderValue); 3] = [
        (HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff")),
        (
            HeaderName::from_static("referrer-policy"),
            HeaderValue::from_static("strict-origin-when-cross-origin"),
        ),
        (HeaderName::from_static("x-frame-options"), HeaderValue::from_static("SAMEORIGIN")),
    ];
    &FIELDS
}
