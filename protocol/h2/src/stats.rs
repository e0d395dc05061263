//! Counters of a connection: above all, how long it wanted to send, and what held it back.

use crate::resets::{Resets, place};
use bolide_semantics::Clock;

/// For how long something waited to be sent, by what held it back.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Stalls {
    /// The peer's window of the stream. Unit: milliseconds, summed over streams.
    pub stream_window_ms: u64,
    /// The peer's window of the connection. Unit: milliseconds.
    pub connection_window_ms: u64,
    /// Our own output, which the socket did not take fast enough. Unit: milliseconds.
    pub socket_ms: u64,
}

/// The counters of one connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Streams that were opened, by either end.
    pub streams: u64,
    /// Streams that were refused at the limit.
    pub streams_refused: u32,
    /// RST_STREAM frames received for open streams.
    pub resets_received: u32,
    /// RST_STREAM frames sent.
    pub resets_sent: u32,
    /// Times the peer used up a receive window, of a stream or of the connection: it may have waited
    /// for us.
    pub receive_windows_used_up: u32,
    /// How long there was something to send that could not be sent.
    pub stalls: Stalls,
    /// How long our windows held the peer back.
    pub own: OwnStalls,
}

/// For how long nothing came after the peer had used up a receive window: it may have waited for us.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct OwnStalls {
    /// Our window of a stream. Unit: microseconds.
    pub stream_window_us: u64,
    /// Our window of the connection. Unit: microseconds.
    pub connection_window_us: u64,
}

/// Counters that only a connection has that was held back, by either end, or that something was reset on.
#[derive(Debug, Default)]
struct Held {
    streams_refused: u32,
    resets_received: u32,
    resets_sent: u32,
    receive_windows_used_up: u32,
    stalls: Stalls,
    /// By slot; only streams that had to wait have an entry.
    waiting: Vec<Waiting>,
    own: OwnStalls,
    /// Since when, in microseconds, nothing has come although a window was used up, and whether that was
    /// the connection's.
    since: Option<(u32, bool)>,
}

/// Limit that holds back the streams that are ready to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocker {
    ConnectionWindow,
    Socket,
}

/// Since when one stream has waited, and for what.
#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    id: u32,
    /// Since when it waits for its window.
    window_since_ms: Option<u32>,
    /// Since when it waits for its turn: the connection's totals at that time.
    listed: Option<Stalls>,
    stalls: Stalls,
}

/// The counters, and what is needed to count.
#[derive(Debug, Default)]
pub(crate) struct StatsBook {
    streams: u64,
    blocked: Option<(Blocker, u32)>,
    /// In a box, for most connections never need it.
    held: Option<Box<Held>>,
    /// Resets since they were last asked for.
    resets: Option<Box<Resets>>,
}

impl StatsBook {
    /// A stream was opened.
    #[inline]
    pub(crate) fn opened(&mut self) {
        self.streams += 1;
    }

    fn held(&mut self) -> &mut Held {
        self.held.get_or_insert_default()
    }

    /// A stream was refused at the limit.
    pub(crate) fn refused(&mut self) {
        self.held().streams_refused += 1;
    }

    /// The peer has used up a window of ours.
    pub(crate) fn window_used_up(&mut self) {
        self.held().receive_windows_used_up += 1;
    }

    /// The peer has reset an open stream.
    pub(crate) fn reset_received(&mut self, code: u32) {
        self.held().resets_received += 1;
        self.resets.get_or_insert_default().received[place(code)] += 1;
    }

    /// RST_STREAM is sent.
    pub(crate) fn reset_sent(&mut self, code: u32) {
        self.held().resets_sent += 1;
        self.resets.get_or_insert_default().sent[place(code)] += 1;
    }

    /// Returns what was reset since this was asked last.
    pub(crate) fn take_resets(&mut self) -> Option<Box<Resets>> {
        self.resets.take()
    }

    /// A turn ended: what holds back the streams in the scheduler.
    #[inline]
    pub(crate) fn blocked(&mut self, blocker: Option<Blocker>, clock: &Clock) {
        if self.blocked.map(|(blocker, _)| blocker) != blocker {
            self.settle(clock);
            self.blocked = blocker.map(|blocker| (blocker, clock.ms));
        }
    }

    /// DATA came; the peer has used up a window of ours, or not: of the stream, of the connection.
    #[inline]
    pub(crate) fn received(&mut self, stream: bool, connection: bool, clock: &Clock) {
        let is_silent = self.held.as_ref().is_some_and(|held| held.since.is_some());
        if stream || connection || is_silent {
            self.used_up_or_not(stream, connection, clock);
        }
    }

    fn used_up_or_not(&mut self, stream: bool, connection: bool, clock: &Clock) {
        let held = self.held();
        if let Some((since_us, was_connection)) = held.since.take() {
            let passed = u64::from(clock.us.wrapping_sub(since_us));
            if was_connection {
                held.own.connection_window_us += passed;
            } else {
                held.own.stream_window_us += passed;
            }
        }
        if stream || connection {
            held.since = Some((clock.us, connection));
        }
    }

