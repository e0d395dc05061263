//! The far ends: small state machines.

use std::time::Duration;

use crate::line::Line;

/// Names a client of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(pub(crate) usize);

/// A far end. Any `FnMut(&mut Wire)` is one.
pub trait Client {
    /// Called when the connection is made, when bytes or its end have arrived, when a wake-up comes
    /// due, and when everything sent so far has left.
    fn advance(&mut self, wire: &mut Wire<'_>);
}

impl<F: FnMut(&mut Wire<'_>)> Client for F {
    fn advance(&mut self, wire: &mut Wire<'_>) {
        self(wire);
    }
}

/// A client's end of its connection.
pub struct Wire<'a> {
    pub(crate) line: &'a mut Line,
    pub(crate) now: Duration,
    pub(crate) first: bool,
    pub(crate) wake_at: Option<Duration>,
    pub(crate) resets: bool,
}

impl Wire<'_> {
    /// Returns whether this is the first call: the connection has just been made.
    pub fn is_new(&self) -> bool {
        self.first
    }

    /// Virtual time since the simulation began.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Everything that has arrived so far, in order.
    pub fn received(&self) -> &[u8] {
        &self.line.client.received
    }

    /// The server has ended its side.
    pub fn eof(&self) -> bool {
        self.line.client.eof
    }

    /// The connection has been reset, by either end or on the way.
    pub fn was_reset(&self) -> bool {
        self.line.client.reset
    }

    /// Bytes that have been given to [`send`](Self::send) and have not left.
    pub fn unsent(&self) -> usize {
        self.line.client.outbox.len()
    }

    /// Sends bytes, as soon as there is room for them.
    pub fn send(&mut self, bytes: &[u8]) {
        assert!(!self.line.client.fin, "send after finish");
        self.line.client.outbox.extend(bytes);
    }

    /// Sends FIN behind all bytes.
    pub fn finish(&mut self) {
        self.line.client.fin = true;
    }

    /// Stops or starts reading; while stopped, the server's writes fill the buffers.
    pub fn read(&mut self, reads: bool) {
        self.line.client.stopped = !reads;
    }

    /// Resets the connection.
    pub fn reset(&mut self) {
        self.resets = true;
    }

    /// Calls again after `delay`, whatever happens before.
    pub fn wake_after(&mut self, delay: Duration) {
        self.wake_at = Some(self.now + delay);
    }
}
