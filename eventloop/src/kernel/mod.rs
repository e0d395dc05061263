//! The system as the loop sees it: a trait, so that a simulated network can take its place.

pub mod limits;
mod mio;
mod receive;
mod tcp_info;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bolide_buffers::ReceiveBuffer;

use crate::mailbox::Wake;
use crate::service::Token;

pub use self::mio::MioKernel;
pub(crate) use self::mio::{MioListener, accept};

/// A socket that another thread accepted.
#[derive(Debug)]
pub struct Handed {
    pub(crate) socket: std::os::fd::OwnedFd,
    pub(crate) listener: usize,
    pub(crate) peer: Option<SocketAddr>,
}

/// What the kernel reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A listener has connections to accept.
    Listener(usize),
    /// A socket is ready.
    Socket {
        /// Which.
        token: Token,
        /// There is something to read, the end included.
        readable: bool,
        /// There is room to write.
        writable: bool,
        /// The peer has closed its side, or the socket has failed: read to the end.
        closed: bool,
    },
    /// The mailbox has been rung.
    Mailbox,
}

/// Sockets, a clock and waiting.
///
/// Readiness is edge-triggered: it is reported once, and again only after a call came back short
/// or with `WouldBlock`.
pub trait Kernel {
    /// A connection.
    type Socket;
    /// Where connections come from.
    type Listener;

    /// The time.
    fn now(&self) -> Instant;

    /// Waits until something happens, for `timeout` at most, and appends what it was to `events`.
    ///
    /// # Errors
    ///
    /// Never `Interrupted`; anything else ends the worker.
    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()>;

    /// What wakes [`Self::wait`] from another thread.
    fn waker(&self) -> Box<dyn Wake>;

    /// Begins to watch a listener.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    fn watch_listener(&mut self, listener: &mut Self::Listener, index: usize) -> io::Result<()>;

    /// Accepts one connection, already in non-blocking mode.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none.
    fn accept(
        &mut self,
        listener: &mut Self::Listener,
    ) -> io::Result<(Self::Socket, Option<SocketAddr>)>;

    /// Takes over a socket that another thread accepted.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    fn adopt(&mut self, handed: Handed) -> io::Result<Self::Socket>;

    /// Begins to watch a socket, for reading and writing, once and for all.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    fn watch(&mut self, socket: &mut Self::Socket, token: Token) -> io::Result<()>;

    /// Reads into the spare room of `into`. Returns how many bytes came and how many could have.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is nothing.
    fn receive(
        &mut self,
        socket: &mut Self::Socket,
        into: &mut ReceiveBuffer,
    ) -> io::Result<(usize, usize)>;

    /// Writes.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is no room.
    fn send(&mut self, socket: &mut Self::Socket, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Sends FIN after what was written.
    fn finish(&mut self, socket: &mut Self::Socket);

    /// How many unsent bytes the socket may hold before it counts as full.
    fn limit_unsent(&mut self, socket: &mut Self::Socket, bytes: u32);

    /// The estimated round-trip time, where the system knows it.
    fn rtt(&self, socket: &Self::Socket) -> Option<Duration>;

    /// Closes.
    fn close(&mut self, socket: Self::Socket);
}
