//! The parts that a worker drives: a [`Service`] and its sessions.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bolide_buffers::{Datagram, DatagramSink, Flush, ReceiveBuffer, SendQueue};

use crate::address::Address;
use crate::agenda::{Agenda, Outbound};
use crate::close_cause::CloseCause;
use crate::kernel::Path;
use crate::mailbox::Mailbox;
use crate::meter::{Measured, Meter};
use crate::slots::Token;
use crate::stats::Stats;

/// A connection that has been accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The name of the connection for as long as it lives.
    pub token: Token,
    /// The peer's address.
    pub peer: Address,
    /// The address that the peer connected to.
    pub local: Address,
    /// Which listener, in the order in which they were given.
    pub listener: usize,
    /// True if it began with a datagram: it has no socket of its own.
    pub by_datagram: bool,
}

/// The part of a server that responds: one value per worker, owner of everything that its sessions share.
///
/// The worker calls it from one thread; nothing here may wait. A panic in a call for a session
/// closes that session and counts; the worker goes on.
pub trait Service: 'static {
    /// State of one connection.
    type Session;
    /// Messages of other threads to a session by [`Mailbox`].
    type Message: Send + 'static;

    /// Mark: the worker's turns may be measured. Default: no, and then it costs nothing.
    const METERED: bool = false;

    /// Returns what the worker's turns are measured by, when they may be.
    fn meter(&self) -> Rc<Meter> {
        Rc::default()
    }

    /// A turn of the loop was sampled, and has ended. What is done here is not part of any.
    fn turn_measured(&mut self, measured: &Measured) {
        let _ = measured;
    }

    /// A turn of the loop begins; the clock was read once for all of it.
    fn turn_started(&mut self, now: Instant, agenda: &mut Agenda) {
        let _ = (now, agenda);
    }

    /// A turn of the loop ends: the loop waits for the kernel next, or is over. `stats` is what the
    /// worker has counted so far.
    #[inline]
    fn turn_ended(&mut self, stats: &Stats, agenda: &mut Agenda) {
        let _ = (stats, agenda);
    }

    /// A connection has been accepted. `None` closes it at once.
    fn open(&mut self, accepted: &Accepted, now: Instant) -> Option<(Self::Session, After)>;

    /// A datagram came by the socket of this listener, or by one for connections that this side has begun. What is
    /// replied to it at once leaves by `sink`.
    fn datagram(
        &mut self,
        listener: Option<usize>,
        datagram: Datagram,
        arriving: Arriving,
        now: Instant,
        sink: &mut dyn DatagramSink,
    ) -> Routed {
        let _ = (listener, datagram, arriving, now, sink);
        Routed::Nothing
    }

    /// A connection that was [asked for](Agenda::connect) has begun. Its session's first `turn` comes
    /// when it is established, or at the deadline or call before that; it is told apart by
    /// [`Turn::connected`]. One of datagrams has its first turn at once: nothing of it is done by the kernel. When it fails, [`close`](Self::close) says how. `None` gives it up.
    fn connecting(&mut self, outbound: &Outbound, now: Instant) -> Option<(Self::Session, After)> {
        let _ = (outbound, now);
        None
    }

    /// A connection that was asked for could not even begin: no route, no socket, no permission.
    fn connect_failed(&mut self, tag: u64, error: io::Error, agenda: &mut Agenda) {
        let _ = (tag, error, agenda);
    }

    /// Something happened: bytes arrived, the peer ended its side, the deadline passed, or output
    /// drained. The session uses what it can of the input and appends to the output.
    fn turn(&mut self, session: &mut Self::Session, turn: &mut Turn<'_, Self::Message>) -> After;

    /// A mail arrived for the session of `token`, which keeps what it needs of it and asks for its turn: that
    /// comes in the same turn of the loop, once for all the mail that came with this. By default, it asks, and keeps nothing.
    fn message(
        &mut self,
        session: &mut Self::Session,
        message: Self::Message,
        token: Token,
        agenda: &mut Agenda,
    ) {
        let _ = (session, message);
        agenda.call(token);
    }

    /// A mail arrived for a session that is gone.
    fn undelivered(&mut self, message: Self::Message) {
        let _ = message;
    }

    /// The worker is to end, or needs the room of an idle session: the session should come to its end.
    fn shut_down(
        &mut self,
        session: &mut Self::Session,
        turn: &mut Turn<'_, Self::Message>,
    ) -> After;

    /// Writes what is to be sent. A session that holds bytes outside of `output` (sealed TLS records)
    /// writes these too and reports [`Flush::Drained`] only when nothing is left. Of what is not in memory, the
    /// worker sends [files](crate::SharedFile), when this reports [`Flush::Outside`].
    ///
    /// # Errors
    ///
    /// What `sink` reports; the connection is closed then.
    #[inline]
    fn flush(
        &mut self,
        session: &mut Self::Session,
        output: &mut SendQueue,
        sink: &mut impl io::Write,
    ) -> io::Result<Flush> {
        let _ = session;
        output.flush(sink)
    }

    /// Sends what a session of datagrams has to send.
    fn flush_datagrams(
        &mut self,
        session: &mut Self::Session,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        let _ = (session, sink);
        DatagramFlush { flush: Flush::Drained, deadline: None }
    }

    /// The connection is about to be closed: the last time that the kernel tells about its path.
    #[inline]
    fn closing(&mut self, session: &mut Self::Session, path: &dyn Path) {
        let _ = (session, path);
    }

    /// The connection is closed.
    fn close(&mut self, session: Self::Session, cause: CloseCause, agenda: &mut Agenda) {
        let _ = (session, cause, agenda);
    }
}

