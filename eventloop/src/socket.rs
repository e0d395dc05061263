//! One connection in a worker: reading and writing are one function, [`Slot::pass`], and it always
//! flushes what the input produced.

use std::io;

use bolide_buffers::{Flush, SendQueue};

use crate::budget::Budget;
use crate::close_cause::CloseCause;
use crate::gather::Arrivals;
use crate::kernel::{Kernel, Ready};
use crate::meter::Stage;
use crate::pace::Pace;
use crate::readiness::{Reading, Writing};
use crate::service::{After, Close, Service, Turn};
use crate::sink::Sink;
use crate::slots::Token;
use crate::timer_wheel::NEVER;
use crate::worker_context::WorkerContext;

/// Why a pass begins.
pub(crate) enum Call {
    /// The kernel reported something.
    Ready(Ready),
    /// A read has brought something.
    Event,
    /// The run queue: an earlier pass was cut short.
    Again,
    /// The deadline has come.
    Deadline,
    /// The service, or another session, asked for it.
    Asked,
    /// The worker ends, or needs the room.
    ShutDown,
}

/// Next step after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The next event, mail or deadline.
    Wait,
    /// Another pass, after the others had theirs.
    Again,
    /// The end.
    Closed(CloseCause),
}

/// Phase of a connection's life.
///
/// ```text
///  Open ──────────▶ Flushing ──────────────────▶ Lingering ─────────────▶ closed
///   │ the session        │ what it queued has left      │ FIN, the time or the bytes are over
///   │ has finished       │
///   └────────────────────┴─── failed, or closed at once ────────────────▶ closed
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Bytes come and go. The sending side ends once what waits has left, if the session has said so.
    Open { ends_sending: bool },
    /// The session has finished, and its last bytes wait for the socket, which has taken this many since its deadline was set.
    Flushing { taken: u32, then_lingers: bool },
    /// The last bytes have left; what still arrives is discarded, this many bytes at most.
    Lingering { left: u32 },
}

/// Reports of the kernel that no call has used up yet, and the last ones of the session.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct State {
    pub(crate) reading: Reading,
    pub(crate) writing: Writing,
    /// The kernel reported an error.
    pub(crate) failed: bool,
    pub(crate) wants_input: bool,
    pub(crate) more: bool,
    /// The session left some of the input for a later call.
    pub(crate) cut: bool,
    pub(crate) idle: bool,
    /// The connection is in the run queue.
    pub(crate) queued: bool,
    /// The next pass reads into the large block.
    pub(crate) bulk: bool,
    /// The connection's account is full: nothing is read.
    pub(crate) full: bool,
    /// The kernel keeps a last segment that isn't full: more of a file follows.
    pub(crate) held_back: bool,
    /// By which of the worker's sockets of datagrams it sends, if it has no socket.
    pub(crate) datagram_socket: u8,
}

/// A connection and its session.
pub(crate) struct Slot<K: Kernel, S: Service> {
    /// `None`: what it sends and receives are datagrams, by a [socket](crate::datagram_sockets) of the worker's.
    pub(crate) socket: Option<K::Socket>,
    pub(crate) session: S::Session,
    pub(crate) rest: Box<[u8]>,
    pub(crate) unsent: Option<Box<SendQueue>>,
    /// The tick by which the deadline has come; `NEVER` without one.
    pub(crate) deadline: u64,
    /// The tick at which its entry in the timer wheel comes up: at the deadline or before.
    filed: u64,
    pace: Pace,
    /// Memory that the connection is charged with, in bytes.
    pub(crate) held_bytes: u32,
    /// The tick of the last call; they are compared with each other only.
    called: u32,
    pub(crate) arrivals: Arrivals,
    pub(crate) phase: Phase,
    pub(crate) state: State,
}

