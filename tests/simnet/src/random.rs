//! The one source of chance: SplitMix64.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A stream of numbers that a seed determines.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `range`.
    pub fn within(&mut self, range: RangeInclusive<usize>) -> usize {
        let (first, last) = range.into_inner();
        first + (self.draw() % (last - first + 1) as u64) as usize
    }

    /// A time in `range`, in whole microseconds.
    pub fn time_within(&mut self, range: &RangeInclusive<Duration>) -> Duration {
        let micros = |time: &Duration| time.as_micros() as usize;
        Duration::from_micros(self.within(micros(range.start())..=micros(range.end())) as u64)
    }

    /// True once in `count` draws on average; never for 0.
    pub fn once_in(&mut self, count: u32) -> bool {
        count > 0 && self.draw().is_multiple_of(u64::from(count))
    }

    /// `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.draw() as u8).collect()
    }
}
