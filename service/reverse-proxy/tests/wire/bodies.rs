//! Bodies and trailers, both ways.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bolide_reverse_proxy::ProxyLimits;

use crate::scene::{Behind, Proxy, Talk};

/// Answers with what it was sent, coded as it was.
fn echo(talk: &mut Talk, _: usize) {
    loop {
        let head = talk.head();
        if head.is_empty() {
            return;
        }
        if head.contains("transfer-encoding: chunked") {
            let body = talk.until("0\r\n") + &talk.until("\r\n\r\n");
            talk.send(&format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}"));
        } else {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let body = talk.take(length.map_or(0, |length| length.parse().expect("a length")));
            talk.send(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()));
            talk.stream.write_all(&body).expect("it reads");
        }
    }
}

#[test]
fn bodies_of_known_length_pass_both_ways() {
    let behind = Behind::new(echo);
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    for length in [0, 1, 1000, 70_000, 3_000_000] {
        let body: String = (0..length).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
        talk.send(&format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}"));
        let response = talk.message();
        let (head, got) = response.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("content-length: {length}")), "{head}");
        assert!(got == body, "{length} bytes come back");
    }
    assert_eq!(behind.connections(), 1);
}

#[test]
fn chunked_bodies_and_trailers_pass_both_ways() {
    let behind = Behind::new(echo);
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    for _ in 0..2 {
        talk.send("PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n5\r\nhello\r\n");
        talk.send("6\r\n world\r\n0\r\nx-sum: 11\r\n\r\n");
        let head = talk.head();
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        let body = talk.until("0\r\n") + &talk.until("\r\n\r\n");
        let plain: String = body.split("\r\n").skip(1).step_by(2).collect();
        assert!(
            plain.starts_with("hello world") && body.ends_with("0\r\nx-sum: 11\r\n\r\n"),
            "{body}"
        );
    }
}

#[test]
fn a_body_that_ends_with_its_connection_is_chunked_for_the_client() {
    let behind = Behind::new(|talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\n\r\nall of it");
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    for _ in 0..2 {
        talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        assert!(talk.head().contains("transfer-encoding: chunked"));
        assert_eq!(talk.until("0\r\n\r\n"), "9\r\nall of it\r\n0\r\n\r\n");
    }
    assert_eq!(behind.connections(), 2);
}

#[test]
fn an_upstream_that_answers_early_ends_the_upload() {
    let behind = Behind::new(|talk, _| {
        talk.head();
        talk.send("HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nno\n");
        talk.rest();
    });
    let limits = ProxyLimits { connections_count: 1, ..ProxyLimits::default() };
    let proxy = Proxy::limited(&[&behind.url()], limits);
    for connections in [1, 2, 3] {
        let mut talk = proxy.connect();
        talk.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nsome");
        let response = talk.message();
        assert!(response.starts_with("HTTP/1.1 413") && response.ends_with("no\n"), "{response}");
        assert_eq!(behind.connections(), connections, "the one before has ended");
    }
}

/// How much an upstream can write without a reader, in bytes.
const HELD_BYTES_MAX: usize = 16 << 20;

#[test]
fn a_client_that_does_not_read_stops_the_upstream() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let behind = Behind::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 300000000\r\n\r\n");
        let piece = vec![b'x'; 100_000];
        while count.load(Ordering::SeqCst) < 300_000_000 && talk.stream.write_all(&piece).is_ok() {
            count.fetch_add(piece.len(), Ordering::SeqCst);
        }
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    talk.head();
    // Until nothing moves any more: what the kernels hold differs from system to system.
    let mut before = usize::MAX;
    while before != written.load(Ordering::SeqCst) {
        before = written.load(Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    assert!(before < HELD_BYTES_MAX, "{before} bytes were taken from the upstream");
    assert_eq!(talk.take(300_000_000).len(), 300_000_000, "and then all of it comes");
}

#[test]
fn an_upstream_that_does_not_read_stops_the_client() {
    let behind = Behind::new(|talk, _| {
        talk.head();
        // Reads when the test has looked.
        assert_eq!(talk.take(50_000_000).len(), 50_000_000);
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        talk.rest();
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    talk.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 50000000\r\n\r\n");
    let piece = "y".repeat(1_000_000);
    for _ in 0..50 {
        talk.send(&piece);
    }
    assert!(talk.message().ends_with("ok"));
}

#[test]
fn slow_downloads_do_not_stop_others_on_the_same_connection() {
    use bolide_server::{Bytes, Pull, Response, Router, Server};

    /// It never ends.
    #[derive(Debug)]
    struct Zeros;

    impl bolide_server::BodyStream for Zeros {
        fn pull(&mut self, _: usize) -> Pull {
            Pull::Data(Bytes::from_static(&[0; 65_536]))
        }
    }

    let behind = Server::new()
        .workers(1)
        .drain(std::time::Duration::ZERO)
        .http("127.0.0.1:0")
        .start(|| Router::new().get("/zeros", |_| Response::stream(Zeros)).get("/", |_| "quick"))
        .expect("a free port");
    let proxy = Proxy::to(&[&format!("h2c://{}", behind.addresses()[0].expect("an address"))]);
    let mut slow: Vec<_> = (0..60).map(|_| proxy.connect()).collect();
    for talk in &mut slow {
        talk.send("GET /zeros HTTP/1.1\r\nhost: a\r\n\r\n");
        // It is read for a while, so that its window grows, and then no more.
        assert_eq!(talk.take(1 << 20).len(), 1 << 20);
    }
    assert!(proxy.get().ends_with("quick"));
    assert_eq!(proxy.settings.stats()[0].connections, 1, "all of it goes over one connection");
    drop(slow);
    drop(proxy);
    behind.shut_down();
    behind.join().expect("no worker failed");
}
