//! RFC 6797: what a route has to say about all responses.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bolide_compression::Compression;
use bolide_server::{
    Bytes, Codec, Coding, HeaderName, HeaderValue, Policy, ResponseFields, StatusCode,
};

use crate::rules::Rules;

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

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn get(&self, status: StatusCode) -> Option<(Bytes, HeaderValue)> {
        self.0.get(&status.as_u16()).cloned()
    }
}

/// `Strict-Transport-Security`, which is sent over TLS alone (RFC 6797 §7.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hsts(HeaderValue);

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

static STS: HeaderName = HeaderName::from_static("strict-transport-security");

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

/// The rules of a route for one exchange, or for all that are alike.
#[derive(Debug)]
pub(crate) struct RulePolicy {
    pub(crate) rules: Arc<Rules>,
    /// The request came over TLS.
    pub(crate) is_secure: bool,
    /// The values of fields to set and to add.
    pub(crate) values: Vec<Option<HeaderValue>>,
    /// The origin whose scripts may read the response.
    pub(crate) allowed: Option<HeaderValue>,
    /// The content coding that the client likes best; none: none of ours.
    pub(crate) codec: Option<&'static dyn Codec>,
    /// It is of one exchange alone.
    pub(crate) is_own: bool,
}

impl Policy for RulePolicy {
    fn edit<'p>(&'p self, fields: &mut ResponseFields<'p>) {
        let rules = &*self.rules;
        if rules.security {
            for (name, value) in security_fields() {
                if fields.get(name).is_none() {
                    fields.add(name, value);
                }
            }
        }
        if let Some(Hsts(value)) = rules.hsts.as_ref().filter(|_| self.is_secure) {
            fields.set(&STS, value);
        }
        if let Some(cors) = &rules.cors {
            cors.edit(self.allowed.as_ref(), fields);
        }
        rules.response.edit(&self.values, fields);
    }

    fn coding(&self, fields: &ResponseFields<'_>, length: Option<u64>) -> Coding {
        match (&self.rules.compression, self.codec) {
            (Some(compression), codec) if compression.suits(fields, length) => {
                codec.map_or(Coding::Varies, |codec| Coding::By(codec, Compression::offload()))
            }
            _ => Coding::Plain,
        }
    }

    fn error_page(&self, status: StatusCode) -> Option<(Bytes, HeaderValue)> {
        self.rules.error_pages.get(status)
    }

    fn response_timeout(&self) -> Option<Duration> {
        self.rules.response_timeout
    }

    fn exchange_timeout(&self) -> Option<Duration> {
        self.rules.exchange_timeout
    }

    fn held_bytes(&self) -> usize {
        if !self.is_own {
            return 0;
        }
        let values = self.values.iter().flatten().chain(&self.allowed).map(HeaderValue::len);
        let slots = self.values.capacity() * size_of::<Option<HeaderValue>>();
        size_of::<Self>() + slots + values.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_exchange_keeps_is_counted_and_what_all_share_is_not() {
        let policy = |is_own| RulePolicy {
            rules: Arc::new(Rules::default()),
            is_secure: true,
            values: vec![Some(HeaderValue::from_static("four")), None],
            allowed: None,
            codec: None,
            is_own,
        };
        assert_eq!(policy(false).held_bytes(), 0);
        assert!(policy(true).held_bytes() > 4 + size_of::<RulePolicy>());
    }
}
