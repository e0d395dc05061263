//! Counts of one thread in one phase; those of several threads add up.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::by_request::ByRequest;
use super::events::EventTally;
use super::histograms::{add, empty, encoded, latencies};
use super::websocket_tally::WebSocketTally;
use crate::report::{Counts, Failure, QuicReport, Spread, Stalls, Traffic, UsersReport};

/// Every kind of failure, in the order of their numbers.
const FAILURES: [Failure; 16] = [
    Failure::Connect,
    Failure::Tls,
    Failure::Timeout,
    Failure::Reset,
    Failure::Goaway,
    Failure::Protocol,
    Failure::Status,
    Failure::Body,
    Failure::Fields,
    Failure::Trailers,
    Failure::Events,
    Failure::Grpc,
    Failure::Upgrade,
    Failure::Closed,
    Failure::Capture,
    Failure::Redirect,
];

/// Statuses have three digits.
const STATUSES_COUNT: usize = 1000;

/// Counts without the warm-up.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    #[serde(with = "by_status")]
    statuses: Box<[u64; STATUSES_COUNT]>,
    failures: [u64; FAILURES.len()],
    pub(super) traffic: Traffic,
    pub(super) stalls: Stalls,
    pub(super) resumed_count: u64,
    /// Connections that sent requests before their handshake was complete.
    pub(super) early_count: u64,
    /// How the first connection ended that took requests with it.
    pub(super) first_loss: Option<Cow<'static, str>>,
    /// Completed requests by seat, as far as any has completed some.
    by_seat: Vec<u64>,
    /// Durations.
    pub(super) times: TimesTally,
    /// Figures that only some kinds of requests have.
    pub(super) kinds: KindsTally,
    pub(super) by_request: ByRequest,
    /// Requests in the system (in flight, or due and waiting) over time: requests times nanoseconds.
    #[serde(with = "in_digits")]
    pub(super) presence: u128,
    /// When the phase ended for this thread, in nanoseconds since the engine began.
    pub(super) ended_ns: u64,
}

/// Figures that only some kinds of requests have.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KindsTally {
    pub(super) events: EventTally,
    /// Of WebSocket connections.
    pub(super) websocket: Option<WebSocketTally>,
    /// Over QUIC.
    pub(super) quic: Option<QuicTally>,
    /// Of a scenario.
    pub(super) users: Option<UsersTally>,
}

/// Durations.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TimesTally {
    #[serde(with = "encoded")]
    pub(super) latency: Histogram<u64>,
    #[serde(with = "encoded")]
    pub(super) first_byte: Histogram<u64>,
    /// From when requests were handed to their connections to the first bytes of their responses, summed.
    pub(super) handed_to_first_byte_ns: u64,
    #[serde(with = "encoded")]
    pub(super) connect: Histogram<u64>,
    #[serde(with = "encoded")]
    pub(super) handshake: Histogram<u64>,
    #[serde(with = "encoded")]
    pub(super) lag: Histogram<u64>,
    #[serde(with = "encoded")]
    pub(super) pacing: Histogram<u64>,
}

/// Counts of QUIC, over all connections.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct QuicTally {
    pub(super) datagrams_sent: u64,
    pub(super) datagrams_received: u64,
    pub(super) packets_sent: u64,
    pub(super) packets_lost: u64,
    /// The smoothed round-trip times of connections, as they were looked at last.
    #[serde(with = "encoded")]
    pub(super) rtt: Histogram<u64>,
}

impl Default for QuicTally {
    fn default() -> Self {
        let (datagrams_sent, datagrams_received) = (0, 0);
        let (packets_sent, packets_lost, rtt) = (0, 0, empty());
        Self { datagrams_sent, datagrams_received, packets_sent, packets_lost, rtt }
    }
}

impl QuicTally {
    fn add(&mut self, more: &Self) {
        self.datagrams_sent += more.datagrams_sent;
        self.datagrams_received += more.datagrams_received;
        self.packets_sent += more.packets_sent;
        self.packets_lost += more.packets_lost;
        add(&mut self.rtt, &more.rtt);
    }

    /// The connections' smoothed round trips.
    pub(super) fn round_trip(&self) -> &Histogram<u64> {
        &self.rtt
    }

    /// Returns what is reported of it.
    pub(super) fn report(self) -> QuicReport {
        let Self { datagrams_sent, datagrams_received, packets_sent, packets_lost, rtt } = self;
        let rtt = latencies(rtt);
        QuicReport { datagrams_sent, datagrams_received, packets_sent, packets_lost, rtt }
    }
}

/// Users who carried out their scenario.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UsersTally {
    gave_up: u64,
    #[serde(with = "encoded")]
    duration: Histogram<u64>,
}

impl Default for UsersTally {
    fn default() -> Self {
        Self { gave_up: 0, duration: empty() }
    }
}

impl UsersTally {
    /// A user has done all steps, or given up.
    pub(super) fn finished(&mut self, duration_ns: u64, gave_up: bool) {
        if gave_up {
            self.gave_up += 1;
        } else {
            self.duration.saturating_record(duration_ns);
        }
    }

    fn add(&mut self, more: &Self) {
        self.gave_up += more.gave_up;
        add(&mut self.duration, &more.duration);
    }

    /// Returns what is reported of it.
    pub(super) fn report(self) -> UsersReport {
        let Self { gave_up, duration } = self;
        UsersReport { finished: duration.len(), gave_up, duration: latencies(duration) }
    }
}

