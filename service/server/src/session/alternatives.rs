//! Routes with conditions, and what their handlers have to say of responses that they don't make.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bolide_semantics::{ExchangeId, Head};

use super::Session;
use crate::Handler;
use crate::exchange::State;
use crate::policy::PolicySlot;
use crate::request::Request;
use crate::responder::Address;
use crate::router::{Found, Parameters, RouteId, Router};
use crate::work::Work;

impl Session {
    /// Finds what answers a request where routes have conditions.
    #[cold]
    pub(super) fn find_alternative<'r, 'h>(
        &self,
        id: ExchangeId,
        (head, body_follows): (&'h Head, bool),
        router: &'r Router,
        parameters: &mut Parameters<'r, 'h>,
        work: &Work<'_>,
    ) -> (RouteId, Found<'r>) {
        let policy = PolicySlot::default();
        let request = self.request(id, (head, body_follows), &policy, work);
        // A condition that panics holds for nothing.
        catch_unwind(AssertUnwindSafe(|| router.find_alternative(&request, head, parameters)))
            .unwrap_or((RouteId::NONE, Found::Nothing))
    }

    /// Asks the handler of a request whose body is refused which policy the response has.
    #[cold]
    pub(super) fn note_refusal(
        &self,
        id: ExchangeId,
        handler: &dyn Handler,
        state: &State,
        work: &mut Work<'_>,
    ) {
        let mut request = self.request(id, (&*work.cx.head, true), &state.policy, work);
        let noted = catch_unwind(AssertUnwindSafe(|| handler.on_refusal(&mut request)));
        if noted.is_err() {
            work.observer.panicked(state.record.route, None);
        }
    }

    fn request<'a>(
        &'a self,
        id: ExchangeId,
        (head, body_follows): (&'a Head, bool),
        policy: &'a PolicySlot,
        work: &Work<'a>,
    ) -> Request<'a> {
        Request {
            head,
            connection: &self.connection,
            ends: &self.ends,
            parameters: None,
            body_follows,
            whole: None,
            now: work.cx.now,
            address: Address { exchange: id, ..work.address },
            policy,
            ingress: work.shared.gate.as_ref().map(|gate| &*gate.settings),
        }
    }
}
