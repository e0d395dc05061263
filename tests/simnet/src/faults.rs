//! Faults, and how often they happen.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::random::Random;

/// A call of the worker on the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A read.
    Receive,
    /// A write, vectored or not.
    Send,
    /// An accepted connection.
    Accept,
}

/// Misfortune that may happen to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfortune {
    /// It takes or brings fewer bytes than it could.
    Short,
    /// It reports `WouldBlock`, although it could do something.
    WouldBlock,
    /// It fails, and the connection with it.
    Reset,
}

/// The plan of a network. Chances are "once in so many", 0 for never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// How long a segment is under way.
    pub delay: RangeInclusive<Duration>,
    /// Rate of the way to the worker at most, on each connection, in bytes per second; 0 for any.
    pub rate_bytes: u64,
    /// How long segments are, in bytes.
    pub segment_bytes: RangeInclusive<usize>,
    /// How much either end holds for a reader that does not read, in bytes.
    pub buffer_bytes: usize,
    /// Reads and writes that come short.
    pub short: u32,
    /// Reads, writes and accepts that would block for no reason.
    pub would_block: u32,
    /// Segments that are held up, together with those behind them.
    pub stall: u32,
    /// For how long these are.
    pub stall_time: RangeInclusive<Duration>,
    /// Segments at which the connection is reset.
    pub reset: u32,
    /// Accepts that fail, for lack of descriptors or because the peer has gone.
    pub accept_failure: u32,
    /// Connections outward that are refused.
    pub refusal: u32,
    /// Misfortune of the call with this number, counted from 0 over all calls of the worker.
    pub at_call: Option<(u64, Misfortune)>,
    /// Misfortune of every call whose number this divides.
    pub every_call: Option<(u64, Misfortune)>,
}

impl Faults {
    /// A quick network on which nothing goes wrong.
    pub fn none() -> Self {
        let millisecond = Duration::from_millis(1);
        Self {
            delay: millisecond..=millisecond,
            rate_bytes: 0,
            segment_bytes: 1460..=1460,
            buffer_bytes: 64 * 1024,
            short: 0,
            would_block: 0,
            stall: 0,
            stall_time: millisecond..=millisecond,
            reset: 0,
            accept_failure: 0,
            refusal: 0,
            at_call: None,
            every_call: None,
        }
    }

    /// A network that cuts, delays and interrupts as the seed of `random` says, and breaks nothing:
    /// every byte arrives.
    pub fn rough(random: &mut Random) -> Self {
        let often = |random: &mut Random| [0, 0, 2, 5, 50][random.within(0..=4)];
        let longest = [1, 7, 1460, 70_000][random.within(0..=3)];
        let slowest = Duration::from_millis([1, 20, 300][random.within(0..=2)]);
        Self {
            delay: Duration::from_micros(50)..=slowest,
            segment_bytes: 1..=longest,
            buffer_bytes: [100, 5000, 300_000][random.within(0..=2)],
            short: often(random),
            would_block: often(random),
            stall: [0, 0, 200][random.within(0..=2)],
            stall_time: Duration::from_millis(100)..=Duration::from_secs(5),
            accept_failure: often(random),
            ..Self::none()
        }
    }

    /// A rough network on which connections are also reset, or refused.
    pub fn hostile(random: &mut Random) -> Self {
        let reset = [20, 200, 2000][random.within(0..=2)];
        let refusal = [0, 3][random.within(0..=1)];
        Self { reset, refusal, ..Self::rough(random) }
    }

    /// How long so many bytes take to be sent.
    pub(crate) fn sending_time(&self, bytes: usize) -> Duration {
        match self.rate_bytes {
            0 => Duration::ZERO,
            rate => Duration::from_nanos((bytes as u64).saturating_mul(1_000_000_000) / rate),
        }
    }

    /// The mean round trip.
    pub(crate) fn rtt(&self) -> Duration {
        *self.delay.start() + *self.delay.end()
    }

    /// Returns what happens to the call of this number.
    pub(crate) fn draw(&self, random: &mut Random, number: u64) -> Option<Misfortune> {
        match (self.at_call, self.every_call) {
            (Some((at, misfortune)), _) if at == number => return Some(misfortune),
            (_, Some((every, misfortune))) if every > 0 && number.is_multiple_of(every) => {
                return Some(misfortune);
            }
            _ => {}
        }
        if random.once_in(self.short) {
            Some(Misfortune::Short)
        } else if random.once_in(self.would_block) {
            Some(Misfortune::WouldBlock)
        } else {
            None
        }
    }
}
