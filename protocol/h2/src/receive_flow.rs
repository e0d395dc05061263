//! RFC 9113 §6.9, §5.2: the connection's receive window, and how windows are tuned.

use std::time::Duration;

use crate::limits::{FIRST_WINDOW_BYTES, Limits};
use crate::receive_window::{ReceiveWindow, Tuning};

/// So many streams must have outgrown the initial window before it is raised for those to come.
const STREAMS_GROWN_COUNT: u32 = 4;

/// The connection's window and what tunes it and those of the streams.
#[derive(Debug)]
pub(crate) struct ReceiveFlow {
    pub(crate) window: ReceiveWindow,
    /// In bytes.
    window_max: u32,
    /// In microseconds; zero when it is not known.
    rtt_us: u32,
    /// Streams whose windows outgrew the initial one since it was raised last.
    grown: u32,
}

impl ReceiveFlow {
    pub(crate) fn new(limits: &Limits) -> Self {
        let own = limits.windows.connection_window_bytes.max(crate::settings::INITIAL_WINDOW_BYTES);
        let (size, window_max) = if limits.connection_window_is_granted {
            (own.min(FIRST_WINDOW_BYTES), own)
        } else {
            (own, limits.windows.connection_window_bytes_max.max(own))
        };
        Self { window: ReceiveWindow::new(size), window_max, rtt_us: 0, grown: 0 }
    }

    /// Allows the connection's window to grow to `bytes`.
    pub(crate) fn set_window_max(&mut self, bytes: u32) {
        self.window_max = bytes.max(self.window.size);
        self.window.short = false;
    }

    /// Returns whether the connection's window would have grown, had it been allowed to.
    pub(crate) fn is_short(&self) -> bool {
        self.window.short
    }

    pub(crate) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt_us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
    }

    /// Takes a first estimate of the round trip, unless a better one is known.
    pub(crate) fn estimate_rtt(&mut self, microseconds: u32) {
        if self.rtt_us == 0 {
            self.rtt_us = microseconds;
        }
    }

    /// How a stream's window is tuned.
    #[inline]
    pub(crate) fn stream_tuning(&self, now_us: u32, limits: &Limits) -> Tuning {
        Tuning { now_us, rtt_us: self.rtt_us, size_max: limits.windows.stream_window_bytes_max }
    }

    /// `bytes` were consumed or discarded. Returns the increment of a WINDOW_UPDATE that is due.
    #[inline]
    pub(crate) fn consume(&mut self, bytes: u32, now_us: u32) -> Option<u32> {
        let tuning = Tuning { now_us, rtt_us: self.rtt_us, size_max: self.window_max };
        self.window.consume(bytes, tuning)
    }

    /// Bodies that handlers don't take fill the window: it doubles, but for at most `bytes`, so that other streams go on. Returns
    /// the increment of a WINDOW_UPDATE.
    #[cold]
    pub(crate) fn make_room(&mut self, bytes: u32) -> Option<u32> {
        let size = self.window.size;
        if size >= bytes {
            return None;
        }
        self.window.grow(size.saturating_mul(2).min(bytes));
        Some(self.window.give_back())
    }

    /// A stream's window grew to `size`: the connection's must not be the smaller one. Returns the
    /// initial window that streams to come should have, if that should change.
    pub(crate) fn stream_grew(&mut self, size: u32, initial: u32) -> Option<u32> {
        let wanted = size.saturating_add(size / 2);
        self.window.short |= wanted > self.window_max;
        self.window.grow(wanted.min(self.window_max));
        if size <= initial {
            return None;
        }
        self.grown += 1;
        if self.grown < STREAMS_GROWN_COUNT {
            return None;
        }
        self.grown = 0;
        Some(initial.saturating_mul(2).min(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_stream_gets_a_larger_connection() {
        let mut flow = ReceiveFlow::new(&Limits::default());
        flow.set_window_max(1 << 24);
        assert_eq!(flow.stream_grew(1 << 20, 65_536), None);
        assert_eq!(flow.window.size, 3 << 19);
        assert_eq!(flow.consume(0, 0), None);
        assert_eq!(flow.stream_grew(1 << 30, 65_536), None);
        assert_eq!(flow.window.size, 1 << 24);
    }

    #[test]
    fn a_window_that_waiting_bodies_fill_doubles_up_to_its_bound() {
        let limits = Limits { connection_window_is_granted: true, ..Limits::default() };
        let mut flow = ReceiveFlow::new(&limits);
        let increments: Vec<u32> = std::iter::from_fn(|| {
            assert!(flow.window.receive(flow.window.available as u32, 0));
            flow.make_room(1 << 20)
        })
        .collect();
        assert_eq!(increments, [128 << 10, 256 << 10, 512 << 10]);
        assert_eq!(flow.window.unconsumed(), 1 << 20);
    }

    #[test]
    fn streams_to_come_gain_when_several_grew() {
        let mut flow = ReceiveFlow::new(&Limits::default());
        for _ in 1..STREAMS_GROWN_COUNT {
            assert_eq!(flow.stream_grew(1 << 20, 65_536), None);
        }
        assert_eq!(flow.stream_grew(1 << 20, 65_536), Some(131_072));
        assert_eq!(flow.stream_grew(65_536, 65_536), None);
    }
}
