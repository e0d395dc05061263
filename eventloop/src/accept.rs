//! How connections come in: accepting within a budget, shedding when there is no room, pausing when
//! there are no file descriptors.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::address::Address;
use crate::close_cause::CloseCause;
use crate::kernel::{Incoming, Kernel};
use crate::mailbox::HandedIn;
use crate::service::{Accepted, Service};
use crate::slots::Token;
use crate::socket::{Call, Slot};
use crate::worker::Worker;

/// Places looked at for the longest idle connection, in number: all of them up to this many, and
/// beyond it the longest idle of a moving sample, and more only until an idle one is found.
const SHED_SAMPLE_COUNT: u32 = 256;

/// Returns whether `error` says that there are no descriptors, or no memory, for another socket.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

impl<K: Kernel, S: Service> Worker<K, S> {
    /// Accepts from every listener that has connections.
    #[inline]
    pub(crate) fn accept(&mut self) {
        if self.listeners.paused_until.is_some_and(|until| until <= self.cx.now) {
            self.listeners.paused_until = None;
        }
        if !self.listeners.is_ready() {
            return;
        }
        if let Some((incoming, index)) = self.listeners.waiting.take() {
            self.welcome(incoming, index);
        }
        for position in 0..self.listeners.open.len() {
            if self.listeners.open[position].ready && self.listeners.paused_until.is_none() {
                self.accept_from(position);
            }
        }
    }

    fn accept_from(&mut self, position: usize) {
        let budget = self.cx.limits.turns.accepts_per_turn_count;
        let mut failures = 0;
        for _ in 0..budget {
            let listener = &mut self.listeners.open[position];
            let index = listener.index;
            match self.cx.kernel.accept(&mut listener.socket) {
                Ok(incoming) => {
                    self.welcome(incoming, index);
                    if self.listeners.paused_until.is_some() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    listener.ready = false;
                    return;
                }
                Err(error) if is_exhausted(&error) => {
                    self.pause();
                    let until = self.listeners.paused_until;
                    // It frees one descriptor, but one for each pause: the lack may not be ours.
                    self.shed();
                    self.listeners.paused_until = until;
                    return;
                }
                // A connection that failed before it was accepted says nothing about the next.
                Err(_) => failures += 1,
            }
        }
        if failures == budget {
            self.pause();
        }
    }

    /// Lets a connection in if there is room, and lets it wait otherwise.
    fn welcome(&mut self, incoming: Incoming<K::Socket>, index: usize) {
        if self.has_room() {
            let Incoming { socket, peer, local } = incoming;
            self.admit(Some(socket), 0, peer, local, index);
        } else {
            self.listeners.waiting = Some((incoming, index));
            self.pause();
        }
    }

    fn pause(&mut self) {
        self.cx.stats.work.accept_pauses += 1;
        self.listeners.paused_until = Some(self.cx.now + self.cx.limits.accept_pause);
    }

    /// Returns whether one more connection has room; an idle one makes room if it must.
    pub(crate) fn has_room(&mut self) -> bool {
        self.slots.len() < self.listeners.room_count || self.shed()
    }

    /// Closes the longest idle connection of those whose peers have all that was sent to them. Whether there
    /// was one.
    fn shed(&mut self) -> bool {
        let places = self.slots.places();
        let mut longest: Option<(u32, Token)> = None;
        let now = self.short_tick();
        for looked_at in 0..places {
            if looked_at >= SHED_SAMPLE_COUNT && longest.is_some() {
                break;
            }
            self.listeners.hand =
                if self.listeners.hand + 1 < places { self.listeners.hand + 1 } else { 0 };
            let Some((token, slot)) = self.slots.at(self.listeners.hand) else { continue };
            if let Some(ticks) = slot.idle_ticks(now)
                && longest.is_none_or(|(most, _)| ticks > most)
                && slot.socket().is_none_or(|socket| self.cx.kernel.has_arrived(socket))
            {
                longest = Some((ticks, token));
            }
        }
        let Some((_, token)) = longest else { return false };
        if self.slots.get_mut(token).is_some_and(|slot| slot.is_open()) {
            self.pass(token, Call::ShutDown);
        }
        self.close(token, CloseCause::Shed);
        true
    }

    /// Takes a socket that another process accepted.
    pub(crate) fn take_in(&mut self, handed_in: HandedIn) {
        let HandedIn { socket, peer, local, listener } = handed_in;
        if self.is_ending() || !self.has_room() {
            self.cx.stats.refused += 1;
            return;
        }
        match self.cx.kernel.adopt(socket) {
            Ok(socket) => _ = self.admit(Some(socket), 0, peer, local, listener),
            Err(_) => self.cx.stats.refused += 1,
        }
    }

    /// Opens a session for a socket, or for a connection by one of the worker's datagram_sockets.
    pub(crate) fn admit(
        &mut self,
        mut socket: Option<K::Socket>,
        datagram_socket: u8,
        peer: Address,
        local: Address,
        listener: usize,
    ) -> Option<Token> {
        let token = self.slots.vacant();
        let watched = socket.as_mut().map(|socket| self.cx.kernel.register(socket, token.key()));
        if watched.is_some_and(|watched| watched.is_err()) {
            return self.decline(socket);
        }
        let by_datagram = socket.is_none();
        let accepted = Accepted { token, peer, local, listener, by_datagram };
        let (service, now) = (&mut self.cx.service, self.cx.now);
        let opened = catch_unwind(AssertUnwindSafe(|| service.open(&accepted, now)));
        let Ok(Some((session, after))) = opened else {
            self.cx.stats.panics += u64::from(opened.is_err());
            return self.decline(socket);
        };
        self.cx.stats.accepted += 1;
        let tick = self.short_tick();
        let mut slot = Slot::new(socket, session, after, &mut self.cx, tick);
        slot.state.datagram_socket = datagram_socket;
        let deadline = self.slots.insert(slot).deadline_to_file();
        if let Some(deadline) = deadline {
            self.file(token, deadline);
        }
        if after.close.is_some() {
            self.close(token, CloseCause::Finished);
        } else if after.more {
            self.enqueue(token);
        }
        Some(token)
    }

    /// A connection gets no session.
    fn decline(&mut self, socket: Option<K::Socket>) -> Option<Token> {
        if let Some(socket) = socket {
            self.cx.kernel.close(socket);
        }
        self.cx.stats.refused += 1;
        None
    }
}
