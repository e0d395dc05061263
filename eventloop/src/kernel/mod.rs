//! Requests of a worker to an operating system, as a trait: [`MioKernel`] asks the real one,
//! `tests/simnet` a seeded network in virtual time.
//!
//! The only directory with unsafe code.

mod alarm;
pub(crate) mod cached;
mod clocks;
mod datagrams;
mod file_limit;
mod inherited;
mod low_water;
pub(crate) mod memory;
mod mio;
mod receive;
mod send_file;
mod steering;
mod tcp_info;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_buffers::{Datagram, DatagramBatch};
use bytes::BytesMut;

use crate::address::Address;
use crate::agenda::Destination;

pub use self::clocks::Clocks;
pub use self::datagrams::MioDatagrams;
pub(crate) use self::datagrams::enlarge_buffers;
pub use self::file_limit::{FileLimit, file_limit, raise_file_limit};
pub use self::inherited::{hand_on, inherited};
pub use self::mio::{MioKernel, MioListener, MioSocket};
pub use self::tcp_info::{BbrInfo, SocketPath, TcpInfo};

/// The kernel's knowledge of the path to a peer.
pub trait Path: std::fmt::Debug {
    /// The round-trip time; `None` where it is not measured.
    fn rtt(&self) -> Option<Duration>;

    /// Segments that were sent again on this connection so far; `None` where they are not counted.
    fn retransmits(&self) -> Option<u64> {
        None
    }

    /// Segments that arrived out of order so far, by a system call: lost ones went before them, or they were
    /// overtaken. `None` where they are not counted.
    fn out_of_order(&self) -> Option<u64> {
        None
    }

    /// Everything that the kernel tells, by a system call; `None` where it tells nothing.
    fn tcp_info(&self) -> Option<TcpInfo> {
        None
    }

    /// The name of TCP's congestion control on this side, by a system call; `None` where it is not told.
    fn congestion_control(&self) -> Option<String> {
        None
    }

    /// Returns what BBR believes, by two system calls; `None` where it is not the congestion control.
    fn bbr(&self) -> Option<BbrInfo> {
        None
    }

    /// Returns whether ranges of [files](crate::SharedFile) go down this path without passing through the process.
    fn takes_files(&self) -> bool {
        false
    }
}

/// No path: nothing is known.
impl Path for () {
    fn rtt(&self) -> Option<Duration> {
        None
    }
}

/// Ends a worker's wait, from any thread.
pub trait Wake: Send + Sync {
    /// The wait that is under way, or the next one, returns.
    fn wake(&self);
}

/// Readiness, as reported once when it changes (edge-triggered).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The key that was given at the registration.
    pub key: u64,
    /// Bytes or connections have arrived.
    pub readable: bool,
    /// There is room to write again.
    pub writable: bool,
    /// FIN has arrived, perhaps behind bytes.
    pub read_closed: bool,
    /// The connection has failed.
    pub failed: bool,
}

/// A connection fresh from a listener.
#[derive(Debug)]
pub struct Incoming<S> {
    /// The socket, in non-blocking mode.
    pub socket: S,
    /// The peer's address.
    pub peer: Address,
    /// The address that the peer connected to.
    pub local: Address,
}

