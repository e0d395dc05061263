//! A worker's part of the access log: where its lines gather before they are handed over.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use super::civil::Civil;
use super::entry::Asked;
use super::format::{Ended, LogFormat, begin_json, micros, write_json, write_plain};
use super::stamp::Stamp;
use super::writer::{Block, Counts, Order};
use crate::limits::LogLimits;

/// The lines of one worker that were not handed over yet, and what it takes to hand them over.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) format: LogFormat,
    limits: LogLimits,
    queue: SyncSender<Order>,
    counts: Arc<Counts>,
    /// Blocks that come back empty.
    returned: Receiver<Vec<u8>>,
    home: SyncSender<Vec<u8>>,
    block: Vec<u8>,
    /// Lines of this pass of a connection, whose beginnings are not known yet; among them, what those say of the
    /// connection.
    waiting: Vec<u8>,
    holes: Vec<Hole>,
    stamped: Stamped,
    /// How many stamps have got a number.
    stamps: u64,
    lines: u64,
    /// When the first line of the block was written.
    began: Option<Instant>,
    time: Civil,
    /// The time of day, since the epoch, at an instant.
    day: (Duration, Instant),
}

/// A part of a text: start and end.
type Span = (usize, usize);

/// A line that waits for its beginning.
#[derive(Debug, Clone, Copy)]
struct Hole {
    /// The rest of the line.
    rest: Span,
    /// What it says of the connection.
    stamp: Span,
    began: Instant,
}

/// The beginning of lines that was written last: those of one pass have the same.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    stamp: Span,
    began: Instant,
    /// Where it stands in the block.
    at: Span,
}

/// What the lines that wait say of their connection.
#[derive(Debug, Clone, Copy, Default)]
struct Stamped {
    /// The number of its text; 0: there is none, or none that is kept.
    number: u64,
    /// Where it stands among them.
    at: Span,
}

impl Desk {
    pub(super) fn new(
        format: LogFormat,
        limits: LogLimits,
        queue: SyncSender<Order>,
        counts: Arc<Counts>,
    ) -> Self {
        let (home, returned) = sync_channel(limits.queue_count);
        Self {
            format,
            limits,
            queue,
            counts,
            returned,
            home,
            block: Vec::with_capacity(limits.block_bytes),
            waiting: Vec::new(),
            holes: Vec::new(),
            stamped: Stamped::default(),
            stamps: 0,
            lines: 0,
            began: None,
            time: Civil::new(),
            day: (Duration::ZERO, Instant::now()),
        }
    }

    /// What time of day it is: looked at once a second.
    pub(crate) fn set_time(&mut self, since_epoch: Duration, now: Instant) {
        self.day = (since_epoch, now);
    }

    /// Writes a line. `now` is when the turn began; a line that says how long a request took waits until it is
    /// [settled](Self::settle).
    #[inline]
    pub(crate) fn line(&mut self, stamp: &mut Stamp, ended: &Ended<'_>, now: Instant) {
        if self.began.is_none() {
            self.began = Some(now);
        }
        self.lines += 1;
        if self.format == LogFormat::Json {
            let said = self.stamp(stamp, ended.asked);
            let (start, began) = (self.waiting.len(), ended.outcome.began);
            write_json(&mut self.waiting, ended);
            self.holes.push(Hole { rest: (start, self.waiting.len()), stamp: said, began });
            if self.waiting.len() >= self.limits.block_bytes {
                self.settle(Instant::now());
            }
        } else {
            self.look(now);
            write_plain(&mut self.block, self.format, &self.time, stamp.fixed(), ended);
            self.hand_over_if_full();
        }
    }

    /// Where it stands among what waits what a line says of its connection: it is put there unless it is.
    #[inline]
    fn stamp(&mut self, stamp: &mut Stamp, asked: &Asked<'_>) -> Span {
        let mut number = stamp.number_for(asked);
        if number == 0 || number != self.stamped.number {
            let start = self.waiting.len();
            if number == 0 {
                self.stamps += 1;
                stamp.make(&mut self.waiting, asked, self.stamps);
                number = stamp.number_for(asked);
            } else {
                self.waiting.extend_from_slice(stamp.text());
            }
            self.stamped = Stamped { number, at: (start, self.waiting.len()) };
        }
        self.stamped.at
    }

