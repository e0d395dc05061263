//! How long an upstream is left alone whose requests fail.

use std::time::{Duration, Instant};

use crate::ProxyLimits;

/// Health of an upstream by its failures.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Health {
    /// In a row.
    failures: u32,
    pub(crate) left_alone_until: Option<Instant>,
    pause: Duration,
    /// When it was left alone no longer, once it has responded since.
    back_since: Option<Instant>,
}

impl Health {
    pub(crate) fn is_left_alone(&self, now: Instant) -> bool {
        self.left_alone_until.is_some_and(|until| now < until)
    }

    /// Since when it is left alone no longer, if it was.
    pub(crate) fn back_since(&self, now: Instant) -> Option<Instant> {
        self.left_alone_until.filter(|until| *until <= now).or(self.back_since)
    }

    /// Returns whether it was left alone before.
    #[inline]
    pub(crate) fn succeeded(&mut self) -> bool {
        if self.failures == 0 {
            return false;
        }
        let was = std::mem::take(self);
        self.back_since = was.left_alone_until.or(was.back_since);
        was.left_alone_until.is_some()
    }

    /// For how long it is left alone from here on, if it is.
    pub(crate) fn failed(&mut self, limits: &ProxyLimits, now: Instant) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        if self.failures < limits.choice.failures_count || self.is_left_alone(now) {
            return None;
        }
        self.pause = if self.pause.is_zero() {
            limits.choice.ejection_time
        } else {
            (self.pause * 2).min(limits.choice.ejection_time_max)
        };
        self.left_alone_until = Some(now + self.pause);
        Some(self.pause)
    }
}
