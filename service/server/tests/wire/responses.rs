//! Responses of handlers, as they arrive on the wire.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::raw_client::Served;
use bolide_server::{
    BodyStream, Bytes, End, Exchange, HeaderMap, HeaderValue, Io, Method, Pull, Reply, Request,
    Response, Router, StatusCode, Waker, collect,
};

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
}

fn routes() -> Router {
    Router::new()
        .get("/ping", |_| "pong")
        .get("/users/{id}", |request| format!("user {}", request.param("id").unwrap()))
        .get("/query", |request| request.query_param("a b").unwrap_or_default().into_owned())
        .get("/empty", |_| StatusCode::NO_CONTENT)
        .get("/panic", |_| -> Response { panic!("on purpose") })
        .get("/split", |_| Response::text("a").header("x-a", "b\r\nx-c: d"))
        .get("/later", |request| {
            let responder = request.responder();
            thread::spawn(move || responder.respond("from another thread"));
            Reply::Later
        })
        .get("/never", |request| {
            drop(request.responder());
            Reply::Later
        })
        .get("/events", events)
        .get("/trailers", |_| Response::stream(Counted(3)))
        .handle(Method::PUT, "/length", collect(|_, body| Response::from(body.len().to_string())))
        .handle(
            Method::POST,
            "/reverse",
            collect(|request, body| {
                assert_eq!(request.method(), Method::POST);
                Response::from(Bytes::from(body.iter().rev().copied().collect::<Vec<u8>>()))
            }),
        )
}

#[derive(Debug)]
struct Counted(u8);

impl BodyStream for Counted {
    fn pull(&mut self, _: usize) -> Pull {
        if self.0 == 0 {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", HeaderValue::from_static("6"));
            return Pull::Trailers(trailers);
        }
        self.0 -= 1;
        Pull::Data(Bytes::from(vec![b'1' + self.0]))
    }
}

/// Server-Sent Events: a body that waits for another thread.
#[derive(Debug)]
struct Events {
    left: VecDeque<&'static str>,
    ready: bool,
    waker: Waker,
}

impl BodyStream for Events {
    fn pull(&mut self, _: usize) -> Pull {
        // Every second pull finds nothing yet, and a thread asks for another.
        self.ready = !self.ready;
        if !self.ready {
            return self.left.pop_front().map_or(Pull::End, |event| Pull::Data(Bytes::from(event)));
        }
        let waker = self.waker.clone();
        thread::spawn(move || waker.wake());
        Pull::Pending
    }
}

fn events(request: &mut Request<'_>) -> Response {
    let left = VecDeque::from(["data: one\n\n", "data: two\n\n"]);
    Response::stream(Events { left, ready: false, waker: request.waker() })
        .header("content-type", HeaderValue::from_static("text/event-stream"))
}

#[test]
fn at_once() {
    let served = Served::new(routes);
    let response = served.ask(&get("/ping"));
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.contains("\r\ncontent-type: text/plain; charset=utf-8\r\n"), "{response}");
    assert!(response.contains("\r\ncontent-length: 4\r\n"), "{response}");
    assert!(response.contains("\r\ndate: "), "{response}");
    assert!(response.ends_with("\r\n\r\npong"), "{response}");
    assert!(served.ask(&get("/users/a%20b")).ends_with("\r\n\r\nuser a b"));
    assert!(served.ask(&get("/query?x=1&a+b=c%2Fd")).ends_with("\r\n\r\nc/d"));
}

