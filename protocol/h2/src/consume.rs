//! RFC 9113 §5.2, §6.9: received data has been used up, and windows open again.

use bolide_semantics::{Context, ExchangeId};

use crate::connection::Connection;
use crate::frame;
use crate::stream::LENGTH_UNKNOWN;

impl Connection {
    /// `bytes` of the data that was reported for an exchange have been used up: the peer may send as
    /// much again. Calls for exchanges that are over are harmless.
    #[inline]
    pub fn consumed(&mut self, cx: &mut Context<'_>, id: ExchangeId, bytes: usize) {
        if self.incoming.run.as_mut().is_some_and(|run| run.consumes(id, bytes)) {
            return;
        }
        let Ok(slot) = self.ordered(cx, id) else { return };
        self.consume(cx, slot, u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// The same for an open stream.
    #[inline]
    pub(crate) fn consume(&mut self, cx: &mut Context<'_>, slot: u32, bytes: u32) {
        let clock = self.deadlines.clock;
        let stream = self.streams.get_mut(slot);
        let (id, state, stream) = (stream.id, stream.state, &mut stream.receiving);
        let bytes = bytes.min(stream.unconsumed);
        stream.unconsumed -= bytes;
        if state.receiving().is_some() {
            // There are peers that want some even for an end that carries nothing.
            let available = stream.window.available;
            let enough =
                available > 0 && stream.left != LENGTH_UNKNOWN && stream.left <= available as u64;
            if enough {
                stream.window.consumed += bytes;
            } else {
                let tuning = self.receive_flow.stream_tuning(clock.us, &self.limits);
                let size = stream.window.size;
                if let Some(increment) = stream.window.consume(bytes, tuning) {
                    frame::window_update::write(cx.output.tail(), id, increment);
                }
                if stream.window.size > size {
                    let size = stream.window.size;
                    self.stream_window_grew(cx, size);
                }
            }
        }
        self.release(cx, bytes);
    }

    #[cold]
    fn stream_window_grew(&mut self, cx: &mut Context<'_>, size: u32) {
        let initial = self.settings.window_bytes;
        if let Some(bytes) = self.receive_flow.stream_grew(size, initial) {
            let now_ms = self.deadlines.clock.ms;
            let difference = self.settings.write_window(cx.output.tail(), bytes, now_ms);
            self.streams.open_mut().for_each(|stream| stream.receiving.window.shift(difference));
        }
    }
}
