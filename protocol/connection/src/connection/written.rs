//! RFC 9112 §9.3.2: whether a request can have been read by its server.

use bolide_semantics::{Context, ExchangeId};

use super::{Connection, Stack};

impl Connection {
    /// Returns whether all of request `id` has been written (client): one that is open, or whose response was completed
    /// last. Over TLS, what waits as records counts as written, and over HTTP/2 what is in frames.
    #[inline]
    #[must_use]
    pub fn is_written(&self, cx: &Context<'_>, id: ExchangeId) -> bool {
        match &self.stack {
            Stack::H1(core) => core.is_written(cx, id),
            Stack::H2(core) => core.is_framed(id),
            Stack::H3(http3) => http3.core.is_framed(id),
            Stack::Open { .. } => false,
        }
    }

    /// How many bytes of request `id` wait to be written (client), of those that were given.
    #[must_use]
    pub fn unwritten_bytes(&self, cx: &Context<'_>, id: ExchangeId) -> u64 {
        match &self.stack {
            Stack::H1(core) => core.unwritten_bytes(cx, id),
            Stack::H2(core) => core.unframed_bytes(id),
            Stack::H3(http3) => http3.core.unframed_bytes(id),
            Stack::Open { .. } => 0,
        }
    }
}
