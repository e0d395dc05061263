//! How long an exchange may take: for its answer to begin, and in all.

use std::time::{Duration, Instant};

use crate::Limits;
use crate::exchange::Active;

/// How long an exchange may take; zero: for ever.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// For its response to begin.
    response: Duration,
    /// In all.
    exchange: Duration,
}

impl Active {
    /// When the exchange is to be ended, if nothing changes until then.
    #[inline]
    pub(crate) fn ends(&self, limits: &Limits) -> Option<Instant> {
        let answered = !self.state.phase.is_unanswered();
        let mut timeouts =
            Timeouts { response: limits.response_timeout, exchange: limits.exchange_timeout };
        if self.state.policy.is_set() {
            self.set_own(&mut timeouts);
        }
        self.patience.ends(answered, timeouts)
    }

    /// The policy of the exchange may have timeouts of its own.
    #[cold]
    fn set_own(&self, timeouts: &mut Timeouts) {
        if let Some(policy) = self.state.policy.get() {
            timeouts.response = policy.response_timeout().unwrap_or(timeouts.response);
            timeouts.exchange = policy.exchange_timeout().unwrap_or(timeouts.exchange);
        }
    }
}

/// The times of one open exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// When its head arrived.
    began: Instant,
    /// When the last byte of its request arrived.
    moved: Instant,
}

impl Patience {
    pub(crate) fn new(now: Instant) -> Self {
        Self { began: now, moved: now }
    }

    /// A piece of the request's body arrived.
    pub(crate) fn request_moved(&mut self, now: Instant) {
        self.moved = now;
    }

    /// When the exchange is to be ended, if nothing changes until then.
    pub(crate) fn ends(self, answered: bool, limits: Timeouts) -> Option<Instant> {
        let at = |from: Instant, limit: Duration| (!limit.is_zero()).then(|| from + limit);
        let answer = if answered { None } else { at(self.moved, limits.response) };
        let whole = at(self.began, limits.exchange);
        match (answer, whole) {
            (Some(answer), Some(whole)) => Some(answer.min(whole)),
            (answer, whole) => answer.or(whole),
        }
    }
}
