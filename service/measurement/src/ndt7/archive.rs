//! A file for each test, as M-Lab's own server writes it.

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bolide_server::{End, Offload, OffloadLimits};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::Direction;
use super::measurement::ConnectionFacts;
use super::time::{for_file_name, rfc3339};
use crate::limits::{
    NDT7_ARCHIVE_BURST_COUNT, NDT7_ARCHIVE_QUEUE_COUNT, NDT7_ARCHIVE_REFILL_COUNT,
    NDT7_MEASUREMENT_BYTES, NDT7_MEASUREMENTS_BYTES, NDT7_MEASUREMENTS_COUNT,
};

/// Files that are being written.
#[derive(Debug)]
struct Writing {
    count: Mutex<usize>,
    fewer: Condvar,
}

/// Those of this process, whichever server they are of.
static WRITING: Writing = Writing::new();

/// One of them, as long as it lives.
#[derive(Debug)]
struct Underway(&'static Writing);

impl Writing {
    const fn new() -> Self {
        Self { count: Mutex::new(0), fewer: Condvar::new() }
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&'static self) -> Underway {
        *self.count() += 1;
        Underway(self)
    }

    fn finish(&self, patience: Duration) -> usize {
        let deadline = Instant::now() + patience;
        let mut count = self.count();
        while *count > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            count = self.fewer.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *count
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        *self.0.count() -= 1;
        self.0.fewer.notify_all();
    }
}

/// Waits until the archive files of all ndt7 tests that have ended are written, at most for `patience`. How many are
/// not.
///
/// They are written by threads that end with the process: a program calls this once its servers have ended.
pub fn finish_archives(patience: Duration) -> usize {
    WRITING.finish(patience)
}

/// The directory that gets the files of one worker's tests, and the thread that writes them.
#[derive(Debug)]
pub(super) struct Archive {
    directory: PathBuf,
    writer: Offload,
    rate: Mutex<Rate>,
    /// Files that were dropped since one was written.
    dropped: AtomicU64,
}

/// How many files may be written, by time.
#[derive(Debug)]
struct Rate {
    /// In thousandths of a file.
    thousandths: u64,
    at: SystemTime,
}

impl Rate {
    /// Takes one file at this time. Whether there was one.
    fn takes(&mut self, now: SystemTime) -> bool {
        let passed = now.duration_since(self.at).unwrap_or_default().as_millis();
        let gained = u64::try_from(passed).unwrap_or(u64::MAX);
        let gained = gained.saturating_mul(NDT7_ARCHIVE_REFILL_COUNT.into());
        let most = 1000 * u64::from(NDT7_ARCHIVE_BURST_COUNT);
        self.thousandths = self.thousandths.saturating_add(gained).min(most);
        self.at = now;
        let left = self.thousandths.checked_sub(1000);
        self.thousandths = left.unwrap_or(self.thousandths);
        left.is_some()
    }
}

/// Facts about a test at its end.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) direction: Direction,
    pub(super) facts: ConnectionFacts,
    pub(super) started: SystemTime,
    /// JSON objects.
    pub(super) server_measurements: Vec<Box<str>>,
    pub(super) client_measurements: ClientMeasurements,
    pub(super) metadata: Vec<(String, String)>,
}

/// The client's measurements: a limited number of JSON objects, as the client wrote them.
#[derive(Debug, Default)]
pub(super) struct ClientMeasurements {
    kept: Vec<Box<str>>,
    /// How long they are together.
    kept_bytes: usize,
    /// The message that is not complete, unless it is too long.
    message: Vec<u8>,
    is_too_long: bool,
}

impl ClientMeasurements {
    /// Their memory, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        let places = self.kept.capacity() * size_of::<Box<str>>();
        self.kept_bytes + places + self.message.capacity()
    }

    /// Takes the next piece of a message, which is kept if it is one worth keeping.
    pub(super) fn push(&mut self, piece: &[u8], end: End) {
        self.is_too_long |= self.message.len() + piece.len() > NDT7_MEASUREMENT_BYTES;
        if !self.is_too_long {
            self.message.extend_from_slice(piece);
        }
        if end == End::No {
            return;
        }
        let message = mem::take(&mut self.message);
        if !mem::take(&mut self.is_too_long)
            && self.kept.len() < NDT7_MEASUREMENTS_COUNT
            && self.kept_bytes + message.len() <= NDT7_MEASUREMENTS_BYTES
            && let Ok(text) = String::from_utf8(message)
            && matches!(serde_json::from_str(&text), Ok(Value::Object(_)))
        {
            self.kept_bytes += text.len();
            self.kept.push(text.into());
        }
    }
}

