//! Measurements of a profile at one moment, as plain values.

use std::time::Duration;

use super::stage::Stage;
use crate::metrics::HistogramSnapshot;

/// The upper bounds of the buckets of the stages' histograms, in nanoseconds: 1, 2.5 and 5 of each decade
/// between 25 ns and 10 ms, then 100 ms and 1 s. What is longer counts in one more.
pub const STAGE_BOUNDS_NS: [u64; 19] = [
    25,
    50,
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

/// Measurements of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileSnapshot {
    /// One turn in how many is measured now; 0: none.
    pub one_in: u32,
    /// Turns that were measured.
    pub turns: u64,
    /// Turns that were to be and are missing: other threads had the core in the middle of them.
    pub dropped: u64,
    /// Requests that began in the measured turns.
    pub requests: u64,
    /// The CPU time of the measured turns, by the threads' CPU clocks.
    pub cpu: Duration,
    /// Cost of reading the clock in them: part of `cpu`, and of no stage.
    pub reading: Duration,
    /// The stages, in the order of [`Stage::ALL`].
    pub stages: [StageSnapshot; Stage::ALL.len()],
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageSnapshot {
    /// Which.
    pub stage: Stage,
    /// The CPU time that it took in all measured turns.
    pub spent: Duration,
    /// Time for each request; of turns in which requests began. The bounds are [`STAGE_BOUNDS_NS`].
    pub per_request: HistogramSnapshot,
}

impl Default for ProfileSnapshot {
    fn default() -> Self {
        let stage = |stage| StageSnapshot {
            stage,
            spent: Duration::ZERO,
            per_request: HistogramSnapshot::default(),
        };
        Self {
            one_in: 0,
            turns: 0,
            dropped: 0,
            requests: 0,
            cpu: Duration::ZERO,
            reading: Duration::ZERO,
            stages: Stage::ALL.map(stage),
        }
    }
}

impl ProfileSnapshot {
    /// The CPU time of all stages together.
    #[must_use]
    pub fn spent(&self) -> Duration {
        self.stages.iter().map(|stage| stage.spent).sum()
    }

    /// Which part of the CPU time the stages and the reading of the clock account for: 1 when nothing is
    /// missing and nothing stands twice. 0 when nothing was measured.
    #[must_use]
    pub fn accounted(&self) -> f64 {
        let parts = (self.spent() + self.reading).as_secs_f64();
        if self.cpu.is_zero() { 0.0 } else { parts / self.cpu.as_secs_f64() }
    }

    /// Returns what a stage took for each request, in microseconds, turns without requests among it. 0 when no request
    /// was measured.
    #[must_use]
    pub fn per_request_us(&self, stage: &StageSnapshot) -> f64 {
        self.of_request_us(stage.spent)
    }

    pub(super) fn of_request_us(&self, time: Duration) -> f64 {
        if self.requests == 0 { 0.0 } else { time.as_secs_f64() * 1e6 / self.requests as f64 }
    }

    /// The share of a stage in all of them, 0 to 1.
    #[must_use]
    pub fn share(&self, stage: &StageSnapshot) -> f64 {
        let all = self.spent();
        if all.is_zero() { 0.0 } else { stage.spent.as_secs_f64() / all.as_secs_f64() }
    }
}
