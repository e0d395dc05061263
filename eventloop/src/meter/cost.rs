//! Cost of reading a clock, as it was lately.

use std::cell::Cell;

/// Observations that are averaged: the machine's speed changes, and a single one says little.
const WEIGHT: u64 = 16;

/// An observation that is so many times the average was interrupted, and is taken as that at most.
const OUTLIER_FACTOR: u64 = 2;

/// The cost of one reading: a moving average, in sixteenths of a nanosecond.
#[derive(Debug, Default)]
pub(super) struct Cost(Cell<Option<u64>>);

impl Cost {
    /// A reading took so many nanoseconds.
    pub(super) fn observe(&self, nanos: u64) {
        let observed = nanos * WEIGHT;
        let average = match self.0.get() {
            None => observed,
            Some(average) => {
                let bound = observed.min(average.max(WEIGHT) * OUTLIER_FACTOR);
                average - average / WEIGHT + bound / WEIGHT
            }
        };
        self.0.set(Some(average));
    }

    /// Returns what so many readings cost, in nanoseconds.
    pub(super) fn of(&self, readings: u64) -> u64 {
        self.0.get().unwrap_or(0) * readings / WEIGHT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_a_machine_that_slows_down_and_ignores_an_interruption() {
        let cost = Cost::default();
        assert_eq!(cost.of(10), 0);
        cost.observe(20);
        assert_eq!(cost.of(10), 200);
        cost.observe(1_000_000);
        assert!(cost.of(10) < 220, "{}", cost.of(10));
        for _ in 0..100 {
            cost.observe(40);
        }
        assert!((390..=400).contains(&cost.of(10)), "{}", cost.of(10));
    }
}
