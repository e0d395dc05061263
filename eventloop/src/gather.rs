//! Long bodies that come fast are read in large pieces: the kernel wakes the worker when much of one has arrived,
//! not for each burst of segments.
//!
//! A session says how much is [sure to come](crate::After::expects) before its peer waits for anything. While that is
//! much, and bytes come fast, the socket is reported only when [`Limits::gather_bytes`] have arrived. A peer that pauses
//! in spite of its word is found out about within two [`Limits::gather_time`]s, and read as before from then on.

use std::time::Instant;

use crate::kernel::Kernel;
use crate::limits::Limits;
use crate::slots::Token;

/// The connections of a worker whose bytes are gathered.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    tokens: Vec<Token>,
    /// When they are looked at next: there are some.
    pub(crate) look_at: Option<Instant>,
}

impl Gathering {
    /// The bytes of one more connection are gathered.
    pub(crate) fn add(&mut self, token: Token, now: Instant, limits: &Limits) {
        self.tokens.push(token);
        self.look_at.get_or_insert(now + limits.gathering.gather_time);
    }

    /// Looks through the connections, and keeps those that `goes_on` says yes to.
    pub(crate) fn retain(
        &mut self,
        now: Instant,
        limits: &Limits,
        mut goes_on: impl FnMut(Token) -> bool,
    ) {
        self.tokens.retain(|token| goes_on(*token));
        self.look_at = (!self.tokens.is_empty()).then_some(now + limits.gathering.gather_time);
    }
}

/// For how many ticks what arrives is counted: 8 ms.
const COUNTED_TICKS: u32 = 8;

/// Bytes that have arrived for one connection, as far as its pace goes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrivals {
    /// Bytes of these [`COUNTED_TICKS`].
    bytes: u32,
    /// The session expects much more.
    pub(crate) expects: bool,
    /// The kernel gathers.
    pub(crate) gathers: bool,
    /// Something came since the worker looked last.
    moved: bool,
}

impl Arrivals {
    /// A call at tick `now` after one at tick `last`.
    #[inline]
    pub(crate) fn at(&mut self, last: u32, now: u32) {
        if last / COUNTED_TICKS != now / COUNTED_TICKS {
            self.bytes = 0;
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.moved = true;
    }

    /// Returns whether enough comes for it to be gathered.
    pub(crate) fn is_fast(self, limits: &Limits) -> bool {
        limits.gathering.gather_bytes > 0
            && self.bytes as usize >= limits.gathering.gather_after_bytes
    }

    /// The kernel gathers from now on.
    pub(crate) fn start<K: Kernel>(
        &mut self,
        kernel: &mut K,
        socket: &mut K::Socket,
        limits: &Limits,
    ) {
        kernel.gather(socket, limits.gathering.gather_bytes);
        self.gathers = true;
    }

    /// The kernel reports every byte again.
    pub(crate) fn stop<K: Kernel>(&mut self, kernel: &mut K, socket: &mut K::Socket) {
        kernel.gather(socket, 1);
        self.gathers = false;
        self.bytes = 0;
    }

    /// Returns whether something came since this was asked last.
    pub(crate) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }
}