/// An operating system: sockets, readiness and a clock.
///
/// Calls on sockets never wait; they report [`WouldBlock`](io::ErrorKind::WouldBlock). Readiness
/// is edge-triggered: after a read that came back short, or a write that was taken only in part,
/// a [`Ready`] follows when there is more.
pub trait Kernel: 'static {
    /// A connection.
    type Socket: Path;
    /// A socket at which connections arrive.
    type Listener;
    /// A socket of datagrams.
    type Datagrams;

    /// The clock.
    fn now(&mut self) -> Instant;

    /// Returns what ends the wait of this kernel.
    fn waker(&self) -> Arc<dyn Wake>;

    /// Waits until something is ready, or another thread wakes it, or `timeout` has passed (`None`: for
    /// ever), or it is `alarm`, and appends what is ready. The timeout may be met a millisecond late,
    /// the alarm as precisely as the system can.
    ///
    /// # Errors
    ///
    /// Those of the poller. A signal is none.
    fn wait(
        &mut self,
        timeout: Option<Duration>,
        alarm: Option<Instant>,
        ready: &mut Vec<Ready>,
    ) -> io::Result<()>;

    /// Reports connections that arrive at `listener`. Each may have `unsent_bytes` unsent, as if
    /// [`limit_unsent`](Self::limit_unsent) had been called for it.
    ///
    /// # Errors
    ///
    /// Those of the poller.
    fn listen(
        &mut self,
        listener: &mut Self::Listener,
        key: u64,
        unsent_bytes: usize,
    ) -> io::Result<()>;

    /// Reports nothing more of `listener`, and closes it here: another process may have the same socket.
    fn stop_listening(&mut self, listener: Self::Listener) {
        drop(listener);
    }

    /// Takes one connection.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none; those of `accept`.
    fn accept(&mut self, listener: &mut Self::Listener) -> io::Result<Incoming<Self::Socket>>;

    /// Takes over a socket that another process accepted.
    ///
    /// # Errors
    ///
    /// When the kernel cannot use it.
    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Self::Socket>;

    /// Begins a connection. It is established when the socket is first reported as writable; when
    /// that fails, it is reported as failed, and a read says why.
    ///
    /// # Errors
    ///
    /// Those of `socket` and `connect`, but that it is in progress.
    fn connect(&mut self, to: &Destination) -> io::Result<Self::Socket>;

    /// Reports both directions of `socket`, until it is closed.
    ///
    /// # Errors
    ///
    /// Those of the poller.
    fn register(&mut self, socket: &mut Self::Socket, key: u64) -> io::Result<()>;

    /// Reads once, into the spare capacity of `block`, at most `bytes_max`. 0: no byte will follow.
    ///
    /// # Errors
    ///
    /// Those of `recv`.
    fn receive(
        &mut self,
        socket: &mut Self::Socket,
        block: &mut BytesMut,
        bytes_max: usize,
    ) -> io::Result<usize>;

    /// Writes once.
    ///
    /// # Errors
    ///
    /// Those of `send`.
    fn send(&mut self, socket: &mut Self::Socket, bytes: &[u8]) -> io::Result<usize>;

    /// Writes several pieces once.
    ///
    /// # Errors
    ///
    /// Those of `sendmsg`.
    fn send_vectored(
        &mut self,
        socket: &mut Self::Socket,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize>;

    /// Sends once from a file, at most `bytes` bytes from `offset` on. 0: the file ends there. It may wait for the
    /// disk where the range is not [in memory](crate::SharedFile::is_cached).
    ///
    /// # Errors
    ///
    /// Those of reading and of `send`.
    fn send_file(
        &mut self,
        socket: &mut Self::Socket,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> io::Result<usize> {
        let piece = send_file::read(file, offset, bytes)?;
        if piece.is_empty() { Ok(0) } else { self.send(socket, &piece) }
    }

    /// Keeps a last segment that isn't full until more follows, or sends it again at once, where that can be told.
    fn hold_back(&mut self, socket: &mut Self::Socket, holds: bool) {
        let _ = (socket, holds);
    }

    /// Sends FIN behind what has been written.
    ///
    /// # Errors
    ///
    /// Those of `shutdown`.
    fn end_writing(&mut self, socket: &mut Self::Socket) -> io::Result<()>;

    /// Returns whether the peer's side has received everything that was written. A socket that is closed before may be
    /// answered by a reset when the peer sends something, and a reset takes away what is under way. `true`
    /// where it can't be told.
    fn has_arrived(&mut self, socket: &Self::Socket) -> bool {
        let _ = socket;
        true
    }

    /// Keeps the bytes that are written and not yet sent below `bytes`, where that can be told.
    fn limit_unsent(&mut self, socket: &mut Self::Socket, bytes: usize);

    /// Reports `socket` as readable only once so many bytes have arrived, or it has ended; 1: once there is any, and
    /// that at once. Where that can't be told, nothing changes.
    fn gather(&mut self, socket: &mut Self::Socket, bytes: usize) {
        let _ = (socket, bytes);
    }

    /// Reports what arrives at a socket of datagrams; `writable`: and that it has room.
    ///
    /// # Errors
    ///
    /// Those of the poller.
    fn watch_datagrams(
        &mut self,
        socket: &mut Self::Datagrams,
        key: u64,
        writable: bool,
    ) -> io::Result<()>;

    /// Reports nothing of this socket any more, unless it is [watched](Self::watch_datagrams) again.
    fn ignore_datagrams(&mut self, socket: &mut Self::Datagrams) {
        let _ = socket;
    }

    /// Receives once, and appends what has come. Whether there may be more.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is nothing; those of `recvmsg`.
    fn receive_datagrams(
        &mut self,
        socket: &mut Self::Datagrams,
        received: &mut Vec<Datagram>,
    ) -> io::Result<bool>;

    /// Opens a socket of datagrams to and from one address, and says where it is bound.
    ///
    /// # Errors
    ///
    /// Those of `socket`, `bind` and `connect`.
    fn datagrams_to(&mut self, to: SocketAddr) -> io::Result<(Self::Datagrams, SocketAddr)> {
        let _ = to;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends the datagrams at the beginning of `buffer`, in one call where the system can. Those that can't be sent are
    /// lost.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: nothing was sent. `ConnectionRefused`: earlier ones met no receiver, by a socket to one address.
    fn send_datagrams(
        &mut self,
        socket: &mut Self::Datagrams,
        batch: &DatagramBatch,
        buffer: &[u8],
    ) -> io::Result<()>;

    /// Closing `socket` will reset the connection.
    fn reset_on_close(&mut self, socket: &mut Self::Socket);

    /// Closes the connection.
    fn close(&mut self, socket: Self::Socket);
}
