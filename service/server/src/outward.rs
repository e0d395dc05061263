//! Connections that a worker makes for its handlers, in addition to those of its clients.
//!
//! They live in the same loop, so that what passes between a client and a server behind crosses no
//! thread: the two reach each other by [`Outward::call`] and by [`Waker`](crate::Waker).

use std::fmt;
use std::io;
use std::time::Instant;

use bolide_buffers::{DatagramSink, Flush, SendQueue};
use bolide_connection::QuicEndpoint;
use bolide_eventloop::{
    After, Agenda, CloseCause, DatagramFlush, Destination, Outbound as BegunOutbound, Token, Turn,
};

use crate::Message;

/// The QUIC connections outward of a worker, of all its handlers; none before the first. It is lent to every call.
pub type OutwardQuic = Option<Box<QuicEndpoint<Token>>>;

/// The owner of a connection that was asked for by [`Outward::connect`].
pub trait Dialled: 'static {
    /// The connection has begun and has a name. `None` gives it up.
    fn begin(
        self: Box<Self>,
        begun: &BegunOutbound,
        quic: &mut OutwardQuic,
        now: Instant,
    ) -> Option<(Box<dyn Outbound>, After)>;

    /// It could not begin: no route, no socket, no permission.
    fn failed(self: Box<Self>, error: io::Error, agenda: &mut Agenda);
}

/// The owner of a connection outward; the calls are those of
/// [`Service`](bolide_eventloop::Service).
pub trait Outbound: 'static {
    /// Something happened: it is established ([`Turn::connected`]), bytes arrived, the peer ended its
    /// side, the deadline passed, output drained, or a handler [called](Outward::call).
    fn turn(&mut self, turn: &mut Turn<'_, Message>, quic: &mut OutwardQuic) -> After;

    /// The worker is to end: the connection should come to its end.
    fn shut_down(&mut self, turn: &mut Turn<'_, Message>, quic: &mut OutwardQuic) -> After;

    /// Writes what is to be sent.
    ///
    /// # Errors
    ///
    /// What `sink` reports; the connection is closed then.
    fn flush(&mut self, output: &mut SendQueue, mut sink: &mut dyn io::Write) -> io::Result<Flush> {
        output.flush(&mut sink)
    }

    /// The same where datagrams are sent.
    fn flush_datagrams(
        &mut self,
        quic: &mut OutwardQuic,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        let _ = (quic, sink);
        DatagramFlush { flush: Flush::Drained, deadline: None }
    }

    /// The connection is closed, or was never established.
    fn close(self: Box<Self>, cause: CloseCause, quic: &mut OutwardQuic, agenda: &mut Agenda);
}

/// Connections that were asked for and have not begun.
#[derive(Default)]
pub(crate) struct Dials {
    next: u64,
    waiting: Vec<(u64, Box<dyn Dialled>)>,
}

impl fmt::Debug for Dials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Dials").field("waiting", &self.waiting.len()).finish()
    }
}

impl Dials {
    /// Returns what stands behind a tag. They begin in the turn in which they were asked for: few wait.
    pub(crate) fn take(&mut self, tag: u64) -> Option<Box<dyn Dialled>> {
        let at = self.waiting.iter().position(|(waiting, _)| *waiting == tag)?;
        Some(self.waiting.remove(at).1)
    }
}

/// By what a handler reaches the worker's connections outward.
#[derive(Debug)]
pub struct Outward<'a> {
    pub(crate) agenda: &'a mut Agenda,
    pub(crate) dials: &'a mut Dials,
}

impl Outward<'_> {
    /// Makes a connection; what becomes of it, `dialled` learns in this turn of the loop.
    pub fn connect(&mut self, to: Destination, dialled: Box<dyn Dialled>) {
        self.dials.next += 1;
        self.dials.waiting.push((self.dials.next, dialled));
        self.agenda.connect(to, self.dials.next);
    }

    /// Gives the owner of a connection its turn, in this turn of the loop.
    pub fn call(&mut self, token: Token) {
        self.agenda.call(token);
    }

    /// Returns what the worker is asked to do.
    pub fn agenda(&mut self) -> &mut Agenda {
        self.agenda
    }
}
