//! What a worker counts.

use std::ops::AddAssign;

/// Counters of one worker, or the sum of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Turns of the loop.
    pub turns: u64,
    /// Sockets accepted.
    pub accepted: u64,
    /// Sockets closed.
    pub closed: u64,
    /// Sockets closed because reading or writing failed.
    pub closed_io: u64,
    /// Idle sockets closed because sockets ran short.
    pub shed: u64,
    /// How often accepting had to pause.
    pub accept_paused: u64,
    /// Sessions that panicked.
    pub panics: u64,
    /// Bytes read.
    pub received_bytes: u64,
    /// Bytes written.
    pub sent_bytes: u64,
    /// How often a socket took no more.
    pub blocked: u64,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.turns += other.turns;
        self.accepted += other.accepted;
        self.closed += other.closed;
        self.closed_io += other.closed_io;
        self.shed += other.shed;
        self.accept_paused += other.accept_paused;
        self.panics += other.panics;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.blocked += other.blocked;
    }
}
