//! The real kernel: epoll or kqueue by mio, sockets by rustix.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_buffers::{Datagram, DatagramBatch};
use bytes::BytesMut;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use super::{
    BbrInfo, Incoming, Kernel, MioDatagrams, Path, Ready, SocketPath, Wake, alarm::Alarm,
    low_water, receive, send_file, tcp_info,
};
use crate::address::Address;
use crate::agenda::Destination;

/// Events taken from the kernel at a time, in number.
const EVENTS_COUNT: usize = 1024;

/// The key of the waker's own event, which is not passed on.
const WAKER: Token = Token(usize::MAX);

/// The key of the alarm's, which is not passed on either.
const ALARM: Token = Token(usize::MAX - 1);

const _: () = assert!(usize::BITS >= 64, "a key holds an index and a generation");

/// A socket that ended must be an error of the call, not a signal to the process.
#[cfg(not(any(target_os = "macos", target_os = "ios")))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(any(target_os = "macos", target_os = "ios"))]
const SEND_FLAGS: SendFlags = SendFlags::empty();

/// A connected socket, TCP or Unix.
#[derive(Debug)]
pub struct MioSocket {
    descriptor: OwnedFd,
}

impl Path for MioSocket {
    fn rtt(&self) -> Option<Duration> {
        tcp_info::rtt(self.descriptor.as_fd())
    }

    fn retransmits(&self) -> Option<u64> {
        tcp_info::retransmits(self.descriptor.as_fd())
    }

    fn out_of_order(&self) -> Option<u64> {
        tcp_info::out_of_order(self.descriptor.as_fd())
    }

    fn tcp_info(&self) -> Option<tcp_info::TcpInfo> {
        tcp_info::all(self.descriptor.as_fd())
    }

    fn congestion_control(&self) -> Option<String> {
        SocketPath(self.descriptor.as_fd()).congestion_control()
    }

    fn bbr(&self) -> Option<BbrInfo> {
        SocketPath(self.descriptor.as_fd()).bbr()
    }

    fn takes_files(&self) -> bool {
        send_file::is_possible()
    }
}

/// A listening socket, TCP or Unix, in non-blocking mode.
#[derive(Debug)]
pub struct MioListener {
    descriptor: OwnedFd,
    local: Address,
}

impl MioListener {
    /// Takes a listening socket and sets it to non-blocking.
    ///
    /// # Errors
    ///
    /// When its address cannot be read, or its mode not be set.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let socket = SockRef::from(&descriptor);
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?.as_socket().map_or(Address::Unix, Address::Inet);
        if matches!(local, Address::Inet(_)) {
            // What is accepted inherits it.
            socket.set_tcp_nodelay(true)?;
        }
        Ok(Self { descriptor, local })
    }

    /// Returns where it listens.
    #[must_use]
    pub fn local(&self) -> Address {
        self.local
    }

    /// Another descriptor of the same socket.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptor left.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.descriptor.try_clone()
    }
}

