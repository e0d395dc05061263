//! RFC 9112, RFC 9113: what a connection works with during one turn, lent by its worker.

use std::time::Instant;

use bolide_buffers::{ReceiveBuffer, SendQueue};

use crate::Head;

/// The worker's buffers and clock, lent to a connection for one turn.
#[derive(Debug)]
pub struct Context<'a> {
    /// Input. A connection consumes what it can use and leaves an incomplete rest.
    pub input: &'a mut ReceiveBuffer,
    /// Output that is to be sent.
    pub output: &'a mut SendQueue,
    /// How many bytes may wait in `output` before bodies are asked for no more, and before no
    /// further request is read.
    pub output_limit: usize,
    /// The latest head or trailers.
    pub head: &'a mut Head,
    /// The time of this turn.
    pub now: Instant,
}

impl Context<'_> {
    /// The same context, lent on for a shorter time.
    #[inline]
    #[must_use]
    pub fn reborrow(&mut self) -> Context<'_> {
        Context {
            input: self.input,
            output: self.output,
            output_limit: self.output_limit,
            head: self.head,
            now: self.now,
        }
    }

    /// How many more bytes of bodies may be queued.
    #[inline]
    #[must_use]
    pub fn output_room(&self) -> usize {
        self.output_limit.saturating_sub(self.output.len())
    }
}
