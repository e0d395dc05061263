//! A worker's part of the access log: where its lines gather before they are handed over.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use bolide_eventloop::Measured;

use super::batch::LogBatch;
use super::ended::Ended;
use super::format::{LogFormat, write_client, write_json, write_plain};
use super::prefix::LinePrefix;
use super::writer::{Counts, Order};
use crate::limits::LogLimits;

/// The lines of one worker that were not handed over yet, and what it takes to hand them over.
#[derive(Debug)]
pub struct LogBuffer {
    /// How lines are written.
    pub format: LogFormat,
    delay: Duration,
    queue: SyncSender<Order>,
    counts: Arc<Counts>,
    /// Sheets that come back empty.
    returned: Receiver<LogBatch>,
    batch: LogBatch,
    /// When the batch has to be handed over at the latest, if there are lines on it that know their end.
    due: Option<Instant>,
    /// The time of day, since the epoch, at an instant.
    day: (Duration, Instant),
}

impl LogBuffer {
    pub(super) fn new(
        format: LogFormat,
        limits: &LogLimits,
        queue: SyncSender<Order>,
        counts: Arc<Counts>,
    ) -> Self {
        let (home, returned) = sync_channel(limits.queue_count);
        let batch = LogBatch::new(format.clone(), limits, home);
        Self {
            format,
            delay: limits.delay,
            queue,
            counts,
            returned,
            batch,
            due: None,
            day: (Duration::ZERO, Instant::now()),
        }
    }

    /// Sets the time of day, once a second.
    pub fn set_time(&mut self, since_epoch: Duration, now: Instant) {
        self.day = (since_epoch, now);
    }

    /// Writes a line, which waits until it is [settled](Self::settle).
    #[inline(never)]
    pub fn line(&mut self, prefix: &mut LinePrefix, ended: &Ended<'_>) {
        let format = &self.format;
        let text = self.batch.add_text(|text| {
            if *format == LogFormat::Json {
                prefix.put(text, ended.asked);
                write_json(text, ended);
                0
            } else if let LogFormat::Template(template) = format {
                template.write(text, prefix.fixed(), prefix.is_tls(), ended);
                0
            } else {
                let start = text.len();
                write_client(text, prefix.fixed(), ended.asked);
                let before = text.len() - start;
                write_plain(text, format, ended);
                before
            }
        });
        self.batch.add_line(text, ended.outcome.began);
        if self.batch.is_full() {
            self.hand_over_early();
        }
    }

    /// Returns whether lines wait to be told when their exchanges ended.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        !self.batch.settled()
    }

    /// The exchanges of the lines that wait have ended: one look at the clock serves all of them.
    #[inline]
    pub fn settle(&mut self, now: Instant) {
        self.batch.settle(now);
        if self.due.is_none() {
            self.due = Some(now + self.delay);
        }
    }

    /// A turn of the loop ends. Returns when the next has to begin at the latest, so that no line waits for
    /// longer than it may. `measured`: what the turn took will be [said](Self::split), and lines that are due wait for that.
    #[inline]
    pub fn turn_ended(&mut self, now: Instant, measured: bool) -> Option<Instant> {
        let due = self.due?;
        if due > now {
            return Some(due);
        }
        if !measured {
            self.hand_over();
        }
        None
    }

    /// Notes the measurement of a turn that is over; it began at this time.
    pub fn split(&mut self, measured: &Measured, began: Instant) {
        self.batch.split(measured, began);
        if self.due.is_some_and(|due| due <= began) {
            self.hand_over();
        }
    }

    /// The batch is full.
    #[cold]
    fn hand_over_early(&mut self) {
        self.settle(Instant::now());
        self.hand_over();
    }

    /// Hands over what waits, due or not.
    pub fn hand_over_rest(&mut self) {
        if self.has_waiting() {
            self.settle(Instant::now());
        }
        if self.batch.count() > 0 {
            self.hand_over();
        }
    }

    /// Gives the batch to the thread that writes it; drops its lines when too many batches wait.
    fn hand_over(&mut self) {
        self.due = None;
        let spare = self.returned.try_recv().unwrap_or_else(|_| self.batch.another());
        let mut batch = std::mem::replace(&mut self.batch, spare);
        batch.date(self.day);
        if let Err(TrySendError::Full(order) | TrySendError::Disconnected(order)) =
            self.queue.try_send(Order::Write(batch))
            && let Order::Write(mut batch) = order
        {
            self.counts.dropped(batch.count());
            batch.clear();
            self.batch = batch;
        }
    }
}

impl Drop for LogBuffer {
    fn drop(&mut self) {
        self.hand_over_rest();
    }
}

#[cfg(test)]
mod tests;
