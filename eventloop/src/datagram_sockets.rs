//! Sockets of datagrams, each with many connections: what comes is told to the service, which says whose it is. Each
//! connection has a slot as one that has a socket of its own, and sends through the socket by which it came.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bolide_buffers::{Datagram, DatagramBatch, DatagramSink, Flush};

use crate::address::Address;
use crate::budget::Budget;
use crate::kernel::{Kernel, Ready};
use crate::mailbox::{Mail, Mailbox};
use crate::meter::{Meter, Stage};
use crate::readiness::Writing;
use crate::service::{DatagramFlush, Routed, Service};
use crate::slots::Token;
use crate::socket::{Call, Slot};
use crate::worker::Worker;
use crate::worker_context::WorkerContext;

/// The keys of sockets begin here: those of listeners are below.
const FIRST_KEY: u32 = 1 << 31;

/// A socket of datagrams, and what the kernel said of it.
pub(crate) struct DatagramSocket<K: Kernel> {
    socket: K::Datagrams,
    local: SocketAddr,
    /// Which listener sessions are told.
    listener: usize,
    ready: bool,
    /// Connections that wait for room.
    blocked: Vec<Token>,
}

/// A worker's sockets, and what it needs for them.
pub(crate) struct DatagramSockets<K: Kernel, M> {
    open: Vec<DatagramSocket<K>>,
    /// What has come and was not told to the service.
    received: Vec<Datagram>,
    /// Connections for which something has come.
    calls: Vec<Token>,
    /// The mailboxes of all workers, by their numbers.
    workers: Vec<Mailbox<M>>,
}

impl<K: Kernel, M> Default for DatagramSockets<K, M> {
    fn default() -> Self {
        let (open, received, calls) = (Vec::new(), Vec::new(), Vec::new());
        Self { open, received, calls, workers: Vec::new() }
    }
}

impl<K: Kernel, M> DatagramSockets<K, M> {
    /// The socket that an event is for, if it is for one.
    #[inline]
    pub(crate) fn position(key: u32) -> Option<usize> {
        key.checked_sub(FIRST_KEY).map(|position| position as usize)
    }

    /// Whether datagrams may be received at once.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.open.iter().any(|bound| bound.ready)
    }

    pub(crate) fn set_workers(&mut self, workers: Vec<Mailbox<M>>) {
        self.workers = workers;
    }
}

/// A socket as what datagrams leave by.
struct Sink<'a, K: Kernel> {
    kernel: &'a mut K,
    socket: &'a mut K::Datagrams,
    meter: &'a Meter,
    sent: usize,
}

impl<K: Kernel> DatagramSink for Sink<'_, K> {
    #[inline]
    fn send(&mut self, batch: &DatagramBatch, buffer: &[u8]) -> io::Result<()> {
        let before = self.meter.enter(Stage::SEND);
        let sent = self.kernel.send_datagrams(self.socket, batch, buffer);
        self.meter.enter(before);
        sent?;
        self.sent += batch.bytes;
        Ok(())
    }
}

impl<K: Kernel, S: Service> Slot<K, S> {
    /// Sends what the session has for its socket, unless that is full.
    pub(crate) fn flush_datagrams(
        &mut self,
        cx: &mut WorkerContext<K, S>,
        budget: &mut Budget,
    ) -> Flush {
        let bound = usize::from(self.state.datagram_socket);
        let Some(bound) = cx.datagram_sockets.open.get_mut(bound) else { return Flush::Drained };
        let (kernel, socket) = (&mut cx.kernel, &mut bound.socket);
        let mut sink = Sink { kernel, socket, meter: &cx.meter, sent: 0 };
        let flushed = cx.service.flush_datagrams(&mut self.session, bound.listener, &mut sink);
        let DatagramFlush { flush, deadline } = flushed;
        let sent = sink.sent;
        cx.meter.enter(Stage::LOOP);
        budget.spend_sent(sent);
        cx.stats.bytes_sent += sent as u64;
        if flush != Flush::Drained {
            self.state.writing = Writing::Blocked;
            cx.stats.write_blocked += 1;
            let key = Token::new(0, FIRST_KEY + u32::from(self.state.datagram_socket)).key();
            // Without it, what waits leaves at the connection's next deadline.
            if bound.blocked.is_empty() {
                let _ = cx.kernel.watch_datagrams(&mut bound.socket, key, true);
            }
            bound.blocked.push(cx.passing);
        }
        if let Some(deadline) = deadline {
            self.deadline = self.deadline.min(cx.meeting(deadline));
        }
        flush
    }
}

impl<K: Kernel, S: Service> Worker<K, S> {
    /// Lets datagrams come and leave by `socket`. Sessions are told `listener`.
    ///
    /// # Errors
    ///
    /// When the kernel can't watch it.
    pub fn open_datagrams(
        &mut self,
        mut socket: K::Datagrams,
        local: SocketAddr,
        listener: usize,
    ) -> io::Result<()> {
        let open = &mut self.cx.datagram_sockets.open;
        let too_many = || io::Error::other("there are too many sockets of datagrams");
        let position = u8::try_from(open.len()).map_err(|_| too_many())?;
        let key = Token::new(0, FIRST_KEY + u32::from(position)).key();
        self.cx.kernel.watch_datagrams(&mut socket, key, false)?;
        open.push(DatagramSocket { socket, local, listener, ready: false, blocked: Vec::new() });
        Ok(())
    }

