//! RFC 9113 §10.5: what foreign bytes make a connection keep.

use bolide_semantics::ExchangeId;

use super::{Connection, Stack};

impl Connection {
    /// The memory that the connection keeps on behalf of its peer, in bytes, beyond what an idle one has: records and
    /// plaintext that wait, a header block in pieces, open streams, and what waits for a window or its turn to be sent.
    /// Not what was reported and is [not consumed](Self::unconsumed_bytes).
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let core = match &self.stack {
            Stack::H2(core) => core.held_bytes(),
            Stack::H3(http3) => http3.held_bytes(),
            Stack::H1(_) | Stack::Open { .. } => 0,
        };
        core + self.tls.as_ref().map_or(0, |tls| tls.held_bytes())
    }

    /// Bytes of bodies and tunnels that were reported and are not [consumed](Self::consumed): the caller
    /// keeps them.
    #[must_use]
    pub fn unconsumed_bytes(&self) -> usize {
        match &self.stack {
            Stack::H1(core) => core.unconsumed_bytes(),
            Stack::H2(core) => core.unconsumed_bytes(),
            Stack::H3(http3) => http3.core.unconsumed_bytes(),
            Stack::Open { .. } => 0,
        }
    }

    /// The same of exchange `id` alone: one that is open.
    #[must_use]
    pub fn unconsumed_bytes_of(&self, id: ExchangeId) -> usize {
        match &self.stack {
            Stack::H1(core) => core.unconsumed_bytes(),
            Stack::H2(core) => core.unconsumed_bytes_of(id),
            Stack::H3(http3) => http3.core.unconsumed_bytes_of(id),
            Stack::Open { .. } => 0,
        }
    }
}