    /// Counts what has passed until this moment.
    fn settle(&mut self, clock: &Clock) {
        if let Some((blocker, since_ms)) = &mut self.blocked {
            let passed = u64::from(clock.elapsed_ms(*since_ms));
            *since_ms = clock.ms;
            let blocker = *blocker;
            if passed == 0 {
                return;
            }
            let stalls = &mut self.held().stalls;
            match blocker {
                Blocker::ConnectionWindow => stalls.connection_window_ms += passed,
                Blocker::Socket => stalls.socket_ms += passed,
            }
        }
    }

    fn entry(&mut self, slot: u32, id: u32) -> &mut Waiting {
        let slot = slot as usize;
        let waiting = &mut self.held().waiting;
        if waiting.len() <= slot {
            waiting.resize(slot + 1, Waiting::default());
        }
        let entry = &mut waiting[slot];
        if entry.id != id {
            *entry = Waiting { id, ..Waiting::default() };
        }
        entry
    }

    /// A stream begins to wait for its window.
    pub(crate) fn waits_for_window(&mut self, slot: u32, id: u32, clock: &Clock) {
        self.stops_waiting(slot, id, clock);
        self.entry(slot, id).window_since_ms = Some(clock.ms);
    }

    /// A stream begins to wait for its turn.
    pub(crate) fn waits_for_turn(&mut self, slot: u32, id: u32, clock: &Clock) {
        self.stops_waiting(slot, id, clock);
        let totals = self.held().stalls;
        self.entry(slot, id).listed = Some(totals);
    }

    /// A stream waits no more, or for something else.
    pub(crate) fn stops_waiting(&mut self, slot: u32, id: u32, clock: &Clock) {
        if self.waiting(slot, id).is_none() {
            return;
        }
        self.settle(clock);
        let totals = self.held().stalls;
        let entry = self.entry(slot, id);
        if let Some(before) = entry.listed.take() {
            let stalls = &mut entry.stalls;
            stalls.connection_window_ms +=
                totals.connection_window_ms - before.connection_window_ms;
            stalls.socket_ms += totals.socket_ms - before.socket_ms;
        }
        if let Some(since_ms) = entry.window_since_ms.take() {
            let passed = u64::from(clock.elapsed_ms(since_ms));
            entry.stalls.stream_window_ms += passed;
            self.held().stalls.stream_window_ms += passed;
        }
    }

    /// The connection's counters up to this moment.
    pub(crate) fn read(&mut self, clock: &Clock) -> Stats {
        self.settle(clock);
        let streams = self.streams;
        let Some(held) = &self.held else { return Stats { streams, ..Stats::default() } };
        Stats {
            streams,
            streams_refused: held.streams_refused,
            resets_received: held.resets_received,
            resets_sent: held.resets_sent,
            receive_windows_used_up: held.receive_windows_used_up,
            stalls: held.stalls,
            own: held.own,
        }
    }

    /// One stream's stalls up to its last change.
    pub(crate) fn of_stream(&self, slot: u32, id: u32) -> Stalls {
        self.waiting(slot, id).map_or_else(Stalls::default, |entry| entry.stalls)
    }

    fn waiting(&self, slot: u32, id: u32) -> Option<&Waiting> {
        let waiting = &self.held.as_ref()?.waiting;
        waiting.get(slot as usize).filter(|entry| entry.id == id)
    }

    pub(crate) fn trim(&mut self) {
        if let Some(held) = &mut self.held {
            held.waiting = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::test_time::start;

    fn at(ms: u64) -> Clock {
        let mut clock = Clock::new(start());
        clock.advance(start() + Duration::from_millis(ms));
        clock
    }

    #[test]
    fn time_is_counted_for_what_held_back() {
        let mut book = StatsBook::default();
        book.waits_for_turn(0, 1, &at(0));
        book.blocked(Some(Blocker::Socket), &at(0));
        book.blocked(Some(Blocker::ConnectionWindow), &at(5));
        book.waits_for_window(0, 1, &at(12));
        book.blocked(None, &at(12));
        book.stops_waiting(0, 1, &at(15));
        let expected = Stalls { stream_window_ms: 3, connection_window_ms: 7, socket_ms: 5 };
        assert_eq!(book.of_stream(0, 1), expected);
        assert_eq!(book.read(&at(20)).stalls, expected);
        assert_eq!(book.of_stream(0, 3), Stalls::default());
    }

    #[test]
    fn silence_after_a_window_was_used_up_is_counted() {
        let mut book = StatsBook::default();
        book.received(false, false, &at(0));
        book.received(true, false, &at(3));
        book.received(false, false, &at(10));
        book.received(true, true, &at(20));
        book.received(false, false, &at(25));
        book.received(false, false, &at(99));
        let stats = book.read(&at(100));
        let expected = OwnStalls { stream_window_us: 7_000, connection_window_us: 5_000 };
        assert_eq!(stats.own, expected);
    }
}
