//! Numbers that one worker writes and any thread reads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that one thread writes.
///
/// Adding is a load and a store, not a locked operation, for there is one writer; a reader sees some
/// value that it had. A worker that is stuck in a handler can still be read, which a message to it could not.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it. Only the worker that owns it does.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Takes one away: of a level, such as what is open.
    #[inline]
    pub fn take_one(&self) {
        self.add(u64::MAX);
    }

    /// Sets it. Only the worker that owns it does.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Its value, which may be a moment old.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The upper bounds of the buckets of every histogram of durations, in nanoseconds: 1, 2.5 and 5 of each
/// decade between 50 µs and 10 s, then 30 s and 60 s. What is longer counts in one more.
pub const DURATION_BOUNDS_NS: [u64; 19] = [
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
];

const BUCKETS: usize = DURATION_BOUNDS_NS.len() + 1;

/// The place of a duration among buckets with these bounds.
#[inline]
fn bucket_of(nanos: u64, bounds: &[u64; BUCKETS - 1]) -> usize {
    bounds.iter().position(|bound| nanos <= *bound).unwrap_or(BUCKETS - 1)
}

/// Durations, counted by bucket.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Counter; BUCKETS],
    sum_ns: Counter,
}

impl Histogram {
    /// Counts as many of this duration.
    #[inline]
    pub fn record(&self, duration: Duration, count: u64) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos, &DURATION_BOUNDS_NS)].add(count);
        self.sum_ns.add(nanos.saturating_mul(count));
    }

    /// So many durations that make up `sum_ns` together, each an equal share of it. `count` is not 0.
    pub fn record_shares(&self, sum_ns: u64, count: u64, bounds: &[u64; BUCKETS - 1]) {
        self.buckets[bucket_of(sum_ns / count, bounds)].add(count);
        self.sum_ns.add(sum_ns);
    }

    /// Adds what it has to a sum.
    pub fn add_to(&self, sum: &mut HistogramSnapshot) {
        for (sum, bucket) in sum.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.get();
        }
        sum.sum += Duration::from_nanos(self.sum_ns.get());
    }
}

/// A histogram of durations at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// How many durations fell into each bucket of [`DURATION_BOUNDS_NS`] (of
    /// [`STAGE_BOUNDS_NS`](crate::STAGE_BOUNDS_NS) for a stage), those beyond the last bound at the end. Not
    /// cumulative.
    pub buckets: [u64; BUCKETS],
    /// All durations together.
    pub sum: Duration,
}

impl Default for HistogramSnapshot {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], sum: Duration::ZERO }
    }
}

impl HistogramSnapshot {
    /// How many durations there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// How many names a [`NameCounts`] tells apart; the last place is for all others.
const NAMES: usize = 48;

/// Counters by names that are fixed in the code and few, but known only where they arise.
#[derive(Debug)]
pub struct NameCounts {
    slots: [(OnceLock<&'static str>, Counter); NAMES],
}

impl Default for NameCounts {
    fn default() -> Self {
        Self { slots: std::array::from_fn(|_| Default::default()) }
    }
}

impl NameCounts {
    /// Counts a name once more.
    pub fn count(&self, name: &'static str) {
        self.add(name, 1);
    }

    /// Counts as many of this name.
    pub fn add(&self, name: &'static str, more: u64) {
        let (named, others) = self.slots.split_at(NAMES - 1);
        for (slot, counter) in named {
            if *slot.get_or_init(|| name) == name {
                return counter.add(more);
            }
        }
        others[0].0.get_or_init(|| "other");
        others[0].1.add(more);
    }

    /// Adds what it has to sums.
    pub fn add_to(&self, sums: &mut Vec<(&'static str, u64)>) {
        for (slot, counter) in &self.slots {
            let Some(name) = slot.get() else { continue };
            match sums.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += counter.get(),
                None => sums.push((name, counter.get())),
            }
        }
        sums.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        for nanos in [0, 50_000, 50_001, 60_000_000_000, 60_000_000_001] {
            histogram.record(Duration::from_nanos(nanos), 1);
        }
        let mut sum = HistogramSnapshot::default();
        histogram.add_to(&mut sum);
        assert_eq!((sum.buckets[0], sum.buckets[1]), (2, 1));
        assert_eq!((sum.buckets[BUCKETS - 2], sum.buckets[BUCKETS - 1]), (1, 1));
        assert_eq!(sum.count(), 5);
        assert_eq!(sum.sum, Duration::from_nanos(120_000_100_002));
    }

    #[test]
    fn a_level_goes_down_again() {
        let level = Counter::default();
        level.add(3);
        level.take_one();
        assert_eq!(level.get(), 2);
    }

    #[test]
    fn names_beyond_the_room_count_together() {
        let counts = NameCounts::default();
        let names: Vec<&'static str> =
            (0..NAMES + 2).map(|n| &*Box::leak(format!("n{n:02}").into_boxed_str())).collect();
        for name in names.iter().chain(&names) {
            counts.count(name);
        }
        let mut sums = Vec::new();
        counts.add_to(&mut sums);
        assert_eq!(sums.len(), NAMES);
        assert!(sums.contains(&("n00", 2)) && sums.contains(&("other", 6)), "{sums:?}");
    }
}
