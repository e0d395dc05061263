//! Bodies of requests that are handed on no faster than the exchange's policy says.

use std::rc::Rc;
use std::time::Instant;

use bolide_semantics::{End, ExchangeId, Head};
use bytes::{Bytes, BytesMut};

use super::Session;
use crate::policy::Pace;
use crate::work::Work;

/// A body that waits for its time: not consumed, so that the client stops.
#[derive(Debug)]
pub(crate) struct SlowedBody {
    pace: Rc<dyn Pace>,
    bytes: BytesMut,
    has_ended: bool,
    trailers: Option<Head>,
    /// When the next piece may be handed on, if none may be now.
    until: Option<Instant>,
}

/// What is handed on.
enum Part {
    Data(Bytes, End),
    Trailers(Head),
}

impl SlowedBody {
    fn new(pace: Rc<dyn Pace>) -> Self {
        let (bytes, has_ended, trailers, until) = Default::default();
        Self { pace, bytes, has_ended, trailers, until }
    }

    /// The next part, if it may be handed on.
    fn next(&mut self, now: Instant) -> Option<Part> {
        let mut data = Bytes::new();
        if !self.bytes.is_empty() {
            match self.pace.ready(now) {
                Ok(bytes) => data = self.bytes.split_to(bytes.min(self.bytes.len())).freeze(),
                Err(at) => {
                    self.until = Some(at);
                    return None;
                }
            }
            self.pace.sent(data.len() as u64, now);
        }
        if !self.bytes.is_empty() || !self.has_ended {
            return (!data.is_empty()).then_some(Part::Data(data, End::No));
        }
        match self.trailers.take() {
            Some(trailers) if data.is_empty() => {
                self.has_ended = false;
                Some(Part::Trailers(trailers))
            }
            Some(trailers) => {
                self.trailers = Some(trailers);
                Some(Part::Data(data, End::No))
            }
            None => {
                self.has_ended = false;
                Some(Part::Data(data, End::Yes))
            }
        }
    }

    /// Whether a part of it may be handed on again, which had to wait.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        self.until.take_if(|until| *until <= now).is_some()
    }

    /// When it is to be looked at again.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// The memory that it takes besides what the client has been told to be unconsumed, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.trailers.as_ref().map_or(0, Head::allocated_bytes)
    }
}

impl Session {
    /// Gives a piece of a request's body to its handler, or keeps it until its time has come.
    pub(super) fn deliver(&mut self, id: ExchangeId, data: Bytes, end: End, work: &mut Work<'_>) {
        let Some(slowed) = self.slowed_body(id) else {
            return self.with_driver(id, work, |driver, io| driver.on_data(data, end, io));
        };
        slowed.bytes.extend_from_slice(&data);
        slowed.has_ended |= end == End::Yes;
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
        slowed.trailers = Some(trailers);
        slowed.has_ended = true;
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
                let bytes = slowed.bytes.split().len();
                return self.connection.consumed(&mut work.cx, id, bytes);
            }
            match slowed.next(now) {
                None => return,
                Some(part) => {
                    active.patience.request_moved(now);
                    self.with_driver(id, work, |driver, io| match part {
                        Part::Data(data, end) => driver.on_data(data, end, io),
                        Part::Trailers(trailers) => driver.on_trailers(&trailers, io),
                    });
                }
            }
        }
    }
}
