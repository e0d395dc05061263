//! One connection in a worker: reading and writing are one function, [`Slot::pass`], and it always
//! flushes what the input produced.

use std::io;

use bolide_buffers::{Flush, SendQueue};

use crate::budget::Budget;
use crate::close_cause::CloseCause;
use crate::gather::Arrivals;
use crate::kernel::{Kernel, Ready};
use crate::lent::Lent;
use crate::meter::Stage;
use crate::pace::Pace;
use crate::service::{After, Close, Service, Turn};
use crate::sink::Sink;
use crate::slots::Token;
use crate::timer_wheel::NEVER;

/// Why a pass begins.
pub(crate) enum Call<M> {
    /// The kernel reported something.
    Ready(Ready),
    /// The same, and it is noted.
    Event,
    /// The run queue: an earlier pass was cut short.
    Again,
    /// The deadline has come.
    Deadline,
    /// The service, or another session, asked for it.
    Asked,
    /// A mail.
    Message(M),
    /// The worker ends, or needs the room.
    ShutDown,
}

/// What comes after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The next event, mail or deadline.
    Wait,
    /// Another pass, after the others had theirs.
    Again,
    /// The end.
    Closed(CloseCause),
}

/// Where a connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Bytes come and go.
    Open,
    /// The session has finished, and its last bytes wait for the socket, which has taken this many since its deadline was set.
    Flushing { taken: u32 },
    /// The last bytes have left; what still arrives is discarded, this many bytes at most.
    Lingering { left: u32 },
}

/// What the kernel said and no call has used up yet, and what the session said last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct State {
    pub(crate) readable: bool,
    pub(crate) read_closed: bool,
    pub(crate) failed: bool,
    /// There is room in the socket, reported after it was full.
    pub(crate) room: bool,
    /// The socket took no more.
    pub(crate) blocked: bool,
    /// The connection is not established yet; until then, nothing can be written.
    pub(crate) connecting: bool,
    pub(crate) eof: bool,
    pub(crate) wants_input: bool,
    pub(crate) more: bool,
    /// The session left some of the input for a later call.
    pub(crate) cut: bool,
    pub(crate) idle: bool,
    pub(crate) queued: bool,
    /// A read of this pass filled the block.
    pub(crate) filled: bool,
    /// The next pass reads into the large block.
    pub(crate) bulk: bool,
    /// The kernel keeps a last segment that isn't full: more of a file follows.
    pub(crate) held_back: bool,
}

/// A connection and its session.
pub(crate) struct Slot<K: Kernel, S: Service> {
    pub(crate) socket: K::Socket,
    pub(crate) session: S::Session,
    rest: Box<[u8]>,
    pub(crate) unsent: Option<Box<SendQueue>>,
    /// The tick by which the deadline has come; `NEVER` without one.
    pub(crate) deadline: u64,
    /// The tick at which its entry in the timer wheel comes up: at the deadline or before.
    filed: u64,
    pace: Pace,
    /// The tick of the last call; they are compared with each other only.
    called: u32,
    pub(crate) arrivals: Arrivals,
    pub(crate) phase: Phase,
    pub(crate) state: State,
}

impl<K: Kernel, S: Service> Slot<K, S> {
    pub(crate) fn new(
        socket: K::Socket,
        session: S::Session,
        after: After,
        lent: &mut Lent<K, S>,
        tick: u32,
    ) -> Self {
        let mut slot = Self {
            socket,
            session,
            rest: Box::default(),
            unsent: None,
            deadline: NEVER,
            filed: NEVER,
            pace: Pace::new(&lent.limits),
            called: tick,
            arrivals: Arrivals::default(),
            phase: Phase::Open,
            state: State::default(),
        };
        slot.obey(&after, lent);
        slot
    }

    /// The same for a connection that this side makes and that is not established yet.
    pub(crate) fn connecting(
        socket: K::Socket,
        session: S::Session,
        after: After,
        lent: &mut Lent<K, S>,
        tick: u32,
    ) -> Self {
        let mut slot = Self::new(socket, session, after, lent, tick);
        slot.state.connecting = true;
        slot.state.blocked = true;
        slot
    }

