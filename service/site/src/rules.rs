//! The rules of one route.

use std::time::Duration;

use bolide_compression::Compression;

use crate::cors::Cors;
use crate::edit::Edits;
use crate::presets::{ErrorPages, Hsts};
use crate::rewrite::Rewrite;

/// Additions of a route to its handler, but for its conditions.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The target that the handler sees.
    pub rewrite: Rewrite,
    /// Edits of the request that the handler sees.
    pub request: Edits,
    /// Edits of the response.
    pub response: Edits,
    /// TLS from now on.
    pub hsts: Option<Hsts>,
    /// The preset of [`security_fields`](crate::security_fields).
    pub security: bool,
    /// Scripts of other origins.
    pub cors: Option<Cors>,
    /// Pages for errors of the server's own.
    pub error_pages: ErrorPages,
    /// Which responses are compressed; none: none.
    pub compression: Option<Compression>,
    /// The largest request body, in bytes.
    pub body_bytes_max: Option<u64>,
    /// Time for the response to begin; zero: for ever.
    pub response_timeout: Option<Duration>,
    /// Time for the whole exchange; zero: for ever.
    pub exchange_timeout: Option<Duration>,
}

impl Rules {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_policy() && !self.edits_requests() && self.body_bytes_max.is_none()
    }

    pub(crate) fn has_policy(&self) -> bool {
        !self.response.is_empty()
            || self.hsts.is_some()
            || self.security
            || self.cors.is_some()
            || !self.error_pages.is_empty()
            || self.compression.is_some()
            || self.response_timeout.is_some()
            || self.exchange_timeout.is_some()
    }

    /// Returns whether the handler sees another request than the client has sent.
    #[must_use]
    pub fn edits_requests(&self) -> bool {
        !self.rewrite.is_empty() || !self.request.is_empty()
    }
}
