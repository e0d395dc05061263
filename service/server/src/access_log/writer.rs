//! The thread that writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use super::{AccessLogStats, LogTarget};
use crate::limits::LOG_BLOCK_BYTES;

/// Lines on their way to the file.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) text: Vec<u8>,
    pub(super) lines: u64,
    /// Where the empty block goes.
    pub(super) home: SyncSender<Vec<u8>>,
}

impl Block {
    /// Returns the memory to the worker that it came from.
    pub(super) fn give_back(self) {
        let Self { mut text, home, .. } = self;
        text.clear();
        // A block that a long line has made larger is not kept.
        if text.capacity() <= 4 * LOG_BLOCK_BYTES {
            // The worker may have ended, or have enough.
            let _ = home.try_send(text);
        }
    }
}

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Order {
    Write(Block),
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

/// The thread's face to the others. It ends when nobody can tell it anything any more.
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

    pub(super) fn redirect(&self, target: LogTarget) -> io::Result<()> {
        let sink = Sink::open(&target)?;
        // It ends only after all of its clients.
        let _ = self.queue.send(Order::Redirect(target, sink));
        Ok(())
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

/// What is written to.
#[derive(Debug)]
pub(super) enum Sink {
    File(File),
    Stdout,
}

impl Sink {
    fn open(target: &LogTarget) -> io::Result<Self> {
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

/// What the thread works with.
#[derive(Debug)]
struct Scribe {
    target: LogTarget,
    sink: Sink,
    counts: Arc<Counts>,
    is_failing: bool,
    /// A failure has left half a line in the file.
    within_line: bool,
}

impl Scribe {
    fn run(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            match order {
                Order::Write(block) => {
                    self.write(&block);
                    block.give_back();
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

    fn write(&mut self, block: &Block) {
        match self.write_all(&block.text) {
            Ok(()) => {
                self.counts.written.fetch_add(block.lines, Ordering::Relaxed);
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
                let whole = memchr::memchr_iter(b'\n', &block.text[..written]).count() as u64;
                self.counts.written.fetch_add(whole, Ordering::Relaxed);
                self.counts.failed.fetch_add(block.lines - whole, Ordering::Relaxed);
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

    /// Writes all of a block, or says how much of it was written.
    fn write_all(&mut self, text: &[u8]) -> Result<(), (io::Error, usize)> {
        if self.within_line {
            self.sink.write(b"\n").map_err(|error| (error, 0))?;
            self.within_line = false;
        }
        let mut written = 0;
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
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn block(text: &[u8]) -> Order {
        let lines = memchr::memchr_iter(b'\n', text).count() as u64;
        let (home, _) = sync_channel(1);
        Order::Write(Block { text: text.to_vec(), lines, home })
    }

    #[test]
    fn lines_are_appended_and_go_to_a_new_file_after_it_was_moved() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("log"), folder.path().join("log.1"));
        std::fs::write(&path, "before\n").unwrap();
        let writer = Writer::start(LogTarget::File(path.clone()), 8).unwrap();
        writer.queue().send(block(b"a\nb\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        std::fs::rename(&path, &moved).unwrap();
        writer.queue().send(block(b"c\n")).unwrap();
        writer.reopen();
        writer.queue().send(block(b"d\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "before\na\nb\nc\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "d\n");
        assert_eq!(writer.counts.stats().written, 4);
        // A folder that is gone: the file in use stays.
        std::fs::remove_dir_all(folder.path()).unwrap();
        writer.reopen();
        writer.queue().send(block(b"e\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        assert_eq!(writer.counts.stats().written, 5);
    }

    #[test]
    fn lines_go_to_another_file_from_the_order_on() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        let writer = Writer::start(LogTarget::File(one.clone()), 8).unwrap();
        writer.queue().send(block(b"a\n")).unwrap();
        writer.redirect(LogTarget::File(other.clone())).unwrap();
        writer.queue().send(block(b"b\n")).unwrap();
        let nowhere = LogTarget::File(folder.path().join("none/log"));
        assert_eq!(writer.redirect(nowhere).unwrap_err().kind(), io::ErrorKind::NotFound);
        writer.queue().send(block(b"c\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        assert_eq!(std::fs::read_to_string(&one).unwrap(), "a\n");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "b\nc\n");
        // What is opened again is the new one.
        std::fs::remove_file(&other).unwrap();
        writer.reopen();
        writer.queue().send(block(b"d\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "d\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn full_disk_lines_are_counted() {
        let writer = Writer::start(LogTarget::File("/dev/full".into()), 8).unwrap();
        writer.queue().send(block(b"a\nb\n")).unwrap();
        writer.queue().send(block(b"c\n")).unwrap();
        assert!(writer.flush(PATIENCE));
        let lost = AccessLogStats { written: 0, dropped: 0, failed: 3 };
        assert_eq!(writer.counts.stats(), lost);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let target = LogTarget::File(folder.path().join("none/log"));
        assert_eq!(Writer::start(target, 8).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
