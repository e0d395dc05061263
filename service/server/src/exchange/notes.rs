//! What handlers and sessions note of an exchange for the access log.

use std::time::Instant;

use super::Io;

/// When a request that is passed on came to each stage at the server behind, by the clock of [`Io::now`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamTimes {
    /// That server was chosen: from here on, the request waits for a connection.
    pub chosen: Instant,
    /// The request's head was sent.
    pub sent: Option<Instant>,
    /// The answer's head has come.
    pub head: Option<Instant>,
    /// The answer's end has come.
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

impl Io<'_> {
    /// Notes for the access log which server behind was asked; the latest counts. What was noted of the times of
    /// the one before is forgotten.
    pub fn note_upstream(&mut self, name: &str) {
        if let Some(entry) = &mut self.state.record.entry {
            entry.set_upstream(name);
            entry.times.upstream = None;
        }
    }

    /// Notes for the access log when the server behind did what; the latest counts.
    pub fn note_upstream_times(&mut self, times: &UpstreamTimes) {
        if let Some(entry) = &mut self.state.record.entry {
            entry.times.upstream = Some(*times);
        }
    }
}
