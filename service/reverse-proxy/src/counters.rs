//! Counters of each upstream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bolide_client::PoolCensus;

/// The bounds of a [`Latency`], in microseconds; what took longer than the last is counted beyond it.
const BOUNDS: [u64; 16] = [
    100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// How long upstreams took from the moment a request was sent to the head of its response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latency {
    /// How many responses came within each of [`Self::bounds`] and not within the bound before it; the last
    /// number is those that took longer than all bounds.
    pub counts: [u64; BOUNDS.len() + 1],
    /// The sum of all times, in microseconds.
    pub sum_us: u64,
}

impl Latency {
    /// The upper bounds, rising, in microseconds.
    #[must_use]
    pub fn bounds() -> &'static [u64] {
        &BOUNDS
    }

    /// Adds what another has counted.
    fn add(&mut self, other: &Self) {
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
        self.sum_us += other.sum_us;
    }

    /// How many responses were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A bound that so large a share of the responses came within, from 0 to 1: `None` without responses.
    /// [`Duration::MAX`] when it lies beyond all bounds.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let wanted = ((total as f64 * share).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        let bound = at.and_then(|at| BOUNDS.get(at));
        Some(bound.map_or(Duration::MAX, |micros| Duration::from_micros(*micros)))
    }
}

/// A [`Latency`] that one thread counts in.
#[derive(Debug, Default)]
pub(crate) struct LatencyCounter {
    counts: [Counter; BOUNDS.len() + 1],
    sum_us: Counter,
}

impl LatencyCounter {
    pub(crate) fn count(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|bound| *bound < micros);
        self.counts[at].count();
        self.sum_us.add(micros);
    }

    fn add_to(&self, sum: &mut Latency) {
        for (sum, count) in sum.counts.iter_mut().zip(&self.counts) {
            *sum += count.get();
        }
        sum.sum_us += self.sum_us.get();
    }
}

macro_rules! counters {
    (
        counts { $($(#[doc = $count_doc:literal])* $count:ident,)* }
        levels { $($(#[doc = $level_doc:literal])* $level:ident,)* }
    ) => {
        /// Counters of one worker for one upstream: written by it alone, read by any thread.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $count: Counter,)*
            $(pub(crate) $level: Counter,)*
            pub(crate) latency: LatencyCounter,
        }

        /// Counters of one upstream, by all workers together.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct UpstreamStats {
            /// The upstream, as it was named.
            pub name: String,
            /// The health checks have found it down, and have not found it up again. Never without
            /// [health checks](crate::HealthCheck).
            pub is_down: bool,
            /// Health checks that were made.
            pub health_checks: u64,
            /// Those of them that failed.
            pub health_check_failures: u64,
            $($(#[doc = $count_doc])* pub $count: u64,)*
            $($(#[doc = $level_doc])* pub $level: u64,)*
            /// How long its responses took.
            pub latency: Latency,
        }

        impl Counters {
            pub(crate) fn add_to(&self, sum: &mut UpstreamStats) {
                $(sum.$count += self.$count.get();)*
                $(sum.$level += self.$level.get();)*
                self.latency.add_to(&mut sum.latency);
            }
        }

        impl UpstreamStats {
            /// Adds what another has counted: everything but what is so now.
            pub fn add_counts(&mut self, other: &Self) {
                $(self.$count += other.$count;)*
                self.health_checks += other.health_checks;
                self.health_check_failures += other.health_check_failures;
                self.latency.add(&other.latency);
            }

            /// Adds what is so now at another: requests and connections. Down is what one finds down.
            pub fn add_levels(&mut self, other: &Self) {
                $(self.$level += other.$level;)*
                self.is_down |= other.is_down;
            }
        }
    };
}

counters! {
    counts {
        /// Requests that were sent.
        requests,
        /// Responses whose head was received.
        responses,
        /// Requests that failed: no response, or a broken one. Each is of one of the following kinds.
        failures,
        /// They took too long: a connection, a head, or a pause in a body.
        timeouts,
        /// No process listened.
        refused,
        /// There was no way there.
        unreachable,
        /// The TLS handshake failed, or the certificate was not trusted.
        tls_failures,
        /// Bytes that were no HTTP.
        garbage,
        /// The connection ended before the response was complete.
        broken_off,
        /// As many requests were open or waiting as may be.
        overflows,
        /// Anything else: the request could not be sent on as it stood, or a tunnel was not granted.
        other_failures,
        /// Requests that were retried, here or at another upstream, after they failed here.
        retries,
        /// Connections that became ready.
        connections,
        /// Connections that could not be established.
        connect_failures,
        /// Times that the upstream was ejected.
        ejections,
    }
    levels {
        /// Now: requests that are open, those that wait among them.
        open_requests,
        /// Now: requests that wait for a connection.
        waiting_requests,
        /// Now: connections that are being made.
        connecting,
        /// Now: connections that carry at least one request.
        busy_connections,
        /// Now: connections that carry none.
        idle_connections,
    }
}

impl Counters {
    /// The state of the pools, at this moment.
    pub(crate) fn show(&self, open_requests: u32, census: PoolCensus) {
        self.open_requests.set(u64::from(open_requests));
        self.waiting_requests.set(census.waiting as u64);
        self.connecting.set(census.connecting as u64);
        self.busy_connections.set(census.busy as u64);
        self.idle_connections.set((census.open - census.busy) as u64);
    }
}

impl UpstreamStats {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// A number that one thread writes.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds one, without the cost of a locked operation: there is one writer.
    #[inline]
    pub(crate) fn count(&self) {
        self.add(1);
    }

    #[inline]
    fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }

    #[inline]
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_within_their_bounds() {
        let counter = LatencyCounter::default();
        for micros in [0, 100, 101, 1000, 10_000_001] {
            counter.count(Duration::from_micros(micros));
        }
        let mut latency = Latency::default();
        counter.add_to(&mut latency);
        assert_eq!(latency.counts[..4], [2, 1, 0, 1]);
        assert_eq!((latency.counts[16], latency.count()), (1, 5));
        assert_eq!(latency.sum_us, 10_001_202);
        assert_eq!(latency.quantile(0.4), Some(Duration::from_micros(100)));
        assert_eq!(latency.quantile(0.5), Some(Duration::from_micros(250)));
        assert_eq!(latency.quantile(1.0), Some(Duration::MAX));
        assert_eq!(Latency::default().quantile(0.5), None);
    }
}
