//! One thread and its loop: wait, events, run queue, timers, mailbox.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bolide_buffers::{ReceiveBuffer, SendQueue};

use crate::kernel::{Event, Kernel};
use crate::mailbox::{Inbox, Mail, Mailbox, mailbox};
use crate::service::{Accepted, CloseCause, Service, Token};
use crate::slots::{Slot, Slots};
use crate::socket::{Cause, Driver, Pace, Verdict};
use crate::stats::Stats;
use crate::timer_wheel::{Timer, TimerWheel};

/// The block that sockets are read into, in bytes: what one read may bring.
const BLOCK_BYTES: usize = 256 * 1024;

/// How many connections one listener may bring in per turn of the loop.
const ACCEPTS_PER_TURN: usize = 64;

/// How long accepting pauses when the system has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An output queue that has grown beyond this is not kept for others, in bytes.
const SPARE_BYTES_MAX: usize = 1024 * 1024;

/// Whether a worker goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// There is more to come.
    No,
    /// It was told to end, and every session has.
    Yes,
}

struct Watched<L> {
    listener: L,
    /// Its place in the list given at start.
    index: usize,
    /// Whether connections may wait.
    ready: bool,
}

/// One thread's event loop.
pub struct Worker<K: Kernel, S: Service> {
    kernel: K,
    service: S,
    listeners: Vec<Watched<K::Listener>>,
    slots: Slots<Slot<K::Socket, S::Session>>,
    wheel: TimerWheel,
    input: ReceiveBuffer,
    /// The queue that is lent to sessions without unsent output.
    spare: SendQueue,
    run_queue: VecDeque<Token>,
    mailbox: Mailbox<S::Message>,
    inbox: Inbox<S::Message>,
    events: Vec<Event>,
    fired: Vec<u32>,
    connections_max: usize,
    /// Accepting pauses until then, or until a socket is closed.
    paused_until: Option<Instant>,
    /// When a worker that was told to end gives up on what is still open.
    drained_by: Option<Instant>,
    stats: Stats,
    now: Instant,
}

impl<K: Kernel, S: Service> Worker<K, S> {
    /// A worker with its listeners, each with its place in the list given at start. At most
    /// `connections_max` sockets are open at once.
    ///
    /// # Errors
    ///
    /// When the kernel can't watch a listener.
    pub fn new(
        mut kernel: K,
        listeners: Vec<(usize, K::Listener)>,
        connections_max: usize,
        make: impl FnOnce(&Mailbox<S::Message>) -> S,
    ) -> io::Result<Self> {
        let (mailbox, inbox) = mailbox(kernel.waker());
        let mut watched = Vec::with_capacity(listeners.len());
        for (place, (index, mut listener)) in listeners.into_iter().enumerate() {
            kernel.watch_listener(&mut listener, place)?;
            watched.push(Watched { listener, index, ready: true });
        }
        let now = kernel.now();
        let service = make(&mailbox);
        Ok(Self {
            kernel,
            service,
            listeners: watched,
            slots: Slots::new(),
            wheel: TimerWheel::new(now),
            input: ReceiveBuffer::new(BLOCK_BYTES),
            spare: SendQueue::new(),
            run_queue: VecDeque::new(),
            mailbox,
            inbox,
            events: Vec::new(),
            fired: Vec::new(),
            connections_max: connections_max.max(1),
            paused_until: None,
            drained_by: None,
            stats: Stats::default(),
            now,
        })
    }

    /// The way into this worker.
    #[must_use]
    pub fn mailbox(&self) -> &Mailbox<S::Message> {
        &self.mailbox
    }

    /// What has been counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The kernel, for a simulation to look into.
    pub fn kernel_mut(&mut self) -> &mut K {
        &mut self.kernel
    }

