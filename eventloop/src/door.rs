//! How connections come in: accepting within a budget, shedding when there is no room, pausing when
//! there are no file descriptors.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::address::Address;
use crate::close_cause::CloseCause;
use crate::kernel::{Incoming, Kernel, file_limit};
use crate::limits::Limits;
use crate::mailbox::HandedIn;
use crate::service::{Accepted, Service};
use crate::slots::Token;
use crate::socket::{Call, Slot};
use crate::worker::Worker;

/// Places looked at for the longest idle connection, in number: all of them up to this many, and
/// beyond it the longest idle of a moving sample, and more only until an idle one is found.
const SHED_SAMPLE_COUNT: u32 = 256;

struct Entrance<L> {
    listener: L,
    index: usize,
    ready: bool,
}

/// The listeners of a worker, and whether they are open.
pub(crate) struct Door<K: Kernel> {
    entrances: Vec<Entrance<K::Listener>>,
    /// Accepted before it was known that there is no room, with the number of its listener.
    waiting: Option<(Incoming<K::Socket>, usize)>,
    room_count: usize,
    paused_until: Option<Instant>,
    /// The place after which the search for an idle connection goes on.
    hand: u32,
}

impl<K: Kernel> Door<K> {
    pub(crate) fn new(limits: &Limits) -> Self {
        let room_count = match limits.connections_max_count {
            0 => usize::try_from(file_limit() / 10 * 9).unwrap_or(usize::MAX).max(1),
            count => count,
        };
        Self { entrances: Vec::new(), waiting: None, room_count, paused_until: None, hand: 0 }
    }

    pub(crate) fn next_key(&self) -> u64 {
        Token::new(0, self.entrances.len() as u32).key()
    }

    pub(crate) fn add(&mut self, listener: K::Listener, index: usize) {
        self.entrances.push(Entrance { listener, index, ready: false });
    }

    /// Connections arrived.
    pub(crate) fn note(&mut self, position: u32) {
        if let Some(entrance) = self.entrances.get_mut(position as usize) {
            entrance.ready = true;
        }
    }

    /// Whether connections may be accepted at once.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.paused_until.is_none()
            && (self.waiting.is_some() || self.entrances.iter().any(|entrance| entrance.ready))
    }

    pub(crate) fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    /// A connection was closed.
    #[inline]
    pub(crate) fn room_was_made(&mut self) {
        self.paused_until = None;
    }

    pub(crate) fn shut(&mut self, kernel: &mut K) {
        for entrance in self.entrances.drain(..) {
            kernel.stop_listening(entrance.listener);
        }
        self.waiting = None;
        self.paused_until = None;
    }
}

/// Whether `error` says that there are no descriptors, or no memory, for another socket.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

impl<K: Kernel, S: Service> Worker<K, S> {
    /// Accepts from every listener that has connections.
    #[inline]
    pub(crate) fn accept(&mut self) {
        if self.door.paused_until.is_some_and(|until| until <= self.lent.now) {
            self.door.paused_until = None;
        }
        if !self.door.is_ready() {
            return;
        }
        if let Some((incoming, index)) = self.door.waiting.take() {
            self.welcome(incoming, index);
        }
        for position in 0..self.door.entrances.len() {
            if self.door.entrances[position].ready && self.door.paused_until.is_none() {
                self.accept_from(position);
            }
        }
    }

    fn accept_from(&mut self, position: usize) {
        let budget = self.lent.limits.accepts_per_turn_count;
        let mut failures = 0;
        for _ in 0..budget {
            let entrance = &mut self.door.entrances[position];
            let index = entrance.index;
            match self.lent.kernel.accept(&mut entrance.listener) {
                Ok(incoming) => {
                    self.welcome(incoming, index);
                    if self.door.paused_until.is_some() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    entrance.ready = false;
                    return;
                }
                Err(error) if is_exhausted(&error) => {
                    self.pause();
                    let until = self.door.paused_until;
                    // It frees one descriptor, but one for each pause: the lack may not be ours.
                    self.shed();
                    self.door.paused_until = until;
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
            self.admit(socket, peer, local, index);
        } else {
            self.door.waiting = Some((incoming, index));
            self.pause();
        }
    }

    fn pause(&mut self) {
        self.lent.stats.accept_pauses += 1;
        self.door.paused_until = Some(self.lent.now + self.lent.limits.accept_pause);
    }

    /// Whether one more connection has room; an idle one makes room if it must.
    pub(crate) fn has_room(&mut self) -> bool {
        self.slots.len() < self.door.room_count || self.shed()
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
            self.door.hand = if self.door.hand + 1 < places { self.door.hand + 1 } else { 0 };
            let Some((token, slot)) = self.slots.at(self.door.hand) else { continue };
            if let Some(ticks) = slot.idle_ticks(now)
                && longest.is_none_or(|(most, _)| ticks > most)
                && self.lent.kernel.has_arrived(slot.socket())
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

    /// Takes a socket that somebody else accepted.
    pub(crate) fn take_in(&mut self, handed_in: HandedIn) {
        let HandedIn { socket, peer, local, listener } = handed_in;
        if self.is_ending() || !self.has_room() {
            self.lent.stats.refused += 1;
            return;
        }
        match self.lent.kernel.adopt(socket) {
            Ok(socket) => self.admit(socket, peer, local, listener),
            Err(_) => self.lent.stats.refused += 1,
        }
    }

    /// Opens a session for a socket.
    fn admit(&mut self, mut socket: K::Socket, peer: Address, local: Address, listener: usize) {
        let token = self.slots.vacant();
        if self.lent.kernel.register(&mut socket, token.key()).is_err() {
            self.lent.kernel.close(socket);
            self.lent.stats.refused += 1;
            return;
        }
        let accepted = Accepted { token, peer, local, listener };
        let (service, now) = (&mut self.lent.service, self.lent.now);
        let opened = catch_unwind(AssertUnwindSafe(|| service.open(&accepted, now)));
        let (session, after) = match opened {
            Ok(Some(opened)) => opened,
            Ok(None) => {
                self.lent.kernel.close(socket);
                self.lent.stats.refused += 1;
                return;
            }
            Err(_) => {
                self.lent.kernel.close(socket);
                self.lent.stats.refused += 1;
                self.lent.stats.panics += 1;
                return;
            }
        };
        self.lent.stats.accepted += 1;
        let tick = self.short_tick();
        let slot = Slot::new(socket, session, after, &mut self.lent, tick);
        let deadline = self.slots.insert(slot).deadline_to_file();
        if let Some(deadline) = deadline {
            self.file(token, deadline);
        }
        if after.close.is_some() {
            self.close(token, CloseCause::Finished);
        } else if after.more {
            self.enqueue(token);
        }
    }
}
