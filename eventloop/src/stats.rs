//! What a worker has counted: plain numbers of its own, read out when somebody asks.

use std::ops::AddAssign;

use crate::close_cause::CloseCause;

/// Counters of one worker since it started, or the sum of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections that were accepted and got a session.
    pub accepted: u64,
    /// Connections that were closed at once: the service declined, or there was no room.
    pub refused: u64,
    /// Connections outward that were begun and got a session.
    pub outbound: u64,
    /// Connections outward that were never established, whether they could begin or not.
    pub connects_failed: u64,
    /// Closed because the session asked for it.
    pub closed_finished: u64,
    /// Closed because reading or writing failed (a reset, most often).
    pub closed_failed: u64,
    /// Closed because they were idle and room was needed.
    pub closed_shed: u64,
    /// Closed because a shutdown ran out of patience.
    pub closed_drained: u64,
    /// Closed because the session panicked.
    pub closed_panicked: u64,
    /// Closed because the peer took no byte of the last answer for too long.
    pub closed_stalled: u64,
    /// Closed because they held most of what foreign bytes made the worker keep, and that was too much.
    pub closed_memory: u64,
    /// Panics in calls for a session. Those in `open` and `close` end no connection of this cause.
    pub panics: u64,
    /// Datagrams that came.
    pub datagrams: u64,
    /// Datagrams that came for a connection of another worker, and were passed on.
    pub datagrams_passed_on: u64,
    /// Bytes read from sockets.
    pub bytes_received: u64,
    /// Bytes written to sockets.
    pub bytes_sent: u64,
    /// Calls of sessions, of any kind.
    pub turns: u64,
    /// Mails for sessions, delivered or not.
    pub mails: u64,
    /// Turns of the loop: each waited once for the kernel.
    pub waits: u64,
    /// Events that the kernel reported.
    pub events: u64,
    /// Times a socket took no more bytes.
    pub write_blocked: u64,
    /// Times a connection used up its pass and was put in the run queue.
    pub requeued: u64,
    /// Times a connection was so fast, and expected so much, that its bytes were gathered from then on.
    pub gathered: u64,
    /// Times accepting was paused: no file descriptors, or no room for connections.
    pub accept_pauses: u64,
    /// Times a connection kept so much that nothing more was read from it.
    pub held_full: u64,
    /// What foreign bytes make the worker keep, in bytes (a level, not a counter).
    pub held_bytes: u64,
    /// Connections that are open (a level, not a counter).
    pub open: u64,
}

impl Stats {
    /// Counts the end of a connection.
    pub(crate) fn count_close(&mut self, cause: CloseCause) {
        match cause {
            CloseCause::Finished => self.closed_finished += 1,
            CloseCause::Failed(_) | CloseCause::Broken => self.closed_failed += 1,
            CloseCause::Shed => self.closed_shed += 1,
            CloseCause::Drained => self.closed_drained += 1,
            CloseCause::Panicked => self.closed_panicked += 1,
            CloseCause::Stalled => self.closed_stalled += 1,
            CloseCause::Memory => self.closed_memory += 1,
        }
    }

    /// All connections that were closed, whatever the cause.
    #[must_use]
    pub fn closed(&self) -> u64 {
        self.closed_finished
            + self.closed_failed
            + self.closed_shed
            + self.closed_drained
            + self.closed_panicked
            + self.closed_stalled
            + self.closed_memory
    }
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.outbound += other.outbound;
        self.connects_failed += other.connects_failed;
        self.closed_finished += other.closed_finished;
        self.closed_failed += other.closed_failed;
        self.closed_shed += other.closed_shed;
        self.closed_drained += other.closed_drained;
        self.closed_panicked += other.closed_panicked;
        self.closed_stalled += other.closed_stalled;
        self.closed_memory += other.closed_memory;
        self.panics += other.panics;
        self.datagrams += other.datagrams;
        self.datagrams_passed_on += other.datagrams_passed_on;
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
        self.turns += other.turns;
        self.mails += other.mails;
        self.waits += other.waits;
        self.events += other.events;
        self.write_blocked += other.write_blocked;
        self.requeued += other.requeued;
        self.gathered += other.gathered;
        self.accept_pauses += other.accept_pauses;
        self.held_full += other.held_full;
        self.held_bytes += other.held_bytes;
        self.open += other.open;
    }
}
