//! One test: ten seconds of messages, and what TCP measured of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bolide_server::websocket::{Close, CloseCode, Kind, Owner, Payload, Socket};
use bolide_server::{Bytes, End};
use fastrand::Rng;

use super::Direction;
use super::archive::{Archive, ClientMeasurements, Record};
use super::measurement::{ConnectionFacts, measurement};
use super::request::Asked;
use super::time::rfc3339;

/// How long a download lasts.
const DOWNLOAD_TIME: Duration = Duration::from_secs(10);

/// How long an upload may last: the client ends it after ten seconds, and may be late.
const UPLOAD_TIME: Duration = Duration::from_secs(13);

/// How often the server tells what it has measured.
const MEASUREMENT_INTERVAL: Duration = Duration::from_millis(250);

/// The first message of a download, in bytes.
const FIRST_MESSAGE_BYTES: usize = 1 << 13;

/// The largest message, in bytes: what the reference client accepts.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Messages double once they are this small a part of what was sent.
const SCALING_FRACTION: u64 = 16;

/// Block that messages are cut from: bytes that no compression on the way helps with.
static FILL: LazyLock<Bytes> = LazyLock::new(|| {
    let mut fill = vec![0; MESSAGE_BYTES_MAX];
    Rng::with_seed(1).fill(&mut fill);
    fill.into()
});

/// A test that runs.
#[derive(Debug)]
pub(super) struct Test {
    direction: Direction,
    asked: Asked,
    archive: Option<Arc<Archive>>,
    facts: Option<ConnectionFacts>,
    started: SystemTime,
    /// The same moment by the loop's clock.
    began: Option<Instant>,
    /// Sent in a download, received in an upload.
    bytes: u64,
    message_bytes: usize,
    client_measurements: ClientMeasurements,
    server_measurements: Vec<Box<str>>,
}

impl Test {
    pub(super) fn new(direction: Direction, asked: Asked, archive: Option<Arc<Archive>>) -> Self {
        Self {
            direction,
            asked,
            archive,
            facts: None,
            started: SystemTime::now(),
            began: None,
            bytes: 0,
            message_bytes: FIRST_MESSAGE_BYTES,
            client_measurements: ClientMeasurements::default(),
            server_measurements: Vec::new(),
        }
    }

    fn elapsed(&self, socket: &Socket<'_, '_>) -> Duration {
        self.began.map_or(Duration::ZERO, |began| socket.now().duration_since(began))
    }

    /// Sends what TCP has measured so far.
    fn measure(&mut self, socket: &mut Socket<'_, '_>) {
        let Some(facts) = &self.facts else { return };
        let (elapsed, tcp) = (self.elapsed(socket), socket.tcp_info());
        let (bytes, bbr) = (self.bytes, socket.bbr());
        let made = measurement(self.direction, facts, elapsed, bytes, tcp.as_ref(), bbr);
        let made = made.to_string();
        if self.archive.is_some() {
            self.server_measurements.push(made.as_str().into());
        }
        // It can only be closed already: the last measurement has left then.
        let _ = socket.send(Kind::Text, made);
    }

    /// Ends the test when it is time. Whether it has ended.
    fn ends(&mut self, socket: &mut Socket<'_, '_>) -> bool {
        let time = match self.direction {
            Direction::Download => DOWNLOAD_TIME,
            Direction::Upload => UPLOAD_TIME,
        };
        let enough = self.asked.end_after_bytes.is_some_and(|bytes| {
            self.bytes >= bytes && socket.tcp_info().is_none_or(|tcp| tcp.bytes_acked >= bytes)
        });
        if !enough && self.elapsed(socket) < time {
            return false;
        }
        self.measure(socket);
        let _ = socket.close(CloseCode::NORMAL, "Done sending");
        socket.wake_at(None);
        true
    }
}

impl Owner for Test {
    fn held_bytes(&self) -> usize {
        let server: usize = self.server_measurements.iter().map(|made| made.len()).sum();
        self.client_measurements.held_bytes() + server
    }

    fn on_open(&mut self, socket: &mut Socket<'_, '_>) {
        let name = |address: Option<std::net::SocketAddr>| {
            address.map_or_else(String::new, |address| address.to_string())
        };
        self.began = Some(socket.now());
        self.facts = Some(ConnectionFacts {
            client: name(socket.peer()),
            server: name(socket.local()),
            uuid: uuid(),
            start_time: rfc3339(self.started),
        });
        socket.wake_at(Some(socket.now() + MEASUREMENT_INTERVAL));
    }

    fn on_message(&mut self, kind: Kind, payload: Payload, end: End, socket: &mut Socket<'_, '_>) {
        if self.direction == Direction::Upload {
            self.bytes += payload.len() as u64;
        } else if kind == Kind::Binary {
            let _ = socket.close(CloseCode::UNSUPPORTED, "a download's client sends no data");
        }
        if kind == Kind::Text && self.archive.is_some() {
            self.client_measurements.push(&payload.into_bytes(), end);
        }
    }

    fn on_sendable(&mut self, socket: &mut Socket<'_, '_>) {
        if self.direction == Direction::Upload || self.ends(socket) {
            return;
        }
        if (self.message_bytes as u64) < self.bytes / SCALING_FRACTION {
            self.message_bytes = (self.message_bytes * 2).min(MESSAGE_BYTES_MAX);
        }
        if socket.send(Kind::Binary, FILL.slice(..self.message_bytes)).is_ok() {
            self.bytes += self.message_bytes as u64;
        }
    }

    fn on_wake(&mut self, socket: &mut Socket<'_, '_>) {
        if !self.ends(socket) {
            self.measure(socket);
            socket.wake_at(Some(socket.now() + MEASUREMENT_INTERVAL));
        }
    }

    fn on_close(&mut self, _: &Close) {
        let (Some(archive), Some(facts)) = (self.archive.take(), self.facts.take()) else { return };
        let record = Record {
            direction: self.direction,
            facts,
            started: self.started,
            server_measurements: std::mem::take(&mut self.server_measurements),
            client_measurements: std::mem::take(&mut self.client_measurements),
            metadata: std::mem::take(&mut self.asked.metadata),
        };
        archive.write(record, SystemTime::now());
    }
}

/// A name for a test that no other has: the start of this process, the process, and a count.
fn uuid() -> String {
    static START: LazyLock<u64> = LazyLock::new(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    });
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("bolide_{}_{:08X}{count:08X}", *START, std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_differ() {
        assert_ne!(uuid(), uuid());
    }

    #[test]
    fn the_fill_is_one_whole_message() {
        assert_eq!(FILL.len(), MESSAGE_BYTES_MAX);
        assert_ne!(FILL[..64], FILL[64..128]);
    }
}
