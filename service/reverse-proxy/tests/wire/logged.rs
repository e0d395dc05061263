//! Times of upstreams in the access log.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use bolide_server::{AccessLog, LogFormat, LogTarget, Server};

use crate::scene::{Behind, Proxy, settings};

/// A proxy to `behind` is talked to; the lines of its log.
fn logged(behind: &Behind, talk: impl FnOnce(&Proxy)) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let log = AccessLog::open(LogTarget::File(path.clone()), LogFormat::Json).expect("a log");
    let server = Server::new().access_log(&log);
    let proxy = Proxy::on(server, settings(&[&behind.url()]));
    talk(&proxy);
    drop(proxy);
    assert!(log.flush(Duration::from_secs(20)));
    let text = std::fs::read_to_string(path).expect("the log");
    text.lines().map(str::to_owned).collect()
}

/// The number that stands in a field of a line.
fn number(line: &str, field: &str) -> Option<u64> {
    let (_, rest) = line.split_once(&format!("\"{field}\":"))?;
    let digits = rest.split(|byte: char| !byte.is_ascii_digit()).next();
    digits.map(|digits| digits.parse().expect("a number"))
}

#[test]
fn a_line_says_what_an_upstream_took_and_for_what() {
    let (head_seen, goes_on) = channel();
    let goes_on = Mutex::new(goes_on);
    let behind = Behind::new(move |talk, _| {
        while !talk.head().is_empty() {
            talk.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n");
            goes_on.lock().unwrap().recv().expect("the client has the head");
            talk.send("late");
        }
    });
    let lines = logged(&behind, |proxy| {
        let mut talk = proxy.connect();
        for _ in 0..2 {
            talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
            talk.head();
            head_seen.send(()).expect("the upstream waits");
            assert_eq!(talk.take(4), b"late");
        }
    });
    let [first, second] = &lines[..] else { panic!("two lines: {lines:?}") };
    for line in [first, second] {
        assert!(line.contains(&format!("\"upstream\":\"{}\"", behind.url())), "{line}");
        let of = |field| number(line, field).unwrap_or_else(|| panic!("no {field} in {line}"));
        let (head, whole) = (of("upstream_head_us"), of("upstream_us"));
        assert!(head < whole && whole <= of("duration_us"), "{line}");
        assert!(head <= of("response_us") && of("send_us") > 0, "{line}");
    }
    assert!(number(first, "upstream_connect_us").is_some(), "a connection was made: {first}");
    assert_eq!(number(second, "upstream_connect_us"), None, "one was at hand: {second}");
}

#[test]
fn an_upstream_that_breaks_off_is_timed_until_then() {
    let behind = Behind::new(|talk, _| {
        talk.head();
    });
    let lines = logged(&behind, |proxy| {
        assert!(proxy.get().starts_with("HTTP/1.1 502"));
    });
    let [line] = &lines[..] else { panic!("one line: {lines:?}") };
    assert!(number(line, "upstream_us").is_some(), "{line}");
    assert_eq!(number(line, "upstream_head_us"), None, "{line}");
}

#[test]
fn a_client_that_closes_ends_its_request_upstream_and_its_line_says_so() {
    for (begun, status) in [("", 0), ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart", 200)] {
        let (sender, told) = channel();
        let behind = Behind::new(move |talk, _| {
            talk.head();
            talk.send(begun);
            sender.send("asked").expect("the test waits");
            talk.rest();
            sender.send("ended").expect("the test waits");
        });
        let lines = logged(&behind, |proxy| {
            let mut talk = proxy.connect();
            talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
            assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok("asked"));
            if !begun.is_empty() {
                talk.until("part");
            }
            drop(talk);
            assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok("ended"));
        });
        let [line] = &lines[..] else { panic!("one line: {lines:?}") };
        assert_eq!(number(line, "status"), Some(status), "{line}");
        assert!(line.contains("\"abort\":\"eof\""), "{line}");
    }
}
