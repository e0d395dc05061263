//! The thread that writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use super::batch::LogBatch;
use super::calendar::CalendarTime;

/// Target of an access log's lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// A file; lines are appended.
    File(PathBuf),
    /// The standard output.
    Stdout,
}

/// Counters of an access log's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessLogStats {
    /// Lines that were written.
    pub written: u64,
    /// Lines that were dropped, for the queue was full.
    pub dropped: u64,
    /// Lines that could not be written: the disk is full, say.
    pub failed: u64,
}

/// Orders for the thread.
#[derive(Debug)]
pub(super) enum Order {
    Write(LogBatch),
    Reopen,
    /// Another file takes the place of this one.
    Redirect(LogTarget, Sink),
    /// Everything before this is written: say so.
    Flush(Sender<()>),
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    pub(super) fn dropped(&self, lines: u64) {
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> AccessLogStats {
        AccessLogStats {
            written: self.written.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

/// The thread's face to the others. It ends when all senders have gone.
#[derive(Debug)]
pub(super) struct Writer {
    queue: SyncSender<Order>,
    pub(super) counts: Arc<Counts>,
}

impl Writer {
    /// `queue_count`: how many blocks may wait.
    pub(super) fn start(target: LogTarget, queue_count: usize) -> io::Result<Self> {
        let sink = Sink::open(&target)?;
        let (queue, orders) = sync_channel(queue_count);
        let counts = Arc::<Counts>::default();
        let scribe = Scribe {
            target,
            sink,
            counts: Arc::clone(&counts),
            calendar: CalendarTime::new(),
            text: Vec::new(),
            is_failing: false,
            within_line: false,
        };
        std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || scribe.run(&orders))?;
        Ok(Self { queue, counts })
    }

    pub(super) fn queue(&self) -> SyncSender<Order> {
        self.queue.clone()
    }

    pub(super) fn reopen(&self) {
        // It ends only after all of its clients.
        let _ = self.queue.send(Order::Reopen);
    }

    pub(super) fn redirect(&self, target: LogTarget, sink: Sink) {
        // It ends only after all of its clients.
        let _ = self.queue.send(Order::Redirect(target, sink));
    }

    pub(super) fn flush(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let (done, is_done) = mpsc::channel();
        let mut order = Order::Flush(done);
        loop {
            match self.queue.try_send(order) {
                Ok(()) => break,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(back)) if Instant::now() < deadline => {
                    order = back;
                    std::thread::park_timeout(Duration::from_millis(1));
                }
                Err(TrySendError::Full(_)) => return false,
            }
        }
        is_done.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok()
    }
}

/// Target of the writes.
#[derive(Debug)]
pub(super) enum Sink {
    File(File),
    Stdout,
}

impl Sink {
    pub(super) fn open(target: &LogTarget) -> io::Result<Self> {
        match target {
            LogTarget::Stdout => Ok(Self::Stdout),
            LogTarget::File(path) => {
                OpenOptions::new().append(true).create(true).open(path).map(Self::File)
            }
        }
    }

    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(text),
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(text)?;
                out.flush()?;
                Ok(text.len())
            }
        }
    }
}

/// State of the thread.
#[derive(Debug)]
struct Scribe {
    target: LogTarget,
    sink: Sink,
    counts: Arc<Counts>,
    calendar: CalendarTime,
    /// The lines that are written.
    text: Vec<u8>,
    is_failing: bool,
    /// A failure has left half a line in the file.
    within_line: bool,
}

