//! Costs of a server during one transfer.

use std::time::Duration;

use crate::process::{Reading, peak_memory_bytes, tree};

/// A server and its descendants, from the beginning of a transfer to its end.
pub(super) struct Watched {
    id: u32,
    before: Reading,
    after: Option<Reading>,
    processes: Vec<u32>,
}

impl Watched {
    /// From now on.
    pub(super) fn begin(id: u32) -> Self {
        Self { id, before: Reading::of(&tree(id)), after: None, processes: Vec::new() }
    }

    /// Until now.
    pub(super) fn end(&mut self) {
        self.processes = tree(self.id);
        self.after = Some(Reading::of(&self.processes));
    }

    /// User and system time.
    pub(super) fn used(&self) -> Duration {
        self.after.as_ref().map_or(Duration::ZERO, |after| after.since(&self.before).0)
    }

    /// The most memory that it has had.
    pub(super) fn peak_memory_bytes(&self) -> u64 {
        peak_memory_bytes(&self.processes)
    }
}
