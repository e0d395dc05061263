//! What a worker drives.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bolide_buffers::{Flush, ReceiveBuffer, SendQueue};

use crate::Mailbox;

/// One socket's place in a worker: its index and how often the place was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// What a worker drives: one value per worker, which owns all that its sessions share.
pub trait Service: 'static {
    /// What is kept per socket.
    type Session;
    /// What other threads may send to a session.
    type Message: Send + 'static;

    /// A turn of the loop begins. The clock is read once a turn.
    fn turn_started(&mut self, now: Instant) {
        let _ = now;
    }

    /// A socket was accepted. `None` closes it at once.
    fn open(&mut self, accepted: &Accepted, now: Instant) -> Option<(Self::Session, After)>;

    /// Something happened on the session's socket, its deadline has passed, or its output has
    /// drained: use the input, fill the output.
    fn turn(&mut self, session: &mut Self::Session, turn: &mut Turn<'_, Self::Message>) -> After;

    /// A message for the session has come.
    fn message(
        &mut self,
        session: &mut Self::Session,
        message: Self::Message,
        turn: &mut Turn<'_, Self::Message>,
    ) -> After;

    /// The worker is shutting down: the session is to end as soon as it decently can.
    fn shut_down(
        &mut self,
        session: &mut Self::Session,
        turn: &mut Turn<'_, Self::Message>,
    ) -> After;

    /// Writes the output, and whatever the session holds itself, to the socket.
    ///
    /// # Errors
    ///
    /// Whatever `sink` reports, except `WouldBlock`.
    fn flush(
        &mut self,
        session: &mut Self::Session,
        output: &mut SendQueue,
        sink: &mut impl Write,
    ) -> io::Result<Flush> {
        let _ = session;
        output.flush(sink)
    }

    /// The session's socket is closed.
    fn close(&mut self, session: Self::Session, cause: CloseCause) {
        let _ = (session, cause);
    }
}

/// A socket that was accepted.
#[derive(Debug, Clone, Copy)]
pub struct Accepted {
    /// Where it lives.
    pub token: Token,
    /// The listener's place in the list given at start.
    pub listener: usize,
    /// The peer's address; none on a Unix socket.
    pub peer: Option<SocketAddr>,
}

/// What a session works with during one turn.
#[derive(Debug)]
pub struct Turn<'a, M> {
    /// Where the session lives.
    pub token: Token,
    /// What arrived, after what an earlier turn left.
    pub input: &'a mut ReceiveBuffer,
    /// What is to be sent.
    pub output: &'a mut SendQueue,
    /// How many bytes may wait in `output` before it counts as full.
    pub output_limit: usize,
    /// The time of this turn.
    pub now: Instant,
    /// Whether the peer will send nothing after `input`.
    pub eof: bool,
    /// The way into this worker, for other threads.
    pub mailbox: &'a Mailbox<M>,
    /// The kernel's estimate of the round-trip time, once output has been blocked.
    pub rtt: Option<Duration>,
}

/// What the loop is to do with a session after a turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct After {
    /// Whether reading makes sense.
    pub wants_input: bool,
    /// Whether to call again once the output has drained.
    pub more: bool,
    /// When to call even if nothing happens.
    pub deadline: Option<Instant>,
    /// Whether the session may be closed when sockets run short.
    pub idle: bool,
    /// Whether to close.
    pub close: Option<Close>,
}

/// How to close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// Send what is queued, then nothing more; discard what still arrives for a short while, so that
    /// the last bytes are not destroyed by a reset.
    Flushed,
    /// At once.
    Now,
}

/// Why a socket was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCause {
    /// The session asked for it.
    Session,
    /// Reading or writing failed.
    Io(io::ErrorKind),
    /// Sockets ran short, and it was idle.
    Shed,
    /// The worker's time to drain was over.
    Drained,
    /// The session panicked.
    Panic,
}
