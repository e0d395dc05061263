//! The network as the event loop sees it.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_buffers::{Datagram, DatagramBatch};
use bolide_eventloop::kernel::{Incoming, Kernel, Path, Ready, Wake};
use bolide_eventloop::{Address, Destination};
use bytes::BytesMut;

use crate::faults::Misfortune;
use crate::network::{Backlog, Network};

/// A connection of the simulated network.
#[derive(Debug)]
pub struct SimSocket {
    line: usize,
    rtt: Duration,
}

impl Path for SimSocket {
    fn rtt(&self) -> Option<Duration> {
        Some(self.rtt)
    }

    fn takes_files(&self) -> bool {
        true
    }
}

/// A listener of the simulated network.
#[derive(Debug)]
pub struct SimListener {
    index: usize,
}

struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The simulated kernel.
pub struct SimKernel {
    network: Rc<RefCell<Network>>,
    start: Instant,
    bell: Arc<Bell>,
    /// The last wait found nothing that could ever end it.
    at_rest: Rc<Cell<bool>>,
    /// Function that is called around the network's own work.
    pub(crate) around: Cell<Around>,
}

/// Carries work out, perhaps with something before and after it.
pub type Around = fn(&mut dyn FnMut());

impl SimKernel {
    pub(crate) fn new(network: Rc<RefCell<Network>>, at_rest: Rc<Cell<bool>>) -> Self {
        let bell = Arc::new(Bell(AtomicBool::new(false)));
        Self { network, start: Instant::now(), bell, at_rest, around: Cell::new(|work| work()) }
    }

    /// Lets the network work.
    fn network<T>(&self, work: impl FnOnce(&mut Network) -> T) -> T {
        let (mut work, mut result) = (Some(work), None);
        self.around.get()(&mut || {
            result = work.take().map(|work| work(&mut self.network.borrow_mut()));
        });
        result.expect("work is carried out once")
    }

    /// A listener, numbered in order.
    pub(crate) fn listener(&self) -> SimListener {
        let mut network = self.network.borrow_mut();
        network.backlogs.push(Backlog::default());
        SimListener { index: network.backlogs.len() - 1 }
    }

    /// Appends what is ready, in an order that the seed chooses.
    fn collect(network: &mut Network, ready: &mut Vec<Ready>) {
        let buffer_bytes = network.faults.buffer_bytes;
        for listener in std::mem::take(&mut network.listeners_ready) {
            if let Some(key) = network.backlogs[listener].key {
                let event = Ready {
                    key,
                    readable: true,
                    writable: false,
                    read_closed: false,
                    failed: false,
                };
                ready.push(event);
            }
        }
        for line in std::mem::take(&mut network.lines_ready) {
            let state = &network.lines[line];
            if let Some(key) = state.key.filter(|_| !state.closed) {
                ready.push(state.ready(key, buffer_bytes));
            }
        }
        for position in (1..ready.len()).rev() {
            let other = network.random.within(0..=position);
            ready.swap(position, other);
        }
    }

