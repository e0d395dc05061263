//! The loop: wait, events, new connections, run queue, timers, mail.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use bolide_buffers::SendQueue;

use crate::close_cause::CloseCause;
use crate::datagram_sockets::DatagramSockets;
use crate::kernel::{Kernel, Ready, memory};
use crate::limits::Limits;
use crate::mailbox::{Inbox, Mail, Mailbox, mailbox};
use crate::meter::Stage;
use crate::open_listeners::OpenListeners;
use crate::quiet::Quiet;
use crate::service::Service;
use crate::slots::{Slots, Token};
use crate::socket::{Call, Outcome, Slot};
use crate::stats::Stats;
use crate::timer_wheel::TimerWheel;
use crate::worker_context::WorkerContext;

/// One thread's loop: its poller, its connections, its timers, its service.
///
/// [`run`](crate::run()) starts several; embedded in a thread of one's own, [`run`](Self::run) is the
/// whole of it.
pub struct Worker<K: Kernel, S: Service> {
    pub(crate) cx: WorkerContext<K, S>,
    pub(crate) slots: Slots<Slot<K, S>>,
    pub(crate) listeners: OpenListeners<K>,
    wheel: TimerWheel,
    inbox: Inbox<S::Message>,
    ready: Vec<Ready>,
    due: Vec<u32>,
    /// Connections whose pass was cut short.
    runs: Vec<Token>,
    /// Those of the turn that is under way.
    running: Vec<Token>,
    /// Connections that the agenda asked a turn for, while they have it.
    pub(crate) calling: Vec<Token>,
    tick: u64,
    /// Memory that all connections together may keep, in bytes.
    pub(crate) held_bytes_max: u64,
    /// Set when the worker is to end: when patience does.
    ending: Option<Instant>,
}

impl<K: Kernel, S: Service> Worker<K, S> {
    /// A worker with the service that `make` builds, given the mailbox of this worker.
    pub fn new(mut kernel: K, limits: Limits, make: impl FnOnce(Mailbox<S::Message>) -> S) -> Self {
        let (sender, inbox) = mailbox(kernel.waker());
        let now = kernel.now();
        Self {
            cx: WorkerContext::new(kernel, make(sender.clone()), sender, limits, now),
            slots: Slots::new(),
            listeners: OpenListeners::new(&limits),
            wheel: TimerWheel::new(),
            inbox,
            ready: Vec::new(),
            due: Vec::new(),
            runs: Vec::new(),
            running: Vec::new(),
            calling: Vec::new(),
            tick: 0,
            held_bytes_max: match limits.held_bytes_max {
                0 => memory::usable_bytes() / 2,
                bytes => bytes as u64,
            },
            ending: None,
        }
    }

    /// Accepts from `listener`, which sessions are told as `index`.
    ///
    /// # Errors
    ///
    /// When the kernel cannot watch it.
    pub fn listen(&mut self, mut listener: K::Listener, index: usize) -> io::Result<()> {
        let unsent_bytes = self.cx.limits.unsent.unsent_start_bytes;
        self.cx.kernel.listen(&mut listener, self.listeners.next_key(), unsent_bytes)?;
        self.listeners.add(listener, index);
        Ok(())
    }

    /// Sends to this worker.
    pub fn mailbox(&self) -> Mailbox<S::Message> {
        self.cx.mailbox.clone()
    }

    /// The service.
    pub fn service(&self) -> &S {
        &self.cx.service
    }

    /// The service, when the worker has done its work. What is still open is closed.
    pub fn into_service(mut self) -> S {
        self.close_all(CloseCause::Drained);
        self.cx.service
    }

    /// The kernel.
    pub fn kernel(&self) -> &K {
        &self.cx.kernel
    }

