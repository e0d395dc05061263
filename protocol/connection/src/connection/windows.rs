//! RFC 9113 §5.2, RFC 9112 §6.3: what the peer may send, and what it is sure to.

use std::time::Duration;

use super::{Connection, Stack};

impl Connection {
    /// How many bytes of a body the peer is sure to send before it waits for anything: what its length and its windows
    /// say. 0: unknown.
    #[inline]
    #[must_use]
    pub fn expects(&self) -> u64 {
        match &self.stack {
            Stack::H1(core) => core.expects(),
            Stack::H2(core) => core.expects(),
            Stack::H3(_) | Stack::Open { .. } => 0,
        }
    }

    /// Tells the receive windows the round-trip time that the kernel has measured.
    pub fn set_rtt(&mut self, rtt: Duration) {
        if let Stack::H2(core) = &mut self.stack {
            core.set_rtt(rtt);
        }
    }

    /// Sets the size that the connection's receive window may grow to, in bytes (HTTP/2; RFC 9113 §5.2).
    pub fn set_receive_budget(&mut self, bytes: u32) {
        if let Stack::H2(core) = &mut self.stack {
            core.set_receive_budget(bytes);
        }
    }

    /// Returns whether the connection's receive window would be larger by now, had its budget been.
    #[must_use]
    pub fn wants_receive_budget(&self) -> bool {
        match &self.stack {
            Stack::H2(core) => core.wants_receive_budget(),
            Stack::H1(_) | Stack::H3(_) | Stack::Open { .. } => false,
        }
    }
}
