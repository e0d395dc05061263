//! Counters of one worker.

use std::sync::{Arc, Mutex, PoisonError};

use bolide_connection::{Http2Stats, RESET_CODES, Resets};
use bolide_eventloop::Stats;

use super::counter::{Counter, Histogram, NameCounts};
use super::place::Place;
use super::snapshot::{RouteSnapshot, Snapshot};

/// One route's counters on one worker.
#[derive(Debug, Default)]
pub struct RouteCounts {
    /// By the first digit of the status; 0: none was sent.
    pub statuses: [Counter; 6],
    /// How long responses took, in all.
    pub durations: Histogram,
}

/// Counters of HTTP/2, summed over the connections of a worker.
#[derive(Debug, Default)]
pub struct Http2Counts {
    /// Streams that were refused for there were too many.
    pub streams_refused: Counter,
    /// By error code.
    pub resets_received: NameCounts,
    /// By error code.
    pub resets_sent: NameCounts,
    /// Times a peer used up a receive window.
    pub receive_windows_used_up: Counter,
    /// How long streams waited for their window, in milliseconds.
    pub stream_window_ms: Counter,
    /// How long connections waited for their window, in milliseconds.
    pub connection_window_ms: Counter,
    /// How long connections waited for their socket, in milliseconds.
    pub socket_ms: Counter,
}

impl Http2Counts {
    /// Adds what a connection has counted since `before`.
    pub fn add(&self, now: &Http2Stats, before: &Http2Stats) {
        let grown = |now: u32, before: u32| u64::from(now.wrapping_sub(before));
        self.streams_refused.add(grown(now.streams_refused, before.streams_refused));
        let (used_up, was) = (now.receive_windows_used_up, before.receive_windows_used_up);
        self.receive_windows_used_up.add(grown(used_up, was));
        let (stalls, was) = (now.stalls, before.stalls);
        self.stream_window_ms.add(stalls.stream_window_ms - was.stream_window_ms);
        self.connection_window_ms.add(stalls.connection_window_ms - was.connection_window_ms);
        self.socket_ms.add(stalls.socket_ms - was.socket_ms);
    }

    /// Adds streams that were reset on a connection.
    pub fn add_resets(&self, resets: &Resets) {
        let ways = [(&self.resets_received, resets.received), (&self.resets_sent, resets.sent)];
        for (sums, counts) in ways {
            for (code, count) in RESET_CODES.into_iter().zip(counts).filter(|(_, count)| *count > 0)
            {
                sums.add(code, count.into());
            }
        }
    }
}

/// Counters of the worker's event loop at the end of its last turn.
#[derive(Debug, Default)]
struct LoopCounts([Counter; 16]);

impl LoopCounts {
    fn set(&self, stats: &Stats) {
        let values = [
            stats.accepted,
            stats.refused,
            stats.outbound,
            stats.connects_failed,
            stats.panics,
            stats.bytes_received,
            stats.bytes_sent,
            stats.work.waits,
            stats.work.events,
            stats.work.write_blocked,
            stats.work.requeued,
            stats.work.accept_pauses,
            stats.open,
            stats.work.mails,
            stats.datagrams,
            stats.datagrams_passed_on,
        ];
        for (counter, value) in self.0.iter().zip(values) {
            counter.set(value);
        }
    }

    fn add_to(&self, sum: &mut Stats) {
        let sums = [
            &mut sum.accepted,
            &mut sum.refused,
            &mut sum.outbound,
            &mut sum.connects_failed,
            &mut sum.panics,
            &mut sum.bytes_received,
            &mut sum.bytes_sent,
            &mut sum.work.waits,
            &mut sum.work.events,
            &mut sum.work.write_blocked,
            &mut sum.work.requeued,
            &mut sum.work.accept_pauses,
            &mut sum.open,
            &mut sum.work.mails,
            &mut sum.datagrams,
            &mut sum.datagrams_passed_on,
        ];
        for (sum, counter) in sums.into_iter().zip(&self.0) {
            *sum += counter.get();
        }
    }
}

