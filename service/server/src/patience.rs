//! How long an exchange may take: for its response to begin, and in all.

use std::time::{Duration, Instant};

use bolide_semantics::End;

/// How long an exchange may take; zero: for ever.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// For its response to begin.
    pub(crate) response: Duration,
    /// In all.
    pub(crate) exchange: Duration,
}

/// The times of one open exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// When its head arrived.
    began: Instant,
    /// When the last byte of its request arrived.
    moved: Instant,
    /// The request is complete.
    is_whole: bool,
}

impl Patience {
    pub(crate) fn new(now: Instant, is_whole: bool) -> Self {
        Self { began: now, moved: now, is_whole }
    }

    /// A piece of the request's body arrived.
    pub(crate) fn request_moved(&mut self, end: End, now: Instant) {
        self.moved = now;
        self.is_whole |= end == End::Yes;
    }

    /// Returns whether more of the request is to come.
    pub(crate) fn is_partial(self) -> bool {
        !self.is_whole
    }

    /// When the exchange is to be ended, if nothing changes until then.
    pub(crate) fn ends(self, answered: bool, limits: Timeouts) -> Option<Instant> {
        let at = |from: Instant, limit: Duration| (!limit.is_zero()).then(|| from + limit);
        let response = if answered { None } else { at(self.moved, limits.response) };
        let whole = at(self.began, limits.exchange);
        match (response, whole) {
            (Some(response), Some(whole)) => Some(response.min(whole)),
            (response, whole) => response.or(whole),
        }
    }
}
