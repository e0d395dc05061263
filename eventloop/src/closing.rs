//! The end of a connection: its last bytes leave, and what still arrives is discarded.

use std::io;

use bolide_buffers::Flush;

use crate::budget::Budget;
use crate::close_cause::CloseCause;
use crate::kernel::Kernel;
use crate::lent::Lent;
use crate::service::Service;
use crate::socket::{Call, Outcome, Phase, Slot};

impl<K: Kernel, S: Service> Slot<K, S> {
    /// The session has finished: what it queued leaves, then the sending side ends.
    #[cold]
    pub(crate) fn finish(&mut self, lent: &mut Lent<K, S>, budget: &mut Budget) -> Outcome {
        self.state.idle = false;
        // Once in a connection's life: a look whether the turn is measured is nothing here.
        let before = lent.stats.bytes_sent;
        match self.flush(lent, budget) {
            Err(error) => Outcome::Closed(CloseCause::of(&error)),
            Ok(Flush::Blocked | Flush::Outside) => {
                let sent = u32::try_from(lent.stats.bytes_sent - before).unwrap_or(u32::MAX);
                self.stalls(sent, lent);
                Outcome::Wait
            }
            Ok(Flush::Drained) => {
                if self.state.eof || lent.kernel.end_writing(&mut self.socket).is_err() {
                    return Outcome::Closed(CloseCause::Finished);
                }
                let left = u32::try_from(lent.limits.linger_bytes).unwrap_or(u32::MAX);
                self.phase = Phase::Lingering { left };
                self.deadline = lent.ticks.meeting(lent.now + lent.limits.linger);
                self.discard(lent)
            }
        }
    }

    /// Some of the last bytes still wait: only who takes enough of them gets more time.
    fn stalls(&mut self, sent: u32, lent: &Lent<K, S>) {
        let taken = match self.phase {
            Phase::Flushing { taken } => Some(taken.saturating_add(sent)),
            _ => None,
        };
        let taken = taken.filter(|taken| (*taken as usize) < lent.limits.close_stall_bytes);
        if taken.is_none() {
            self.deadline = lent.ticks.meeting(lent.now + lent.limits.close_stall);
        }
        self.phase = Phase::Flushing { taken: taken.unwrap_or(0) };
    }

    /// A pass after the session has finished.
    #[cold]
    pub(crate) fn closing_pass(
        &mut self,
        lent: &mut Lent<K, S>,
        call: &Call<S::Message>,
    ) -> Outcome {
        let expired = matches!(call, Call::Deadline);
        match self.phase {
            Phase::Lingering { .. } if expired => Outcome::Closed(CloseCause::Finished),
            Phase::Lingering { .. } => self.discard(lent),
            _ if expired => Outcome::Closed(CloseCause::Stalled),
            _ if self.state.failed => {
                Outcome::Closed(CloseCause::Failed(io::ErrorKind::ConnectionReset))
            }
            _ if self.state.blocked && !self.state.room => Outcome::Wait,
            _ => {
                self.state.blocked = false;
                let mut budget = Budget::new(&lent.limits);
                if let Some(unsent) = self.unsent.take() {
                    lent.take_unsent(unsent);
                }
                let outcome = self.finish(lent, &mut budget);
                self.unsent = lent.keep_unsent(false);
                outcome
            }
        }
    }

    /// Reads and forgets, so that what arrives after the end causes no reset.
    fn discard(&mut self, lent: &mut Lent<K, S>) -> Outcome {
        let mut budget = Budget::new(&lent.limits);
        while self.state.readable {
            if !budget.allows_read() {
                return Outcome::Again;
            }
            lent.input.start(&[]);
            match lent.kernel.receive(&mut self.socket, lent.input.block_mut()) {
                Ok(0) => return Outcome::Closed(CloseCause::Finished),
                Ok(count) => {
                    budget.spend_read(count);
                    lent.input.start(&[]);
                    let Phase::Lingering { left } = &mut self.phase else { break };
                    let discarded = u32::try_from(count).ok();
                    match discarded.and_then(|count| left.checked_sub(count)) {
                        Some(rest) => *left = rest,
                        None => return Outcome::Closed(CloseCause::Finished),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.state.readable = false;
                }
                Err(_) => return Outcome::Closed(CloseCause::Finished),
            }
        }
        Outcome::Wait
    }
}