impl Scribe {
    fn run(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            match order {
                Order::Write(batch) => {
                    self.text.clear();
                    batch.spell(&mut self.calendar, &mut self.text);
                    let count = batch.count();
                    // The worker may have it again while the disk takes its time.
                    batch.give_back();
                    self.write(count);
                }
                Order::Reopen => self.reopen(),
                Order::Redirect(target, sink) => {
                    (self.target, self.sink) = (target, sink);
                    self.within_line = false;
                }
                // Who asked may have lost patience.
                Order::Flush(done) => drop(done.send(())),
            }
        }
    }

    /// Writes the text, which has so many lines.
    fn write(&mut self, lines: u64) {
        match self.write_all() {
            Ok(()) => {
                self.counts.written.fetch_add(lines, Ordering::Relaxed);
                if std::mem::take(&mut self.is_failing) {
                    let lost = self.counts.stats().failed;
                    tracing::info!(
                        target: "bolide::access_log",
                        lost,
                        "the access log is written again"
                    );
                }
            }
            Err((error, written)) => {
                let whole = memchr::memchr_iter(b'\n', &self.text[..written]).count() as u64;
                self.counts.written.fetch_add(whole, Ordering::Relaxed);
                self.counts.failed.fetch_add(lines - whole, Ordering::Relaxed);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::error!(
                        target: "bolide::access_log",
                        %error,
                        "the access log can't be written: its lines are lost and counted until it can; \
                         serving goes on"
                    );
                }
            }
        }
    }

    /// Writes all of the text, or says how much of it was written.
    fn write_all(&mut self) -> Result<(), (io::Error, usize)> {
        if self.within_line {
            self.sink.write(b"\n").map_err(|error| (error, 0))?;
            self.within_line = false;
        }
        let (text, mut written) = (&self.text, 0);
        while written < text.len() {
            match self.sink.write(&text[written..]) {
                Ok(0) => return Err((io::ErrorKind::WriteZero.into(), written)),
                Ok(count) => {
                    written += count;
                    self.within_line = text[written - 1] != b'\n';
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((error, written)),
            }
        }
        Ok(())
    }

    fn reopen(&mut self) {
        match Sink::open(&self.target) {
            Ok(sink) => {
                self.sink = sink;
                self.within_line = false;
                tracing::info!(target: "bolide::access_log", "the access log was opened again");
            }
            Err(error) => tracing::error!(
                target: "bolide::access_log",
                %error,
                "the access log can't be opened again: the old file stays in use"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::format::LogFormat;
    use super::*;
    use crate::limits::LogLimits;

    /// Start of the lines of these tests.
    const BEGINNING: &str = " [01/Jan/1970:00:00:00 +0000] \"";

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap().replace(BEGINNING, "")
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Lines of the common format, of which only the last bytes matter here.
    fn lines(text: &[u8]) -> Order {
        let (home, _) = sync_channel(1);
        let mut batch = LogBatch::new(LogFormat::Common, &LogLimits::default(), home);
        let now = Instant::now();
        batch.date((Duration::ZERO, now));
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let text = batch.add_text(|text| {
                text.extend_from_slice(line);
                0
            });
            batch.add_line(text, now);
        }
        batch.settle(now);
        Order::Write(batch)
    }

    #[test]
    fn lines_are_appended_and_go_to_a_new_file_after_it_was_moved() {
        let directory = tempfile::tempdir().unwrap();
        let (path, moved) = (directory.path().join("log"), directory.path().join("log.1"));
        std::fs::write(&path, "before\n").unwrap();
        let writer = Writer::start(LogTarget::File(path.clone()), 8).unwrap();
        writer.queue().send(lines(b"a\nb\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        std::fs::rename(&path, &moved).unwrap();
        writer.queue().send(lines(b"c\n")).unwrap();
        writer.reopen();
        writer.queue().send(lines(b"d\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        assert_eq!(read(&moved), "before\na\nb\nc\n");
        assert_eq!(read(&path), "d\n");
        assert_eq!(writer.counts.stats().written, 4);
        // A directory that is gone: the file in use stays.
        std::fs::remove_dir_all(directory.path()).unwrap();
        writer.reopen();
        writer.queue().send(lines(b"e\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        assert_eq!(writer.counts.stats().written, 5);
    }

    #[test]
    fn lines_go_to_another_file_from_the_order_on() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        let writer = Writer::start(LogTarget::File(one.clone()), 8).unwrap();
        writer.queue().send(lines(b"a\n")).unwrap();
        let target = LogTarget::File(other.clone());
        let sink = Sink::open(&target).unwrap();
        writer.redirect(target, sink);
        writer.queue().send(lines(b"b\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        assert_eq!(read(&one), "a\n");
        assert_eq!(read(&other), "b\n");
        // What is opened again is the new one.
        std::fs::remove_file(&other).unwrap();
        writer.reopen();
        writer.queue().send(lines(b"d\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        assert_eq!(read(&other), "d\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn full_disk_lines_are_counted() {
        let writer = Writer::start(LogTarget::File("/dev/full".into()), 8).unwrap();
        writer.queue().send(lines(b"a\nb\n")).unwrap();
        writer.queue().send(lines(b"c\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        let lost = AccessLogStats { written: 0, dropped: 0, failed: 3 };
        assert_eq!(writer.counts.stats(), lost);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let target = LogTarget::File(directory.path().join("none/log"));
        assert_eq!(Writer::start(target, 8).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