/// A datagram that came, as the worker describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arriving {
    /// Connections may begin.
    pub accepts: bool,
    /// The worker's account is nearly empty: connections that begin may be allowed to keep more.
    pub has_room: bool,
    /// It came from another worker or process, which took it for one of this one's: it goes no further.
    pub is_passed_on: bool,
}

/// Result of a datagram.
#[derive(Debug)]
pub enum Routed {
    /// Nothing that the loop must do.
    Nothing,
    /// This session has something to do: it is called, once for all datagrams of the turn.
    For(Token),
    /// A connection begins: [`Service::open`] is called for it, if there is room.
    New,
    /// Another worker, by its number, has the connection that it is for.
    Elsewhere(usize, Datagram),
}

/// Result of a flush of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramFlush {
    /// Result of the writes: whether the socket took everything.
    pub flush: Flush,
    /// When the session must be called even if nothing comes, because of what was sent; besides its own deadline.
    pub deadline: Option<Instant>,
}

/// Resources of a session during one call, lent by its worker.
pub struct Turn<'a, M> {
    /// The name of the connection.
    pub token: Token,
    /// Input that was not used yet. What is left comes back, in front of the bytes that follow.
    pub input: &'a mut ReceiveBuffer,
    /// Output that is to be sent.
    pub output: &'a mut SendQueue,
    /// How many bytes may wait in `output` before no more should be added, unless they are few.
    pub output_limit: usize,
    /// The time of this turn of the loop.
    pub now: Instant,
    /// The connection is established. Always, but for one outward whose peer has not answered yet.
    pub connected: bool,
    /// The peer has sent FIN: no byte follows what is in `input`.
    pub eof: bool,
    /// The mailbox of this worker, for a later response.
    pub mailbox: &'a Mailbox<M>,
    /// Orders for the worker.
    pub agenda: &'a mut Agenda,
    /// The path to the peer, as the kernel measured it.
    pub path: &'a dyn Path,
}

impl<M> Turn<'_, M> {
    /// The round-trip time to the peer, by a system call: `None` where the kernel does not measure it.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.path.rtt()
    }
}

/// Wishes of a session after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct After {
    /// Read from the socket. Otherwise the kernel's buffer fills and the peer waits.
    pub wants_input: bool,
    /// There is more to send: call again once the output has drained.
    pub more: bool,
    /// Some of the input was left for a later call: the other connections have theirs first, and nothing is read before it.
    pub cut: bool,
    /// Call at this time even if nothing happens. Each call replaces it.
    pub deadline: Option<Instant>,
    /// How many bytes the peer is sure to send, beyond those that are here, before it waits for anything from this
    /// side; 0: unknown. While that is much, and they come fast, they are gathered before the next call.
    pub expects: u64,
    /// Nothing is under way: the connection may be shed when room is needed.
    pub idle: bool,
    /// Memory that the peer's bytes make the session keep, beyond what one that is idle has and beyond what is left in `input`
    /// and `output`, in bytes.
    pub held_bytes: usize,
    /// End the sending side once what is queued has left; reading goes on. Nothing may be queued after.
    pub ends_sending: bool,
    /// Close the connection.
    pub close: Option<Close>,
}

impl After {
    /// Reads on, at work.
    pub const READ: Self = Self {
        wants_input: true,
        more: false,
        cut: false,
        deadline: None,
        expects: 0,
        idle: false,
        held_bytes: 0,
        ends_sending: false,
        close: None,
    };

    /// Reads on, with nothing under way.
    pub const IDLE: Self = Self { idle: true, ..Self::READ };

    /// Sends what is queued, then reads and discards until the peer closes.
    pub const FINISHED: Self =
        Self { wants_input: false, close: Some(Close::Lingering), ..Self::READ };

    /// Sends what is queued, then closes.
    pub const SENT: Self = Self { close: Some(Close::Sent), ..Self::FINISHED };

    /// Closes and forgets what is queued.
    pub const CLOSED: Self = Self { close: Some(Close::Now), ..Self::FINISHED };

    /// Resets the connection.
    pub const RESET: Self = Self { close: Some(Close::Reset), ..Self::FINISHED };

    /// The same, with a deadline.
    #[inline]
    #[must_use]
    pub const fn by(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// Send what is queued, end the sending side, then read and discard for a short time so that a
    /// reset does not destroy the last response.
    Lingering,
    /// Send what is queued, then close: for a client, whose last bytes no peer waits for.
    Sent,
    /// At once.
    Now,
    /// With what the socket takes at once of what is queued, and the peer gets a reset: for an end that must not look like one.
    Reset,
}
