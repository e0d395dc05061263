//! Large files that the kernel sends: the same bytes as those that are read.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bolide_server::{FileVersion, Limits, LoopLimits, SharedFile};
use bolide_static_files::limits::SENDFILE_BYTES;
use bolide_static_files::{Disk, DiskFile, Found, Listed, Stamp, StaticFiles, Time};
use fastrand::Rng;

use crate::client::{Client, Site};

/// Bytes without a period that a mistake in a place could hide behind.
fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Rng::with_seed(length as u64).fill(&mut bytes);
    bytes
}

/// A directory with one real file, `large`, of which every read is counted and none returns without waiting.
#[derive(Debug, Clone)]
struct Counting {
    path: PathBuf,
    reads: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct CountingFile {
    file: File,
    reads: Arc<AtomicUsize>,
}

impl Disk for Counting {
    fn open(&self, name: &str) -> io::Result<Found> {
        if name != "large" {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (file, reads) = (File::open(&self.path)?, Arc::clone(&self.reads));
        Ok(Found::File(Box::new(CountingFile { file, reads })))
    }

    fn list(&self, _: &str, _: usize) -> io::Result<Vec<Listed>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

impl DiskFile for CountingFile {
    fn stamp(&self) -> io::Result<Stamp> {
        let about = self.file.metadata()?;
        let nanoseconds = |value: i64| u32::try_from(value).unwrap();
        Ok(Stamp {
            length: about.len(),
            modified: Time { seconds: about.mtime(), nanoseconds: nanoseconds(about.mtime_nsec()) },
            ..Stamp::default()
        })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.file.read_at(buffer, offset)
    }

    fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        Some(Arc::new(self.file.try_clone().ok()?.into()))
    }
}

/// A site with a counted file of this content.
fn counting(content: &[u8], sends: bool) -> (Site, Counting) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large");
    fs::write(&path, content).unwrap();
    let disk = Counting { path, reads: Arc::default() };
    let files = StaticFiles::from_disk(disk.clone()).sendfile(sends);
    (Site::serving(directory, files), disk)
}

/// Returns whether the system says of a file that all of it is in memory.
fn is_cached(path: &PathBuf) -> bool {
    let file = File::open(path).unwrap();
    let version = FileVersion::of(&file).unwrap();
    let shared = SharedFile::new(Arc::new(file.into()), version);
    shared.is_cached(0, usize::try_from(version.length).unwrap())
}

fn site_of(content: &[u8]) -> Site {
    let site = Site::of(&[]);
    fs::write(site.path("large"), content).unwrap();
    site
}

#[test]
fn what_is_in_memory_is_not_read() {
    let content = noise(3_000_001);
    let (site, disk) = counting(&content, true);
    if !cfg!(target_os = "linux") || !is_cached(&disk.path) {
        println!("SKIPPED: this system doesn't say what is in memory");
        return;
    }
    let reads = || disk.reads.load(Ordering::SeqCst);
    assert!(site.get("/large").body == content);
    assert_eq!(reads(), 0, "the kernel had it");
    let part = site.get_with("/large", &["range: bytes=70000-2500000"]);
    assert!(part.status == 206 && part.body == content[70_000..=2_500_000]);
    assert_eq!(reads(), 0);
    let small = site.get_with("/large", &["range: bytes=1-1000"]);
    assert!(small.body == content[1..=1000]);
    assert_eq!(reads(), 1, "a small range is read");
    let (site, disk) = counting(&content, false);
    assert!(site.get("/large").body == content);
    assert!(disk.reads.load(Ordering::SeqCst) > 3, "turned off, all of it is read");
}

#[test]
fn what_is_not_in_memory_is_read_by_the_pool() {
    let content = noise(2_000_003);
    let (site, disk) = counting(&content, true);
    let file = File::open(&disk.path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    if is_cached(&disk.path) {
        println!("SKIPPED: this file system keeps its files in memory");
        return;
    }
    assert!(site.get("/large").body == content);
    assert!(disk.reads.load(Ordering::SeqCst) > 0, "the loop would have waited for the disk");
}

#[test]
fn every_size_and_range_has_the_same_bytes_either_way() {
    let threshold = usize::try_from(SENDFILE_BYTES).unwrap();
    for length in [threshold - 1, threshold, threshold + 1, 1 << 20, 5_000_011] {
        let content = noise(length);
        let site = site_of(&content);
        let read = Site::serving(
            tempfile::tempdir().unwrap(),
            StaticFiles::new(site.root()).unwrap().sendfile(false),
        );
        let tag = site.get("/large").field("etag").unwrap().to_owned();
        let ranges = [
            String::new(),
            format!("range: bytes=1-{}", length - 2),
            format!("range: bytes={}-", length - 1),
            format!("range: bytes=-{threshold}"),
            "range: bytes=0-0, 5-300000, -7".to_owned(),
            format!("range: bytes=3-\r\nif-range: {tag}"),
            "range: bytes=3-\r\nif-range: \"other\"".to_owned(),
            format!("if-none-match: {tag}"),
        ];
        let (mut client, mut other) = (site.connect(), read.connect());
        for range in &ranges {
            let lines: Vec<&str> = range.split("\r\n").filter(|line| !line.is_empty()).collect();
            let sent = client.ask("GET", "/large", &lines);
            let pulled = other.ask("GET", "/large", &lines);
            assert!(sent.complete && pulled.complete);
            assert_eq!((sent.status, sent.body.len()), (pulled.status, pulled.body.len()));
            // The boundary of several parts is made anew for each response.
            let is_multiple = sent.head.contains("multipart/");
            assert!(is_multiple || sent.body == pulled.body, "{length}: {range}");
            let fields = ["content-length", "content-range", "etag", "accept-ranges"];
            for field in fields {
                assert_eq!(sent.field(field), pulled.field(field), "{length}: {range}");
            }
        }
        assert!(client.ask("GET", "/large", &[]).body == content);
        let head = client.ask("HEAD", "/large", &[]);
        assert_eq!(head.field("content-length"), Some(length.to_string().as_str()));
        assert_eq!(client.ask("GET", "/ping", &[]).text(), "pong", "nothing follows a HEAD");
    }
}

#[test]
fn what_was_asked_behind_a_file_comes_behind_it() {
    let content = noise(1_500_000);
    let site = site_of(&content);
    let mut client = site.connect();
    for _ in 0..3 {
        client.send("GET", "/large", &[]);
        client.send("GET", "/ping", &[]);
        client.send("GET", "/large", &["range: bytes=700000-"]);
        client.send("HEAD", "/large", &[]);
        client.send("GET", "/ping", &[]);
    }
    for _ in 0..3 {
        assert!(client.answer(false).body == content);
        assert_eq!(client.answer(false).text(), "pong");
        assert!(client.answer(false).body == content[700_000..]);
        assert_eq!(client.answer(true).status, 200);
        assert_eq!(client.answer(false).text(), "pong");
    }
}

#[test]
fn a_client_that_reads_little_at_a_time_gets_every_byte() {
    let content = noise(6_000_000);
    let site = site_of(&content);
    let mut stream = site.connect().stream;
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 128 * 1024).unwrap();
    stream.write_all(b"GET /large HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let (mut received, mut piece) = (Vec::new(), [0; 3001]);
    loop {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            count => received.extend_from_slice(&piece[..count]),
        }
    }
    let start = received.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(received[start..] == content);
}

#[test]
fn clients_that_go_in_the_middle_leave_the_server_well() {
    let site = site_of(&noise(20_000_000));
    for turn in 0..30 {
        let mut client = site.connect();
        client.send("GET", "/large", &[]);
        assert_eq!(client.head().0, 200);
        drop(client.take(turn * 50_000));
    }
    assert_eq!(site.get("/ping").text(), "pong");
    let counted = site.counted();
    assert_eq!((counted.panics, counted.open), (0, 0));
}

#[test]
fn what_the_kernel_sends_is_counted_and_finished_before_the_end() {
    let content = noise(30_000_000);
    let site = site_of(&content);
    let mut client = site.connect();
    client.send("GET", "/large", &[]);
    assert_eq!(client.head().0, 200);
    site.shut_down();
    assert!(client.take(content.len()) == content, "a download is broken off by a shutdown");
    drop(client);
    let counted = site.counted();
    assert!(counted.bytes_sent > content.len() as u64, "{counted:?}");
    assert_eq!(counted.closed.drained, 0);
    // One piece is a pass's worth at most: others have their turn in between.
    let pieces = content.len() / LoopLimits::default().turns.pass_bytes;
    assert!(counted.work.turns >= pieces as u64, "{counted:?}");
}

#[test]
fn a_client_that_takes_nothing_of_a_file_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("large"), noise(30_000_000)).unwrap();
    let files = StaticFiles::new(directory.path()).unwrap();
    let mut limits = Limits::default();
    // The second is for the last bytes, once the first is over.
    Arc::make_mut(&mut limits.connection.h1).times.write_timeout = Duration::from_millis(200);
    limits.event_loop.closing.close_stall = Duration::from_millis(200);
    let site = Site::serving_within(directory, files, limits);
    let mut client: Client = site.connect();
    client.send("GET", "/large", &[]);
    assert_eq!(client.head().0, 200);
    let asked = Instant::now();
    // There is no reader: were there no deadline for writing, the patience of the shutdown would end it.
    let counted = site.counted();
    assert_eq!(counted.closed.stalled, 1, "after {:?}: {counted:?}", asked.elapsed());
}

#[test]
fn a_file_that_shrinks_behind_a_full_socket_resets_the_connection() {
    let content = noise(30_000_000);
    let site = site_of(&content);
    let mut client = site.connect();
    client.send("GET", "/large", &[]);
    assert_eq!(client.head().0, 200);
    File::options().write(true).open(site.path("large")).unwrap().set_len(20_000_000).unwrap();
    let rest = client.rest();
    assert!(rest.len() < content.len(), "a response of two versions looks complete");
    assert_eq!(site.get("/ping").text(), "pong");
    drop(client);
    assert_eq!(site.counted().closed.failed, 1, "the file broke the connection, not its client");
}
