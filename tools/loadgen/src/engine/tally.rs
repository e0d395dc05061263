//! What one thread counts in one phase; tallies of several threads add up.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::histograms::{add, empty};
use crate::report::{Counts, Failure, Stalls, Traffic};

/// Every kind of failure, in the order of their numbers.
const FAILURES: [Failure; 8] = [
    Failure::Connect,
    Failure::Tls,
    Failure::Timeout,
    Failure::Reset,
    Failure::Goaway,
    Failure::Protocol,
    Failure::Status,
    Failure::Body,
];

/// Statuses have three digits.
const STATUSES_COUNT: usize = 1000;

/// What was counted, without the warm-up.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    statuses: Box<[u64; STATUSES_COUNT]>,
    failures: [u64; FAILURES.len()],
    pub(super) traffic: Traffic,
    pub(super) stalls: Stalls,
    pub(super) resumed_count: u64,
    pub(super) latency: Histogram<u64>,
    pub(super) first_byte: Histogram<u64>,
    pub(super) connect: Histogram<u64>,
    pub(super) handshake: Histogram<u64>,
    pub(super) lag: Histogram<u64>,
    pub(super) pacing: Histogram<u64>,
    /// Requests in the system (in flight, or due and waiting) over time: requests times nanoseconds.
    pub(super) presence: u128,
    /// When the phase ended for this thread, in nanoseconds since the engine began.
    pub(super) ended_ns: u64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            counts: Counts::default(),
            statuses: Box::new([0; STATUSES_COUNT]),
            failures: [0; FAILURES.len()],
            traffic: Traffic::default(),
            stalls: Stalls::default(),
            resumed_count: 0,
            latency: empty(),
            first_byte: empty(),
            connect: empty(),
            handshake: empty(),
            lag: empty(),
            pacing: empty(),
            presence: 0,
            ended_ns: 0,
        }
    }

    /// An answer with this status is complete.
    #[inline]
    pub(super) fn status(&mut self, status: u16) {
        if let Some(count) = self.statuses.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// Something failed.
    #[inline]
    pub(super) fn failure(&mut self, failure: Failure) {
        self.counts.failed += 1;
        self.failures[failure as usize] += 1;
    }

    /// Answers by status; those that occurred.
    pub(super) fn statuses(&self) -> BTreeMap<u16, u64> {
        let counts = self.statuses.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(status, count)| (status as u16, *count)).collect()
    }

    /// Failures by kind; those that occurred.
    pub(super) fn failures(&self) -> BTreeMap<Failure, u64> {
        let counts = FAILURES.iter().zip(self.failures).filter(|(_, count)| *count > 0);
        counts.map(|(failure, count)| (*failure, count)).collect()
    }

    /// Adds what another thread counted.
    pub(super) fn add(&mut self, other: &Self) {
        let (counts, more) = (&mut self.counts, &other.counts);
        counts.due += more.due;
        counts.started += more.started;
        counts.completed += more.completed;
        counts.succeeded += more.succeeded;
        counts.failed += more.failed;
        counts.compared += more.compared;
        counts.connections += more.connections;
        for (count, more) in self.statuses.iter_mut().zip(other.statuses.iter()) {
            *count += more;
        }
        for (count, more) in self.failures.iter_mut().zip(other.failures) {
            *count += more;
        }
        let (traffic, more) = (&mut self.traffic, &other.traffic);
        traffic.wire_received_bytes += more.wire_received_bytes;
        traffic.wire_sent_bytes += more.wire_sent_bytes;
        traffic.payload_received_bytes += more.payload_received_bytes;
        traffic.payload_sent_bytes += more.payload_sent_bytes;
        traffic.head_wire_bytes += more.head_wire_bytes;
        traffic.head_decoded_bytes += more.head_decoded_bytes;
        traffic.retransmits += more.retransmits;
        let (stalls, more) = (&mut self.stalls, &other.stalls);
        stalls.stream_window_ns += more.stream_window_ns;
        stalls.connection_window_ns += more.connection_window_ns;
        stalls.socket_full += more.socket_full;
        stalls.receive_window_used_up += more.receive_window_used_up;
        self.resumed_count += other.resumed_count;
        for (histogram, more) in [
            (&mut self.latency, &other.latency),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.connect, &other.connect),
            (&mut self.handshake, &other.handshake),
            (&mut self.lag, &other.lag),
            (&mut self.pacing, &other.pacing),
        ] {
            add(histogram, more);
        }
        self.presence += other.presence;
        self.ended_ns = self.ended_ns.max(other.ended_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_failures_are_told_apart_and_add_up() {
        let mut one = Tally::new();
        let mut other = Tally::new();
        for (index, failure) in FAILURES.iter().enumerate() {
            for _ in 0..=index {
                one.failure(*failure);
            }
            other.failure(*failure);
        }
        one.status(200);
        other.status(404);
        one.add(&other);
        let expected: BTreeMap<_, _> = FAILURES
            .iter()
            .enumerate()
            .map(|(index, failure)| (*failure, index as u64 + 2))
            .collect();
        assert_eq!(one.failures(), expected);
        assert_eq!(one.counts.failed, expected.values().sum::<u64>());
        assert_eq!(one.statuses(), BTreeMap::from([(200, 1), (404, 1)]));
    }
}