/// Everything that one worker counts. It is the only writer, and shares no cache line with another.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Shard {
    /// How long turns of the loop took.
    pub turns: Histogram,
    /// Turns that took too long.
    pub long_turns: Counter,
    /// Open connections (a level, not a counter), by [`Place::index`].
    pub places: [Counter; Place::COUNT],
    /// Requests that are under way and were not answered at once (a level).
    pub in_flight: Counter,
    /// Panics in handlers.
    pub handler_panics: Counter,
    /// TLS handshakes without a session.
    pub handshakes_full: Counter,
    /// TLS handshakes that resumed a session.
    pub handshakes_resumed: Counter,
    /// TLS handshakes that failed, by reason.
    pub handshakes_failed: NameCounts,
    /// Connections that ended, by reason.
    pub closes: NameCounts,
    /// Limits that were hit, by name.
    pub limits: NameCounts,
    /// Budgets that a peer has spent, by attack.
    pub abuse: NameCounts,
    /// Exchanges that ended early, by reason.
    pub aborts: NameCounts,
    /// HTTP/2.
    pub http2: Http2Counts,
    event_loop: LoopCounts,
    routes: Mutex<Vec<(Box<str>, Arc<RouteCounts>)>>,
}

impl Shard {
    /// The counters of these routes, in this order. A name that was asked for before keeps its counters, so
    /// that a router may be replaced.
    pub fn routes<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<Arc<RouteCounts>> {
        let mut known = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        names
            .map(|name| {
                if let Some((_, counts)) = known.iter().find(|(known, _)| **known == *name) {
                    return Arc::clone(counts);
                }
                let counts = Arc::<RouteCounts>::default();
                known.push((name.into(), Arc::clone(&counts)));
                counts
            })
            .collect()
    }

    /// A turn of the event loop is over.
    #[inline]
    pub fn turn_ends(&self, stats: &Stats) {
        self.event_loop.set(stats);
    }

    /// Adds what it has to a sum.
    pub fn add_to(&self, sum: &mut Snapshot) {
        self.event_loop.add_to(&mut sum.event_loop);
        self.turns.add_to(&mut sum.turns);
        sum.long_turns += self.long_turns.get();
        sum.in_flight += self.in_flight.get();
        sum.handler_panics += self.handler_panics.get();
        for (sum, place) in sum.connections.iter_mut().zip(&self.places) {
            sum.count = sum.count.wrapping_add(place.get());
        }
        sum.tls.full += self.handshakes_full.get();
        sum.tls.resumed += self.handshakes_resumed.get();
        self.handshakes_failed.add_to(&mut sum.tls.failed);
        self.closes.add_to(&mut sum.ends.closes);
        self.limits.add_to(&mut sum.ends.limits);
        self.abuse.add_to(&mut sum.ends.abuse);
        self.aborts.add_to(&mut sum.ends.aborts);
        let (http2, ours) = (&mut sum.http2, &self.http2);
        http2.streams_refused += ours.streams_refused.get();
        ours.resets_received.add_to(&mut http2.resets_received);
        ours.resets_sent.add_to(&mut http2.resets_sent);
        http2.receive_windows_used_up += ours.receive_windows_used_up.get();
        http2.stream_window_stall_ms += ours.stream_window_ms.get();
        http2.connection_window_stall_ms += ours.connection_window_ms.get();
        http2.socket_stall_ms += ours.socket_ms.get();
        for (name, counts) in &*self.routes.lock().unwrap_or_else(PoisonError::into_inner) {
            let at = sum.routes.iter().position(|route| *route.name == **name);
            let at = at.unwrap_or_else(|| {
                sum.routes.push(RouteSnapshot::new(name));
                sum.routes.len() - 1
            });
            let route = &mut sum.routes[at];
            for (sum, status) in route.statuses.iter_mut().zip(&counts.statuses) {
                *sum += status.get();
            }
            counts.durations.add_to(&mut route.durations);
        }
    }
}

#[cfg(test)]
mod tests {
    use bolide_eventloop::LoopWork;

    use super::*;

    #[test]
    fn a_route_that_comes_again_keeps_its_counters() {
        let shard = Shard::default();
        shard.routes(["/a", "/b"].into_iter())[1].statuses[2].add(3);
        let again = shard.routes(["/b", "/c"].into_iter());
        again[0].statuses[2].add(1);
        let mut sum = Snapshot::default();
        shard.add_to(&mut sum);
        let counted: Vec<_> =
            sum.routes.iter().map(|route| (&*route.name, route.statuses[2])).collect();
        assert_eq!(counted, [("/a", 0), ("/b", 4), ("/c", 0)]);
    }

    #[test]
    fn what_the_loop_counts_comes_back_as_it_was() {
        let shard = Shard::default();
        let stats = Stats {
            accepted: 7,
            bytes_sent: 9,
            open: 1,
            work: LoopWork { mails: 3, ..LoopWork::default() },
            ..Stats::default()
        };
        shard.turn_ends(&stats);
        let mut sum = Snapshot::default();
        shard.add_to(&mut sum);
        assert_eq!(sum.event_loop, stats);
    }
}
