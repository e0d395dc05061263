//! The access log: a line for each request, written by a thread of its own.
//!
//! A worker puts its lines on a batch of its own: the text of each, and when its
//! request began and ended. A full batch, or one that is old enough, goes to the thread by a bounded queue, which
//! writes its lines and sends it back empty. Nothing of it waits: when the queue is full, the batch's lines are dropped
//! and counted.
//!
//! A line belongs to the file in use when it was made: before another file takes its place, each worker hands over what
//! is on its batch.

mod batch;
mod buffer;
mod calendar;
mod ended;
mod entry;
mod format;
mod prefix;
mod stages;
mod template;
mod text;
mod trace;
mod writer;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use crate::limits::LogLimits;
pub use buffer::LogBuffer;
pub use ended::{Ended, Outcome, RoutePiece};
pub use entry::{Asked, Entry};
pub use format::{JSON_FIELDS, LogFormat};
pub use prefix::LinePrefix;
pub use stages::{Stages, Times};
pub use template::{LOG_PLACEHOLDERS, LogTemplate};
pub use text::cut;
pub use trace::trace_id;
pub use writer::{AccessLogStats, LogTarget};
use writer::{Sink, Writer};

/// Which lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// A line is written whose random number is at most that.
    most: u64,
    errors: bool,
}

impl Default for Sample {
    fn default() -> Self {
        Self { most: u64::MAX, errors: true }
    }
}

impl Sample {
    /// Returns whether a line is written; `count` is that of the lines before it.
    #[inline]
    pub fn takes(self, status: u16, key: &RandomState, count: &mut u64) -> bool {
        if self.most == u64::MAX || (!self.errors && !(1..500).contains(&status)) {
            return true;
        }
        *count = count.wrapping_add(1);
        key.hash_one(*count) <= self.most
    }
}

/// Asks a worker to hand over the lines that wait.
type HandOver = Box<dyn Fn(&mpsc::Sender<()>) -> bool + Send>;

/// An access log, opened; given to a server.
///
/// Authorization and Cookie, and bodies, are never part of it. What a client sends can't forge a line: it is
/// escaped.
#[derive(Clone)]
pub struct AccessLog {
    format: LogFormat,
    limits: LogLimits,
    sample: Sample,
    writer: Arc<Writer>,
    /// Those that have lines for it.
    workers: Arc<Mutex<Vec<HandOver>>>,
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AccessLog").field("format", &self.format).finish_non_exhaustive()
    }
}

impl AccessLog {
    /// Opens the log and starts its thread.
    ///
    /// # Errors
    ///
    /// When the file can't be opened for appending, or no thread can be had.
    pub fn open(target: LogTarget, format: LogFormat) -> io::Result<Self> {
        Self::with_limits(target, format, LogLimits::default())
    }

    /// The same with other limits.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn with_limits(
        target: LogTarget,
        format: LogFormat,
        limits: LogLimits,
    ) -> io::Result<Self> {
        let writer = Arc::new(Writer::start(target, limits.queue_count)?);
        Ok(Self { format, limits, sample: Sample::default(), writer, workers: Arc::default() })
    }

    /// Writes this share of the lines, chosen by chance; those of responses with a status of 500 or more, and of requests
    /// that got none, are always written unless `errors` are sampled, too. Default: all lines.
    #[must_use]
    pub fn sampled(mut self, share: f64, errors: bool) -> Self {
        // The largest numbers are rounded up to the next power of two, which is no number any more.
        self.sample = Sample { most: (share.clamp(0.0, 1.0) * u64::MAX as f64) as u64, errors };
        self
    }

    /// Returns what of it is written.
    pub fn sample(&self) -> Sample {
        self.sample
    }

    /// Writes to another file from here on: lines of requests that were answered before still go to the old one. Waits
    /// for the turn that each worker is in, so it is not for handlers.
    ///
    /// # Errors
    ///
    /// When the file can't be opened for appending: the old one stays in use.
    pub fn redirect(&self, target: LogTarget) -> io::Result<()> {
        let sink = Sink::open(&target)?;
        self.collect();
        self.writer.redirect(target, sink);
        Ok(())
    }

    /// Opens the file again, after it was moved away: what follows goes to a new one, as with
    /// [`redirect`](Self::redirect). When that can't be, the old one stays in use and an event says so.
    pub fn reopen(&self) {
        self.collect();
        self.writer.reopen();
    }

    /// Returns what became of its lines so far.
    #[must_use]
    pub fn stats(&self) -> AccessLogStats {
        self.writer.counts.stats()
    }

    /// Waits until what the workers have handed over is written, at most for `patience`. Whether it is.
    pub fn flush(&self, patience: Duration) -> bool {
        self.writer.flush(patience)
    }

    /// A worker writes to it from here on. `hand_over` asks it to hand over the lines that wait, and to drop what it is
    /// given once it has; `false`: it is gone.
    pub fn add_worker(&self, hand_over: impl Fn(&mpsc::Sender<()>) -> bool + Send + 'static) {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(hand_over));
    }

    /// Returns when each worker has handed over the lines that waited.
    fn collect(&self) {
        let (done, all_done) = mpsc::channel();
        self.workers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|hand_over| hand_over(&done));
        drop(done);
        // Nothing is ever sent: the end of the last sender is what is waited for.
        let _ = all_done.recv();
    }

    /// A worker's part.
    pub fn buffer(&self) -> LogBuffer {
        let (queue, counts) = (self.writer.queue(), Arc::clone(&self.writer.counts));
        LogBuffer::new(self.format.clone(), &self.limits, queue, counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_lines_is_written_and_every_error() {
        let key = RandomState::new();
        let written = |sample: Sample, status: u16| {
            let mut count = 0;
            (0..10_000).filter(|_| sample.takes(status, &key, &mut count)).count()
        };
        let sample = |errors| Sample { most: u64::MAX / 10, errors };
        // 1000 of 10,000 by chance: 30 is the standard deviation.
        assert!((700..1300).contains(&written(sample(false), 200)));
        assert_eq!((written(sample(false), 500), written(sample(false), 0)), (10_000, 10_000));
        assert!((700..1300).contains(&written(sample(true), 500)));
        assert_eq!(written(Sample::default(), 200), 10_000);
    }
}
