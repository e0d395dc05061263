//! Bodies that are there with their head: a handler that wants one whole gets it with the request.

use bolide_buffers::ReceiveBuffer;
use bolide_semantics::{End, ExchangeId, Head};
use bytes::Bytes;
use http::StatusCode;

use super::Session;
use crate::exchange::State;
use crate::refusal::admit;
use crate::work::Work;
use crate::{Handler, Reply, WHOLE_BODY_BYTES};

/// Facts about a request's body before its handler is called.
#[derive(Debug)]
pub(super) struct Offer {
    /// How long it may get.
    pub(super) bytes_max: u64,
    /// Its client waits to be told that it may send it.
    pub(super) continues: bool,
    /// All of it, where it has arrived and the handler wants it so.
    pub(super) whole: Option<Bytes>,
}

impl Offer {
    /// No body follows, or nothing is known of it; one may have so many bytes.
    #[inline]
    pub(super) fn nothing(bytes_max: u64) -> Self {
        Self { bytes_max, continues: false, whole: None }
    }
}

impl Session {
    /// Finds out whether a handler may have the body that follows, and in which way.
    pub(super) fn offer(
        &mut self,
        id: ExchangeId,
        handler: &dyn Handler,
        (head, input): (&Head, &mut ReceiveBuffer),
        offer: &mut Offer,
    ) -> Result<(), StatusCode> {
        if handler.takes_whole_bodies() {
            offer.whole = self.connection.whole_body(input, id, WHOLE_BODY_BYTES);
        }
        let arrived_bytes = offer.whole.as_ref().map_or(0, Bytes::len);
        offer.bytes_max = handler.body_bytes_max().unwrap_or(offer.bytes_max);
        let waits = admit(head, arrived_bytes, offer.bytes_max)?;
        offer.continues = waits && offer.whole.is_none();
        Ok(())
    }

    /// Does what a handler has decided that was offered the whole body, of so many bytes, and has left it or not.
    #[inline]
    pub(super) fn handled(
        &mut self,
        id: ExchangeId,
        reply: &mut Reply,
        (whole_bytes, left): (usize, Option<Bytes>),
        state: &mut State,
        work: &mut Work<'_>,
    ) {
        if whole_bytes > 0 && left.is_none() {
            state.record.received_bytes = whole_bytes as u64;
            self.connection.consumed(&mut work.cx, id, whole_bytes);
        }
        let goes_on = matches!(reply, Reply::Exchange(_) | Reply::LaterOr(_));
        self.carry_out(id, reply, state, work);
        if let Some(data) = left.filter(|_| goes_on) {
            self.data(id, data, End::Yes, work);
        }
    }

    /// Hands on the trailers: they stand in the context's head, which the orders may use again.
    pub(super) fn trailers(&mut self, id: ExchangeId, work: &mut Work<'_>) {
        let trailers = std::mem::take(work.cx.head);
        if let Ok(index) = self.index(id)
            && let Some(body) = self.exchanges[index].waiting_body()
        {
            body.has_ended = true;
            body.trailers = Some(trailers.clone());
        }
        if let Ok(index) = self.index(id) {
            let active = &mut self.exchanges[index];
            active.state.record.note_received(End::Yes, work.cx.now);
            active.patience.request_moved(End::Yes, work.cx.now);
        }
        let Some(trailers) = self.keep_trailers(id, trailers, work) else { return };
        self.with_driver(id, work, |driver, io| driver.on_trailers(&trailers, io));
        *work.cx.head = trailers;
    }
}
