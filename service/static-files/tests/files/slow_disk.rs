//! A disk that is slow, full of work or broken: the loop goes on.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bolide_eventloop::{Offload, OffloadLimits};
use bolide_static_files::{Disk, DiskFile, Found, Listed, Stamp, StaticFiles};

use crate::client::{Client, Site};

const LARGE_BYTES: u64 = 1024 * 1024;

/// Gate that holds every call until it is opened.
#[derive(Debug, Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let is_open = self.is_open.lock().unwrap();
        self.changed.notify_all();
        let limit = Duration::from_secs(20);
        drop(self.changed.wait_timeout_while(is_open, limit, |is_open| !*is_open).unwrap());
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Waits until `count` calls have come.
    fn wait_for(&self, count: usize) {
        let is_open = self.is_open.lock().unwrap();
        let come = |_: &mut bool| self.waiting.load(Ordering::SeqCst) < count;
        let limit = Duration::from_secs(20);
        let waited = self.changed.wait_timeout_while(is_open, limit, come).unwrap();
        assert!(!waited.1.timed_out(), "the disk was not asked");
    }
}

/// A disk with any file: those below `open/` are slow to open, those below `read/` slow to read.
#[derive(Debug)]
struct Planted(Arc<Gate>);

impl Disk for Planted {
    fn open(&self, name: &str) -> io::Result<Found> {
        if name.ends_with(".br") || name.ends_with(".zst") || name.ends_with(".gz") {
            return Err(io::ErrorKind::NotFound.into());
        }
        assert!(!name.contains("panic"), "a disk that fails in the worst way");
        if name.contains("broken") {
            return Err(io::Error::other("the disk is broken"));
        }
        if name.contains("open/") {
            self.0.pass();
        }
        let gate = name.contains("read/").then(|| Arc::clone(&self.0));
        let length = if name.contains("large") { LARGE_BYTES } else { 5 };
        Ok(Found::File(Box::new(PlantedFile { gate, length })))
    }

    fn list(&self, _: &str, _: usize) -> io::Result<Vec<Listed>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[derive(Debug)]
struct PlantedFile {
    gate: Option<Arc<Gate>>,
    length: u64,
}

impl DiskFile for PlantedFile {
    fn stamp(&self) -> io::Result<Stamp> {
        Ok(Stamp { length: self.length, ..Stamp::default() })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(gate) = &self.gate {
            gate.pass();
        }
        let left = usize::try_from(self.length - offset).unwrap().min(buffer.len());
        buffer[..left].fill(b'x');
        Ok(left)
    }
}

fn site(options: impl FnOnce(StaticFiles) -> StaticFiles) -> (Site, Arc<Gate>) {
    let gate = Arc::<Gate>::default();
    let files = options(StaticFiles::from_disk(Planted(Arc::clone(&gate))));
    (Site::serving(tempfile::tempdir().unwrap(), files), gate)
}

fn asking(site: &Site, path: &str) -> Client {
    let mut client = site.connect();
    client.send("GET", path, &[]);
    client
}

#[test]
fn a_disk_that_is_slow_to_open_does_not_stop_the_loop() {
    let (site, gate) = site(|site| site);
    let mut slow = asking(&site, "/open/a");
    gate.wait_for(1);
    // All on the one worker, whose only thread would hang if it waited.
    assert_eq!(site.get("/ping").text(), "pong");
    assert_eq!(site.get("/other").text(), "xxxxx");
    gate.open();
    assert_eq!(slow.answer(false).text(), "xxxxx");
}

#[test]
fn a_disk_that_is_slow_to_read_does_not_stop_the_loop() {
    let (site, gate) = site(|site| site);
    let mut small = asking(&site, "/read/a");
    let mut large = asking(&site, "/read/large");
    assert_eq!(large.head().0, 200);
    gate.wait_for(2);
    assert_eq!(site.get("/ping").text(), "pong");
    gate.open();
    assert_eq!(small.answer(false).text(), "xxxxx");
    let body = large.take(usize::try_from(LARGE_BYTES).unwrap());
    assert!(body.iter().all(|byte| *byte == b'x'));
}

#[test]
fn those_who_ask_for_the_same_wait_together() {
    let (site, gate) = site(|site| site);
    let mut first = asking(&site, "/open/a");
    gate.wait_for(1);
    let mut others: Vec<_> = (0..100).map(|_| asking(&site, "/open/a")).collect();
    // The worker has taken their requests when it has answered a later one.
    assert_eq!(site.get("/ping").text(), "pong");
    gate.open();
    assert_eq!(first.answer(false).text(), "xxxxx");
    for other in &mut others {
        assert_eq!(other.answer(false).text(), "xxxxx");
    }
    assert!(gate.waiting.load(Ordering::SeqCst) <= 3, "the disk was asked for each");
}

#[test]
fn a_flood_for_a_slow_disk_is_turned_away() {
    let limits =
        OffloadLimits { offload_threads_count: 1, offload_queue_count: 2, ..Default::default() };
    let (site, gate) = site(|site| site.offload(Offload::new(limits)));
    let mut running = asking(&site, "/open/0");
    gate.wait_for(1);
    let mut queued: Vec<_> = (1..=2).map(|n| asking(&site, &format!("/open/{n}"))).collect();
    assert_eq!(site.get("/ping").text(), "pong");
    let refused = site.get("/open/3");
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")));
    gate.open();
    assert_eq!(running.answer(false).status, 200);
    for one in &mut queued {
        assert_eq!(one.answer(false).status, 200);
    }
    assert_eq!(site.get("/open/3").status, 200, "the flood is over");
}

#[test]
fn a_disk_that_fails_is_an_error_of_that_request_alone() {
    let (site, _gate) = site(|site| site);
    assert_eq!(site.get("/broken").status, 503);
    assert_eq!(site.get("/panic").status, 503);
    assert_eq!(site.get("/a").status, 200);
}

#[test]
fn a_hung_disk_does_not_collect_requests_without_end() {
    let (site, gate) = site(|site| site.waiting(10_000));
    let mut first = asking(&site, "/open/a");
    gate.wait_for(1);
    // Who goes away holds its place until the disk answers: for all that the disk knows, it waits.
    for _ in 0..100 {
        drop(asking(&site, "/open/a"));
    }
    assert_eq!(site.get("/ping").text(), "pong");
    assert_eq!(site.get("/open/a").status, 503);
    assert_eq!(site.get("/ping").text(), "pong");
    gate.open();
    assert_eq!(first.answer(false).text(), "xxxxx");
    assert_eq!(site.get("/open/a").text(), "xxxxx");
    // Those who have gone are told one after the other: their places are free soon, not at once.
    let opened = std::time::Instant::now();
    let mut response = site.get("/open/b");
    while response.status == 503 && opened.elapsed() < Duration::from_secs(20) {
        response = site.get("/open/b");
    }
    assert_eq!(response.text(), "xxxxx", "the places are free again");
    let (site, _gate) = self::site(|site| site.waiting(10_000));
    let long = format!("if-none-match: \"{}\"", "a".repeat(20_000));
    assert_eq!(site.get_with("/a", &[&long]).status, 503, "a head counts by its length");
}