impl AsFd for MioListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Wake for mio::Waker {
    fn wake(&self) {
        // It fails only if the poller is gone, and then nothing waits.
        let _ = Self::wake(self);
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn limit_unsent(socket: BorrowedFd<'_>, bytes: usize) {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    // A Unix socket has no such bound.
    let _ = SockRef::from(&socket).set_tcp_notsent_lowat(bytes);
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn limit_unsent(socket: BorrowedFd<'_>, bytes: usize) {
    let _ = (socket, bytes);
}

/// The operating system.
#[derive(Debug)]
pub struct MioKernel {
    poll: Poll,
    events: Events,
    waker: Arc<mio::Waker>,
    alarm: Alarm,
    /// Block in which datagrams are received; made when the first are.
    datagram_block: Vec<u8>,
}

impl MioKernel {
    /// A poller of its own.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(mio::Waker::new(poll.registry(), WAKER)?);
        let alarm = Alarm::default();
        let events = Events::with_capacity(EVENTS_COUNT);
        Ok(Self { poll, events, waker, alarm, datagram_block: Vec::new() })
    }
}

/// The address behind `any`; what is neither IPv4 nor IPv6 is a Unix socket here.
fn address(any: Option<SocketAddrAny>) -> Address {
    any.and_then(|any| SocketAddr::try_from(any).ok()).map_or(Address::Unix, Address::Inet)
}

#[cfg(not(any(target_os = "macos", target_os = "ios")))]
fn accept_nonblocking(listener: BorrowedFd<'_>) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    use rustix::net::SocketFlags;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::acceptfrom_with(listener, flags)?)
}

#[cfg(any(target_os = "macos", target_os = "ios"))]
fn accept_nonblocking(listener: BorrowedFd<'_>) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    let (socket, peer) = rustix::net::acceptfrom(listener)?;
    let options = SockRef::from(&socket);
    options.set_cloexec(true)?;
    options.set_nonblocking(true)?;
    options.set_nosigpipe(true)?;
    Ok((socket, peer))
}

/// Takes one connection from `listener`; its address is asked for only where the listener's says
/// too little.
pub(crate) fn accept(listener: &MioListener) -> io::Result<(OwnedFd, Address, Address)> {
    let (socket, peer) = accept_nonblocking(listener.as_fd())?;
    let local = match listener.local {
        Address::Inet(bound) if bound.ip().is_unspecified() => {
            let own = SockRef::from(&socket).local_addr().ok();
            Address::Inet(own.and_then(|own| own.as_socket()).unwrap_or(bound))
        }
        local => local,
    };
    Ok((socket, address(peer), local))
}

impl Kernel for MioKernel {
    type Socket = MioSocket;
    type Listener = MioListener;
    type Datagrams = MioDatagrams;

    #[inline]
    fn now(&mut self) -> Instant {
        Instant::now()
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.waker.clone()
    }

    #[inline]
    fn wait(
        &mut self,
        mut timeout: Option<Duration>,
        alarm: Option<Instant>,
        ready: &mut Vec<Ready>,
    ) -> io::Result<()> {
        if let Some(at) = alarm
            && timeout != Some(Duration::ZERO)
        {
            timeout = self.alarm.arm(at, timeout, self.poll.registry(), ALARM)?;
        }
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        for event in &self.events {
            if event.token() == WAKER || event.token() == ALARM {
                continue;
            }
            ready.push(Ready {
                key: event.token().0 as u64,
                readable: event.is_readable(),
                writable: event.is_writable(),
                read_closed: event.is_read_closed(),
                failed: event.is_error(),
            });
        }
        Ok(())
    }

    fn listen(
        &mut self,
        listener: &mut MioListener,
        key: u64,
        unsent_bytes: usize,
    ) -> io::Result<()> {
        // What is accepted inherits it.
        limit_unsent(listener.as_fd(), unsent_bytes);
        let descriptor = listener.descriptor.as_raw_fd();
        let token = Token(key as usize);
        self.poll.registry().register(&mut SourceFd(&descriptor), token, Interest::READABLE)
    }

    fn stop_listening(&mut self, listener: MioListener) {
        // The poller forgets a socket only once all copies are closed, and a successor may go on with this one.
        let descriptor = listener.descriptor.as_raw_fd();
        let _ = self.poll.registry().deregister(&mut SourceFd(&descriptor));
    }

    fn accept(&mut self, listener: &mut MioListener) -> io::Result<Incoming<MioSocket>> {
        let (descriptor, peer, local) = accept(listener)?;
        Ok(Incoming { socket: MioSocket { descriptor }, peer, local })
    }

    fn has_arrived(&mut self, socket: &MioSocket) -> bool {
        socket.tcp_info().is_none_or(|info| info.unacked == 0 && info.notsent_bytes == 0)
    }

    fn adopt(&mut self, socket: OwnedFd) -> io::Result<MioSocket> {
        Ok(MioSocket { descriptor: socket })
    }

    fn connect(&mut self, to: &Destination) -> io::Result<MioSocket> {
        let (socket, address) = match to {
            Destination::Inet(address) => {
                let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
                socket.set_tcp_nodelay(true)?;
                (socket, SockAddr::from(*address))
            }
            Destination::Unix(path) => {
                (Socket::new(Domain::UNIX, Type::STREAM, None)?, SockAddr::unix(path)?)
            }
            // Its connections have no socket of their own.
            Destination::Datagrams(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        socket.set_nonblocking(true)?;
        match socket.connect(&address) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            result => result?,
        }
        Ok(MioSocket { descriptor: socket.into() })
    }

    fn register(&mut self, socket: &mut MioSocket, key: u64) -> io::Result<()> {
        let descriptor = socket.descriptor.as_raw_fd();
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut SourceFd(&descriptor), Token(key as usize), both)
    }

    #[inline]
    fn receive(
        &mut self,
        socket: &mut MioSocket,
        block: &mut BytesMut,
        bytes_max: usize,
    ) -> io::Result<usize> {
        receive::receive(&socket.descriptor, block, bytes_max)
    }

    #[inline]
    fn send(&mut self, socket: &mut MioSocket, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&socket.descriptor, bytes, SEND_FLAGS)?)
    }

