//! The one source of chance.

use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;

/// A stream of numbers that a seed determines.
#[derive(Debug, Clone)]
pub struct Random(Rng);

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A number in `range`.
    pub fn within(&mut self, range: RangeInclusive<usize>) -> usize {
        self.0.usize(range)
    }

    /// A time in `range`, in whole microseconds.
    pub fn time_within(&mut self, range: &RangeInclusive<Duration>) -> Duration {
        let micros = |time: &Duration| time.as_micros() as usize;
        Duration::from_micros(self.within(micros(range.start())..=micros(range.end())) as u64)
    }

    /// True once in `count` draws on average; never for 0.
    pub fn once_in(&mut self, count: u32) -> bool {
        count > 0 && self.0.u32(..count) == 0
    }

    /// `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.fill(&mut bytes);
        bytes
    }
}
