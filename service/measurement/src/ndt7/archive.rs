//! A file for each test, as M-Lab's own server writes it.

use std::fs::File;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bolide_server::End;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::Direction;
use super::measurement::ConnectionFacts;
use super::time::{for_file_name, rfc3339};
use crate::limits::{NDT7_MEASUREMENT_BYTES, NDT7_MEASUREMENTS_COUNT};

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
/// They are written by threads of their own, which end with the process: a program calls this once its servers have
/// ended.
pub fn finish_archives(patience: Duration) -> usize {
    WRITING.finish(patience)
}

/// The folder that gets the files.
#[derive(Debug)]
pub(super) struct Archive {
    folder: PathBuf,
}

/// What is known of a test at its end.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) direction: Direction,
    pub(super) facts: ConnectionFacts,
    pub(super) started: SystemTime,
    pub(super) server_measurements: Vec<Value>,
    pub(super) client_measurements: ClientMeasurements,
    pub(super) metadata: Vec<(String, String)>,
}

/// The client's measurements: a limited number of JSON objects.
#[derive(Debug, Default)]
pub(super) struct ClientMeasurements {
    kept: Vec<Value>,
    /// The message that is not complete, unless it is too long.
    message: Vec<u8>,
    is_too_long: bool,
}

impl ClientMeasurements {
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
            && let Ok(value @ Value::Object(_)) = serde_json::from_slice(&message)
        {
            self.kept.push(value);
        }
    }
}

impl Archive {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Writes the file of a test by a thread of its own: a disk may take its time, which a loop has not.
    pub(super) fn write(self: &Arc<Self>, record: Record, ended: SystemTime) {
        let (archive, underway) = (Arc::clone(self), WRITING.begin());
        let name = "ndt7-archive".to_owned();
        let started = std::thread::Builder::new().name(name).spawn(move || {
            let _underway = underway;
            if let Err(error) = write(&archive.folder, record, ended) {
                archive.failed(&error);
            }
        });
        if let Err(error) = started {
            self.failed(&error);
        }
    }

    fn failed(&self, error: &io::Error) {
        let folder = self.folder.display();
        eprintln!("bolide: {folder}: the archive file of an ndt7 test can't be written: {error}");
    }
}

fn write(folder: &Path, record: Record, ended: SystemTime) -> io::Result<()> {
    let Record { direction, facts, started, .. } = record;
    let name =
        format!("ndt7-{}-{}.{}.json.gz", direction.name(), for_file_name(started), facts.uuid);
    let (start, end) = (rfc3339(started), rfc3339(ended));
    let pairs = |pairs: Vec<(String, String)>| -> Vec<Value> {
        let pair = |(name, value)| json!({ "Name": name, "Value": value });
        pairs.into_iter().map(pair).collect()
    };
    let subtest = json!({
        "UUID": facts.uuid,
        "StartTime": start,
        "EndTime": end,
        "ServerMeasurements": record.server_measurements,
        "ClientMeasurements": record.client_measurements.kept,
        "ClientMetadata": pairs(record.metadata),
        "ServerMetadata": [],
    });
    let (client_ip, client_port) = split(&facts.client);
    let (server_ip, server_port) = split(&facts.server);
    let mut document = json!({
        "GitShortCommit": "",
        "Version": concat!("bolide ", env!("CARGO_PKG_VERSION")),
        "ServerIP": server_ip,
        "ServerPort": server_port,
        "ClientIP": client_ip,
        "ClientPort": client_port,
        "StartTime": start,
        "EndTime": end,
    });
    let key = if direction == Direction::Download { "Download" } else { "Upload" };
    document[key] = subtest;
    // Whoever collects the files sees whole ones only.
    let unfinished = folder.join(format!("{name}.unfinished"));
    let mut encoder = GzEncoder::new(File::create(&unfinished)?, Compression::default());
    serde_json::to_writer(&mut encoder, &document)?;
    encoder.finish()?.sync_all()?;
    std::fs::rename(&unfinished, folder.join(name))
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
        let folder = tempfile::tempdir().unwrap();
        let mut client_measurements = ClientMeasurements::default();
        client_measurements.push(b"{\"Origin\":", End::No);
        client_measurements.push(b"\"client\"}", End::Yes);
        let record = Record {
            direction: Direction::Upload,
            facts: ConnectionFacts {
                client: "[::1]:5".to_owned(),
                server: "10.0.0.1:443".to_owned(),
                uuid: "host_1_2".to_owned(),
                start_time: String::new(),
            },
            started: UNIX_EPOCH,
            server_measurements: vec![json!({ "Origin": "server" })],
            client_measurements,
            metadata: vec![("client_name".to_owned(), "a".to_owned())],
        };
        Arc::new(Archive::new(folder.path().to_owned())).write(record, UNIX_EPOCH);
        assert_eq!(finish_archives(Duration::from_secs(60)), 0);
        let path = folder.path().join("ndt7-upload-19700101T000000.000000000Z.host_1_2.json.gz");
        let mut text = String::new();
        GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&document["ClientIP"], &document["ClientPort"]), (&json!("::1"), &json!(5)));
        assert_eq!(document["Upload"]["ClientMeasurements"][0]["Origin"], "client");
        assert_eq!(document["Upload"]["ClientMetadata"][0]["Name"], "client_name");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