impl Archive {
    pub(super) fn new(directory: PathBuf) -> Self {
        let writer = Offload::new(OffloadLimits {
            offload_threads_count: 1,
            offload_queue_count: NDT7_ARCHIVE_QUEUE_COUNT,
            ..OffloadLimits::default()
        });
        let rate = Rate { thousandths: u64::MAX, at: SystemTime::UNIX_EPOCH };
        Self { directory, writer, rate: Mutex::new(rate), dropped: AtomicU64::new(0) }
    }

    /// Writes the file of a test by another thread: a disk may take its time, which a loop has not. When too many tests end,
    /// the file is dropped.
    pub(super) fn write(self: &Arc<Self>, record: Record, ended: SystemTime) {
        let takes = self.rate.lock().unwrap_or_else(PoisonError::into_inner).takes(ended);
        let (archive, underway) = (Arc::clone(self), WRITING.begin());
        let job = move || {
            let _underway = underway;
            if let Err(error) = write(&archive.directory, record, ended) {
                archive
                    .report(&format!("the archive file of an ndt7 test can't be written: {error}"));
            }
            let dropped = archive.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                archive
                    .report(&format!("archive files of ndt7 tests were dropped count={dropped}"));
            }
        };
        if (!takes || self.writer.submit(job).is_err())
            && self.dropped.fetch_add(1, Ordering::Relaxed) == 0
        {
            self.report(
                "too many ndt7 tests ended, and archive files are dropped limit=ndt7-archive",
            );
        }
    }

    fn report(&self, what: &str) {
        eprintln!("bolide: {}: {what}", self.directory.display());
    }
}