    /// How many sockets are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.slots.len()
    }

    /// Runs until it is told to end, and returns what it counted.
    ///
    /// # Errors
    ///
    /// When the kernel can't wait.
    pub fn run(mut self) -> io::Result<Stats> {
        while self.turn()? == Ended::No {}
        Ok(self.stats)
    }

    /// One turn of the loop. Waits when there is nothing to do.
    ///
    /// # Errors
    ///
    /// When the kernel can't wait.
    pub fn turn(&mut self) -> io::Result<Ended> {
        let timeout = self.timeout();
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        self.kernel.wait(&mut events, timeout)?;
        self.now = self.kernel.now();
        self.stats.turns += 1;
        self.service.turn_started(self.now);
        for event in &events {
            match *event {
                Event::Socket { token, readable, writable, closed } => {
                    self.socket_ready(token, readable, writable, closed);
                }
                Event::Listener(place) => {
                    if let Some(watched) = self.listeners.get_mut(place) {
                        watched.ready = true;
                    }
                }
                Event::Mailbox => self.read_mail(),
            }
        }
        self.events = events;
        for _ in 0..self.run_queue.len() {
            self.run_next();
        }
        self.fire_timers();
        self.accept();
        let over = self.drained_by.is_some_and(|by| self.slots.len() == 0 || self.now >= by);
        if over {
            self.close_all();
            return Ok(Ended::Yes);
        }
        Ok(Ended::No)
    }

    /// How long the kernel may wait.
    fn timeout(&self) -> Option<Duration> {
        let can_accept = self.paused_until.is_none();
        let busy = can_accept && self.listeners.iter().any(|watched| watched.ready);
        if busy || !self.run_queue.is_empty() {
            return Some(Duration::ZERO);
        }
        let until = |at: Option<Instant>| at.map(|at| at.saturating_duration_since(self.now));
        [self.wheel.sleep(self.now), until(self.paused_until), until(self.drained_by)]
            .into_iter()
            .flatten()
            .min()
    }

    #[inline]
    fn socket_ready(&mut self, token: Token, readable: bool, writable: bool, closed: bool) {
        let Some(index) = self.slots.resolve(token) else { return };
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.readable |= readable || closed;
        slot.read_closed |= closed;
        let unblocked = writable && slot.blocked;
        if unblocked {
            slot.blocked = false;
        }
        let can_read = slot.readable && (slot.after.wants_input || slot.lingering);
        if unblocked || can_read {
            self.drive(index, Cause::Ready);
        }
    }

    /// Gives the session in slot `index` its turn.
    #[inline]
    fn drive(&mut self, index: u32, cause: Cause<S::Message>) {
        let token = self.slots.token(index);
        let Some(slot) = self.slots.get_mut(index) else { return };
        let mut output = match slot.output.take() {
            Some(kept) => *kept,
            None => std::mem::take(&mut self.spare),
        };
        let mut driver = Driver {
            kernel: &mut self.kernel,
            service: &mut self.service,
            input: &mut self.input,
            mailbox: &self.mailbox,
            stats: &mut self.stats,
            now: self.now,
        };
        let verdict = if slot.lingering {
            driver.linger(slot).unwrap_or_else(Verdict::Close)
        } else {
            driver.drive(slot, token, &mut output, cause)
        };
        if output.is_empty() {
            if output.allocated_bytes() <= SPARE_BYTES_MAX {
                self.spare = output;
            }
        } else if !matches!(verdict, Verdict::Close(_)) {
            output.settle();
            slot.output = Some(Box::new(output));
        }
        match verdict {
            Verdict::Close(cause) => self.close(index, cause),
            Verdict::Keep | Verdict::Requeue => {
                let deadline = slot.after.deadline;
                self.wheel.set(&mut slot.timer, index, deadline);
                if verdict == Verdict::Requeue && !slot.queued {
                    slot.queued = true;
                    self.run_queue.push_back(token);
                }
            }
        }
    }

    fn run_next(&mut self) {
        let Some(token) = self.run_queue.pop_front() else { return };
        let Some(index) = self.slots.resolve(token) else { return };
        if let Some(slot) = self.slots.get_mut(index) {
            slot.queued = false;
        }
        self.drive(index, Cause::Ready);
    }

    fn fire_timers(&mut self) {
        let mut fired = std::mem::take(&mut self.fired);
        self.wheel.advance(self.now, &mut self.slots, &mut fired);
        for index in fired.drain(..) {
            match self.slots.get_mut(index) {
                Some(slot) if slot.lingering => self.close(index, CloseCause::Session),
                Some(_) => self.drive(index, Cause::Ready),
                None => {}
            }
        }
        self.fired = fired;
    }

    fn read_mail(&mut self) {
        self.inbox.silence();
        while let Some(mail) = self.inbox.next() {
            match mail {
                Mail::Message(token, message) => {
                    if let Some(index) = self.slots.resolve(token) {
                        self.drive(index, Cause::Message(message));
                    }
                }
                Mail::Accepted(handed) => {
                    let (listener, peer) = (handed.listener, handed.peer);
                    if self.slots.len() >= self.connections_max {
                        self.shed();
                    }
                    if let Ok(socket) = self.kernel.adopt(handed) {
                        self.open(socket, listener, peer);
                    }
                }
                Mail::ShutDown(drain) => self.shut_down(drain),
            }
        }
    }

    /// Takes in what waits at the listeners.
    fn accept(&mut self) {
        if self.paused_until.is_some_and(|until| self.now < until) {
            return;
        }
        self.paused_until = None;
        for place in 0..self.listeners.len() {
            for _ in 0..ACCEPTS_PER_TURN {
                if !self.listeners[place].ready || self.paused_until.is_some() {
                    break;
                }
                self.accept_one(place);
            }
        }
    }

    fn accept_one(&mut self, place: usize) {
        if self.slots.len() >= self.connections_max && !self.shed() {
            self.pause();
            return;
        }
        let watched = &mut self.listeners[place];
        match self.kernel.accept(&mut watched.listener) {
            Ok((socket, peer)) => {
                let index = watched.index;
                self.open(socket, index, peer);
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => watched.ready = false,
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                // No descriptors or no memory: it gets better when something is closed.
                _ => {
                    if !self.shed() {
                        self.pause();
                    }
                }
            },
        }
    }

    fn pause(&mut self) {
        self.paused_until = Some(self.now + ACCEPT_PAUSE);
        self.stats.accept_paused += 1;
    }

    fn open(&mut self, mut socket: K::Socket, listener: usize, peer: Option<SocketAddr>) {
        let token = self.slots.reserve();
        let accepted = Accepted { token, listener, peer };
        self.stats.accepted += 1;
        let opened = self.service.open(&accepted, self.now);
        let (Some((session, after)), Ok(())) = (opened, self.kernel.watch(&mut socket, token))
        else {
            self.stats.closed += 1;
            self.kernel.close(socket);
            return;
        };
        let mut slot = Slot {
            socket,
            session,
            rest: Box::default(),
            output: None,
            timer: Timer::default(),
            used: self.now,
            pace: Pace::new(),
            readable: false,
            read_closed: false,
            eof: false,
            blocked: false,
            queued: false,
            lingering: false,
            after,
        };
        self.wheel.set(&mut slot.timer, token.index, after.deadline);
        self.slots.insert(token, slot);
    }

    /// Closes the idle sockets that were used least recently, a small part of them at once so that
    /// the search is paid for seldom. Whether there were any.
    #[cold]
    fn shed(&mut self) -> bool {
        let idle = self.slots.iter().filter(|(_, slot)| slot.after.idle && slot.rest.is_empty());
        let mut idle: Vec<(Instant, u32)> = idle.map(|(index, slot)| (slot.used, index)).collect();
        let count = (idle.len() / 64).max(1).min(idle.len());
        if count == 0 {
            return false;
        }
        idle.select_nth_unstable(count - 1);
        for (_, index) in &idle[..count] {
            self.stats.shed += 1;
            self.close(*index, CloseCause::Shed);
        }
        true
    }

    fn shut_down(&mut self, drain: Duration) {
        if self.drained_by.is_some() {
            return;
        }
        self.drained_by = Some(self.now + drain);
        // Connections that wait at a listener would be reset with it.
        self.paused_until = None;
        for watched in &mut self.listeners {
            watched.ready = true;
        }
        self.accept();
        self.listeners.clear();
        for index in self.slots.indexes() {
            self.drive(index, Cause::ShutDown);
        }
    }

    fn close(&mut self, index: u32, cause: CloseCause) {
        let Some(slot) = self.slots.remove(index) else { return };
        self.stats.closed += 1;
        match cause {
            CloseCause::Io(_) => self.stats.closed_io += 1,
            CloseCause::Panic => self.stats.panics += 1,
            CloseCause::Session | CloseCause::Shed | CloseCause::Drained => {}
        }
        self.kernel.close(slot.socket);
        self.service.close(slot.session, cause);
        self.paused_until = None;
    }

    fn close_all(&mut self) {
        for index in self.slots.indexes() {
            self.close(index, CloseCause::Drained);
        }
    }
}

impl<K: Kernel, S: Service> std::fmt::Debug for Worker<K, S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Worker")
            .field("connections", &self.slots.len())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}