    /// Sends as much of `bytes` as there is room for.
    fn send_some(&mut self, line: usize, bytes: &[u8]) -> io::Result<usize> {
        self.network(|network| {
            let number = network.calls;
            network.calls += 1;
            let misfortune = network.faults.draw(&mut network.random, number);
            let state = &mut network.lines[line];
            if state.toward.reset_arrived {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            if state.ended {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let room = network.faults.buffer_bytes.saturating_sub(state.going);
            if room == 0 {
                state.owed_room = true;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(room);
            state.owed_room = count < bytes.len();
            let count = befall(network, line, misfortune, count)?;
            network.send_down(line, &bytes[..count]);
            Ok(count)
        })
    }
}

/// Returns how many of `count` bytes a call moves that such a misfortune befalls.
fn befall(
    network: &mut Network,
    line: usize,
    misfortune: Option<Misfortune>,
    count: usize,
) -> io::Result<usize> {
    match misfortune {
        Some(Misfortune::WouldBlock) => {
            network.edge_soon(line);
            Err(io::ErrorKind::WouldBlock.into())
        }
        Some(Misfortune::Short) if count > 1 => {
            let count = network.random.within(1..=count - 1);
            network.edge_soon(line);
            Ok(count)
        }
        Some(Misfortune::Reset) => {
            network.sever(line);
            Err(io::ErrorKind::ConnectionReset.into())
        }
        _ => Ok(count),
    }
}

impl Kernel for SimKernel {
    type Socket = SimSocket;
    type Listener = SimListener;
    type Datagrams = Infallible;

    fn now(&mut self) -> Instant {
        self.start + self.network.borrow().now
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.bell.clone()
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        alarm: Option<Instant>,
        ready: &mut Vec<Ready>,
    ) -> io::Result<()> {
        self.network(|network| {
            let until = timeout.map(|timeout| network.now + timeout);
            let alarm = alarm.map(|alarm| alarm.saturating_duration_since(self.start));
            let until = until.map_or(alarm, |until| Some(alarm.map_or(until, |at| at.min(until))));
            self.at_rest.set(false);
            loop {
                let woken = self.bell.0.swap(false, Ordering::Acquire);
                // Whatever happens at the same time is reported together.
                while network.next_at().is_some_and(|at| at <= network.now) {
                    network.happen();
                }
                if woken || network.has_ready() {
                    break;
                }
                match (network.next_at(), until) {
                    (Some(next), until) if until.is_none_or(|until| next <= until) => {
                        network.happen()
                    }
                    (_, Some(until)) => {
                        network.now = network.now.max(until);
                        break;
                    }
                    (_, None) => {
                        self.at_rest.set(true);
                        break;
                    }
                }
            }
            Self::collect(network, ready);
            Ok(())
        })
    }

    fn listen(&mut self, listener: &mut SimListener, key: u64, _: usize) -> io::Result<()> {
        self.network(|network| {
            network.backlogs[listener.index].key = Some(key);
            network.listeners_ready.insert(listener.index);
            Ok(())
        })
    }

    fn accept(&mut self, listener: &mut SimListener) -> io::Result<Incoming<SimSocket>> {
        self.network(|network| {
            let number = network.calls;
            network.calls += 1;
            if network.backlogs[listener.index].lines.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            if network.random.once_in(network.faults.accept_failure) {
                let errors =
                    [libc::ECONNABORTED, libc::EMFILE, libc::ENFILE, libc::EPERM, libc::EINTR];
                let which = network.random.within(0..=errors.len() - 1);
                return Err(io::Error::from_raw_os_error(errors[which]));
            }
            if network.faults.draw(&mut network.random, number) == Some(Misfortune::WouldBlock) {
                network.listener_edge_soon(listener.index);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let Some(line) = network.backlogs[listener.index].lines.pop_front() else {
                return Err(io::ErrorKind::WouldBlock.into());
            };
            let rtt = network.faults.rtt();
            // Documentation addresses (RFC 5737), one port for each client.
            let peer = SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 10_000 + line as u16);
            let local = SocketAddr::new(Ipv4Addr::new(198, 51, 100, 1).into(), 80);
            Ok(Incoming {
                socket: SimSocket { line, rtt },
                peer: Address::Inet(peer),
                local: Address::Inet(local),
            })
        })
    }

    fn watch_datagrams(&mut self, socket: &mut Infallible, _: u64, _: bool) -> io::Result<()> {
        match *socket {}
    }

    fn receive_datagrams(
        &mut self,
        socket: &mut Infallible,
        _: &mut Vec<Datagram>,
    ) -> io::Result<bool> {
        match *socket {}
    }

    fn send_datagrams(
        &mut self,
        socket: &mut Infallible,
        _: &DatagramBatch,
        _: &[u8],
    ) -> io::Result<()> {
        match *socket {}
    }

    fn has_arrived(&mut self, socket: &SimSocket) -> bool {
        self.network.borrow().lines[socket.line].going == 0
    }

    fn adopt(&mut self, _: OwnedFd) -> io::Result<SimSocket> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect(&mut self, to: &Destination) -> io::Result<SimSocket> {
        self.network(|network| {
            let rtt = network.faults.rtt();
            Ok(SimSocket { line: network.connect_out(to), rtt })
        })
    }

    fn register(&mut self, socket: &mut SimSocket, key: u64) -> io::Result<()> {
        self.network(|network| {
            network.lines[socket.line].key = Some(key);
            if !network.lines[socket.line].connecting {
                network.lines_ready.insert(socket.line);
            }
            Ok(())
        })
    }

    fn receive(
        &mut self,
        socket: &mut SimSocket,
        block: &mut BytesMut,
        bytes_max: usize,
    ) -> io::Result<usize> {
        self.network(|network| {
            let number = network.calls;
            network.calls += 1;
            let misfortune = network.faults.draw(&mut network.random, number);
            let line = socket.line;
            let state = &mut network.lines[line];
            if state.refused {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            if state.toward.reset_arrived {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            if state.toward.arrived.is_empty() {
                let ended = state.toward.fin_arrived;
                return if ended { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
            }
            let room = bytes_max.min(block.capacity() - block.len());
            let count = state.toward.arrived.len().min(room);
            let count = befall(network, line, misfortune, count)?;
            let bytes: Vec<u8> = network.lines[line].toward.arrived.drain(..count).collect();
            block.extend_from_slice(&bytes);
            network.note(&bytes);
            network.pump(line);
            Ok(count)
        })
    }

    fn send(&mut self, socket: &mut SimSocket, bytes: &[u8]) -> io::Result<usize> {
        self.send_some(socket.line, bytes)
    }

    fn send_vectored(
        &mut self,
        socket: &mut SimSocket,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        self.send_some(socket.line, &bytes)
    }

    fn end_writing(&mut self, socket: &mut SimSocket) -> io::Result<()> {
        self.network(|network| network.fin_down(socket.line));
        Ok(())
    }

    fn limit_unsent(&mut self, _: &mut SimSocket, _: usize) {}

    fn reset_on_close(&mut self, socket: &mut SimSocket) {
        self.network.borrow_mut().lines[socket.line].resets = true;
    }

    fn close(&mut self, socket: SimSocket) {
        self.network(|network| {
            let state = &mut network.lines[socket.line];
            state.closed = true;
            let (unread, reset) = (!state.toward.arrived.is_empty(), state.toward.reset_arrived);
            if unread || state.resets {
                // What was not read will never be: the peer is told so by a reset.
                network.reset_soon(socket.line);
            } else if !reset {
                network.fin_down(socket.line);
            }
        })
    }
}