impl<K: Kernel, S: Service> Slot<K, S> {
    pub(crate) fn new(
        socket: Option<K::Socket>,
        session: S::Session,
        after: After,
        cx: &mut WorkerContext<K, S>,
        tick: u32,
    ) -> Self {
        let mut slot = Self {
            socket,
            session,
            rest: Box::default(),
            unsent: None,
            deadline: NEVER,
            filed: NEVER,
            pace: Pace::new(&cx.limits),
            held_bytes: 0,
            called: tick,
            arrivals: Arrivals::default(),
            phase: Phase::Open { ends_sending: false },
            state: State::default(),
        };
        slot.obey(&after, cx);
        slot
    }

    /// The same for a connection that this side makes and that is not established yet.
    pub(crate) fn connecting(
        socket: Option<K::Socket>,
        session: S::Session,
        after: After,
        cx: &mut WorkerContext<K, S>,
        tick: u32,
    ) -> Self {
        let mut slot = Self::new(socket, session, after, cx, tick);
        slot.state.writing = Writing::Connecting;
        slot
    }

    /// Returns whether the connection was never established.
    #[inline]
    pub(crate) fn is_connecting(&self) -> bool {
        self.state.writing == Writing::Connecting
    }

    /// The deadline, if it must be filed because it comes before the entry that stands in the timer
    /// wheel. Deadlines move to later with every request, and then there is nothing to do.
    #[inline]
    pub(crate) fn deadline_to_file(&mut self) -> Option<u64> {
        let is_earlier = self.deadline < self.filed;
        is_earlier.then(|| {
            self.filed = self.deadline;
            self.deadline
        })
    }

    /// Its entry in the timer wheel came up. Whether the deadline has come, too.
    pub(crate) fn entry_came_up(&mut self, tick: u64) -> bool {
        self.filed = NEVER;
        self.deadline <= tick
    }

