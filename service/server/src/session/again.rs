//! Answers that were made before.

use bolide_semantics::ExchangeId;

use super::Session;
use crate::Prepared;
use crate::exchange::State;
use crate::profile::ENCODE;
use crate::work::Work;

impl Session {
    /// Answers in one step, if the client's connection remembers the head and nothing has to wait. The worker's
    /// head is the request's.
    #[inline]
    pub(super) fn answer_again<const MEASURED: bool>(
        &mut self,
        id: ExchangeId,
        prepared: &Prepared,
        state: &mut State,
        work: &mut Work<'_>,
    ) -> bool {
        if MEASURED {
            work.meter.enter(ENCODE);
        }
        let woken = &mut self.woken;
        let is_sent =
            work.io(&mut self.connection, &self.ends, id, state, woken).answer_again(prepared);
        if is_sent {
            self.answered::<MEASURED>(id, state, true, work);
        }
        is_sent
    }
}
