//! RFC 9113 §6.9: how much the peer may send, of one stream or of the connection.
//!
//! What the peer may still send, what it sent and was not consumed, and what was consumed and not
//! given back to it always add up to the window's size.

use crate::frame::window_update::WINDOW_BYTES_MAX;

/// One receive window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceiveWindow {
    /// Bytes that the peer may still send. Negative after the initial size was lowered.
    pub(crate) available: i32,
    /// Bytes that were consumed and not given back yet.
    pub(crate) consumed: u32,
    /// In bytes.
    pub(crate) size: u32,
    /// When it was last given back, in microseconds.
    updated_us: u32,
    /// Bytes that the peer could still send before it learnt of that; 0 when it has sent that and no more, and
    /// negative when it has sent more.
    edge: i32,
    /// The low bits of the time when the edge was reached, to tell turns apart.
    edge_turn: u16,
    /// The peer stood at the edge while everything it had sent was consumed.
    stalled: bool,
    /// It would have grown if it might have.
    pub(crate) short: bool,
    /// How much was given back then, in bytes.
    given: u32,
}

/// Facts that decide about growth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    pub(crate) now_us: u32,
    /// The round trip, in microseconds; zero when it is not known: then a window grows only after a stall.
    pub(crate) rtt_us: u32,
    /// Size that the window may grow to, in bytes.
    pub(crate) size_max: u32,
}

impl ReceiveWindow {
    #[inline]
    pub(crate) fn new(size: u32) -> Self {
        Self {
            available: size as i32,
            consumed: 0,
            size,
            updated_us: 0,
            given: 0,
            edge: -1,
            edge_turn: 0,
            stalled: false,
            short: false,
        }
    }

    /// The peer sent `bytes`; false when it may not have.
    #[inline]
    pub(crate) fn receive(&mut self, bytes: u32, now_us: u32) -> bool {
        if i64::from(bytes) > i64::from(self.available) {
            return bytes == 0;
        }
        if self.available == self.size as i32 {
            if self.updated_us != now_us {
                self.given = 0;
            }
            self.updated_us = now_us;
        }
        if self.edge >= 0 && bytes > 0 {
            self.approach_edge(bytes as i32, now_us);
        }
        self.available -= bytes as i32;
        true
    }

    /// Notices a peer that had used up all it knew of, and waited for more.
    #[inline]
    fn approach_edge(&mut self, bytes: i32, now_us: u32) {
        if self.edge > 0 {
            self.edge -= bytes;
            self.edge_turn = now_us as u16;
            return;
        }
        self.edge = -1;
        self.stalled |= now_us as u16 != self.edge_turn && self.unconsumed() < self.size / 4;
    }

    /// Returns what the peer sent and was not consumed, in bytes.
    #[inline]
    pub(crate) fn unconsumed(&self) -> u32 {
        let sent = i64::from(self.size) - i64::from(self.available);
        u32::try_from(sent - i64::from(self.consumed)).unwrap_or(0)
    }

    /// Returns whether the peer, which can't know yet what was given back in this turn, may send next to nothing.
    #[inline]
    pub(crate) fn is_used_up(&self, now_us: u32) -> bool {
        let unknown = if self.updated_us == now_us { self.given } else { 0 };
        i64::from(self.available) - i64::from(unknown) <= i64::from(self.size / 64)
    }

