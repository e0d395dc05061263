//! When an exchange is to be ended.

use std::time::Instant;

use super::Active;
use crate::Limits;
use crate::patience::Timeouts;

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
