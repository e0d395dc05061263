//! Long bodies that come fast are read in large pieces: the kernel wakes the worker when much of one has arrived,
//! not for each burst of segments.
//!
//! A session says how much is [sure to come](crate::After::expects) before its peer waits for anything. While that is
//! much, and bytes come fast, the socket is reported only when [`Limits::gather_bytes`] have arrived. A peer that pauses
//! in spite of its word is found out about within two [`Limits::gather_time`]s, and read as before from then on.

use std::time::Instant;

use crate::kernel::Kernel;
use crate::lent::Lent;
use crate::limits::Limits;
use crate::service::Service;
use crate::slots::Token;
use crate::socket::{Phase, Slot};
use crate::worker::Worker;

/// The connections of a worker whose bytes are gathered.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    tokens: Vec<Token>,
    /// When they are looked at next: there are some.
    pub(crate) look_at: Option<Instant>,
}

/// What has arrived for one connection, as far as its pace goes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrivals {
    /// Bytes of this tick.
    bytes: u32,
    /// The session expects much more.
    pub(crate) expects: bool,
    /// The kernel gathers.
    pub(crate) gathers: bool,
    /// Something came since the worker looked last.
    moved: bool,
}

impl Arrivals {
    /// So many ticks have passed since the last call.
    #[inline]
    pub(crate) fn at(&mut self, ticks: u32) {
        if ticks != 0 {
            self.bytes = 0;
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.moved = true;
    }

    fn is_fast(self, limits: &Limits) -> bool {
        limits.gather_bytes > 0 && self.bytes as usize >= limits.gather_after_bytes
    }
}

impl<K: Kernel, S: Service> Slot<K, S> {
    /// A pass ends in which the session expects much and its bytes are not gathered, or the other way round.
    pub(crate) fn change_gathering(&mut self, lent: &mut Lent<K, S>, token: Token) {
        if self.arrivals.gathers {
            self.stop_gathering(lent);
        } else if self.arrivals.is_fast(&lent.limits) && self.phase == Phase::Open {
            lent.kernel.gather(&mut self.socket, lent.limits.gather_bytes);
            self.arrivals.gathers = true;
            lent.stats.gathered += 1;
            lent.gathering.tokens.push(token);
            let look_at = lent.now + lent.limits.gather_time;
            lent.gathering.look_at.get_or_insert(look_at);
        }
    }

    fn stop_gathering(&mut self, lent: &mut Lent<K, S>) {
        lent.kernel.gather(&mut self.socket, 1);
        self.arrivals.gathers = false;
        self.arrivals.bytes = 0;
    }
}

impl<K: Kernel, S: Service> Worker<K, S> {
    /// Ends the gathering for connections of which nothing has come for a while: what lies there is reported now.
    #[cold]
    pub(crate) fn look_at_gathering(&mut self) {
        let mut tokens = std::mem::take(&mut self.lent.gathering.tokens);
        tokens.retain(|token| {
            let Some(slot) = self.slots.get_mut(*token).filter(|slot| slot.arrivals.gathers) else {
                return false;
            };
            let moved = std::mem::take(&mut slot.arrivals.moved);
            if !moved {
                slot.stop_gathering(&mut self.lent);
            }
            moved
        });
        let next = self.lent.now + self.lent.limits.gather_time;
        self.lent.gathering.look_at = (!tokens.is_empty()).then_some(next);
        self.lent.gathering.tokens = tokens;
    }
}