    /// Returns whether mail still reaches the session.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open { .. })
    }

    /// How long it has been idle, in ticks; `None` while it is at work.
    pub(crate) fn idle_ticks(&self, tick: u32) -> Option<u32> {
        // A session is idle once it has said all it has to; what the kernel still has of it is another question.
        let idle = self.state.idle && self.state.writing == Writing::Open && self.unsent.is_none();
        let spare = idle || matches!(self.phase, Phase::Lingering { .. });
        spare.then(|| tick.wrapping_sub(self.called))
    }

    /// How long ago its last pass was, in ticks.
    pub(crate) fn silent_ticks(&self, tick: u32) -> u32 {
        tick.wrapping_sub(self.called)
    }

    pub(crate) fn socket(&self) -> Option<&K::Socket> {
        self.socket.as_ref()
    }

    /// Marks it as standing in the run queue; whether it was not there already.
    pub(crate) fn enqueue(&mut self) -> bool {
        !std::mem::replace(&mut self.state.queued, true)
    }

    /// It has left the run queue.
    pub(crate) fn dequeue(&mut self) {
        self.state.queued = false;
    }

    /// Notes what the kernel reported, if that is why the pass begins.
    #[inline]
    fn note(&mut self, call: &Call) {
        let &Call::Ready(ready) = call else { return };
        let State { reading, writing, failed, .. } = &mut self.state;
        *failed |= ready.failed;
        reading.reported(ready, *failed);
        if ready.writable {
            writing.reported(*failed);
        }
    }

    /// Returns what is left when the connection is over.
    pub(crate) fn into_parts(self) -> (Option<K::Socket>, S::Session) {
        (self.socket, self.session)
    }

    /// Gives the connection its turn: flushes what waited, reads, calls the session, flushes.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        cx: &mut WorkerContext<K, S>,
        token: Token,
        tick: u32,
        call: Call,
    ) -> Outcome {
        let was_connecting = self.is_connecting();
        self.note(&call);
        if !self.is_open() {
            return self.closing_pass(cx, &call);
        }
        self.arrivals.at(std::mem::replace(&mut self.called, tick), tick);
        if self.state.failed {
            if was_connecting {
                return Outcome::Closed(CloseCause::Failed(self.failure(cx)));
            }
            if self.state.reading == Reading::Ended || !self.state.wants_input {
                return Outcome::Closed(CloseCause::Failed(io::ErrorKind::ConnectionReset));
            }
        }
        let mut call = Some(call);
        self.drop_unless_due(&mut call, was_connecting && !self.is_connecting());
        let mut budget = Budget::new(&cx.limits);
        cx.session_held_bytes = (self.held_bytes as usize).saturating_sub(self.loop_held_bytes());
        if let Some(unsent) = self.unsent.take() {
            cx.take_unsent(unsent);
        }
        if self.state.writing == Writing::Room {
            self.state.writing = Writing::Open;
            match self.flush_or_end(cx, &mut budget) {
                Ok(Flush::Drained) if call.is_none() => {
                    // A session that stopped reading may have done so for its output.
                    let waits = self.state.more || !self.state.wants_input;
                    call = waits.then_some(Call::Again);
                }
                Ok(_) => {}
                Err(cause) => return Outcome::Closed(cause),
            }
        }
        let works = call.is_some() || self.may_read();
        let outcome = if works {
            cx.choose_block(self.state.bulk);
            cx.inputs.current.start(&self.rest);
            if !self.rest.is_empty() {
                self.rest = Box::default();
            }
            let outcome = self.work(cx, token, &mut call, &mut budget);
            if !cx.inputs.current.is_empty() && self.is_open() {
                self.rest = cx.inputs.current.take_rest();
            }
            if budget.filled || self.state.bulk {
                // A large block is for who fills it and keeps nothing of it.
                let rest_is_small = self.rest.len() < cx.limits.turns.block_bytes / 4;
                self.state.bulk = budget.filled && rest_is_small && cx.inputs.current.is_free();
            }
            outcome
        } else {
            Outcome::Wait
        };
        if let Some(unsent) = cx.keep_unsent(works) {
            self.unsent = Some(unsent);
        }
        if self.arrivals.expects != self.arrivals.gathers {
            self.change_gathering(cx, token);
        }
        let has_room_again = self.charge(cx) && self.may_read();
        if has_room_again && outcome == Outcome::Wait { Outcome::Again } else { outcome }
    }

    /// Leaves only a call that is due before anything is read.
    #[inline]
    fn drop_unless_due(&self, call: &mut Option<Call>, was_established: bool) {
        let is_due = match call {
            Some(Call::Ready(_) | Call::Event) => was_established,
            Some(Call::Again) => self.state.more && self.state.writing == Writing::Open,
            _ => true,
        };
        if !is_due {
            *call = self.state.cut.then_some(Call::Again);
        }
    }

    /// Reads, calls and flushes in turn until there is nothing to do or the budget is spent.
    #[inline]
    fn work(
        &mut self,
        cx: &mut WorkerContext<K, S>,
        token: Token,
        call: &mut Option<Call>,
        budget: &mut Budget,
    ) -> Outcome {
        let mut unflushed = false;
        loop {
            if self.may_read() && budget.allows_read() {
                match self.receive(cx, budget) {
                    Ok(true) if call.is_none() => *call = Some(Call::Event),
                    Ok(_) => {}
                    Err(error) => return Outcome::Closed(CloseCause::Failed(error.kind())),
                }
            }
            if call.is_some() {
                unflushed = true;
                budget.spend_call();
                match self.call(cx, token, call) {
                    Some(Close::Now) => return Outcome::Closed(CloseCause::Finished),
                    Some(Close::Reset) => {
                        // The reset says more than an error.
                        let _ = self.flush(cx, budget);
                        if let Some(socket) = &mut self.socket {
                            cx.kernel.reset_on_close(socket);
                        }
                        return Outcome::Closed(CloseCause::Finished);
                    }
                    Some(Close::Lingering) => return self.finish(true, cx, budget),
                    Some(Close::Sent) => return self.finish(false, cx, budget),
                    // What the next read brings leaves with what this one brought.
                    None if self.may_read()
                        && budget.allows_read()
                        && cx.outputs.queue.len() < self.pace.limit() =>
                    {
                        continue;
                    }
                    None => {}
                }
            }
            if unflushed {
                unflushed = false;
                match self.flush_or_end(cx, budget) {
                    Ok(Flush::Drained) if self.state.cut => {}
                    Ok(Flush::Drained) if self.state.more && budget.allows_call() => {
                        *call = Some(Call::Again);
                    }
                    Ok(Flush::Drained) if self.state.more => return Outcome::Again,
                    Ok(_) => {}
                    Err(cause) => return Outcome::Closed(cause),
                }
            }
            if call.is_none() && self.state.cut {
                return Outcome::Again;
            }
            if call.is_none() && !self.may_read() {
                return Outcome::Wait;
            }
            if call.is_none() && !budget.allows_read() {
                return Outcome::Again;
            }
        }
    }

    /// A pass ends in which the session expects much and its bytes are not gathered, or the other way round.
    fn change_gathering(&mut self, cx: &mut WorkerContext<K, S>, token: Token) {
        let is_open = self.is_open();
        let Some(socket) = &mut self.socket else { return };
        if self.arrivals.gathers {
            self.arrivals.stop(&mut cx.kernel, socket);
        } else if self.arrivals.is_fast(&cx.limits) && is_open {
            self.arrivals.start(&mut cx.kernel, socket, &cx.limits);
            cx.stats.work.gathered += 1;
            cx.gathering.add(token, cx.now, &cx.limits);
        }
    }

    /// Ends the gathering unless something came since this was asked last. Whether it goes on.
    pub(crate) fn goes_on_gathering(&mut self, kernel: &mut K) -> bool {
        let goes_on = self.arrivals.gathers && self.arrivals.take_moved();
        if self.arrivals.gathers
            && !goes_on
            && let Some(socket) = &mut self.socket
        {
            self.arrivals.stop(kernel, socket);
        }
        goes_on
    }

    /// Why a connection could not be established: a read tells.
    #[cold]
    fn failure(&mut self, cx: &mut WorkerContext<K, S>) -> io::ErrorKind {
        let Some(socket) = &mut self.socket else { return io::ErrorKind::ConnectionReset };
        cx.inputs.current.start(&[]);
        let received = cx.kernel.receive(socket, cx.inputs.current.block_mut(), usize::MAX);
        received.map_or_else(|error| error.kind(), |_| io::ErrorKind::ConnectionReset)
    }

    #[inline]
    pub(crate) fn may_read(&self) -> bool {
        let State { reading, wants_input, cut, full, .. } = self.state;
        reading.is_ready() && wants_input && !cut && !full && !self.is_connecting()
    }

    /// Reads once. Whether there is something new: bytes, or the end.
    #[inline]
    fn receive(&mut self, cx: &mut WorkerContext<K, S>, budget: &mut Budget) -> io::Result<bool> {
        let Some(socket) = &mut self.socket else { return Ok(false) };
        cx.inputs.current.make_room();
        let block = cx.inputs.current.block_mut();
        let spare = block.capacity() - block.len();
        let offered = spare.min(self.pace.read_bytes_max());
        cx.meter.enter(Stage::RECEIVE);
        let received = cx.kernel.receive(socket, block, offered);
        cx.meter.enter(Stage::LOOP);
        match received {
            // A reset, not the end of what the peer had to say.
            Ok(0) if self.state.writing == Writing::Lost => {
                Err(io::ErrorKind::ConnectionReset.into())
            }
            Ok(0) => {
                self.state.reading = Reading::Ended;
                Ok(true)
            }
            Ok(count) => {
                budget.spend_read(count);
                cx.stats.bytes_received += count as u64;
                self.arrivals.add(count);
                budget.filled |= count == spare || count >= cx.limits.turns.block_bytes;
                if count < offered {
                    self.state.reading.came_short();
                }
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.state.reading = Reading::Drained;
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                budget.spend_read(0);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Calls the session, for which there is no call any more then.
    #[inline]
    fn call(
        &mut self,
        cx: &mut WorkerContext<K, S>,
        token: Token,
        call: &mut Option<Call>,
    ) -> Option<Close> {
        cx.stats.work.turns += 1;
        let mut turn = Turn {
            token,
            input: &mut cx.inputs.current,
            output: &mut cx.outputs.queue,
            output_limit: self.pace.limit(),
            now: cx.now,
            connected: self.state.writing != Writing::Connecting,
            eof: self.state.reading == Reading::Ended,
            mailbox: &cx.mailbox,
            agenda: &mut cx.agenda,
            path: match &self.socket {
                Some(socket) => socket,
                None => &(),
            },
        };
        let session = &mut self.session;
        let after = match call {
            Some(Call::ShutDown) => cx.service.shut_down(session, &mut turn),
            _ => cx.service.turn(session, &mut turn),
        };
        *call = None;
        cx.meter.enter(Stage::LOOP);
        self.obey(&after, cx);
        after.close
    }

    #[inline]
    fn obey(&mut self, after: &After, cx: &mut WorkerContext<K, S>) {
        self.state.wants_input = after.wants_input;
        self.state.more = after.more;
        self.state.cut = after.cut;
        self.state.idle = after.idle;
        if after.ends_sending {
            self.phase = Phase::Open { ends_sending: true };
        }
        cx.session_held_bytes = after.held_bytes;
        self.arrivals.expects = after.expects > 2 * cx.limits.gathering.gather_bytes as u64;
        self.deadline = after.deadline.map_or(NEVER, |deadline| cx.meeting(deadline));
    }

    /// Has the session write what waits, up to the next piece of a file.
    #[inline]
    pub(crate) fn flush_once(
        &mut self,
        cx: &mut WorkerContext<K, S>,
        sent: &mut usize,
    ) -> io::Result<Flush> {
        let Some(socket) = &mut self.socket else { return Ok(Flush::Drained) };
        let kernel = &mut cx.kernel;
        let mut sink = Sink::<'_, K> { kernel, socket, meter: &cx.meter, sent: 0 };
        let flush = cx.service.flush(&mut self.session, &mut cx.outputs.queue, &mut sink);
        *sent += sink.sent;
        cx.meter.enter(Stage::LOOP);
        flush
    }

    /// Writes what waits, unless the socket is full.
    #[inline]
    pub(crate) fn flush(
        &mut self,
        cx: &mut WorkerContext<K, S>,
        budget: &mut Budget,
    ) -> io::Result<Flush> {
        match self.state.writing {
            Writing::Open => {}
            Writing::Lost => return Err(io::ErrorKind::ConnectionReset.into()),
            Writing::Connecting | Writing::Blocked | Writing::Room => return Ok(Flush::Blocked),
        }
        if self.socket.is_none() {
            return Ok(self.flush_datagrams(cx, budget));
        }
        if cx.outputs.queue.has_outside() {
            self.hold_back(cx);
        }
        let mut sent = 0;
        let flush = loop {
            let flush = self.flush_once(cx, &mut sent);
            if !matches!(flush, Ok(Flush::Outside)) {
                break flush;
            }
            let outside = self.flush_outside(cx, &mut sent);
            if !matches!(outside, Ok(Flush::Drained)) {
                break outside;
            }
        };
        budget.spend_sent(sent);
        cx.stats.bytes_sent += sent as u64;
        self.pace.sent(sent);
        match flush? {
            Flush::Drained => {
                if self.state.more {
                    if let Some(limit) = self.pace.drained(sent, &cx.limits)
                        && let Some(socket) = &mut self.socket
                    {
                        cx.kernel.limit_unsent(socket, limit);
                    }
                } else {
                    self.pace.rest();
                    if self.state.held_back {
                        self.state.held_back = false;
                        if let Some(socket) = &mut self.socket {
                            cx.kernel.hold_back(socket, false);
                        }
                    }
                }
                Ok(Flush::Drained)
            }
            Flush::Blocked | Flush::Outside => {
                self.state.writing = Writing::Blocked;
                cx.stats.work.write_blocked += 1;
                if let Some(limit) = self.pace.blocked(cx.now, &cx.limits)
                    && let Some(socket) = &mut self.socket
                {
                    cx.kernel.limit_unsent(socket, limit);
                }
                Ok(Flush::Blocked)
            }
        }
    }
}

#[cfg(test)]
mod tests;
