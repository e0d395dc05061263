//! The real system: epoll and kqueue by mio, sockets by rustix.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_buffers::ReceiveBuffer;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll};
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags};

use super::{Event, Handed, Kernel, receive, tcp_info};
use crate::mailbox::Wake;
use crate::service::Token;

/// How many events one wait may report.
const EVENTS_MAX: usize = 1024;

/// The index that stands for the mailbox; those below it, down to half, for listeners.
const MAILBOX: u32 = u32::MAX;

/// One worker's poller.
#[derive(Debug)]
pub struct MioKernel {
    poll: Poll,
    events: Events,
    waker: Arc<mio::Waker>,
}

/// A listening socket.
#[derive(Debug)]
pub struct MioListener {
    pub(crate) socket: OwnedFd,
}

struct MioWake(Arc<mio::Waker>);

impl Wake for MioWake {
    fn wake(&self) {
        // The only error is a full counter, which is as good as a ring.
        let _ = self.0.wake();
    }
}

impl MioKernel {
    /// A poller.
    ///
    /// # Errors
    ///
    /// When the system has none left.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), to_mio(MAILBOX, 0))?;
        Ok(Self { poll, events: Events::with_capacity(EVENTS_MAX), waker: Arc::new(waker) })
    }
}

fn to_mio(index: u32, generation: u32) -> mio::Token {
    mio::Token((u64::from(generation) << 32 | u64::from(index)) as usize)
}

impl Kernel for MioKernel {
    type Socket = OwnedFd;
    type Listener = MioListener;

    #[inline]
    fn now(&self) -> Instant {
        Instant::now()
    }

    #[inline]
    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        for event in &self.events {
            let token = event.token().0 as u64;
            let (index, generation) = (token as u32, (token >> 32) as u32);
            events.push(if index == MAILBOX {
                Event::Mailbox
            } else if index > u32::MAX / 2 {
                Event::Listener((MAILBOX - 1 - index) as usize)
            } else {
                Event::Socket {
                    token: Token { index, generation },
                    readable: event.is_readable(),
                    writable: event.is_writable(),
                    closed: event.is_read_closed() || event.is_error(),
                }
            });
        }
        Ok(())
    }

    fn waker(&self) -> Box<dyn Wake> {
        Box::new(MioWake(Arc::clone(&self.waker)))
    }

    fn watch_listener(&mut self, listener: &mut MioListener, index: usize) -> io::Result<()> {
        let token = to_mio(MAILBOX - 1 - index as u32, 0);
        let socket = listener.socket.as_raw_fd();
        self.poll.registry().register(&mut SourceFd(&socket), token, Interest::READABLE)
    }

    fn accept(&mut self, listener: &mut MioListener) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
        accept(&listener.socket)
    }

    fn adopt(&mut self, handed: Handed) -> io::Result<OwnedFd> {
        Ok(handed.socket)
    }

    fn watch(&mut self, socket: &mut OwnedFd, token: Token) -> io::Result<()> {
        let token = to_mio(token.index, token.generation);
        let interest = Interest::READABLE.add(Interest::WRITABLE);
        self.poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), token, interest)
    }

    #[inline]
    fn receive(
        &mut self,
        socket: &mut OwnedFd,
        into: &mut ReceiveBuffer,
    ) -> io::Result<(usize, usize)> {
        receive::receive(socket, into)
    }

    #[inline]
    fn send(&mut self, socket: &mut OwnedFd, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if let [slice] = slices {
            return Ok(rustix::net::send(socket, slice, SendFlags::NOSIGNAL)?);
        }
        let mut nothing = SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(socket, slices, &mut nothing, SendFlags::NOSIGNAL)?)
    }

    fn finish(&mut self, socket: &mut OwnedFd) {
        // The only error is that the peer has gone already.
        let _ = rustix::net::shutdown(socket, Shutdown::Write);
    }

    fn limit_unsent(&mut self, socket: &mut OwnedFd, bytes: u32) {
        // Where there is no such option (Unix sockets), the socket's own buffer is the limit.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&*socket).set_tcp_notsent_lowat(bytes);
        #[cfg(not(target_os = "linux"))]
        let _ = (socket, bytes);
    }

    fn rtt(&self, socket: &OwnedFd) -> Option<Duration> {
        tcp_info::rtt(socket.as_fd())
    }

    fn close(&mut self, socket: OwnedFd) {
        // Closing removes it from epoll and kqueue: nothing else refers to the same description.
        drop(socket);
    }
}

/// Accepts one connection in non-blocking mode.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
    #[cfg(target_os = "linux")]
    let (socket, peer) =
        rustix::net::acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    #[cfg(not(target_os = "linux"))]
    let (socket, peer) = {
        let (socket, peer) = rustix::net::acceptfrom(listener)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        (socket, peer)
    };
    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
    Ok((socket, peer))
}