    /// The kernel reported something of a socket.
    pub(crate) fn datagrams_reported(&mut self, position: usize, ready: Ready) {
        let Some(bound) = self.cx.datagram_sockets.open.get_mut(position) else { return };
        bound.ready |= ready.readable || ready.failed;
        if ready.writable && !bound.blocked.is_empty() {
            let blocked = std::mem::take(&mut bound.blocked);
            let key = Token::new(0, FIRST_KEY + position as u32).key();
            let _ = self.cx.kernel.watch_datagrams(&mut bound.socket, key, false);
            for token in blocked {
                let (readable, read_closed, failed) = (false, false, false);
                let key = token.key();
                let room = Ready { key, readable, writable: true, read_closed, failed };
                self.pass(token, Call::Ready(room));
            }
        }
    }

    /// Takes what has come at the sockets, then gives each connection of which something came its turn.
    #[inline]
    pub(crate) fn take_datagrams(&mut self) {
        if !self.cx.datagram_sockets.is_ready() {
            return;
        }
        for position in 0..self.cx.datagram_sockets.open.len() {
            if self.cx.datagram_sockets.open[position].ready {
                self.receive_at(position);
            }
        }
        self.call_for_datagrams();
    }

    fn receive_at(&mut self, position: usize) {
        let mut left = self.cx.limits.datagrams_per_turn_count as usize;
        let mut received = std::mem::take(&mut self.cx.datagram_sockets.received);
        while left > 0 {
            let bound = &mut self.cx.datagram_sockets.open[position];
            self.cx.meter.enter(Stage::RECEIVE);
            let result = self.cx.kernel.receive_datagrams(&mut bound.socket, &mut received);
            self.cx.meter.enter(Stage::LOOP);
            if result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                bound.ready = false;
                break;
            }
            // An error tells of a datagram that was sent; it counts as one.
            left = left.saturating_sub(received.len().max(1));
            for datagram in received.drain(..) {
                self.datagram_came(position, datagram, true);
            }
        }
        self.cx.datagram_sockets.received = received;
    }

    /// A datagram came; `may_pass_on`: not from another worker.
    fn datagram_came(&mut self, position: usize, datagram: Datagram, may_pass_on: bool) {
        let accepts = !self.is_ending();
        let WorkerContext { kernel, service, datagram_sockets, meter, stats, now, .. } =
            &mut self.cx;
        let Some(bound) = datagram_sockets.open.get_mut(position) else { return };
        stats.datagrams += 1;
        stats.bytes_received += datagram.bytes.len() as u64;
        let peer = datagram.from;
        let local = datagram.to.map_or(bound.local, |to| SocketAddr::new(to, bound.local.port()));
        let mut sink = Sink { kernel, socket: &mut bound.socket, meter, sent: 0 };
        let (listener, now) = (bound.listener, *now);
        let routed = catch_unwind(AssertUnwindSafe(|| {
            service.datagram(listener, datagram, accepts, now, &mut sink)
        }));
        stats.bytes_sent += sink.sent as u64;
        let routed = routed.unwrap_or_else(|_| {
            stats.panics += 1;
            Routed::Nothing
        });
        match routed {
            Routed::Nothing => {}
            Routed::For(token) => datagram_sockets.calls.push(token),
            Routed::New => self.begin_by_datagram(position, listener, peer, local),
            Routed::Elsewhere(worker, datagram) => {
                if let Some(mailbox) = datagram_sockets.workers.get(worker).filter(|_| may_pass_on)
                {
                    stats.datagrams_passed_on += 1;
                    // A worker that has ended has no connections.
                    let _ = mailbox.post(Mail::Datagram { listener, datagram });
                }
            }
        }
    }

    /// A connection begins, if there is room.
    fn begin_by_datagram(
        &mut self,
        position: usize,
        listener: usize,
        peer: SocketAddr,
        local: SocketAddr,
    ) {
        if !self.has_room() {
            self.cx.stats.refused += 1;
            return;
        }
        let (peer, local) = (Address::Inet(peer), Address::Inet(local));
        if let Some(token) = self.admit(None, position as u8, peer, local, listener) {
            self.cx.datagram_sockets.calls.push(token);
        }
    }

    /// Another worker got a datagram that is for this one.
    pub(crate) fn datagram_passed_on(&mut self, listener: usize, datagram: Datagram) {
        let mut datagram_sockets = self.cx.datagram_sockets.open.iter();
        if let Some(position) = datagram_sockets.position(|bound| bound.listener == listener) {
            self.datagram_came(position, datagram, false);
        }
    }

    /// Gives each connection of which something came its turn.
    #[inline]
    pub(crate) fn call_for_datagrams(&mut self) {
        if self.cx.datagram_sockets.calls.is_empty() {
            return;
        }
        let mut calls = std::mem::take(&mut self.cx.datagram_sockets.calls);
        for token in calls.drain(..) {
            self.pass(token, Call::Asked);
        }
        self.cx.datagram_sockets.calls = calls;
    }
}
