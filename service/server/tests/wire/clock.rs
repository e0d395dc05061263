//! A time of day that jumps: `Date` and the log follow it, and no deadline does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bolide_server::{
    AccessLog, ConnectionLimits, Http1Limits, Limits, LogFormat, LogTarget, Router, Server,
    http1_limits,
};

use crate::raw_client::Served;

/// Seconds since the epoch, as the server is told.
static DAY: AtomicU64 = AtomicU64::new(784_111_777);

fn wall_clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(DAY.load(Ordering::Relaxed))
}

const PATIENCE: Duration = Duration::from_secs(20);
const HEAD_TIMEOUT: Duration = Duration::from_millis(500);

#[test]
fn no_deadline_follows_a_clock_that_jumps() {
    let h1 = Http1Limits {
        times: http1_limits::Times { head_timeout: HEAD_TIMEOUT, ..http1_limits::Times::DEFAULT },
        ..Http1Limits::default()
    };
    let connection = ConnectionLimits { h1: Arc::new(h1), ..ConnectionLimits::default() };
    let limits = Limits { connection, ..Limits::default() };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let log = AccessLog::open(LogTarget::File(path.clone()), LogFormat::Json).expect("a log");
    let server = Server::new().limits(limits).wall_clock(wall_clock).access_log(&log);
    let served = Served::with(server, || Router::new().get("/ping", |_| "pong"));
    // Idle all the while: a jump by years doesn't make a minute of it.
    let mut idle = served.connect();
    idle.send(b"GET /ping HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(idle.answer().head.contains("date: Sun, 06 Nov 1994 08:49:37 GMT"));
    for (day, date) in [
        // A day back, to the epoch, and 40 years on.
        (784_025_377, "Sat, 05 Nov 1994 08:49:37 GMT"),
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (2_046_470_400, "Tue, 07 Nov 2034 00:00:00 GMT"),
    ] {
        let mut slow = served.connect();
        slow.send(b"GET /ping HTTP/1.1\r\nho");
        let began = Instant::now();
        DAY.store(day, Ordering::Relaxed);
        let response = String::from_utf8_lossy(&slow.rest()).into_owned();
        let waited = began.elapsed();
        assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
        assert!(waited >= HEAD_TIMEOUT / 2 && waited < PATIENCE / 2, "{waited:?}");
        let deadline = Instant::now() + PATIENCE;
        loop {
            idle.send(b"GET /ping HTTP/1.1\r\nhost: a\r\n\r\n");
            let head = idle.answer().head;
            if head.contains(date) {
                break;
            }
            assert!(Instant::now() < deadline, "the date stays behind: {head}");
        }
    }
    drop(idle);
    served.shut_down();
    assert!(log.flush(PATIENCE));
    let text = std::fs::read_to_string(&path).expect("the log");
    for time in
        ["1994-11-06T08:49:3", "1994-11-05T08:49:3", "1970-01-01T00:00:0", "2034-11-07T00:00:0"]
    {
        let wanted = format!("{{\"time\":\"{time}");
        assert!(text.lines().any(|line| line.starts_with(&wanted)), "no line from {time}");
    }
    assert!(text.lines().all(|line| line.contains("\"duration_us\":") && line.ends_with('}')));
}
