//! Bodies of requests that are handed on no faster than the exchange's policy says.

use bolide_semantics::{End, ExchangeId, Head};
use bytes::Bytes;

use super::Session;
use crate::exchange::{Part, SlowedBody};
use crate::work::Work;

impl Session {
    /// Gives a piece of a request's body to its handler, or keeps it until its time has come.
    pub(super) fn deliver(&mut self, id: ExchangeId, data: Bytes, end: End, work: &mut Work<'_>) {
        let Some(slowed) = self.slowed_body(id) else {
            return self.with_driver(id, work, |driver, io| driver.on_data(data, end, io));
        };
        slowed.add(&data, end);
        self.hand_on(id, work);
    }

    /// Keeps the trailers of a body that waits; the others come back.
    pub(super) fn keep_trailers(
        &mut self,
        id: ExchangeId,
        trailers: Head,
        work: &mut Work<'_>,
    ) -> Option<Head> {
        let Some(slowed) = self.slowed_body(id) else { return Some(trailers) };
        slowed.end_with(trailers);
        self.hand_on(id, work);
        None
    }

    /// The body of this exchange, if its policy slows it down.
    fn slowed_body(&mut self, id: ExchangeId) -> Option<&mut SlowedBody> {
        let index = self.index(id).ok()?;
        let state = &mut self.exchanges[index].state;
        if state.slowed.is_none() && state.policy.is_there() && state.has_body {
            let pace = state.policy.get().and_then(|policy| policy.receive_pace());
            state.slowed = pace.map(|pace| Box::new(SlowedBody::new(pace)));
        }
        state.slowed.as_deref_mut()
    }

    /// Hands on as much of a body as its handler may have now.
    pub(super) fn hand_on(&mut self, id: ExchangeId, work: &mut Work<'_>) {
        let now = work.cx.now;
        while let Ok(index) = self.index(id) {
            let active = &mut self.exchanges[index];
            let Some(slowed) = &mut active.state.slowed else { return };
            if active.driver.is_none() {
                let bytes = slowed.drop_bytes();
                return self.connection.consumed(&mut work.cx, id, bytes);
            }
            match slowed.next(now) {
                None => return,
                Some(part) => {
                    active.patience.request_moved(End::No, now);
                    self.with_driver(id, work, |driver, io| match part {
                        Part::Data(data, end) => driver.on_data(data, end, io),
                        Part::Trailers(trailers) => driver.on_trailers(&trailers, io),
                    });
                }
            }
        }
    }
}
