//! Turns of sockets of datagrams: what comes is told to the service, which says whose it is. Each connection has a slot as one that has
//! a socket of its own, and sends through the socket by which it came.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bolide_buffers::{Datagram, DatagramBatch, DatagramSink, Flush};

use crate::address::Address;
use crate::budget::Budget;
use crate::datagram_sockets::{DatagramSocket, DatagramSockets};
use crate::kernel::{Kernel, Ready};
use crate::mailbox::Mail;
use crate::meter::{Meter, Stage};
use crate::readiness::Writing;
use crate::service::{Arriving, DatagramFlush, Routed, Service};
use crate::socket::{Call, Slot};
use crate::worker::Worker;
use crate::worker_context::WorkerContext;

/// A socket as what datagrams leave by.
struct Sink<'a, K: Kernel> {
    kernel: &'a mut K,
    socket: &'a mut K::Datagrams,
    meter: &'a Meter,
    sent: usize,
    /// There is no receiver.
    refused: bool,
}

impl<K: Kernel> DatagramSink for Sink<'_, K> {
    #[inline]
    fn send(&mut self, batch: &DatagramBatch, buffer: &[u8]) -> io::Result<()> {
        let before = self.meter.enter(Stage::SEND);
        let sent = self.kernel.send_datagrams(self.socket, batch, buffer);
        self.meter.enter(before);
        match sent {
            // These are lost, as those before.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => self.refused = true,
            sent => {
                sent?;
                self.sent += batch.bytes;
            }
        }
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
        let position = usize::from(self.state.datagram_socket);
        let Some(bound) = cx.datagram_sockets.at(position) else { return Flush::Drained };
        let (kernel, socket) = (&mut cx.kernel, &mut bound.socket);
        let mut sink = Sink { kernel, socket, meter: &cx.meter, sent: 0, refused: false };
        let flushed = cx.service.flush_datagrams(&mut self.session, &mut sink);
        let DatagramFlush { flush, deadline } = flushed;
        let (sent, refused) = (sink.sent, sink.refused);
        cx.meter.enter(Stage::LOOP);
        budget.spend_sent(sent);
        cx.stats.bytes_sent += sent as u64;
        if flush != Flush::Drained {
            self.state.writing = Writing::Blocked;
            cx.stats.work.write_blocked += 1;
            let key = DatagramSockets::<K, S::Message>::key(position);
            // Without it, what waits leaves at the connection's next deadline.
            if bound.blocked.is_empty() {
                let _ = cx.kernel.watch_datagrams(&mut bound.socket, key, true);
            }
            bound.blocked.push(cx.passing);
        }
        if refused {
            bound.refused = true;
            cx.datagram_sockets.note_ready(position);
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
        socket: K::Datagrams,
        local: SocketAddr,
        listener: usize,
    ) -> io::Result<()> {
        self.add_datagrams(DatagramSocket::new(socket, local, Some(listener), None)).map(drop)
    }

    /// Takes a socket, and returns its position.
    pub(crate) fn add_datagrams(&mut self, bound: DatagramSocket<K>) -> io::Result<u8> {
        let WorkerContext { kernel, datagram_sockets, .. } = &mut self.cx;
        datagram_sockets.add(bound, kernel)
    }

    /// The kernel reported something of a socket.
    pub(crate) fn datagrams_reported(&mut self, position: usize, ready: Ready) {
        if ready.readable || ready.failed {
            self.cx.datagram_sockets.note_ready(position);
        }
        let Some(bound) = self.cx.datagram_sockets.at(position) else { return };
        if ready.writable && !bound.blocked.is_empty() {
            let blocked = std::mem::take(&mut bound.blocked);
            let key = DatagramSockets::<K, S::Message>::key(position);
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
        for _ in 0..self.cx.datagram_sockets.ready.len() {
            let Some(position) = self.cx.datagram_sockets.ready.pop_front() else { break };
            if let Some(bound) = self.cx.datagram_sockets.at(position.into()) {
                bound.ready = false;
                if self.receive_at(position.into()) {
                    self.cx.datagram_sockets.note_ready(position.into());
                }
            }
        }
        self.call_for_datagrams();
    }

    /// Receives as much as one turn may. Whether there may be more.
    fn receive_at(&mut self, position: usize) -> bool {
        let mut left = self.cx.limits.turns.datagrams_per_turn_count as usize;
        let mut received = std::mem::take(&mut self.cx.datagram_sockets.received);
        let mut has_more = true;
        while left > 0 && has_more && !self.cx.datagram_sockets.is_left(position) {
            let Some(bound) = self.cx.datagram_sockets.at(position) else { break };
            let refused = std::mem::take(&mut bound.refused);
            self.cx.meter.enter(Stage::RECEIVE);
            let result = self.cx.kernel.receive_datagrams(&mut bound.socket, &mut received);
            self.cx.meter.enter(Stage::LOOP);
            let kind = result.as_ref().err().map(io::Error::kind);
            has_more = result.unwrap_or_else(|error| error.kind() != io::ErrorKind::WouldBlock);
            // An error tells of a datagram that was sent; it counts as one.
            left = left.saturating_sub(received.len().max(1));
            for datagram in received.drain(..) {
                self.datagram_came(position, datagram, false);
            }
            if refused || kind == Some(io::ErrorKind::ConnectionRefused) {
                self.datagrams_refused(position);
            }
        }
        self.cx.datagram_sockets.received = received;
        has_more
    }

    /// A datagram came; `is_passed_on`: from another worker or process.
    fn datagram_came(&mut self, position: usize, datagram: Datagram, is_passed_on: bool) {
        let (accepts, has_room) = (!self.is_ending(), self.keeps_little());
        let arriving = Arriving { accepts, has_room, is_passed_on };
        let WorkerContext { kernel, service, datagram_sockets, meter, stats, now, .. } =
            &mut self.cx;
        let Some(bound) = datagram_sockets.at(position) else { return };
        stats.datagrams += 1;
        stats.bytes_received += datagram.bytes.len() as u64;
        let peer = datagram.from;
        let local = datagram.to.map_or(bound.local, |to| SocketAddr::new(to, bound.local.port()));
        let socket = &mut bound.socket;
        let mut sink = Sink { kernel, socket, meter, sent: 0, refused: false };
        let (listener, now) = (bound.listener, *now);
        let routed = catch_unwind(AssertUnwindSafe(|| {
            service.datagram(listener, datagram, arriving, now, &mut sink)
        }));
        stats.bytes_sent += sink.sent as u64;
        let routed = routed.unwrap_or_else(|_| {
            stats.panics += 1;
            Routed::Nothing
        });
        match routed {
            Routed::Nothing => {}
            Routed::For(token) => datagram_sockets.calls.push(token),
            Routed::New => {
                if let Some(listener) = listener {
                    self.begin_by_datagram(position, listener, peer, local);
                }
            }
            Routed::Elsewhere(worker, datagram) => {
                let local = bound.local;
                if let Some(mailbox) =
                    datagram_sockets.workers.get(worker).filter(|_| !is_passed_on)
                {
                    stats.datagrams_passed_on += 1;
                    // A worker that has ended has no connections.
                    let _ = mailbox.post(Mail::Datagram { local, datagram });
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

    /// Another worker or process got a datagram, at its socket with this address, that is for this one.
    pub(crate) fn datagram_passed_on(&mut self, local: SocketAddr, datagram: Datagram) {
        let is_same = |bound: &Option<DatagramSocket<K>>| {
            bound.as_ref().is_some_and(|bound| bound.listener.is_some() && bound.local == local)
        };
        let position = self.cx.datagram_sockets.open.iter().position(is_same);
        if let Some(position) = position {
            self.datagram_came(position, datagram, true);
        }
    }

    /// Another process receives from here on what comes for listeners. What is for connections of this one it passes on.
    pub(crate) fn leave_datagrams(&mut self) {
        let WorkerContext { kernel, datagram_sockets, .. } = &mut self.cx;
        datagram_sockets.are_left = true;
        let open = datagram_sockets.open.iter_mut().flatten();
        for bound in open.filter(|bound| bound.listener.is_some()) {
            kernel.ignore_datagrams(&mut bound.socket);
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