    /// Whether the connection was never established.
    pub(crate) fn is_connecting(&self) -> bool {
        self.state.connecting
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

    /// Whether mail still reaches the session.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// How long it has been idle, in ticks; `None` while it is at work.
    pub(crate) fn idle_ticks(&self, tick: u32) -> Option<u32> {
        // A session is idle once it has said all it has to; what the kernel still has of it is another question.
        let idle = self.state.idle && !self.state.blocked && self.unsent.is_none();
        let spare = idle || matches!(self.phase, Phase::Lingering { .. });
        spare.then(|| tick.wrapping_sub(self.called))
    }

    pub(crate) fn socket(&self) -> &K::Socket {
        &self.socket
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
    fn noted(&mut self, call: Call<S::Message>) -> Call<S::Message> {
        let Call::Ready(ready) = call else { return call };
        self.state.readable |= ready.readable | ready.failed;
        self.state.read_closed |= ready.read_closed;
        self.state.failed |= ready.failed;
        self.state.room |= ready.writable;
        Call::Event
    }

    /// What is left when the connection is over.
    pub(crate) fn into_parts(self) -> (K::Socket, S::Session) {
        (self.socket, self.session)
    }

    /// Gives the connection its turn: flushes what waited, reads, calls the session, flushes.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        lent: &mut Lent<K, S>,
        token: Token,
        tick: u32,
        call: Call<S::Message>,
    ) -> Outcome {
        let call = self.noted(call);
        if self.phase != Phase::Open {
            return self.closing_pass(lent, &call);
        }
        self.arrivals.at(tick.wrapping_sub(std::mem::replace(&mut self.called, tick)));
        let established = if self.state.connecting { self.establish(lent) } else { Ok(false) };
        let was_established = match established {
            Ok(was_established) => was_established,
            Err(error) => return Outcome::Closed(CloseCause::Failed(error.kind())),
        };
        if self.state.failed && (self.state.eof || !self.state.wants_input) {
            return Outcome::Closed(CloseCause::Failed(io::ErrorKind::ConnectionReset));
        }
        let mut call = self.due(call, was_established);
        let mut budget = Budget::new(&lent.limits);
        if let Some(unsent) = self.unsent.take() {
            lent.take_unsent(unsent);
        }
        if self.state.blocked && self.state.room {
            self.state.blocked = false;
            match self.flush(lent, &mut budget) {
                Ok(Flush::Drained) if call.is_none() => {
                    // A session that stopped reading may have done so for its output.
                    let waits = self.state.more || !self.state.wants_input;
                    call = waits.then_some(Call::Again);
                }
                Ok(_) => {}
                Err(error) => return Outcome::Closed(CloseCause::of(&error)),
            }
        }
        let works = call.is_some() || self.may_read();
        let outcome = if works {
            lent.choose_block(self.state.bulk);
            lent.input.start(&self.rest);
            if !self.rest.is_empty() {
                self.rest = Box::default();
            }
            let outcome = self.work(lent, token, call, &mut budget);
            if !lent.input.is_empty() && self.phase == Phase::Open {
                self.rest = lent.input.take_rest();
            }
            if self.state.filled || self.state.bulk {
                // A large block is for who fills it and keeps nothing of it.
                let filled = std::mem::take(&mut self.state.filled);
                let rest_is_small = self.rest.len() < lent.limits.block_bytes / 4;
                self.state.bulk = filled && rest_is_small && lent.input.is_free();
            }
            outcome
        } else {
            Outcome::Wait
        };
        if let Some(unsent) = lent.keep_unsent(works) {
            self.unsent = Some(unsent);
        }
        if self.arrivals.expects != self.arrivals.gathers {
            self.change_gathering(lent, token);
        }
        outcome
    }

    /// The call that is due before anything is read.
    #[inline]
    fn due(&self, call: Call<S::Message>, was_established: bool) -> Option<Call<S::Message>> {
        let due = match call {
            Call::Event => was_established.then_some(Call::Event),
            Call::Again => (self.state.more && !self.state.blocked).then_some(Call::Again),
            call => Some(call),
        };
        due.or_else(|| self.state.cut.then_some(Call::Again))
    }

    /// Reads, calls and flushes in turn until there is nothing to do or the budget is spent.
    #[inline]
    fn work(
        &mut self,
        lent: &mut Lent<K, S>,
        token: Token,
        mut call: Option<Call<S::Message>>,
        budget: &mut Budget,
    ) -> Outcome {
        let mut unflushed = false;
        loop {
            if self.may_read() && budget.allows_read() {
                match self.receive(lent, budget) {
                    Ok(true) if call.is_none() => call = Some(Call::Event),
                    Ok(_) => {}
                    Err(error) => return Outcome::Closed(CloseCause::Failed(error.kind())),
                }
            }
            if let Some(call) = call.take() {
                unflushed = true;
                budget.spend_call();
                match self.call(lent, token, call) {
                    Some(Close::Now) => return Outcome::Closed(CloseCause::Finished),
                    Some(Close::Reset) => {
                        lent.kernel.reset_on_close(&mut self.socket);
                        return Outcome::Closed(CloseCause::Finished);
                    }
                    Some(Close::Flushed) => return self.finish(lent, budget),
                    // What the next read brings leaves with what this one brought.
                    None if self.may_read()
                        && budget.allows_read()
                        && lent.output.len() < self.pace.limit() =>
                    {
                        continue;
                    }
                    None => {}
                }
            }
            if unflushed {
                unflushed = false;
                match self.flush(lent, budget) {
                    Ok(Flush::Drained) if self.state.cut => {}
                    Ok(Flush::Drained) if self.state.more && budget.allows_call() => {
                        call = Some(Call::Again);
                    }
                    Ok(Flush::Drained) if self.state.more => return Outcome::Again,
                    Ok(_) => {}
                    Err(error) => return Outcome::Closed(CloseCause::of(&error)),
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

    /// Notes that a connection outward is established, when the kernel has said so. Whether it was
    /// just now.
    #[cold]
    fn establish(&mut self, lent: &mut Lent<K, S>) -> io::Result<bool> {
        if !(self.state.room || self.state.failed) {
            return Ok(false);
        }
        if self.state.failed {
            // A read tells why.
            lent.input.start(&[]);
            lent.kernel.receive(&mut self.socket, lent.input.block_mut())?;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.state.connecting = false;
        Ok(true)
    }

    #[inline]
    fn may_read(&self) -> bool {
        let State { readable, connecting, wants_input, cut, eof, .. } = self.state;
        readable && wants_input && !connecting && !cut && !eof
    }

    /// Reads once. Whether there is something new: bytes, or the end.
    #[inline]
    fn receive(&mut self, lent: &mut Lent<K, S>, budget: &mut Budget) -> io::Result<bool> {
        lent.input.make_room();
        let block = lent.input.block_mut();
        let offered = block.capacity() - block.len();
        lent.meter.enter(Stage::RECEIVE);
        let received = lent.kernel.receive(&mut self.socket, block);
        lent.meter.enter(Stage::LOOP);
        match received {
            Ok(0) => {
                self.state.readable = false;
                self.state.eof = true;
                Ok(true)
            }
            Ok(count) => {
                budget.spend_read(count);
                lent.stats.bytes_received += count as u64;
                self.arrivals.add(count);
                self.state.filled |= count == offered || count >= lent.limits.block_bytes;
                // A short read has drained the socket, but data and FIN can share one event.
                if count < offered && !self.state.read_closed && !self.state.failed {
                    self.state.readable = false;
                }
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.state.readable = false;
                self.state.read_closed = false;
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                budget.spend_read(0);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Calls the session.
    #[inline]
    fn call(
        &mut self,
        lent: &mut Lent<K, S>,
        token: Token,
        call: Call<S::Message>,
    ) -> Option<Close> {
        lent.stats.turns += 1;
        let mut turn = Turn {
            token,
            input: &mut lent.input,
            output: &mut lent.output,
            output_limit: self.pace.limit(),
            now: lent.now,
            connected: !self.state.connecting,
            eof: self.state.eof,
            mailbox: &lent.mailbox,
            agenda: &mut lent.agenda,
            path: &self.socket,
        };
        let session = &mut self.session;
        let after = match call {
            Call::Message(message) => lent.service.message(session, message, &mut turn),
            Call::ShutDown => lent.service.shut_down(session, &mut turn),
            Call::Ready(_) | Call::Event | Call::Again | Call::Deadline | Call::Asked => {
                lent.service.turn(session, &mut turn)
            }
        };
        lent.meter.enter(Stage::LOOP);
        self.obey(&after, lent);
        after.close
    }

    #[inline]
    fn obey(&mut self, after: &After, lent: &mut Lent<K, S>) {
        self.state.wants_input = after.wants_input;
        self.state.more = after.more;
        self.state.cut = after.cut;
        self.state.idle = after.idle;
        self.arrivals.expects = after.expects > 2 * lent.limits.gather_bytes as u64;
        self.deadline = after.deadline.map_or(NEVER, |deadline| lent.meeting(deadline));
    }

    /// Has the session write what waits, up to the next piece of a file.
    #[inline]
    pub(crate) fn flush_once(
        &mut self,
        lent: &mut Lent<K, S>,
        sent: &mut usize,
    ) -> io::Result<Flush> {
        let (kernel, socket) = (&mut lent.kernel, &mut self.socket);
        let mut sink = Sink::<'_, K> { kernel, socket, meter: &lent.meter, sent: 0 };
        let flush = lent.service.flush(&mut self.session, &mut lent.output, &mut sink);
        *sent += sink.sent;
        lent.meter.enter(Stage::LOOP);
        flush
    }

    /// Writes what waits, unless the socket is full.
    #[inline]
    pub(crate) fn flush(
        &mut self,
        lent: &mut Lent<K, S>,
        budget: &mut Budget,
    ) -> io::Result<Flush> {
        if self.state.blocked {
            return Ok(Flush::Blocked);
        }
        if lent.output.has_outside() {
            self.hold_back(lent);
        }
        let mut sent = 0;
        let flush = loop {
            let flush = self.flush_once(lent, &mut sent);
            if !matches!(flush, Ok(Flush::Outside)) {
                break flush;
            }
            let outside = self.flush_outside(lent, &mut sent);
            if !matches!(outside, Ok(Flush::Drained)) {
                break outside;
            }
        };
        budget.spend_sent(sent);
        lent.stats.bytes_sent += sent as u64;
        self.pace.sent(sent);
        match flush? {
            Flush::Drained => {
                if self.state.more {
                    if let Some(limit) = self.pace.drained(sent, &lent.limits) {
                        lent.kernel.limit_unsent(&mut self.socket, limit);
                    }
                } else {
                    self.pace.rest();
                    if self.state.held_back {
                        self.state.held_back = false;
                        lent.kernel.hold_back(&mut self.socket, false);
                    }
                }
                Ok(Flush::Drained)
            }
            Flush::Blocked | Flush::Outside => {
                self.state.blocked = true;
                self.state.room = false;
                lent.stats.write_blocked += 1;
                if let Some(limit) = self.pace.blocked(lent.now, &lent.limits) {
                    lent.kernel.limit_unsent(&mut self.socket, limit);
                }
                Ok(Flush::Blocked)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::MioKernel;

    struct Nothing;

    impl Service for Nothing {
        type Session = u64;
        type Message = ();

        fn open(&mut self, _: &crate::Accepted, _: std::time::Instant) -> Option<(u64, After)> {
            None
        }

        fn turn(&mut self, _: &mut u64, _: &mut Turn<'_, ()>) -> After {
            After::FINISHED
        }

        fn message(&mut self, _: &mut u64, (): (), _: &mut Turn<'_, ()>) -> After {
            After::FINISHED
        }

        fn shut_down(&mut self, _: &mut u64, _: &mut Turn<'_, ()>) -> After {
            After::FINISHED
        }
    }

    #[test]
    fn a_slot_adds_little_to_its_session() {
        let own = size_of::<Slot<MioKernel, Nothing>>() - size_of::<u64>();
        assert!(own <= 112, "{own}");
    }
}
