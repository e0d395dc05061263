//! Counters of a worker: plain numbers of its own, read out on request.

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
    /// Connections that were closed, by cause.
    pub closed: ClosedCounts,
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
    /// Work of the loop.
    pub work: LoopWork,
    /// Memory that foreign bytes make the worker keep, in bytes (a level, not a counter).
    pub held_bytes: u64,
    /// Connections that are open (a level, not a counter).
    pub open: u64,
}

/// Work of the loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoopWork {
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
}

/// Connections that were closed, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClosedCounts {
    /// Closed because the session asked for it.
    pub finished: u64,
    /// Closed because reading or writing failed (a reset, most often).
    pub failed: u64,
    /// Closed because they were idle and room was needed.
    pub shed: u64,
    /// Closed because a shutdown ran out of patience.
    pub drained: u64,
    /// Closed because the session panicked.
    pub panicked: u64,
    /// Closed because the peer took no byte of the last response for too long.
    pub stalled: u64,
    /// Closed because they held most of what foreign bytes made the worker keep, and that was too much.
    pub memory: u64,
}

impl Stats {
    /// Counts the end of a connection.
    pub(crate) fn count_close(&mut self, cause: CloseCause) {
        match cause {
            CloseCause::Finished => self.closed.finished += 1,
            CloseCause::Failed(_) | CloseCause::Broken => self.closed.failed += 1,
            CloseCause::Shed => self.closed.shed += 1,
            CloseCause::Drained => self.closed.drained += 1,
            CloseCause::Panicked => self.closed.panicked += 1,
            CloseCause::Stalled => self.closed.stalled += 1,
            CloseCause::Memory => self.closed.memory += 1,
        }
    }

    /// All connections that were closed, whatever the cause.
    #[must_use]
    pub fn closed(&self) -> u64 {
        self.closed.finished
            + self.closed.failed
            + self.closed.shed
            + self.closed.drained
            + self.closed.panicked
            + self.closed.stalled
            + self.closed.memory
    }
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.outbound += other.outbound;
        self.connects_failed += other.connects_failed;
        self.closed.finished += other.closed.finished;
        self.closed.failed += other.closed.failed;
        self.closed.shed += other.closed.shed;
        self.closed.drained += other.closed.drained;
        self.closed.panicked += other.closed.panicked;
        self.closed.stalled += other.closed.stalled;
        self.closed.memory += other.closed.memory;
        self.panics += other.panics;
        self.datagrams += other.datagrams;
        self.datagrams_passed_on += other.datagrams_passed_on;
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
        self.work.turns += other.work.turns;
        self.work.mails += other.work.mails;
        self.work.waits += other.work.waits;
        self.work.events += other.work.events;
        self.work.write_blocked += other.work.write_blocked;
        self.work.requeued += other.work.requeued;
        self.work.gathered += other.work.gathered;
        self.work.accept_pauses += other.work.accept_pauses;
        self.work.held_full += other.work.held_full;
        self.held_bytes += other.held_bytes;
        self.open += other.open;
    }
}
