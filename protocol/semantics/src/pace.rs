//! RFC 9113 §10.5, RFC 9114 §10.5: how fast the body of a request comes, while a handler waits for it.

use std::time::Duration;

use crate::{Clock, millis};

/// Limits of a body's pace.
#[derive(Debug, Clone, Copy)]
pub struct PaceLimits {
    /// How long it may pause.
    pub pause: Duration,
    /// Bytes per second that must come at least, once something has come.
    pub rate_bytes: u32,
    /// How long the rate is measured.
    pub rate_time: Duration,
}

/// How fast a body comes. Looked at every few seconds.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// When bytes last came.
    received_ms: u32,
    /// Since when the rate is measured, and what came since.
    since_ms: u32,
    bytes: u32,
    /// `bytes` at the last look.
    mark: u32,
}

impl Pace {
    /// Measured from now on.
    #[must_use]
    pub fn new(now_ms: u32) -> Self {
        Self { received_ms: now_ms, since_ms: now_ms, bytes: 0, mark: 0 }
    }

    /// So much has come.
    #[inline]
    pub fn received(&mut self, bytes: u32, now_ms: u32) {
        self.received_ms = now_ms;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Since when it is measured, in milliseconds of the connection's clock.
    #[must_use]
    pub fn since_ms(&self) -> u32 {
        self.since_ms
    }

    /// A look at it: what of the body is too slow, if anything is. Time counts only while its receiver wants more: it has
    /// consumed everything but what has come since the last look (`unconsumed`). Nor does the time count in which `all` bodies
    /// of the connection together came fast enough: a client may send one after the other.
    pub fn look(
        &mut self,
        is_wanted: bool,
        unconsumed: u32,
        clock: &Clock,
        limits: &PaceLimits,
        all: &BodiesPace,
    ) -> Option<&'static str> {
        let too_slow = self.judge(is_wanted, unconsumed, clock, limits)?;
        if all.is_enough {
            *self = Self::new(clock.ms);
            return None;
        }
        Some(too_slow)
    }

    fn judge(
        &mut self,
        is_wanted: bool,
        unconsumed: u32,
        clock: &Clock,
        limits: &PaceLimits,
    ) -> Option<&'static str> {
        let news = self.bytes - self.mark;
        self.mark = self.bytes;
        if !is_wanted || unconsumed > news {
            *self = Self::new(clock.ms);
            return None;
        }
        if clock.elapsed_ms(self.received_ms) >= millis(limits.pause) {
            return Some("the request's body pauses for too long");
        }
        let measured_ms = clock.elapsed_ms(self.since_ms);
        if measured_ms >= millis(limits.rate_time) {
            if !keeps_pace(self.bytes, measured_ms, limits.rate_bytes) && self.bytes > 0 {
                return Some("the request's body comes too slowly");
            }
            *self = Self { received_ms: self.received_ms, ..Self::new(clock.ms) };
        }
        None
    }
}

/// How fast the bodies of one connection come, together. Looked at every few seconds, before those of its streams.
#[derive(Debug, Clone, Copy, Default)]
pub struct BodiesPace {
    /// Bytes that came since the last look.
    bytes: u32,
    /// Milliseconds between the two looks before, and bytes that came.
    before: (u32, u32),
    /// They came fast enough for all that are wanted.
    is_enough: bool,
}

impl BodiesPace {
    /// So much has come.
    #[inline]
    pub fn received(&mut self, bytes: u32) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns whether nothing has come since the last look.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.bytes == 0
    }

    /// A look, `passed_ms` after the last one, at a connection with so many bodies that are wanted: each must bring its rate.
    /// A connection is not looked at while it has no streams: no more than `rate_time` counts.
    pub fn look(&mut self, wanted_count: u32, passed_ms: u32, limits: &PaceLimits) {
        let passed_ms = passed_ms.min(millis(limits.rate_time));
        let (before_ms, before_bytes) = self.before;
        let bytes = before_bytes.saturating_add(self.bytes);
        let rate = limits.rate_bytes.saturating_mul(wanted_count);
        *self = Self {
            bytes: 0,
            before: (passed_ms, self.bytes),
            is_enough: keeps_pace(bytes, before_ms + passed_ms, rate),
        };
    }
}

/// Returns whether so many bytes in so many milliseconds are at least `rate` bytes per second.
#[must_use]
pub fn keeps_pace(bytes: u32, passed_ms: u32, rate: u32) -> bool {
    u64::from(bytes) * 1000 >= u64::from(passed_ms) * u64::from(rate)
}

#[cfg(test)]
mod tests {
    #[test]
    fn paces() {
        assert!(super::keeps_pace(5000, 10_000, 500));
        assert!(!super::keeps_pace(4999, 10_000, 500));
        assert!(super::keeps_pace(u32::MAX, u32::MAX, 500));
    }
}