fn write(directory: &Path, record: Record, ended: SystemTime) -> io::Result<()> {
    let Record { direction, facts, started, .. } = record;
    let name =
        format!("ndt7-{}-{}.{}.json.gz", direction.name(), for_file_name(started), facts.uuid);
    let (start, end) = (json!(rfc3339(started)), json!(rfc3339(ended)));
    let pair = |(name, value)| json!({ "Name": name, "Value": value });
    let metadata: Vec<Value> = record.metadata.into_iter().map(pair).collect();
    let (client_ip, client_port) = split(&facts.client);
    let (server_ip, server_port) = split(&facts.server);
    let version = concat!("bolide ", env!("CARGO_PKG_VERSION"));
    let key = if direction == Direction::Download { "Download" } else { "Upload" };
    // A collector of the files sees whole ones only.
    let unfinished = directory.join(format!("{name}.unfinished"));
    let mut file = GzEncoder::new(File::create(&unfinished)?, Compression::default());
    // Measurements are JSON already.
    write!(
        file,
        r#"{{"GitShortCommit":"","Version":"{version}","ServerIP":{},"ServerPort":{server_port},"#,
        json!(server_ip),
    )?;
    write!(file, r#""ClientIP":{},"ClientPort":{client_port},"#, json!(client_ip))?;
    write!(file, r#""StartTime":{start},"EndTime":{end},"{key}":{{"UUID":{},"#, json!(facts.uuid))?;
    write!(file, r#""StartTime":{start},"EndTime":{end},"#)?;
    let (server, client) = (record.server_measurements, record.client_measurements.kept);
    write!(file, r#""ServerMeasurements":[{}],"#, server.join(","))?;
    write!(file, r#""ClientMeasurements":[{}],"#, client.join(","))?;
    write!(file, r#""ClientMetadata":{},"ServerMetadata":[]}}}}"#, json!(metadata))?;
    file.finish()?.sync_all()?;
    std::fs::rename(&unfinished, directory.join(name))
}

/// Address and port of what a socket address looks like.
fn split(address: &str) -> (&str, u16) {
    let (ip, port) = address.rsplit_once(':').unwrap_or((address, "0"));
    (ip.trim_matches(['[', ']']), port.parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::UNIX_EPOCH;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn an_ndt7_measurement_flood_is_not_kept() {
        let mut kept = ClientMeasurements::default();
        for _ in 0..2 * NDT7_MEASUREMENTS_COUNT {
            kept.push(b"{\"AppInfo\":{}}", End::Yes);
        }
        assert_eq!(kept.kept.len(), NDT7_MEASUREMENTS_COUNT);
        let mut kept = ClientMeasurements::default();
        let long = format!("{{\"a\":\"{}\"}}", "b".repeat(NDT7_MEASUREMENT_BYTES));
        for message in [long.as_str(), "7", "not JSON", ""] {
            kept.push(message.as_bytes(), End::Yes);
        }
        // One that never ends is not held either.
        for _ in 0..1000 {
            kept.push(&[b' '; 1000], End::No);
            assert!(kept.message.capacity() <= 2 * NDT7_MEASUREMENT_BYTES);
        }
        kept.push(b"{}", End::Yes);
        assert!(kept.kept.is_empty());
        kept.push(b"{}", End::Yes);
        assert_eq!(kept.kept.len(), 1, "the next one is a message of its own");
    }

    #[test]
    fn an_ndt7_measurement_flood_holds_no_more_than_its_text() {
        let mut kept = ClientMeasurements::default();
        let message = format!("{{\"a\":[{}0]}}", "0,".repeat(4000));
        let counted = allocation_counter::measure(|| {
            for _ in 0..NDT7_MEASUREMENTS_COUNT {
                kept.push(message.as_bytes(), End::Yes);
            }
        });
        assert!(kept.kept_bytes <= NDT7_MEASUREMENTS_BYTES && kept.kept.len() >= 60);
        let most = (NDT7_MEASUREMENTS_BYTES + 64 * 1024) as i64;
        assert!(counted.bytes_current <= most, "{counted:?}");
    }

    #[test]
    fn an_ndt7_archive_flood_is_dropped_and_counted() {
        let mut rate = Rate { thousandths: u64::MAX, at: UNIX_EPOCH };
        let taken = (0..10_000).filter(|_| rate.takes(UNIX_EPOCH)).count();
        assert_eq!(taken, NDT7_ARCHIVE_BURST_COUNT as usize);
        let later = UNIX_EPOCH + Duration::from_secs(2);
        let taken = (0..10_000).filter(|_| rate.takes(later)).count();
        assert_eq!(taken, 2 * NDT7_ARCHIVE_REFILL_COUNT as usize);

        let directory = tempfile::tempdir().unwrap();
        let archive = Arc::new(Archive::new(directory.path().to_owned()));
        // The writer is at work until all tests have ended.
        let (ends, may_end) = std::sync::mpsc::channel::<()>();
        archive.writer.submit(move || may_end.recv().unwrap_or_default()).unwrap();
        let tests = 2 * NDT7_ARCHIVE_QUEUE_COUNT as u64;
        for number in 0..tests {
            archive.write(record(&number.to_string()), UNIX_EPOCH);
        }
        let dropped = archive.dropped.load(Ordering::Relaxed);
        assert!((tests / 2..=tests / 2 + 1).contains(&dropped), "{dropped}");
        drop(ends);
        assert_eq!(finish_archives(Duration::from_secs(60)), 0);
        let files = std::fs::read_dir(directory.path()).unwrap().count() as u64;
        assert_eq!((files + dropped, archive.dropped.load(Ordering::Relaxed)), (tests, 0));
    }

    fn record(uuid: &str) -> Record {
        Record {
            direction: Direction::Upload,
            facts: ConnectionFacts {
                client: "[::1]:5".to_owned(),
                server: "10.0.0.1:443".to_owned(),
                uuid: uuid.to_owned(),
                start_time: String::new(),
            },
            started: UNIX_EPOCH,
            server_measurements: vec![r#"{"Origin":"server"}"#.into()],
            client_measurements: ClientMeasurements::default(),
            metadata: vec![("client_name".to_owned(), "a".to_owned())],
        }
    }

    #[test]
    fn files_that_are_being_written_are_waited_for() {
        static FILES: Writing = Writing::new();
        let (one, other) = (FILES.begin(), FILES.begin());
        assert_eq!(FILES.finish(Duration::ZERO), 2);
        drop(one);
        assert_eq!(FILES.finish(Duration::from_millis(1)), 1);
        let (ends, may_end) = std::sync::mpsc::channel();
        let writer = std::thread::spawn(move || {
            may_end.recv().unwrap();
            drop(other);
        });
        ends.send(()).unwrap();
        assert_eq!(FILES.finish(Duration::from_secs(60)), 0);
        writer.join().unwrap();
    }

    #[test]
    fn a_test_becomes_one_whole_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut client_measurements = ClientMeasurements::default();
        client_measurements.push(b"{\"Origin\":", End::No);
        client_measurements.push(b"\"client\"}", End::Yes);
        let record = Record { client_measurements, ..record("host_1_2") };
        Arc::new(Archive::new(directory.path().to_owned())).write(record, UNIX_EPOCH);
        assert_eq!(finish_archives(Duration::from_secs(60)), 0);
        let path = directory.path().join("ndt7-upload-19700101T000000.000000000Z.host_1_2.json.gz");
        let mut text = String::new();
        GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&document["ClientIP"], &document["ClientPort"]), (&json!("::1"), &json!(5)));
        assert_eq!(document["Upload"]["ClientMeasurements"][0]["Origin"], "client");
        assert_eq!(document["Upload"]["ServerMeasurements"][0]["Origin"], "server");
        assert_eq!(document["Upload"]["ClientMetadata"][0]["Name"], "client_name");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
