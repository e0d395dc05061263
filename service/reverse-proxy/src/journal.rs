//! Lines for a log about upstreams: what was wrong, at most one of a kind in a second.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The target of all events.
macro_rules! say {
    ($level:ident, $($rest:tt)*) => { tracing::$level!(target: "bolide::proxy", $($rest)*) };
}

/// How long there is no other line about failures of the same upstream.
const PAUSE: Duration = Duration::from_secs(1);

/// Lets one line through in a second, and counts the others.
#[derive(Debug, Default)]
struct Gate {
    /// When the last line was let through, and how many were not since.
    state: Mutex<(Option<Instant>, u64)>,
}

impl Gate {
    /// Returns whether a line is let through; with how many were not since the one before.
    fn pass(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0.is_some_and(|last| now < last + PAUSE) {
            state.1 += 1;
            return None;
        }
        state.0 = Some(now);
        Some(std::mem::take(&mut state.1))
    }
}

/// The journal of one upstream, for all workers.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    failures: Gate,
    states: Gate,
}

/// Nothing, or how many lines were left out.
struct LeftOut(u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(formatter, " ({count} more since the last line)"),
        }
    }
}

impl Journal {
    /// Something failed there.
    pub(crate) fn failed(
        &self,
        upstream: &str,
        error: &str,
        what: &dyn fmt::Display,
        now: Instant,
    ) {
        if let Some(count) = self.failures.pass(now) {
            let left_out = LeftOut(count);
            say!(warn, upstream, error, left_out = count, "upstream {upstream}: {what}{left_out}");
        }
    }

    /// It is used no more, for a reason.
    pub(crate) fn down(&self, upstream: &str, what: &dyn fmt::Display, now: Instant) {
        if let Some(count) = self.states.pass(now) {
            let left_out = LeftOut(count);
            say!(warn, upstream, left_out = count, "upstream {upstream}: {what}{left_out}");
        }
    }

    /// It is used again, or elsewhere.
    pub(crate) fn noted(&self, upstream: &str, what: &dyn fmt::Display, now: Instant) {
        if let Some(count) = self.states.pass(now) {
            let left_out = LeftOut(count);
            say!(info, upstream, left_out = count, "upstream {upstream}: {what}{left_out}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_in_a_second_is_let_through_and_the_others_are_counted() {
        let (gate, now) = (Gate::default(), Instant::now());
        assert_eq!(gate.pass(now), Some(0));
        let later = now + PAUSE - Duration::from_nanos(1);
        assert!((0..5).all(|_| gate.pass(later).is_none()));
        assert_eq!(gate.pass(now + PAUSE), Some(5));
        assert_eq!(gate.pass(now + PAUSE * 2), Some(0));
    }
}
