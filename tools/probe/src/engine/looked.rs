//! RFC 9293 §3.8.1, RFC 9002 §6: what TCP sent again on one connection, and what QUIC has counted.

use bolide_connection::QuicStats;
use bolide_eventloop::Path;

use super::tally::Tally;

/// Retransmissions and losses of a connection, as last seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Looked {
    retransmits: u64,
    quic: QuicStats,
    /// Its round-trip time counts in this measurement already.
    has_rtt: bool,
    /// The measurement that what is seen counts for.
    measurement: u32,
}

impl Looked {
    /// Nothing yet, on a connection that begins now.
    pub(super) fn since(measurement: u32) -> Self {
        Self { measurement, ..Self::default() }
    }

    /// Returns whether it has been looked at in this measurement.
    #[inline]
    pub(super) fn is_of(&self, measurement: u32) -> bool {
        self.measurement == measurement
    }

    /// Asks the kernel or QUIC, and counts what there is more than at the last look in the same measurement. The first
    /// look of a measurement says what was there before it. `is_last`: of the connection in this measurement.
    #[cold]
    pub(super) fn look(
        &mut self,
        path: &dyn Path,
        quic: Option<QuicStats>,
        (measurement, is_last): (u32, bool),
        tally: &mut Tally,
    ) {
        let is_first = std::mem::replace(&mut self.measurement, measurement) != measurement;
        if let Some(count) = path.retransmits() {
            let before = std::mem::replace(&mut self.retransmits, count);
            tally.traffic.retransmits += if is_first { 0 } else { count.saturating_sub(before) };
        }
        let Some(now) = quic else { return };
        let before = if is_first { now } else { self.quic };
        (self.quic, self.has_rtt) = (now, self.has_rtt && !is_first);
        let of = tally.kinds.quic.get_or_insert_default();
        of.datagrams_sent += now.datagrams_sent - before.datagrams_sent;
        of.datagrams_received += now.datagrams_received - before.datagrams_received;
        of.packets_sent += now.packets_sent - before.packets_sent;
        of.packets_lost += now.packets_lost.saturating_sub(before.packets_lost);
        if is_last && now.datagrams_received > 0 && !std::mem::replace(&mut self.has_rtt, true) {
            of.rtt.saturating_record(u64::try_from(now.rtt.as_nanos()).unwrap_or(u64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bolide_eventloop::{Outbound, Service, Token};

    use super::*;
    use crate::engine::service::{LoadService, LoadSession};
    use crate::engine::testing::service;

    /// A connection on which so many segments were sent again.
    #[derive(Debug)]
    struct Planted(u64);

    impl Path for Planted {
        fn rtt(&self) -> Option<Duration> {
            None
        }

        fn retransmits(&self) -> Option<u64> {
            Some(self.0)
        }
    }

    #[test]
    fn only_what_is_new_is_counted() {
        let (mut looked, mut tally) = (Looked::since(1), Tally::new(1));
        let mut look = |count, measurement| {
            looked.look(&Planted(count), None, (measurement, false), &mut tally);
            tally.traffic.retransmits
        };
        assert_eq!([3, 3, 5].map(|count| look(count, 1)), [3, 3, 5]);
        // What came between two measurements belongs to none.
        assert_eq!([9, 10].map(|count| look(count, 2)), [5, 6]);
        looked.look(&(), None, (2, false), &mut tally);
        assert_eq!((tally.traffic.retransmits, tally.kinds.quic.is_none()), (6, true));
    }

    #[test]
    fn what_quic_counts_is_told_apart_by_measurement() {
        let (mut looked, mut tally) = (Looked::since(1), Tally::new(1));
        let mut look = |count, measurement, is_last| {
            let quic = QuicStats {
                datagrams_sent: count,
                datagrams_received: 2 * count,
                packets_sent: 3 * count,
                packets_lost: count / 10,
                rtt: Duration::from_millis(count),
            };
            looked.look(&(), Some(quic), (measurement, is_last), &mut tally);
        };
        look(10, 1, false);
        look(30, 1, true);
        look(30, 1, true);
        // Between two measurements, 10 more were sent.
        look(40, 2, false);
        look(60, 2, true);
        let of = tally.kinds.quic.unwrap();
        assert_eq!((of.datagrams_sent, of.datagrams_received), (50, 100));
        assert_eq!((of.packets_sent, of.packets_lost, of.rtt.len()), (150, 5, 2));
        assert!(of.rtt.max() >= 59_000_000);
    }

    fn connection(service: &mut LoadService, seat: u64) -> LoadSession {
        let outbound = Outbound { token: Token::NOBODY, tag: seat, datagrams_to: None };
        service.connecting(&outbound, Instant::now()).unwrap().0
    }

    #[test]
    fn a_connection_that_ends_within_a_phase_is_counted_at_its_end() {
        let (mut service, _commands) = service();
        let [mut early, mut lasting] = [0, 1].map(|seat| connection(&mut service, seat));
        service.closing(&mut early, &Planted(100));
        service.begin_measurement();
        assert_eq!(service.retransmits(), 0, "what ended before it belongs to no phase");
        let mut brief = connection(&mut service, 2);
        service.closing(&mut brief, &Planted(3));
        assert_eq!(service.retransmits(), 3);
        // It was not asked how many of these there were when the measurement began.
        service.closing(&mut lasting, &Planted(50));
        assert_eq!(service.retransmits(), 3);
    }
}
