//! The access log: a line for each request, written by a thread of its own.
//!
//! A worker puts its lines on a sheet of its own: the text of each, once if it comes again as it was, and when its
//! request began and ended. A full sheet, or one that is old enough, goes to the thread by a bounded queue, which
//! writes its lines and sends it back empty. Nothing of it waits: when the queue is full, the sheet's lines are dropped
//! and counted.

mod civil;
mod desk;
mod entry;
mod format;
mod sheet;
mod stages;
mod stamp;
mod text;
mod trace;
mod writer;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::LogLimits;
pub(crate) use desk::Desk;
pub(crate) use entry::{Asked, Entry};
pub(crate) use format::{Ended, Outcome, RoutePiece};
pub use format::{JSON_FIELDS, LogFormat};
pub(crate) use stages::Stages;
pub(crate) use stamp::{Said, Stamp};
use writer::Writer;

/// Where the lines of an access log go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// A file; lines are appended.
    File(PathBuf),
    /// The standard output.
    Stdout,
}

/// What became of the lines of an access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessLogStats {
    /// Lines that were written.
    pub written: u64,
    /// Lines that were dropped, for the queue was full.
    pub dropped: u64,
    /// Lines that could not be written: the disk is full, say.
    pub failed: u64,
}

/// An access log, opened; given to [`Server::access_log`](crate::Server::access_log).
///
/// Authorization and Cookie, and bodies, are never part of it. What a client sends can't forge a line: it is
/// escaped.
#[derive(Clone)]
pub struct AccessLog {
    format: LogFormat,
    limits: LogLimits,
    writer: Arc<Writer>,
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
        Ok(Self { format, limits, writer: Arc::new(Writer::start(target, limits.queue_count)?) })
    }

    /// Writes to another file from here on: lines that were handed over before still go to the old one.
    ///
    /// # Errors
    ///
    /// When the file can't be opened for appending: the old one stays in use.
    pub fn redirect(&self, target: LogTarget) -> io::Result<()> {
        self.writer.redirect(target)
    }

    /// Opens the file again, after it was moved away: what follows goes to a new one. When that can't be, the
    /// old one stays in use and an event says so.
    pub fn reopen(&self) {
        self.writer.reopen();
    }

    /// What became of its lines so far.
    #[must_use]
    pub fn stats(&self) -> AccessLogStats {
        self.writer.counts.stats()
    }

    /// Waits until what the workers have handed over is written, at most for `patience`. Whether it is.
    pub fn flush(&self, patience: Duration) -> bool {
        self.writer.flush(patience)
    }

    /// A worker's part.
    pub(crate) fn desk(&self) -> Desk {
        let (queue, counts) = (self.writer.queue(), Arc::clone(&self.writer.counts));
        Desk::new(self.format, &self.limits, queue, counts)
    }
}
