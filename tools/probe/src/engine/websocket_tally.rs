//! RFC 6455: what is counted of WebSocket connections besides their messages.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::histograms::{add, empty, encoded, latencies};
use crate::report::WebSocketReport;

/// Of all connections of a phase.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WebSocketTally {
    /// From the end of TCP's or TLS's handshake to the server's acceptance.
    #[serde(with = "encoded")]
    pub(super) upgrade: Histogram<u64>,
    /// Connections that the server accepted with compression.
    pub(super) compressed: u64,
    /// Messages that no message of ours waited for.
    pub(super) pushed: u64,
    /// Close frames by code; at most one for each connection.
    pub(super) closes: BTreeMap<u16, u64>,
}

impl Default for WebSocketTally {
    fn default() -> Self {
        Self { upgrade: empty(), compressed: 0, pushed: 0, closes: BTreeMap::new() }
    }
}

impl WebSocketTally {
    /// Returns what the connections of a phase that now begins came to while they were made.
    pub(super) fn made(self) -> Self {
        Self { pushed: 0, closes: BTreeMap::new(), ..self }
    }

    pub(super) fn add(&mut self, other: &Self) {
        add(&mut self.upgrade, &other.upgrade);
        self.compressed += other.compressed;
        self.pushed += other.pushed;
        for (code, count) in &other.closes {
            *self.closes.entry(*code).or_default() += count;
        }
    }

    pub(super) fn report(self, one_way: bool) -> WebSocketReport {
        let Self { upgrade, compressed, pushed, closes } = self;
        WebSocketReport { one_way, upgrade: latencies(upgrade), compressed, pushed, closes }
    }
}
