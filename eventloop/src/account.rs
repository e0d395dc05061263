//! Memory that foreign bytes make a worker keep: one account for each connection, and their sum.
//!
//! A connection is charged at the end of each pass with what its session says it keeps, the input that no parser could use
//! yet, and the output that waits for the socket. A connection whose account is full is not read from; when the sum is too
//! large, those that hold most are closed.

use crate::close_cause::CloseCause;
use crate::kernel::Kernel;
use crate::service::Service;
use crate::slots::Token;
use crate::socket::Slot;
use crate::worker::Worker;
use crate::worker_context::WorkerContext;

/// Once the sum is too large, connections are closed until it is this part of the bound, in percent: then they are looked
/// through again only after much has come.
const RELIEVED_PERCENT: u64 = 90;

/// Up to this part of the bound, connections that begin may be allowed to keep more, in percent: so much is soon filled by slow
/// handlers of a crowd, and is far from where connections are closed.
const ROOM_PERCENT: u64 = 10;

impl<K: Kernel, S: Service> Slot<K, S> {
    /// Returns what the loop keeps of the connection's input and output, in bytes.
    #[inline]
    pub(crate) fn loop_held_bytes(&self) -> usize {
        self.rest.len() + self.unsent.as_ref().map_or(0, |unsent| unsent.held_bytes())
    }

    /// Charges the connection with what it keeps at the end of a pass. Whether its account was full and is not any more.
    #[inline]
    pub(crate) fn charge(&mut self, cx: &mut WorkerContext<K, S>) -> bool {
        let held = cx.session_held_bytes + self.loop_held_bytes();
        held != self.held_bytes as usize && self.change_charge(held, cx)
    }

    fn change_charge(&mut self, held: usize, cx: &mut WorkerContext<K, S>) -> bool {
        self.uncharge(cx);
        self.held_bytes = u32::try_from(held).unwrap_or(u32::MAX);
        cx.stats.held_bytes += u64::from(self.held_bytes);
        let is_full = held > cx.limits.connection_held_bytes_max;
        let was_full = std::mem::replace(&mut self.state.full, is_full);
        cx.stats.work.held_full += u64::from(is_full && !was_full);
        was_full && !is_full
    }

    /// The connection keeps nothing any more.
    pub(crate) fn uncharge(&mut self, cx: &mut WorkerContext<K, S>) {
        cx.stats.held_bytes -= u64::from(std::mem::take(&mut self.held_bytes));
    }
}

impl<K: Kernel, S: Service> Worker<K, S> {
    /// Returns whether little is kept of what may be.
    #[inline]
    pub(crate) fn keeps_little(&self) -> bool {
        self.cx.stats.held_bytes <= self.held_bytes_max / 100 * ROOM_PERCENT
    }

    /// Closes connections when they keep too much together.
    #[inline]
    pub(crate) fn relieve(&mut self) {
        if self.cx.stats.held_bytes > self.held_bytes_max {
            self.close_largest();
        }
    }

    /// Closes those that hold most; of about as much, those that have been silent for longest.
    #[cold]
    fn close_largest(&mut self) {
        let now = self.short_tick();
        let mut holders: Vec<(u32, u32, Token)> = Vec::new();
        for index in 0..self.slots.places() {
            if let Some((token, slot)) = self.slots.at(index)
                && slot.held_bytes > 0
            {
                holders.push((slot.held_bytes.ilog2(), slot.silent_ticks(now), token));
            }
        }
        holders.sort_unstable_by_key(|(size, silent, _)| std::cmp::Reverse((*size, *silent)));
        let enough = self.held_bytes_max / 100 * RELIEVED_PERCENT;
        for (_, _, token) in holders {
            if self.cx.stats.held_bytes <= enough {
                break;
            }
            self.close(token, CloseCause::Memory);
        }
    }
}