    /// Whether lines wait to be told when their exchanges ended.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        !self.holes.is_empty()
    }

    /// The exchanges of the lines that wait have ended: their answers leave together, so one look at the clock
    /// serves all of them.
    pub(crate) fn settle(&mut self, now: Instant) {
        self.look(now);
        let mut last: Option<Beginning> = None;
        for Hole { rest, stamp, began } in self.holes.drain(..) {
            match last {
                Some(last) if last.stamp == stamp && last.began == began => {
                    self.block.extend_from_within(last.at.0..last.at.1);
                }
                _ => {
                    let start = self.block.len();
                    let lasted = micros(now.saturating_duration_since(began));
                    begin_json(&mut self.block, &self.time, lasted);
                    self.block.extend_from_slice(&self.waiting[stamp.0..stamp.1]);
                    last = Some(Beginning { stamp, began, at: (start, self.block.len()) });
                }
            }
            self.block.extend_from_slice(&self.waiting[rest.0..rest.1]);
        }
        self.stamped = Stamped::default();
        self.waiting.clear();
        self.hand_over_if_full();
    }

    /// The time of the lines that follow.
    fn look(&mut self, now: Instant) {
        let (day, at) = self.day;
        self.time.update(day + now.saturating_duration_since(at));
    }

    fn hand_over_if_full(&mut self) {
        if self.block.len() >= self.limits.block_bytes {
            self.hand_over();
        }
    }

    /// A turn of the loop ends. Returns when the next has to begin at the latest, so that no line waits for
    /// longer than it may.
    #[inline]
    pub(crate) fn turn_ended(&mut self, now: Instant) -> Option<Instant> {
        let due = self.began? + self.limits.delay;
        if due > now {
            return Some(due);
        }
        self.hand_over();
        None
    }

    /// Gives the block to the thread that writes it; drops its lines when too many blocks wait.
    fn hand_over(&mut self) {
        self.began = None;
        let lines = std::mem::take(&mut self.lines);
        let spare = self.returned.try_recv();
        let spare = spare.unwrap_or_else(|_| Vec::with_capacity(self.limits.block_bytes));
        let text = std::mem::replace(&mut self.block, spare);
        let order = Order::Write(Block { text, lines, home: self.home.clone() });
        if let Err(TrySendError::Full(order) | TrySendError::Disconnected(order)) =
            self.queue.try_send(order)
        {
            self.counts.dropped(lines);
            if let Order::Write(Block { mut text, .. }) = order {
                text.clear();
                self.block = text;
            }
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if self.has_waiting() {
            self.settle(Instant::now());
        }
        if self.lines > 0 {
            self.hand_over();
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Version;

    use super::super::format::{Outcome, RoutePiece};
    use super::*;
    use crate::limits::LOG_DELAY;

    fn write_line(desk: &mut Desk, now: Instant) {
        write_line_of(desk, now, None, now);
    }

    fn write_line_of(desk: &mut Desk, began: Instant, abort: Option<&'static str>, now: Instant) {
        let mut stamp = Stamp::new(desk.format, "unix", None);
        let outcome =
            Outcome { status: 200, received_bytes: 0, sent_bytes: 4, began, answer: None, abort };
        let asked = Asked::unread(Version::HTTP_11);
        let route = RoutePiece::new("/a");
        desk.line(&mut stamp, &Ended { asked: &asked, route: &route, outcome: &outcome }, now);
    }

    #[test]
    fn a_line_waits_no_longer_than_it_may() {
        let (queue, orders) = sync_channel(4);
        let mut desk = Desk::new(LogFormat::Common, LogLimits::default(), queue, Arc::default());
        let now = Instant::now();
        assert_eq!(desk.turn_ended(now), None);
        write_line(&mut desk, now);
        assert_eq!(desk.turn_ended(now), Some(now + LOG_DELAY));
        assert!(orders.try_recv().is_err());
        assert_eq!(desk.turn_ended(now + LOG_DELAY), None);
        let Ok(Order::Write(block)) = orders.try_recv() else { panic!("nothing was handed over") };
        assert_eq!(block.lines, 1);
    }

    #[test]
    fn log_flood_beyond_the_queue_is_dropped_and_counted() {
        let (queue, orders) = sync_channel(2);
        let counts = Arc::<Counts>::default();
        let mut desk =
            Desk::new(LogFormat::Common, LogLimits::default(), queue, Arc::clone(&counts));
        let now = Instant::now();
        let mut lines = 0;
        while counts.stats().dropped == 0 {
            write_line(&mut desk, now);
            lines += 1;
        }
        let waiting: u64 = orders
            .try_iter()
            .map(|order| if let Order::Write(block) = order { block.lines } else { 0 })
            .sum();
        assert_eq!(waiting + counts.stats().dropped, lines);
        assert!(desk.block.is_empty());
        // It goes on once there is room.
        write_line(&mut desk, now);
        drop(desk);
        assert!(matches!(orders.try_recv(), Ok(Order::Write(Block { lines: 1, .. }))));
    }

    #[test]
    fn lines_in_json_are_told_how_long_their_requests_took() {
        let (queue, orders) = sync_channel(2);
        let mut desk = Desk::new(LogFormat::Json, LogLimits::default(), queue, Arc::default());
        let now = Instant::now();
        desk.set_time(Duration::from_secs(784_111_777), now);
        let earlier = now.checked_sub(Duration::from_secs(5)).unwrap();
        for (began, abort) in [(now, None), (now, Some("gone")), (earlier, None)] {
            write_line_of(&mut desk, began, abort, now);
        }
        assert!(desk.has_waiting());
        desk.settle(now + Duration::from_micros(1234));
        assert!(!desk.has_waiting());
        drop(desk);
        let Ok(Order::Write(block)) = orders.try_recv() else { panic!("nothing was handed over") };
        let line = |duration: &str, abort: &str| {
            format!(
                "{{\"time\":\"1994-11-06T08:49:37.001Z\",\"duration_us\":{duration},\"peer\":\"unix\",\
                 \"version\":\"HTTP/1.1\",\"route\":\"/a\",\"status\":200,\"received_bytes\":0,\"sent_bytes\":4{abort}}}\n"
            )
        };
        let wanted = line("1234", "") + &line("1234", ",\"abort\":\"gone\"") + &line("5001234", "");
        assert_eq!(String::from_utf8(block.text).unwrap(), wanted);
        assert_eq!(block.lines, 3);
    }

    #[test]
    fn a_clock_that_jumps_stops_no_line() {
        let (queue, orders) = sync_channel(2);
        let mut desk = Desk::new(LogFormat::Common, LogLimits::default(), queue, Arc::default());
        let mut now = Instant::now();
        for day in [784_111_777, 0, u64::from(u32::MAX), 784_111_000] {
            now += Duration::from_secs(1);
            desk.set_time(Duration::from_secs(day), now);
            write_line(&mut desk, now);
            assert_eq!(desk.turn_ended(now), Some(now + LOG_DELAY), "its delay is no time of day");
            assert_eq!(desk.turn_ended(now + LOG_DELAY), None);
            let Ok(Order::Write(block)) = orders.try_recv() else { panic!("no line") };
            assert_eq!(block.lines, 1);
        }
    }

    #[test]
    fn a_block_that_came_back_is_used_again() {
        let (queue, orders) = sync_channel(2);
        let mut desk = Desk::new(LogFormat::Common, LogLimits::default(), queue, Arc::default());
        let now = Instant::now();
        write_line(&mut desk, now);
        let first = desk.block.as_ptr();
        desk.turn_ended(now + LOG_DELAY);
        let Ok(Order::Write(block)) = orders.try_recv() else { panic!("nothing was handed over") };
        block.give_back();
        write_line(&mut desk, now);
        desk.turn_ended(now + LOG_DELAY * 2);
        assert_eq!(desk.block.as_ptr(), first);
    }
}
