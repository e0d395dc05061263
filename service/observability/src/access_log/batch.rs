//! Batch that a worker hands over at once: lines of which the time is known, but not written yet.
//!
//! A line is a text, an instant at which its request began, and one at which it ended, which it shares with others. A
//! request that comes again as it was has the same text, which stands on the batch once. The thread that writes the
//! file makes bytes of it.

use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use bolide_eventloop::Measured;

use super::calendar::CalendarTime;
use super::format::{LogFormat, begin};
use super::stages::Split;
use super::template::fill;
use super::text::micros;
use crate::limits::LogLimits;

/// Memory that a line takes beyond its text, in bytes: about as much as its beginning is long, and no less than what keeps it.
const LINE_BYTES: usize = 64;

/// The largest batch, in bytes, whatever is asked for: places on it are of 32 bits.
const SHEET_BYTES_MAX: usize = 1 << 30;

/// Position of a text on a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    at: u32,
    length: u32,
    /// How much of the text stands before the time of the line.
    before: u32,
}

/// A request that is over.
#[derive(Debug)]
struct LogRecord {
    began: Instant,
    text: Span,
}

/// Lines of requests that have ended at the same time.
#[derive(Debug)]
struct Group {
    /// The number of the first line that belongs to the next group.
    until: u32,
    ended: Instant,
}

/// Lines of one worker.
#[derive(Debug)]
pub(super) struct LogBatch {
    format: LogFormat,
    text: Vec<u8>,
    lines: Vec<LogRecord>,
    groups: Vec<Group>,
    /// Facts about the requests of measured turns, in order.
    splits: Vec<Split>,
    /// The time of day, since the epoch, at an instant.
    day: (Duration, Instant),
    count: u64,
    /// About how long the lines are.
    bytes: usize,
    bytes_max: usize,
    /// Channel by which the empty batch returns.
    home: SyncSender<Self>,
}

impl LogBatch {
    pub(super) fn new(format: LogFormat, limits: &LogLimits, home: SyncSender<Self>) -> Self {
        let bytes_max = limits.block_bytes.min(SHEET_BYTES_MAX);
        Self {
            format,
            text: Vec::with_capacity(bytes_max / 2),
            lines: Vec::with_capacity(bytes_max / LINE_BYTES / 4),
            groups: Vec::with_capacity(bytes_max / LINE_BYTES / 8),
            splits: Vec::new(),
            day: (Duration::ZERO, Instant::now()),
            count: 0,
            bytes: 0,
            bytes_max,
            home,
        }
    }

    /// Another one like this, empty.
    pub(super) fn another(&self) -> Self {
        let limits = LogLimits { block_bytes: self.bytes_max, ..LogLimits::default() };
        Self::new(self.format.clone(), &limits, self.home.clone())
    }

    /// How many lines there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether as much stands on it as may.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    /// Adds a text: of what `write` appends, as much stands before the time as it says.
    #[inline]
    pub(super) fn add_text(&mut self, write: impl FnOnce(&mut Vec<u8>) -> usize) -> Span {
        let at = self.text.len();
        let before = write(&mut self.text);
        Span { at: at as u32, length: (self.text.len() - at) as u32, before: before as u32 }
    }

    /// Adds a line with a text of this batch.
    #[inline]
    pub(super) fn add_line(&mut self, text: Span, began: Instant) {
        self.count += 1;
        self.bytes += LINE_BYTES + text.length as usize;
        self.lines.push(LogRecord { began, text });
    }

    /// Returns whether every line knows when its request has ended.
    #[inline]
    pub(super) fn settled(&self) -> bool {
        self.groups.last().map_or(0, |group| group.until as usize) == self.lines.len()
    }

    /// The requests of the lines that don't know it yet have ended now.
    #[inline]
    pub(super) fn settle(&mut self, ended: Instant) {
        self.groups.push(Group { until: self.lines.len() as u32, ended });
    }

    /// The turn that is over was measured; it began at this time.
    pub(super) fn split(&mut self, measured: &Measured, began: Instant) {
        let until = self.lines.len() as u32;
        if self.format == LogFormat::Json
            && let Some(split) = Split::of(measured, began, until)
            && self.lines.iter().rev().any(|line| line.began == began)
        {
            self.splits.push(split);
        }
    }

    /// Sets the time of day: the time since the epoch at an instant.
    pub(super) fn date(&mut self, day: (Duration, Instant)) {
        self.day = day;
    }

    /// The time of day at an instant, which may be before that of which it is known.
    fn time_of(&self, at: Instant) -> Duration {
        let (day, known_at) = self.day;
        match at.checked_duration_since(known_at) {
            Some(later) => day + later,
            None => day.saturating_sub(known_at - at),
        }
    }

    /// Appends the lines as they stand in the file.
    pub(super) fn spell(&self, calendar: &mut CalendarTime, out: &mut Vec<u8>) {
        let mut lines = (0_u32..).zip(&self.lines);
        let mut splits = self.splits.iter().peekable();
        let mut first = 0;
        for group in &self.groups {
            calendar.update(self.time_of(group.ended));
            let mut beginning = None;
            for (index, line) in lines.by_ref().take(group.until as usize - first) {
                let Span { at, length, before } = line.text;
                let text = &self.text[at as usize..][..length as usize];
                if let LogFormat::Template(_) = &self.format {
                    let lasted = group.ended.saturating_duration_since(line.began);
                    fill(text, calendar, micros(lasted), out);
                    continue;
                }
                let beginning = match &beginning {
                    Some((began, beginning)) if *began == line.began => beginning,
                    _ => {
                        let lasted = micros(group.ended.saturating_duration_since(line.began));
                        &beginning.insert((line.began, begin(&self.format, calendar, lasted))).1
                    }
                };
                let (before, after) = text.split_at(before as usize);
                if !before.is_empty() {
                    out.extend_from_slice(before);
                }
                beginning.append_to(out);
                out.extend_from_slice(after);
                while splits.next_if(|split| split.until <= index).is_some() {}
                if let Some(split) = splits.peek().filter(|split| split.began == line.began) {
                    split.put(out);
                }
            }
            first = group.until as usize;
        }
    }

    /// Returns where its memory is.
    #[cfg(test)]
    pub(super) fn place(&self) -> *const u8 {
        self.text.as_ptr()
    }

    /// Takes everything off.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
        self.groups.clear();
        self.splits.clear();
        (self.count, self.bytes) = (0, 0);
    }

    /// Returns the memory to the worker that it came from.
    pub(super) fn give_back(mut self) {
        self.clear();
        // One that a long line has made larger is not kept.
        if self.text.capacity() <= 4 * LogLimits::DEFAULT.block_bytes {
            let home = self.home.clone();
            // The worker may have ended, or have enough.
            let _ = home.try_send(self);
        }
    }
}