    fn send_vectored(
        &mut self,
        socket: &mut MioSocket,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let mut none = SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(&socket.descriptor, slices, &mut none, SEND_FLAGS)?)
    }

    #[cfg(target_os = "linux")]
    fn send_file(
        &mut self,
        socket: &mut MioSocket,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> io::Result<usize> {
        use rustix::io::Errno;
        let mut place = offset;
        match rustix::fs::sendfile(&socket.descriptor, file, Some(&mut place), bytes) {
            Ok(count) => Ok(count),
            // A file system, or a filter of calls, that doesn't have it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                let piece = send_file::read(file, offset, bytes)?;
                if piece.is_empty() { Ok(0) } else { self.send(socket, &piece) }
            }
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(target_os = "linux")]
    fn hold_back(&mut self, socket: &mut MioSocket, holds: bool) {
        // A Unix socket has no segments.
        let _ = rustix::net::sockopt::set_tcp_cork(&socket.descriptor, holds);
    }

    fn end_writing(&mut self, socket: &mut MioSocket) -> io::Result<()> {
        Ok(rustix::net::shutdown(&socket.descriptor, Shutdown::Write)?)
    }

    fn limit_unsent(&mut self, socket: &mut MioSocket, bytes: usize) {
        limit_unsent(socket.descriptor.as_fd(), bytes);
    }

    fn gather(&mut self, socket: &mut MioSocket, bytes: usize) {
        low_water::set(socket.descriptor.as_fd(), bytes);
    }

    fn watch_datagrams(
        &mut self,
        socket: &mut MioDatagrams,
        key: u64,
        writable: bool,
    ) -> io::Result<()> {
        socket.watch(self.poll.registry(), key, writable)
    }

    fn ignore_datagrams(&mut self, socket: &mut MioDatagrams) {
        socket.ignore(self.poll.registry());
    }

    #[inline]
    fn receive_datagrams(
        &mut self,
        socket: &mut MioDatagrams,
        received: &mut Vec<Datagram>,
    ) -> io::Result<bool> {
        socket.receive(&mut self.datagram_block, received)
    }

    fn datagrams_to(&mut self, to: SocketAddr) -> io::Result<(MioDatagrams, SocketAddr)> {
        let socket = MioDatagrams::to(to)?;
        let local = socket.local();
        Ok((socket, local))
    }

    #[inline]
    fn send_datagrams(
        &mut self,
        socket: &mut MioDatagrams,
        batch: &DatagramBatch,
        buffer: &[u8],
    ) -> io::Result<()> {
        socket.send(batch, buffer)
    }

    fn reset_on_close(&mut self, socket: &mut MioSocket) {
        // A Unix socket knows no reset.
        let _ = SockRef::from(&socket.descriptor).set_linger(Some(Duration::ZERO));
    }

    #[inline]
    fn close(&mut self, socket: MioSocket) {
        // The poller forgets a descriptor that is closed.
        drop(socket);
    }
}

impl From<MioSocket> for OwnedFd {
    fn from(socket: MioSocket) -> Self {
        socket.descriptor
    }
}
