//! Limits of receive windows: the path's round-trip time, and what the worker has left for them.

use std::sync::Arc;
use std::time::Duration;

use bolide_connection::Connection;

use crate::Limits;

/// The kernel is asked for the round-trip time after this many received bytes, before the first half of a window is
/// consumed, and, once the windows are large enough, again after twice as many each time: small requests never pay for it.
const FIRST_AFTER_BYTES: u32 = 64 * 1024;

/// The longest that is received without asking, in bytes.
const LAST_AFTER_BYTES: u32 = 16 * 1024 * 1024;

/// A connection's share of the worker's memory for receive windows is raised by this part of what is left.
const PART_OF_REST: u64 = 4;

/// One connection's tuning.
#[derive(Debug)]
pub(crate) struct Tuning {
    /// Bytes to be received until the round-trip time is asked for.
    left: u32,
    /// How many there were after the last time.
    interval: u32,
    /// Size that its window may have grown to, beyond what every connection has, in bytes.
    granted: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { left: FIRST_AFTER_BYTES, interval: FIRST_AFTER_BYTES, granted: 0 }
    }
}

/// Sizes that one worker's connections have been granted together.
#[derive(Debug)]
pub(crate) struct WindowMemory {
    granted: u64,
    granted_max: u64,
    /// Window of every connection, in bytes.
    window_bytes: u32,
    /// Largest window of one connection, in bytes.
    window_bytes_max: u32,
}

impl WindowMemory {
    pub(crate) fn new(granted_max: u64, window_bytes: u32, window_bytes_max: u32) -> Self {
        Self { granted: 0, granted_max, window_bytes, window_bytes_max }
    }

    /// Takes over other limits. What was granted stays.
    pub(crate) fn change(&mut self, to: &Self) {
        *self = Self { granted: self.granted, ..*to };
    }

    /// Returns what may still be granted.
    fn left(&self) -> u64 {
        self.granted_max.saturating_sub(self.granted)
    }

    /// Returns whether a connection that was granted so much may have more, and there is any.
    fn has_more(&self, granted: u32) -> bool {
        let is_less = self.window_bytes.saturating_add(granted) < self.window_bytes_max;
        is_less && self.left() >= PART_OF_REST
    }

    /// Doubles what a connection may hold, as far as a fair part of the rest allows. Returns the window that
    /// it may grow to.
    fn grant(&mut self, granted: &mut u32) -> u32 {
        let window = self.window_bytes.saturating_add(*granted);
        let wanted = window.min(self.window_bytes_max.saturating_sub(window));
        let rest = self.left() / PART_OF_REST;
        let more = wanted.min(u32::try_from(rest).unwrap_or(u32::MAX));
        *granted += more;
        self.granted += u64::from(more);
        window + more
    }
}

impl Tuning {
    /// Counts received bytes; whether it is time to ask for the round-trip time.
    #[inline]
    pub(crate) fn is_due(&mut self, received_bytes: usize) -> bool {
        let received = u32::try_from(received_bytes).unwrap_or(u32::MAX);
        self.left = self.left.saturating_sub(received);
        self.left == 0
    }

    /// Tunes the windows of a connection that has received much.
    #[cold]
    pub(crate) fn tune(
        &mut self,
        connection: &mut Connection,
        memory: &mut WindowMemory,
        rtt: Option<Duration>,
    ) {
        if let Some(rtt) = rtt {
            connection.set_rtt(rtt);
        }
        if connection.wants_receive_budget() && memory.has_more(self.granted) {
            connection.set_receive_budget(memory.grant(&mut self.granted));
        } else {
            self.interval = self.interval.saturating_mul(2).min(LAST_AFTER_BYTES);
        }
        self.left = self.interval;
    }

    /// The connection is over.
    pub(crate) fn give_back(&self, memory: &mut WindowMemory) {
        memory.granted -= u64::from(self.granted);
    }
}

/// The same limits for connections whose receive windows share the worker's memory, and that memory.
pub(crate) fn with_window_memory(mut limits: Limits) -> (Limits, WindowMemory) {
    let h2 = Arc::make_mut(&mut limits.connection.h2);
    let (window, window_max) =
        (h2.windows.connection_window_bytes, h2.windows.connection_window_bytes_max);
    let window_memory = WindowMemory::new(limits.windows_bytes, window, window_max);
    h2.connection_window_is_granted = true;
    // No handler takes datagrams (RFC 9297).
    Arc::make_mut(&mut limits.connection.h3).datagrams_count = 0;
    (limits, window_memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;

    /// Returns what connections get that ask one after the other, each until it gets no more, in MiB.
    fn granted(memory: &mut WindowMemory, connections: usize) -> Vec<u32> {
        let all = |_| {
            let mut granted = 0;
            (0..20).for_each(|_| _ = memory.grant(&mut granted));
            granted / MIB
        };
        (0..connections).map(all).collect()
    }

    #[test]
    fn one_connection_gets_what_it_may_have() {
        let mut memory = WindowMemory::new(256 << 20, MIB, 32 * MIB);
        let mut own = 0;
        let steps: Vec<u32> = (0..7).map(|_| memory.grant(&mut own) / MIB).collect();
        assert_eq!(steps, [2, 4, 8, 16, 32, 32, 32]);
    }

    #[test]
    fn stalled_uploads_hold_no_more_than_the_worker_has() {
        let mut memory = WindowMemory::new(256 << 20, MIB, 32 * MIB);
        let all = granted(&mut memory, 1000);
        assert_eq!(all[..8], [31; 8], "the first are served well");
        assert!(all.iter().sum::<u32>() <= 256);
        assert!(memory.granted <= memory.granted_max);
    }

    #[test]
    fn limits_that_shrink_grant_nothing_more_until_enough_came_back() {
        let mut memory = WindowMemory::new(64 << 20, MIB, 32 * MIB);
        let mut tuning = Tuning::default();
        (0..6).for_each(|_| _ = memory.grant(&mut tuning.granted));
        memory.change(&WindowMemory::new(8 << 20, MIB, 32 * MIB));
        assert!(!memory.has_more(0), "more is out than there may be");
        tuning.give_back(&mut memory);
        assert!(memory.has_more(0));
        assert_eq!(memory.granted_max, 8 << 20);
    }

    #[test]
    fn what_was_granted_comes_back() {
        let mut memory = WindowMemory::new(8 << 20, MIB, 32 * MIB);
        let mut tuning = Tuning::default();
        memory.grant(&mut tuning.granted);
        assert!(memory.granted > 0);
        tuning.give_back(&mut memory);
        assert_eq!(memory.granted, 0);
    }

    #[test]
    fn the_path_is_asked_for_less_and_less() {
        let mut tuning = Tuning::default();
        let mut memory = WindowMemory::new(0, MIB, MIB);
        let mut connection =
            Connection::new(bolide_semantics::Role::Server, None, std::time::Instant::now());
        let mut asked = 0;
        for _ in 0..64 * 16 {
            if tuning.is_due(64 * 1024) {
                asked += 1;
                tuning.tune(&mut connection, &mut memory, None);
            }
        }
        assert_eq!(asked, 11, "after 1, 3, 7, 15 … 255 times 64 KiB, and then each 16 MiB");
    }
}
