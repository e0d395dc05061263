//! Times of a request at the upstream server.

use std::time::Instant;

/// When a request that is passed on came to each stage at the server behind, by the clock of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamTimes {
    /// That server was chosen: from here on, the request waits for a connection.
    pub chosen: Instant,
    /// The request's head was sent.
    pub sent: Option<Instant>,
    /// The response's head has come.
    pub head: Option<Instant>,
    /// The response's end has come.
    pub end: Option<Instant>,
    /// It failed there.
    pub failed: Option<Instant>,
}

impl UpstreamTimes {
    /// The server behind was chosen at this time, and nothing came of it yet.
    #[must_use]
    pub const fn chosen_at(chosen: Instant) -> Self {
        Self { chosen, sent: None, head: None, end: None, failed: None }
    }
}
