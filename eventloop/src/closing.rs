//! The end of a connection: its last bytes leave, and what still arrives is discarded.

use std::io;

use bolide_buffers::Flush;

use crate::budget::Budget;
use crate::close_cause::CloseCause;
use crate::kernel::Kernel;
use crate::readiness::{Reading, Writing};
use crate::service::Service;
use crate::socket::{Call, Outcome, Phase, Slot};
use crate::worker_context::WorkerContext;

impl<K: Kernel, S: Service> Slot<K, S> {
    /// Writes what waits, unless the socket is full. Returns why the connection ends, if it does.
    #[inline]
    pub(crate) fn flush_or_end(
        &mut self,
        cx: &mut WorkerContext<K, S>,
        budget: &mut Budget,
    ) -> Result<Flush, CloseCause> {
        match self.flush(cx, budget) {
            Ok(Flush::Drained) if self.phase == (Phase::Open { ends_sending: true }) => {
                self.end_sending(cx)
            }
            Ok(flush) => Ok(flush),
            Err(error) => self.lose(&error),
        }
    }

    /// All that the session had to send has left: the peer is told so, and may send on.
    #[cold]
    fn end_sending(&mut self, cx: &mut WorkerContext<K, S>) -> Result<Flush, CloseCause> {
        self.phase = Phase::Open { ends_sending: false };
        let Some(socket) = &mut self.socket else { return Ok(Flush::Drained) };
        let ended = cx.kernel.end_writing(socket);
        ended.map_or_else(|error| self.lose(&error), |()| Ok(Flush::Drained))
    }

    /// A write has failed: that is the end, unless something may be read before. A server may have responded to a request that it
    /// did not want to read (RFC 9112 §9.5).
    #[cold]
    fn lose(&mut self, error: &io::Error) -> Result<Flush, CloseCause> {
        let cause = CloseCause::of(error);
        if cause == CloseCause::Broken {
            return Err(cause);
        }
        let is_first = std::mem::replace(&mut self.state.writing, Writing::Lost) != Writing::Lost;
        if is_first && self.state.reading == Reading::Drained {
            self.state.reading = Reading::ToEnd;
        }
        if self.may_read() { Ok(Flush::Blocked) } else { Err(cause) }
    }

    /// The session has finished: what it queued leaves, then the connection is closed, or its sending side ends if it lingers.
    #[cold]
    pub(crate) fn finish(
        &mut self,
        lingers: bool,
        cx: &mut WorkerContext<K, S>,
        budget: &mut Budget,
    ) -> Outcome {
        self.state.idle = false;
        // Once in a connection's life: a look whether the turn is measured is nothing here.
        let before = cx.stats.bytes_sent;
        match self.flush(cx, budget) {
            Err(error) => Outcome::Closed(CloseCause::of(&error)),
            Ok(Flush::Blocked | Flush::Outside) => {
                let sent = u32::try_from(cx.stats.bytes_sent - before).unwrap_or(u32::MAX);
                self.stalls(sent, lingers, cx);
                Outcome::Wait
            }
            Ok(Flush::Drained) if !lingers => Outcome::Closed(CloseCause::Finished),
            Ok(Flush::Drained) => {
                let Some(socket) = &mut self.socket else {
                    return Outcome::Closed(CloseCause::Finished);
                };
                if self.state.reading == Reading::Ended || cx.kernel.end_writing(socket).is_err() {
                    return Outcome::Closed(CloseCause::Finished);
                }
                let left = u32::try_from(cx.limits.closing.linger_bytes).unwrap_or(u32::MAX);
                self.phase = Phase::Lingering { left };
                self.deadline = cx.ticks.meeting(cx.now + cx.limits.closing.linger);
                self.discard(cx)
            }
        }
    }

    /// Some of the last bytes still wait: only who takes enough of them gets more time.
    fn stalls(&mut self, sent: u32, then_lingers: bool, cx: &WorkerContext<K, S>) {
        let taken = match self.phase {
            Phase::Flushing { taken, .. } => Some(taken.saturating_add(sent)),
            _ => None,
        };
        let taken = taken.filter(|taken| (*taken as usize) < cx.limits.closing.close_stall_bytes);
        if taken.is_none() {
            self.deadline = cx.ticks.meeting(cx.now + cx.limits.closing.close_stall);
        }
        self.phase = Phase::Flushing { taken: taken.unwrap_or(0), then_lingers };
    }

    /// A pass after the session has finished.
    #[cold]
    pub(crate) fn closing_pass(&mut self, cx: &mut WorkerContext<K, S>, call: &Call) -> Outcome {
        let expired = matches!(call, Call::Deadline);
        match self.phase {
            Phase::Lingering { .. } if expired => Outcome::Closed(CloseCause::Finished),
            Phase::Lingering { .. } => self.discard(cx),
            _ if expired => Outcome::Closed(CloseCause::Stalled),
            _ if self.state.failed => {
                Outcome::Closed(CloseCause::Failed(io::ErrorKind::ConnectionReset))
            }
            _ if matches!(self.state.writing, Writing::Blocked | Writing::Connecting) => {
                Outcome::Wait
            }
            _ => {
                self.state.writing = Writing::Open;
                let mut budget = Budget::new(&cx.limits);
                if let Some(unsent) = self.unsent.take() {
                    cx.take_unsent(unsent);
                }
                let lingers = matches!(self.phase, Phase::Flushing { then_lingers: true, .. });
                let outcome = self.finish(lingers, cx, &mut budget);
                self.unsent = cx.keep_unsent(false);
                outcome
            }
        }
    }

    /// Reads and forgets, so that what arrives after the end causes no reset.
    fn discard(&mut self, cx: &mut WorkerContext<K, S>) -> Outcome {
        let Some(socket) = &mut self.socket else {
            return Outcome::Closed(CloseCause::Finished);
        };
        let mut budget = Budget::new(&cx.limits);
        while self.state.reading.is_ready() {
            if !budget.allows_read() {
                return Outcome::Again;
            }
            cx.inputs.current.start(&[]);
            match cx.kernel.receive(socket, cx.inputs.current.block_mut(), usize::MAX) {
                Ok(0) => return Outcome::Closed(CloseCause::Finished),
                Ok(count) => {
                    budget.spend_read(count);
                    cx.inputs.current.start(&[]);
                    let Phase::Lingering { left } = &mut self.phase else { break };
                    let discarded = u32::try_from(count).ok();
                    let Some(rest) = discarded.and_then(|count| left.checked_sub(count)) else {
                        return Outcome::Closed(CloseCause::Finished);
                    };
                    let step = u32::try_from(cx.limits.closing.close_stall_bytes)
                        .unwrap_or(u32::MAX)
                        .max(1);
                    // A multiple of it lies between: enough has come.
                    if rest / step != *left / step {
                        self.deadline = cx.ticks.meeting(cx.now + cx.limits.closing.linger);
                    }
                    *left = rest;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.state.reading = Reading::Drained;
                }
                Err(_) => return Outcome::Closed(CloseCause::Finished),
            }
        }
        Outcome::Wait
    }
}