impl Tally {
    /// Of a plan with so many requests.
    pub(super) fn new(requests: usize) -> Self {
        Self {
            counts: Counts::default(),
            statuses: Box::new([0; STATUSES_COUNT]),
            failures: [0; FAILURES.len()],
            traffic: Traffic::default(),
            stalls: Stalls::default(),
            resumed_count: 0,
            early_count: 0,
            first_loss: None,
            by_seat: Vec::new(),
            by_request: ByRequest::new(requests),
            presence: 0,
            ended_ns: 0,
            times: TimesTally {
                latency: empty(),
                first_byte: empty(),
                handed_to_first_byte_ns: 0,
                connect: empty(),
                handshake: empty(),
                lag: empty(),
                pacing: empty(),
            },
            kinds: KindsTally {
                events: EventTally::new(),
                websocket: None,
                quic: None,
                users: None,
            },
        }
    }

    /// A response with this status is complete.
    #[inline]
    pub(super) fn status(&mut self, status: u16) {
        if let Some(count) = self.statuses.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// A request was completed on the connection of this seat.
    #[inline]
    pub(super) fn completed_on(&mut self, seat: Option<u32>) {
        let Some(seat) = seat else { return };
        let seat = seat as usize;
        if seat >= self.by_seat.len() {
            self.by_seat.resize(seat + 1, 0);
        }
        self.by_seat[seat] += 1;
    }

    /// How completed requests are spread over the seats that completed any, in requests per second.
    pub(super) fn rates(&self, seconds: f64) -> Option<Spread> {
        let counts = self.by_seat.iter().filter(|count| **count > 0);
        let rates: Vec<f64> = counts.map(|count| *count as f64 / seconds).collect();
        if rates.is_empty() || seconds <= 0.0 {
            return None;
        }
        let number = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / number;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let deviation = (squares / number).sqrt();
        let within = rates.iter().filter(|rate| (**rate - mean).abs() <= deviation).count();
        Some(Spread {
            min: rates.iter().copied().fold(f64::INFINITY, f64::min),
            max: rates.iter().copied().fold(0.0, f64::max),
            mean,
            deviation,
            within_deviation: within as f64 / number,
        })
    }

    /// Something failed.
    #[inline]
    pub(super) fn failure(&mut self, failure: Failure) {
        self.counts.failed += 1;
        self.failures[failure as usize] += 1;
    }

    /// Responses by status; those that occurred. Messages have none.
    pub(super) fn statuses(&self) -> BTreeMap<u16, u64> {
        let counts = self.statuses.iter().enumerate().skip(1).filter(|(_, count)| **count > 0);
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
        self.times.handed_to_first_byte_ns += other.times.handed_to_first_byte_ns;
        self.resumed_count += other.resumed_count;
        self.early_count += other.early_count;
        self.first_loss = self.first_loss.take().or_else(|| other.first_loss.clone());
        self.by_seat.extend_from_slice(&other.by_seat);
        for (histogram, more) in [
            (&mut self.times.latency, &other.times.latency),
            (&mut self.times.first_byte, &other.times.first_byte),
            (&mut self.times.connect, &other.times.connect),
            (&mut self.times.handshake, &other.times.handshake),
            (&mut self.times.lag, &other.times.lag),
            (&mut self.times.pacing, &other.times.pacing),
        ] {
            add(histogram, more);
        }
        self.kinds.events.add(&other.kinds.events);
        if let Some(more) = &other.kinds.websocket {
            self.kinds.websocket.get_or_insert_default().add(more);
        }
        if let Some(more) = &other.kinds.quic {
            self.kinds.quic.get_or_insert_default().add(more);
        }
        self.by_request.add(&other.by_request);
        if let Some(more) = &other.kinds.users {
            self.kinds.users.get_or_insert_default().add(more);
        }
        self.presence += other.presence;
        self.ended_ns = self.ended_ns.max(other.ended_ns);
    }
}

/// Counts by status, of those that occurred.
mod by_status {
    use super::{BTreeMap, STATUSES_COUNT};
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        counts: &[u64; STATUSES_COUNT],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let counts = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        to.collect_map(counts)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Box<[u64; STATUSES_COUNT]>, D::Error> {
        let mut counts = Box::new([0; STATUSES_COUNT]);
        for (status, count) in BTreeMap::<usize, u64>::deserialize(from)? {
            if let Some(place) = counts.get_mut(status) {
                *place = count;
            }
        }
        Ok(counts)
    }
}

/// A sum that JSON's numbers may not hold.
mod in_digits {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// The sum of so many does not wrap.
    const MOST: u128 = u128::MAX / 4096;

    pub(super) fn serialize<S: Serializer>(sum: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(sum)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<u128, D::Error> {
        let sum = String::deserialize(from)?.parse().map_err(D::Error::custom)?;
        if sum > MOST { Err(D::Error::custom("a sum beyond any run's")) } else { Ok(sum) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connections_of_all_threads_are_compared() {
        let mut one = Tally::new(1);
        assert_eq!(one.rates(1.0), None);
        for _ in 0..10 {
            one.completed_on(Some(3));
        }
        let mut other = Tally::new(1);
        (0..30).for_each(|_| other.completed_on(Some(0)));
        other.completed_on(None);
        one.add(&other);
        let rates = one.rates(2.0).unwrap();
        assert_eq!((rates.min, rates.max, rates.mean, rates.deviation), (5.0, 15.0, 10.0, 5.0));
        assert_eq!(rates.within_deviation, 1.0);
    }

    #[test]
    fn kinds_of_failures_are_told_apart_and_add_up() {
        let mut one = Tally::new(1);
        let mut other = Tally::new(1);
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