    /// Returns whether the peer may send next to nothing until something is consumed.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.available <= (self.size / 64) as i32
    }

    /// Returns what the peer may send before it [has used the window up](Self::is_used_up), whatever was given back in this
    /// turn.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        let reserve = i64::from(self.size / 64) + 1;
        u32::try_from(i64::from(self.available) - reserve).unwrap_or(0)
    }

    /// `bytes` were consumed. Returns what to give back to the peer, if it is worth a frame: half of
    /// the window. The window doubles when that half took less than two round trips, for then the
    /// peer is (or will soon be) held back by the window and not by the path or by the consumer; and
    /// when the peer was seen to stand still at its end although everything was consumed.
    #[inline]
    pub(crate) fn consume(&mut self, bytes: u32, tuning: Tuning) -> Option<u32> {
        self.consumed += bytes;
        if self.consumed == 0 || self.consumed < self.size / 2 {
            return None;
        }
        let took_us = tuning.now_us.wrapping_sub(self.updated_us);
        if took_us != 0 || self.edge < 0 {
            // Of updates within one turn the peer learns at the same time.
            // One that has used up everything may wait for the consumer.
            self.edge = if self.available > 0 { self.available } else { -1 };
        }
        let given_before = if took_us == 0 { self.given } else { 0 };
        self.updated_us = tuning.now_us;
        if took_us < tuning.rtt_us.saturating_mul(2) || self.stalled {
            let wanted = self.size.saturating_mul(2);
            self.short |= wanted > tuning.size_max;
            self.grow(wanted.min(tuning.size_max));
        }
        self.stalled = false;
        let increment = self.give_back();
        self.given = given_before.saturating_add(increment);
        Some(increment)
    }

    /// Makes the window larger; what was gained is given back with the next update.
    pub(crate) fn grow(&mut self, size: u32) {
        let size = size.min(WINDOW_BYTES_MAX);
        if size > self.size {
            self.consumed += size - self.size;
            self.size = size;
        }
    }

    /// Returns whether the peer may send no more than half of the window.
    #[inline]
    pub(crate) fn is_half_used(&self) -> bool {
        self.available <= (self.size / 2) as i32
    }

    /// The peer applies another initial size to a window that it has already.
    pub(crate) fn shift(&mut self, difference: i32) {
        self.available = self.available.saturating_add(difference);
        self.size = self.size.saturating_add_signed(difference);
    }

    /// Takes everything that can be given back.
    pub(crate) fn give_back(&mut self) -> u32 {
        let room = (WINDOW_BYTES_MAX as i64 - i64::from(self.available)).min(i64::from(u32::MAX));
        let increment = self.consumed.min(room as u32);
        self.consumed -= increment;
        self.available += increment as i32;
        increment
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tuning(now_us: u32, rtt_us: u32) -> Tuning {
        Tuning { now_us, rtt_us, size_max: 1 << 20 }
    }

    #[test]
    fn half_a_window_is_given_back_at_once() {
        let mut window = ReceiveWindow::new(1000);
        assert!(window.receive(1000, 0));
        assert!(!window.receive(1, 0));
        assert_eq!(window.consume(499, tuning(0, 0)), None);
        assert_eq!(window.consume(1, tuning(0, 0)), Some(500));
        assert!(window.receive(500, 0));
        assert!(!window.receive(1, 0));
    }

    #[test]
    fn a_window_that_holds_the_peer_back_grows() {
        let mut window = ReceiveWindow::new(1000);
        assert!(window.receive(1000, 5));
        assert_eq!(window.consume(500, tuning(5 + 99, 50)), Some(1500));
        assert_eq!(window.size, 2000);
        assert!(window.receive(1500, 200));
        assert_eq!(window.consume(1000, tuning(5 + 99 + 100, 50)), Some(1000));
        assert_eq!(window.size, 2000);
    }

    #[test]
    fn a_window_at_whose_end_the_peer_waits_grows() {
        let mut window = ReceiveWindow::new(1000);
        assert!(window.receive(600, 1000));
        assert_eq!(window.consume(600, tuning(1000, 0)), Some(600));
        // The peer knows of 400 bytes, sends them, and goes on a turn later.
        assert!(window.receive(400, 2000));
        assert_eq!(window.consume(400, tuning(2000, 0)), None);
        assert!(window.receive(200, 3000));
        assert_eq!(window.consume(200, tuning(3000, 0)), Some(1600));
        assert_eq!(window.size, 2000);
    }

    #[test]
    fn a_window_that_the_peer_never_uses_up_or_the_reader_leaves_full_stays() {
        let mut window = ReceiveWindow::new(1000);
        for turn in 1..50 {
            // What comes crosses the edge: the update was there in time.
            assert!(window.receive(600, turn * 1000));
            assert_eq!(window.consume(600, tuning(turn * 1000, 0)), Some(600));
        }
        let mut window = ReceiveWindow::new(1000);
        assert!(window.receive(1000, 1000));
        for turn in 2..50 {
            assert_eq!(window.consume(500, tuning(turn * 1000, 0)), Some(500));
            assert!(window.receive(500, turn * 1000 + 500));
        }
        assert_eq!(window.size, 1000);
    }

    #[test]
    fn what_is_given_back_in_a_turn_is_not_known_in_it() {
        let mut window = ReceiveWindow::new(1000);
        assert!(window.receive(500, 5) && !window.is_used_up(5));
        assert_eq!(window.consume(500, tuning(5, 0)), Some(500));
        assert!(window.receive(500, 5) && window.is_used_up(5));
        assert_eq!(window.consume(500, tuning(5, 0)), Some(500));
        assert!(window.is_used_up(5) && !window.is_used_up(6));
    }

    #[test]
    fn a_window_grows_to_its_limit_only() {
        let mut window = ReceiveWindow::new(1 << 20);
        assert!(window.receive(1 << 20, 0));
        assert_eq!(window.consume(1 << 20, tuning(0, 50)), Some(1 << 20));
    }

    #[test]
    fn a_lowered_window_may_be_negative() {
        let mut window = ReceiveWindow::new(1000);
        assert!(window.receive(900, 0));
        window.shift(-500);
        assert_eq!(window.available, -400);
        assert!(window.receive(0, 0));
        assert!(!window.receive(1, 0));
    }

    proptest! {
        #[test]
        fn nothing_is_lost(steps in prop::collection::vec((0u32..3000, 0u32..3000, 0u32..100), 1..100)) {
            let mut window = ReceiveWindow::new(2000);
            let mut unconsumed = 0;
            for (received, consumed, rtt_us) in steps {
                if window.receive(received, 0) {
                    unconsumed += received;
                }
                let consumed = consumed.min(unconsumed);
                unconsumed -= consumed;
                window.consume(consumed, tuning(50, rtt_us));
                prop_assert_eq!(
                    i64::from(window.available) + i64::from(unconsumed) + i64::from(window.consumed),
                    i64::from(window.size)
                );
            }
        }
    }
}
