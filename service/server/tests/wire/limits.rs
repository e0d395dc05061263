//! Each limit has its status.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::raw_client::Served;
use bolide_frames::{client_preface, data, request};
use bolide_server::{
    AbortReason, Bytes, End, Exchange, Http1Limits, Http2Limits, Io, Limits, LoopLimits, Method,
    Metrics, Reply, Request, Response, Router, Server, StatusCode, body_limit, collect,
    http1_limits, http2_limits,
};

const PATIENCE: Duration = Duration::from_secs(20);

fn routes() -> Router {
    let length = || collect(|_, body| Response::from(body.len().to_string()));
    Router::new()
        .get("/ping", |_| "pong")
        .handle_post("/body", length())
        .handle_post("/large", body_limit(4 * 1024 * 1024, length()))
}

fn status(served: &Served, request: &str) -> String {
    served.ask(request)[9..12].to_owned()
}

#[test]
fn large_body() {
    let served = Served::new(routes);
    let announced = |path: &str, length: usize| {
        let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
        let mut client = served.connect();
        client.send(head.as_bytes());
        if length <= 4 * 1024 * 1024 && path == "/large" || length <= 1024 * 1024 {
            client.send(&vec![b'x'; length]);
        }
        client.answer()
    };
    assert_eq!(announced("/body", 1024 * 1024).body, b"1048576");
    assert_eq!(announced("/body", 1024 * 1024 + 1).status, 413);
    assert_eq!(announced("/large", 4 * 1024 * 1024).body, b"4194304");
    assert_eq!(announced("/large", 4 * 1024 * 1024 + 1).status, 413);

    // The length is not announced: the limit is found when it is passed.
    let mut client = served.connect();
    client.send(b"POST /body HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(65_536));
    for _ in 0..16 {
        client.send(chunk.as_bytes());
    }
    client.send(b"1\r\nx\r\n");
    assert_eq!(client.answer().status, 413);

    // A client that waits to be told is refused before it sends anything.
    let expecting = "POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 1048577\r\n\
                     expect: 100-continue\r\n\r\n";
    let mut client = served.connect();
    client.send(expecting.as_bytes());
    assert_eq!(client.answer().status, 413);
}

#[test]
fn heads() {
    let served = Served::new(routes);
    let long = "x".repeat(20_000);
    let lines = "x-a: b\r\n".repeat(101);
    let ping = "GET /ping HTTP/1.1\r\nhost: a\r\n";
    for (request, expected) in [
        (format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"), "414"),
        (format!("{ping}x-a: {long}{long}\r\n\r\n"), "431"),
        (format!("{ping}{lines}\r\n"), "431"),
        ("GET /ping HTTP/2.0\r\nhost: a\r\n\r\n".to_owned(), "505"),
        ("GET /ping HTTP/1.1\r\n\r\n".to_owned(), "400"),
        (format!("{ping}transfer-encoding: gzip, chunked\r\n\r\n"), "400"),
    ] {
        assert_eq!(status(&served, &request), expected, "{}", &request[..40.min(request.len())]);
    }
    let expecting = "POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\nexpect: tea\r\n\r\n";
    let mut client = served.connect();
    client.send(expecting.as_bytes());
    assert_eq!(client.answer().status, 417);
}

#[test]
fn slow_head_and_slow_body() {
    let mut limits = Limits::default();
    limits.connection.h1 = Arc::new(Http1Limits {
        times: http1_limits::Times {
            head_timeout: Duration::from_millis(100),
            body_timeout: Duration::from_millis(100),
            idle_timeout: Duration::from_millis(300),
            ..http1_limits::Times::DEFAULT
        },
        ..Http1Limits::default()
    });
    limits.connection.h2 = Arc::new(Http2Limits {
        times: http2_limits::Times {
            head_time: Duration::from_millis(100),
            ..http2_limits::Times::DEFAULT
        },
        ..Http2Limits::default()
    });
    let served = Served::with(Server::new().limits(limits), routes);
    assert_eq!(status(&served, "GET /ping HTTP/1.1\r\nho"), "408");
    let body = "POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc";
    assert_eq!(status(&served, body), "408");
    // Nothing at all, and nothing after a response: closed without a word.
    assert_eq!(served.ask(""), "");
    let response = served.ask("GET /ping HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(response.ends_with("pong"), "{response}");
    // A preface without the SETTINGS that belong to it: a GOAWAY (type 7) and the end.
    let mut client = served.connect();
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0");
    let mut kinds = Vec::new();
    let frames = client.rest();
    let mut frames = &frames[..];
    while let [_, high, low, kind, ..] = *frames {
        kinds.push(kind);
        frames = &frames[9 + usize::from(u16::from_be_bytes([high, low]))..];
    }
    assert_eq!(kinds.last(), Some(&7), "{kinds:?}");
}

/// Fate of an exchange, as its handler saw it.
#[derive(Debug)]
struct Watched {
    aborts: Sender<&'static str>,
    /// Begins a response that never ends.
    begins: bool,
}

impl Exchange for Watched {
    fn on_start(&mut self, io: &mut Io<'_>) {
        if self.begins {
            io.start(&Response::new(StatusCode::OK), Some(10));
            io.send(Bytes::from_static(b"12345"), End::No).expect("the first piece");
        }
    }

    fn on_data(&mut self, data: Bytes, _: End, io: &mut Io<'_>) {
        if !data.starts_with(b"keep") {
            io.consumed(data.len());
        }
    }

    fn on_abort(&mut self, reason: AbortReason) {
        self.aborts.send(reason.what).expect("the test listens");
    }
}

/// A server with a handler that takes every request and never completes a response, and what becomes of
/// these.
fn silent(begins: bool, limits: Limits) -> (Served, Receiver<&'static str>) {
    let (aborts, receiver) = mpsc::channel();
    let routes = move || {
        let aborts = aborts.clone();
        let take = move |_: &mut Request<'_>| {
            Reply::Exchange(Box::new(Watched { aborts: aborts.clone(), begins }))
        };
        Router::new()
            .get("/ping", |_| "pong")
            .handle(Method::GET, "/silent", take.clone())
            .handle_post("/silent", take)
    };
    (Served::with(Server::new().limits(limits), routes), receiver)
}

#[test]
fn silent_handler() {
    let limits = Limits { response_timeout: Duration::from_millis(100), ..Limits::default() };
    let (served, aborts) = silent(false, limits);
    let mut client = served.connect();
    client.send(b"GET /silent HTTP/1.1\r\nhost: a\r\n\r\nGET /ping HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(client.answer().status, 503);
    assert_eq!(aborts.recv_timeout(PATIENCE), Ok("the response took too long"));
    assert_eq!(client.answer().body, b"pong", "the connection goes on");
    // A request that still arrives is not late, whether its handler takes it or not.
    let mut client = served.connect();
    client.send(b"POST /silent HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n");
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        client.send(b"keep");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(aborts.try_recv().is_err(), "it was ended while its body arrived");
    assert_eq!(client.answer().status, 503);
}

#[test]
fn a_handler_that_waits_for_its_client_is_not_late() {
    let timeout = Duration::from_millis(150);
    let limits = Limits { response_timeout: timeout, ..Limits::default() };
    let (served, aborts) = silent(false, limits);
    let http1 = b"POST /silent HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n";
    let http2 = [client_preface(&[]), request(1, "POST", "/silent", false)].concat();
    for is_http2 in [false, true] {
        let head = if is_http2 { &http2[..] } else { &http1[..] };
        for (part, end) in [("takes", End::Yes), ("keep", End::No)] {
            let part = match is_http2 {
                true => data(1, end == End::Yes, part.as_bytes()),
                false => part.as_bytes().to_vec(),
            };
            let mut client = served.connect();
            client.send(head);
            let aborted = aborts.recv_timeout(4 * timeout);
            assert_eq!(aborted, Err(RecvTimeoutError::Timeout), "nothing has come of the body");
            client.send(&part);
            assert_eq!(aborts.recv_timeout(PATIENCE), Ok("the response took too long"));
        }
    }
}

#[test]
fn a_client_that_stops_in_a_body_is_late() {
    let mut limits = Limits { response_timeout: Duration::from_millis(100), ..Limits::default() };
    limits.connection.h1 = Arc::new(Http1Limits {
        times: http1_limits::Times {
            body_timeout: Duration::from_millis(300),
            ..http1_limits::Times::DEFAULT
        },
        ..Http1Limits::default()
    });
    let (served, aborts) = silent(false, limits);
    let mut client = served.connect();
    client.send(b"POST /silent HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nx");
    assert_eq!(client.answer().status, 408);
    assert_eq!(aborts.recv_timeout(PATIENCE), Ok("the rest of the request was wrong, or late"));
}

#[test]
fn endless_exchange() {
    let limits = Limits { exchange_timeout: Duration::from_millis(100), ..Limits::default() };
    let (served, aborts) = silent(true, limits);
    let mut client = served.connect();
    client.send(b"GET /silent HTTP/1.1\r\nhost: a\r\n\r\n");
    let response = client.rest();
    assert!(
        response.ends_with(b"\r\n\r\n12345"),
        "the response breaks off, and the connection with it"
    );
    assert_eq!(aborts.recv_timeout(PATIENCE), Ok("the response took too long"));
}

#[test]
fn connection_flood() {
    let event_loop = LoopLimits { connections_max_count: 1, ..LoopLimits::default() };
    let limits = Limits { event_loop, ..Limits::default() };
    let served = Served::with(Server::new().limits(limits), routes);
    let ping = || {
        let mut client = served.connect();
        client.send(b"GET /ping HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(client.answer().body, b"pong");
        client
    };
    let (mut first, _second) = (ping(), ping());
    assert_eq!(first.rest(), b"", "the idle one has made room");
}

#[test]
fn memory_of_a_worker_is_given_back_by_who_holds_most() {
    let event_loop = LoopLimits { held_bytes_max: 3 << 20, ..LoopLimits::default() };
    let limits = Limits { event_loop, ..Limits::default() };
    let metrics = Metrics::new();
    let server = Server::new().limits(limits).workers(1).metrics(&metrics);
    let served = Served::with(server, routes);
    let mut modest = served.connect();
    modest.send(b"POST /large HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n");
    modest.send(&[b'x'; 90_000]);
    let mut greedy = served.connect();
    greedy.send(b"POST /large HTTP/1.1\r\nhost: a\r\ncontent-length: 4194304\r\n\r\n");
    // It may be closed while it sends.
    let _ = greedy.stream.write_all(&vec![b'x'; (4 << 20) - 1]);
    let _ = greedy.stream.read_to_end(&mut Vec::new());
    modest.send(&[b'x'; 10_000]);
    assert_eq!(modest.answer().body, b"100000");
    let counted = metrics.snapshot();
    assert!(counted.ends.closes.contains(&("memory", 1)), "{:?}", counted.ends.closes);
    assert!(counted.ends.limits.contains(&("held-bytes-max", 1)), "{:?}", counted.ends.limits);
}

#[test]
fn a_handler_learns_that_its_client_has_gone() {
    let (served, aborts) = silent(true, Limits::default());
    let mut client = served.connect();
    client.send(b"GET /silent HTTP/1.1\r\nhost: a\r\n\r\n");
    // An end that leaves bytes unread is a reset; a mere FIN would say that the client still reads.
    client.stream.peek(&mut [0]).expect("the response has begun");
    drop(client);
    assert_eq!(aborts.recv_timeout(PATIENCE), Ok("the connection failed"));
}
