//! RFC 9110 §3.4: what an owner may do with its connection.

use std::time::Instant;

use bolide_buffers::Chunk;
use bolide_connection::{Connection, Http2Stats};
use bolide_semantics::{Context, End, ExchangeId, FieldRef, Head, Misuse, RequestHead};

/// A connection and the buffers of this turn.
#[derive(Debug)]
pub struct Orders<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) cx: Context<'a>,
    /// Something was ordered since this was last looked at.
    pub(crate) ordered: bool,
}

impl Orders<'_> {
    /// The head or the trailers that were reported last.
    #[inline]
    #[must_use]
    pub fn head(&self) -> &Head {
        self.cx.head
    }

    /// The time of this turn of the loop.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.cx.now
    }

    /// How many requests can be sent now.
    #[inline]
    #[must_use]
    pub fn available(&self) -> usize {
        self.connection.exchanges_available() as usize
    }

    /// Returns whether so much waits to be sent that more requests should wait.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.cx.output_room() == 0
    }

    /// Returns whether all of request `id` has been written: one that is open, or whose response was completed last. Over
    /// TLS, what waits as records counts as written, and over HTTP/2 what is in frames.
    #[inline]
    #[must_use]
    pub fn is_written(&self, id: ExchangeId) -> bool {
        self.connection.is_written(&self.cx, id)
    }

    /// How many bytes of request `id` wait to be written, of those that were given.
    #[must_use]
    pub fn unwritten_bytes(&self, id: ExchangeId) -> u64 {
        self.connection.unwritten_bytes(&self.cx, id)
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// [`Misuse::Refused`] when none can be sent now, [`Misuse::InvalidHead`] and
    /// [`Misuse::WrongLength`] when the head can't be sent.
    #[inline]
    pub fn send_request(&mut self, head: &RequestHead<'_>, end: End) -> Result<ExchangeId, Misuse> {
        self.ordered = true;
        self.connection.send_request(&mut self.cx, head, end)
    }

    /// Gives the next piece of a request's body. `Ok(false)`: the one after waits for
    /// [`Sendable`](bolide_semantics::ExchangeEvent::Sendable).
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    pub fn send_data(
        &mut self,
        id: ExchangeId,
        data: impl Into<Chunk>,
        end: End,
    ) -> Result<bool, Misuse> {
        self.ordered = true;
        self.connection.send_data(&mut self.cx, id, data, end)
    }

    /// Ends a request's body with trailers.
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    pub fn send_trailers(&mut self, id: ExchangeId, fields: &[FieldRef<'_>]) -> Result<(), Misuse> {
        self.ordered = true;
        self.connection.send_trailers(&mut self.cx, id, fields)
    }

    /// Reports `bytes` of received data as used up.
    #[inline]
    pub fn consumed(&mut self, id: ExchangeId, bytes: usize) {
        self.ordered = true;
        self.connection.consumed(&mut self.cx, id, bytes);
    }

    /// Gives an exchange up. With HTTP/1.1 the connection ends with it.
    pub fn abort(&mut self, id: ExchangeId) {
        self.ordered = true;
        self.connection.abort(&mut self.cx, id);
    }

    /// Ends the connection when everything open is complete.
    pub fn shut_down(&mut self) {
        self.ordered = true;
        self.connection.shut_down(&mut self.cx);
    }

    /// Returns whether the server takes tunnels to protocols by name: by `Upgrade` over HTTP/1.1, by extended CONNECT
    /// over HTTP/2. `None` while that is not known.
    #[must_use]
    pub fn takes_protocols(&self) -> Option<bool> {
        self.connection.takes_protocols()
    }

    /// Returns what an HTTP/2 connection has counted.
    pub fn http2_stats(&mut self) -> Option<Http2Stats> {
        self.connection.http2_stats()
    }
}