#[test]
fn without_a_body() {
    let served = Served::new(routes);
    let empty = served.ask(&get("/empty"));
    assert!(empty.starts_with("HTTP/1.1 204 "), "{empty}");
    assert!(!empty.contains("content-length"), "{empty}");
    let head = served.ask(&get("/ping").replace("GET", "HEAD"));
    assert!(head.contains("\r\ncontent-length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let options = served.ask(&get("/ping").replace("GET", "OPTIONS"));
    assert!(options.starts_with("HTTP/1.1 204 "), "{options}");
    assert!(options.contains("\r\nallow: GET, HEAD, OPTIONS\r\n"), "{options}");
    assert!(served.ask(&get("*").replace("GET", "OPTIONS")).starts_with("HTTP/1.1 204 "));
}

#[test]
fn what_no_handler_takes() {
    let served = Served::new(routes);
    let status = |request: &str| served.ask(request)[9..12].to_owned();
    assert_eq!(status(&get("/nothing")), "404");
    assert_eq!(status(&get("/ping").replace("GET", "BREW")), "501");
    let refused = served.ask(&get("/ping").replace("GET", "DELETE"));
    assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
    assert!(refused.contains("\r\nallow: GET, HEAD, OPTIONS\r\n"), "{refused}");
}

#[test]
fn a_panic_is_a_500_and_the_connection_goes_on() {
    let served = Served::new(routes);
    let mut client = served.connect();
    client.send(b"GET /panic HTTP/1.1\r\nhost: a\r\n\r\nGET /ping HTTP/1.1\r\nhost: a\r\n\r\n");
    let failed = client.answer();
    assert_eq!(failed.status, 500);
    assert_eq!(failed.body, b"500 Internal Server Error\n");
    assert_eq!(client.answer().body, b"pong");
    assert!(served.ask(&get("/split")).starts_with("HTTP/1.1 500 "));
}

#[test]
fn later_from_another_thread() {
    let served = Served::new(routes);
    let mut client = served.connect();
    for _ in 0..50 {
        client.send(b"GET /later HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(client.answer().body, b"from another thread");
    }
    assert!(served.ask(&get("/never")).starts_with("HTTP/1.1 500 "));
}

#[test]
fn events_and_trailers_in_chunks() {
    let served = Served::new(routes);
    let events = served.ask(&get("/events"));
    assert!(events.contains("\r\ntransfer-encoding: chunked\r\n"), "{events}");
    assert!(
        events.ends_with("b\r\ndata: one\n\n\r\nb\r\ndata: two\n\n\r\n0\r\n\r\n"),
        "{events:?}"
    );
    let trailers = served.ask(&get("/trailers"));
    assert!(
        trailers.ends_with("1\r\n3\r\n1\r\n2\r\n1\r\n1\r\n0\r\nx-sum: 6\r\n\r\n"),
        "{trailers:?}"
    );
}

#[test]
fn collected_bodies() {
    let served = Served::new(routes);
    let mut client = served.connect();
    client.send(b"POST /reverse HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc");
    assert_eq!(client.answer().body, b"cba");
    client.send(b"POST /reverse HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send(b"2\r\nab\r\n");
    client.send(b"1\r\nc\r\n0\r\n\r\n");
    assert_eq!(client.answer().body, b"cba");
    client.send(b"POST /reverse HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(client.answer().body, b"");
}

#[test]
fn a_client_that_expects_is_told_to_go_on() {
    let served = Served::new(routes);
    let mut client = served.connect();
    client.send(
        b"PUT /length HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(b"abc");
    assert_eq!(client.answer().body, b"3");
}

/// An exchange that answers each piece of the body with its length, both directions open at once.
#[derive(Debug)]
struct Lengths;

impl Exchange for Lengths {
    fn on_start(&mut self, io: &mut Io<'_>) {
        io.start(&Response::new(StatusCode::OK), None);
    }

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        io.consumed(data.len());
        let sent = io.send(Bytes::from(format!("{}\n", data.len())), end);
        assert!(sent.is_ok(), "an HTTP/1.1 connection takes every small piece");
    }
}

#[test]
fn both_directions_stream_at_once() {
    let served =
        Served::new(|| Router::new().post("/lengths", |_| Reply::Exchange(Box::new(Lengths))));
    let mut client = served.connect();
    client.send(b"POST /lengths HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    client.until("\r\n\r\n");
    for length in [5, 17] {
        client.send(format!("{length:x}\r\n{}\r\n", "x".repeat(length)).as_bytes());
        assert_eq!(client.until("\n\r\n").split_once("\r\n").unwrap().1, format!("{length}\n\r\n"));
    }
    client.send(b"0\r\n\r\n");
    assert_eq!(client.until("0\r\n\r\n"), "2\r\n0\n\r\n0\r\n\r\n");
}

#[test]
fn a_response_that_only_an_end_delimits_is_reset_when_it_breaks_off() {
    #[derive(Debug)]
    struct BreaksOff(u8);
    impl BodyStream for BreaksOff {
        fn pull(&mut self, _: usize) -> Pull {
            self.0 += 1;
            if self.0 == 1 { Pull::Data(Bytes::from_static(b"half")) } else { Pull::Failed }
        }
    }
    let served = Served::new(|| {
        Router::new().get("/half", |_| Response::stream(BreaksOff(0))).get("/pong", |_| "pong")
    });
    let end = |request: &[u8]| {
        let mut client = served.connect();
        client.send(request);
        let mut bytes = Vec::new();
        client.stream.read_to_end(&mut bytes).map_err(|error| error.kind())
    };
    // HTTP/1.0 knows no chunks: an orderly end would say that this was all.
    assert_eq!(end(b"GET /half HTTP/1.0\r\n\r\n"), Err(ErrorKind::ConnectionReset));
    // Chunks show by themselves that the last is missing.
    assert!(end(b"GET /half HTTP/1.1\r\nhost: a\r\n\r\n").is_ok());
    assert!(end(b"GET /pong HTTP/1.0\r\n\r\n").is_ok());
}

#[test]
fn a_response_that_waits_goes_on_when_the_rest_of_its_request_arrives() {
    /// Ends once it is told to.
    #[derive(Debug)]
    struct Held(Arc<AtomicBool>);
    impl BodyStream for Held {
        fn pull(&mut self, _: usize) -> Pull {
            if self.0.load(Ordering::Acquire) {
                return Pull::Last(Bytes::from_static(b"end"));
            }
            Pull::Pending
        }
    }
    let (told, released) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
    let (waker, may_end) = (told.clone(), released.clone());
    let served = Served::new(move || {
        let (waker, may_end) = (waker.clone(), may_end.clone());
        let held = move |request: &mut Request<'_>| {
            *waker.lock().unwrap() = Some(request.waker());
            Reply::Now(Response::stream(Held(may_end.clone())))
        };
        routes().handle(Method::POST, "/held", held)
    });
    let mut client = served.connect();
    client.send(b"POST /held HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n01234");
    assert!(client.until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
    client.send(b"56789");
    // The only worker has read that before it answers others twice.
    for _ in 0..2 {
        assert!(served.ask(&get("/ping")).ends_with("pong"));
    }
    released.store(true, Ordering::Release);
    told.lock().unwrap().take().expect("the handler was called").wake();
    assert_eq!(client.until("0\r\n\r\n"), "3\r\nend\r\n0\r\n\r\n");
}