    /// Returns what has been counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats { open: self.slots.len() as u64, ..self.cx.stats }
    }

    /// Runs until a shutdown is complete.
    ///
    /// # Errors
    ///
    /// When the poller fails.
    pub fn run(mut self) -> io::Result<Stats> {
        let mut quiet = Quiet::new();
        while self.step(quiet.at_most(self.cx.now))? {
            if quiet.begins(self.cx.stats.work.events, self.cx.now) {
                memory::give_back();
            }
        }
        Ok(self.stats())
    }

    /// One turn of the loop, which waits no longer than `at_most`. `false`: a shutdown is complete.
    ///
    /// # Errors
    ///
    /// When the poller fails.
    pub fn step(&mut self, at_most: Option<Duration>) -> io::Result<bool> {
        let timeout = self.timeout(at_most);
        let timeout = if self.inbox.lie_down() { timeout } else { Some(Duration::ZERO) };
        let is_measured = S::METERED && self.cx.meter.turn_begins();
        let waited = self.cx.kernel.wait(timeout, self.cx.agenda.alarm, &mut self.ready);
        self.inbox.get_up();
        waited?;
        if is_measured {
            self.cx.meter.woken();
        }
        self.cx.now = self.cx.kernel.now();
        self.tick = self.cx.ticks.until(self.cx.now);
        self.cx.stats.work.waits += 1;
        if self.cx.agenda.alarm.is_some_and(|alarm| alarm <= self.cx.now) {
            self.cx.agenda.alarm = None;
        }
        self.cx.service.turn_started(self.cx.now, &mut self.cx.agenda);
        self.cx.trim();
        self.take_events();
        if self.cx.gathering.look_at.is_some_and(|at| at <= self.cx.now) {
            self.look_at_gathering();
        }
        self.accept();
        self.run_queue();
        self.take_deadlines();
        self.take_mail();
        self.take_datagrams();
        self.carry_out_agenda();
        self.relieve();
        let goes_on = self.goes_on();
        let stats = self.stats();
        self.cx.service.turn_ended(&stats, &mut self.cx.agenda);
        if is_measured {
            let measured = self.cx.meter.turn_ended();
            self.cx.service.turn_measured(&measured);
        }
        Ok(goes_on)
    }

    /// Returns whether there will be another turn. Closes what is left when the patience of a shutdown is over.
    #[inline]
    fn goes_on(&mut self) -> bool {
        let Some(deadline) = self.ending else { return true };
        if deadline <= self.cx.now {
            self.close_all(CloseCause::Drained);
        }
        self.slots.len() > 0 || self.cx.datagram_sockets.shut_pipes()
    }

    /// How long the kernel may wait.
    #[inline]
    fn timeout(&self, at_most: Option<Duration>) -> Option<Duration> {
        let alarm_is_due = self.cx.agenda.alarm.is_some_and(|alarm| alarm <= self.cx.now);
        if !self.runs.is_empty()
            || self.listeners.is_ready()
            || self.cx.datagram_sockets.is_ready()
            || self.cx.agenda.has_work()
            || alarm_is_due
        {
            return Some(Duration::ZERO);
        }
        let until = |at: Instant| at.saturating_duration_since(self.cx.now);
        let timer = self.wheel.next().map(|tick| until(self.cx.ticks.instant_of(tick)));
        let mut least = at_most;
        let others = [self.listeners.paused_until, self.ending, self.cx.gathering.look_at];
        for other in others.map(|at| at.map(until)).into_iter().chain([timer]) {
            least = match (least, other) {
                (Some(least), Some(other)) => Some(least.min(other)),
                (least, other) => least.or(other),
            };
        }
        least
    }

    #[inline]
    fn take_events(&mut self) {
        self.cx.stats.work.events += self.ready.len() as u64;
        for position in 0..self.ready.len() {
            let ready = self.ready[position];
            let token = Token::from_key(ready.key);
            if token.generation() == 0 {
                match DatagramSockets::<K, S::Message>::position(token.index()) {
                    Some(position) => self.datagrams_reported(position, ready),
                    None => self.listeners.note(token.index()),
                }
            } else {
                self.pass(token, Call::Ready(ready));
            }
        }
        self.ready.clear();
    }

    fn run_queue(&mut self) {
        std::mem::swap(&mut self.runs, &mut self.running);
        for position in 0..self.running.len() {
            let token = self.running[position];
            if let Some(slot) = self.slots.get_mut(token) {
                slot.dequeue();
                self.pass(token, Call::Again);
            }
        }
        self.running.clear();
    }

    fn take_deadlines(&mut self) {
        if self.wheel.next().is_none_or(|next| next > self.tick) {
            return;
        }
        let mut due = std::mem::take(&mut self.due);
        self.wheel.expire(self.tick, &mut due);
        for index in due.drain(..) {
            let Some((token, slot)) = self.slots.at(index) else { continue };
            if slot.entry_came_up(self.tick) {
                self.pass(token, Call::Deadline);
            } else if let Some(deadline) = slot.deadline_to_file() {
                self.file(token, deadline);
            }
        }
        self.due = due;
    }

    fn take_mail(&mut self) {
        for _ in 0..self.cx.limits.turns.mails_per_turn_count {
            let Some(mail) = self.inbox.next() else { return };
            match mail {
                Mail::Session(token, message) => {
                    self.cx.stats.work.mails += 1;
                    let WorkerContext { service, agenda, .. } = &mut self.cx;
                    match self.slots.get_mut(token).filter(|slot| slot.is_open()) {
                        Some(slot) => service.message(&mut slot.session, message, token, agenda),
                        None => service.undelivered(message),
                    }
                }
                Mail::HandedIn(socket) => self.take_in(socket),
                Mail::Datagram { local, datagram } => {
                    self.datagram_passed_on(local, datagram);
                    self.call_for_datagrams();
                }
                Mail::LeaveDatagrams => self.leave_datagrams(),
                Mail::Pipe(pipe) => self.cx.datagram_sockets.add_pipe(pipe),
                Mail::PipeEnded(pipe) => self.cx.datagram_sockets.remove_pipe(&pipe),
                Mail::Workers(workers) => self.cx.datagram_sockets.set_workers(workers),
                Mail::ShutDown { deadline } => self.begin_end(deadline),
                Mail::Count(sender) => {
                    // Who asked may have gone.
                    let _ = sender.send(self.stats());
                }
            }
        }
    }

    /// Ends the gathering for connections of which nothing has come for a while: what lies there is reported now.
    #[cold]
    fn look_at_gathering(&mut self) {
        let WorkerContext { gathering, kernel, limits, now, .. } = &mut self.cx;
        gathering.retain(*now, limits, |token| {
            self.slots.get_mut(token).is_some_and(|slot| slot.goes_on_gathering(kernel))
        });
    }

    /// Gives one connection its turn and does what follows from it.
    #[inline]
    pub(crate) fn pass(&mut self, token: Token, call: Call) {
        let Self { slots, cx, tick, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        cx.passing = token;
        let pass = AssertUnwindSafe(|| slot.pass(cx, token, *tick as u32, call));
        let outcome = catch_unwind(pass).unwrap_or_else(|_| {
            cx.stats.panics += 1;
            // Whatever stage it panicked in is over.
            cx.meter.enter(Stage::LOOP);
            Outcome::Closed(CloseCause::Panicked)
        });
        let deadline = slot.deadline_to_file();
        match outcome {
            Outcome::Wait => {}
            Outcome::Again => {
                cx.stats.work.requeued += 1;
                if slot.enqueue() {
                    self.runs.push(token);
                }
            }
            Outcome::Closed(cause) => return self.close(token, cause),
        }
        if let Some(deadline) = deadline {
            self.file(token, deadline);
        }
    }

    /// Files a deadline, which is a tick, in the timer wheel.
    pub(crate) fn file(&mut self, token: Token, deadline: u64) {
        self.wheel.set(token.index(), deadline);
    }

    /// Puts a connection in the run queue.
    pub(crate) fn enqueue(&mut self, token: Token) {
        if self.slots.get_mut(token).is_some_and(Slot::enqueue) {
            self.runs.push(token);
        }
    }

    /// The low bits of the tick, for comparing ages.
    pub(crate) fn short_tick(&self) -> u32 {
        self.tick as u32
    }

    /// Ends a connection.
    pub(crate) fn close(&mut self, token: Token, cause: CloseCause) {
        let Some(mut slot) = self.slots.remove(token) else { return };
        slot.uncharge(&mut self.cx);
        self.cx.stats.connects_failed += u64::from(slot.is_connecting());
        self.wheel.remove(token.index());
        if !self.cx.outputs.queue.is_empty() || cause == CloseCause::Panicked {
            self.cx.outputs.queue = SendQueue::new();
        }
        let datagram_socket = slot.state.datagram_socket;
        let (socket, mut session) = slot.into_parts();
        if socket.is_none() {
            self.left_datagrams(datagram_socket);
        }
        self.cx.stats.count_close(cause);
        self.listeners.room_was_made();
        let (service, agenda) = (&mut self.cx.service, &mut self.cx.agenda);
        let kernel = &mut self.cx.kernel;
        let closed = AssertUnwindSafe(|| {
            if let Some(socket) = socket {
                service.closing(&mut session, &socket);
                kernel.close(socket);
            }
            service.close(session, cause, agenda);
        });
        self.cx.stats.panics += u64::from(catch_unwind(closed).is_err());
    }

    fn begin_end(&mut self, deadline: Instant) {
        if let Some(earlier) = self.ending {
            self.ending = Some(earlier.min(deadline));
            return;
        }
        self.ending = Some(deadline);
        // What waits in the backlog would be reset; a session at least says goodbye.
        self.accept();
        self.listeners.shut(&mut self.cx.kernel);
        for index in 0..self.slots.places() {
            if let Some((token, slot)) = self.slots.at(index)
                && slot.is_open()
            {
                self.pass(token, Call::ShutDown);
            }
        }
    }

    /// Returns whether the worker is about to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    fn close_all(&mut self, cause: CloseCause) {
        for index in 0..self.slots.places() {
            if let Some((token, _)) = self.slots.at(index) {
                self.close(token, cause);
            }
        }
    }
}
