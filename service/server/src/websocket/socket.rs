//! The two sides of a WebSocket connection in a handler: who owns it, and by what.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use bolide_eventloop::{BbrInfo, TcpInfo};
use bolide_semantics::End;
use bolide_websocket::{Close, CloseCode, Kind, Misuse, Payload};
use bytes::Bytes;

use super::exchange::Core;
use crate::{Io, LocalWaker, Waker};

/// The owner of a WebSocket connection.
///
/// Everything happens on the worker's thread. Nothing is called after [`Self::on_close`].
pub trait Owner: fmt::Debug + 'static {
    /// The connection is open.
    fn on_open(&mut self, socket: &mut Socket<'_, '_>) {
        let _ = socket;
    }

    /// A piece of a message; with [`End::Yes`] its last, which may be empty.
    /// [`Assembly`](super::Assembly) puts whole messages together. The bytes may share a large block: what is
    /// kept for long goes through [`detach`](crate::detach).
    fn on_message(&mut self, kind: Kind, payload: Payload, end: End, socket: &mut Socket<'_, '_>);

    /// Everything that was sent has left: who has more to send sends the next piece or message. Called
    /// after each of the others too, as long as there is room and something is sent.
    fn on_sendable(&mut self, socket: &mut Socket<'_, '_>) {
        let _ = socket;
    }

    /// The peer answers a ping of [`Socket::ping`], or sends a pong by itself.
    fn on_pong(&mut self, content: Bytes, socket: &mut Socket<'_, '_>) {
        let _ = (content, socket);
    }

    /// A waker of this connection was used, or the time of [`Socket::wake_at`] has come; sometimes neither.
    fn on_wake(&mut self, socket: &mut Socket<'_, '_>) {
        let _ = socket;
    }

    /// The memory that it keeps of what the peer has sent beyond its own size, in bytes: a message in the making, say
    /// ([`Assembly::allocated_bytes`](super::Assembly::allocated_bytes)). As [`Exchange::held_bytes`](crate::Exchange::held_bytes).
    fn held_bytes(&self) -> usize {
        0
    }

    /// The connection is over: the peer's close frame, or [`CloseCode::ABNORMAL`] when there was none. When
    /// the peer broke a rule, what it was told.
    fn on_close(&mut self, close: &Close) {
        let _ = close;
    }
}

/// By what an [`Owner`] acts: orders to its connection.
#[derive(Debug)]
pub struct Socket<'a, 'b> {
    pub(super) core: &'a mut Core,
    pub(super) io: &'a mut Io<'b>,
}

impl Socket<'_, '_> {
    /// Sends a whole message. Text must be UTF-8. It is queued however much waits already: who sends much
    /// waits for [`Owner::on_sendable`], or looks at [`Self::unsent_bytes`].
    ///
    /// # Errors
    ///
    /// [`Misuse::Closed`] once the connection is being closed, [`Misuse::OutOfOrder`] while a message sent in
    /// pieces is not complete.
    pub fn send(&mut self, kind: Kind, data: impl Into<Bytes>) -> Result<(), Misuse> {
        self.core.codec.send(kind, data)
    }

    /// Sends the next piece of a message; [`End::Yes`] completes it.
    ///
    /// # Errors
    ///
    /// [`Misuse::Closed`] once the connection is being closed, [`Misuse::OutOfOrder`] while a message of the
    /// other kind is not complete.
    pub fn send_piece(
        &mut self,
        kind: Kind,
        data: impl Into<Bytes>,
        end: End,
    ) -> Result<(), Misuse> {
        self.core.codec.send_piece(kind, data, end)
    }

    /// Sends a ping; its pong comes by [`Owner::on_pong`].
    ///
    /// # Errors
    ///
    /// [`Misuse::TooLong`] beyond 125 bytes, [`Misuse::Closed`] once the connection is being closed.
    pub fn ping(&mut self, content: impl Into<Bytes>) -> Result<(), Misuse> {
        self.core.codec.send_ping(content)
    }

    /// Closes the connection. The peer has [some time](super::Options::close_timeout) to answer.
    ///
    /// # Errors
    ///
    /// [`Misuse::Closed`] when it is being closed already, [`Misuse::InvalidCode`] for a code that may not be
    /// sent, [`Misuse::TooLong`] for a reason of more than 123 bytes.
    pub fn close(&mut self, code: CloseCode, reason: &str) -> Result<(), Misuse> {
        self.core.codec.send_close(code, reason)
    }

    /// How many bytes of frames have not left: neither sent nor taken over by the connection.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.core.unsent_bytes()
    }

    /// Above how many [unsent bytes](Self::unsent_bytes) nothing more is received: those of
    /// [the options](super::Options::output_bytes_max) at first.
    #[must_use]
    pub fn output_bytes_max(&self) -> usize {
        self.core.limits.output_bytes
    }

    /// Changes that for this connection.
    pub fn set_output_bytes_max(&mut self, bytes: usize) {
        self.core.limits.output_bytes = bytes;
    }

    /// Returns whether the connection takes more now.
    #[must_use]
    pub fn is_sendable(&self) -> bool {
        self.io.is_sendable()
    }

    /// Receives no more until [`Self::resume`]: the peer will be stopped.
    pub fn pause(&mut self) {
        self.core.paused = true;
    }

    /// Receives again.
    pub fn resume(&mut self) {
        self.core.paused = false;
    }

    /// The subprotocol that was agreed on.
    #[must_use]
    pub fn protocol(&self) -> Option<&str> {
        self.core.protocol.as_deref()
    }

    /// Asks for [`Owner::on_wake`] at this time, in place of any asked for before; `None`: not any more.
    pub fn wake_at(&mut self, at: Option<Instant>) {
        self.core.alarm = at;
    }

    /// A handle with which any thread can ask for [`Owner::on_wake`].
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.io.waker()
    }

    /// A handle with which the worker's other connections ask for [`Owner::on_wake`].
    #[must_use]
    pub fn local_waker(&mut self) -> LocalWaker {
        self.io.local_waker()
    }

    /// The time of this turn of the loop.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.io.now()
    }

    /// The client's address; none on a Unix socket.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.io.peer()
    }

    /// The address that the client has connected to; none on a Unix socket.
    #[must_use]
    pub fn local(&self) -> Option<SocketAddr> {
        self.io.local()
    }

    /// Returns what the kernel has measured of the client's connection, by a system call.
    #[must_use]
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        self.io.tcp_info()
    }

    /// Returns what BBR believes of the client's connection, by two system calls; `None` where it is not its congestion
    /// control.
    #[must_use]
    pub fn bbr(&self) -> Option<BbrInfo> {
        self.io.bbr()
    }
}
