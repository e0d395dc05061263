//! Exchanges that are to be woken or ended at a time.

use bolide_semantics::{AbortReason, Blame, End, ExchangeId};
use http::StatusCode;

use super::Session;
use crate::exchange::{Active, Kind, Phase, State};
use crate::work::Work;
use crate::{Limits, Response};

impl Session {
    /// When the first of the open exchanges is to be ended, or woken.
    #[inline]
    pub(super) fn next_end(&self, limits: &Limits) -> Option<std::time::Instant> {
        let times = |active: &Active| {
            let State { alarm, slowed, .. } = &active.state;
            let slowed = slowed.as_ref().and_then(|slowed| slowed.until());
            [active.ends(limits), *alarm, active.state.paced_until(), slowed]
        };
        self.exchanges.iter().flat_map(times).flatten().min()
    }

    /// Wakes the exchanges whose time has come, and goes on with those whose content waited for it.
    #[cold]
    pub(super) fn ring_alarms(&mut self, work: &mut Work<'_>) {
        let now = work.cx.now;
        let due =
            |active: &mut Active| active.state.alarm.take_if(|at| *at <= now).map(|_| active.id);
        let due: Vec<ExchangeId> = self.exchanges.iter_mut().filter_map(due).collect();
        for id in due {
            self.wake(id, work);
        }
        let due = |active: &Active| Some((active.state.take_paced(now)?, active.id));
        let mut due: Vec<(std::time::Instant, ExchangeId)> =
            self.exchanges.iter().filter_map(due).collect();
        // They share what may be sent: the one that has waited longest is the first.
        due.sort_by_key(|(since, _)| *since);
        for (_, id) in due {
            self.with(id, work, |active, io| {
                io.pull();
                if io.is_sendable()
                    && let Some(driver) = &mut active.driver
                {
                    driver.on_sendable(io);
                }
            });
        }
        let due =
            |active: &mut Active| active.state.slowed.as_mut()?.take_due(now).then_some(active.id);
        let due: Vec<ExchangeId> = self.exchanges.iter_mut().filter_map(due).collect();
        for id in due {
            self.hand_on(id, work);
        }
    }

    /// Ends the exchanges whose time is over: by 503 where nothing was answered, else by breaking off.
    #[cold]
    pub(super) fn end_late_exchanges(&mut self, work: &mut Work<'_>) {
        let (limits, now) = (&work.shared.limits, work.cx.now);
        for active in &mut self.exchanges {
            // The handler waits for the client, which has limits of its own.
            if active.patience.is_partial()
                && active.state.phase == Phase::Unanswered
                && active.state.kind != Kind::Connect
                && self.connection.unconsumed_bytes_of(active.id) == 0
            {
                active.patience.request_moved(End::No, now);
            }
        }
        let is_late = |active: &&Active| active.ends(limits).is_some_and(|end| end <= now);
        let late: Vec<ExchangeId> =
            self.exchanges.iter().filter(is_late).map(|active| active.id).collect();
        for id in late {
            let index = self.index(id);
            let answered =
                index.is_ok_and(|index| !self.exchanges[index].state.phase.is_unanswered());
            let name = if answered { "exchange-timeout" } else { "response-timeout" };
            work.observer.limit(self.ends.peer(), name, None);
            self.with(id, work, |active, io| {
                io.state.record.aborted = Some(name);
                if let Some(mut driver) = active.driver.take() {
                    let what = "the response took too long";
                    driver.on_abort(AbortReason::new(Blame::Caller, name, what));
                }
                io.respond(Response::error(StatusCode::SERVICE_UNAVAILABLE));
                io.abort();
            });
        }
    }
}
