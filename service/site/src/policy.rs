//! RFC 6797: what a route has to say about all responses.

use std::sync::Arc;
use std::time::Duration;

use bolide_compression::Compression;
use bolide_server::{Bytes, Codec, Coding, HeaderValue, Policy, ResponseFields, StatusCode};

use crate::presets::{Hsts, STS, security_fields};
use crate::rules::Rules;

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
