//! Routes that are exchanged while connections and exchanges go on, and requests that are passed on.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use bolide_server::{
    Handler, Http1Limits, Limits, Reply, Request, Responder, Response, Router, StatusCode, collect,
    http1_limits,
};

use crate::raw_client::Served;

const GET: &[u8] = b"GET /which HTTP/1.1\r\nhost: a\r\n\r\n";

#[test]
fn a_connection_stays_and_finds_the_new_routes() {
    let served = Served::new(|| Router::new().get("/which", |_| "old"));
    let mut client = served.connect();
    client.send(GET);
    assert_eq!(client.answer().body, b"old");
    for number in ["first", "second"] {
        served.reload(move || Router::new().get("/which", move |_| number)).unwrap();
        client.send(GET);
        assert_eq!(client.answer().body, number.as_bytes());
    }
    drop(client);
    assert_eq!(served.shut_down().accepted, 1);
}

#[test]
fn what_is_under_way_ends_as_it_began() {
    let waiting: Arc<Mutex<Option<Responder>>> = Arc::default();
    let kept = Arc::clone(&waiting);
    let served = Served::new(move || {
        let kept = Arc::clone(&kept);
        Router::new().get("/which", move |request| {
            *kept.lock().unwrap() = Some(request.responder());
            Reply::Later
        })
    });
    let mut client = served.connect();
    client.send(GET);
    let responder = loop {
        match waiting.lock().unwrap().take() {
            Some(responder) => break responder,
            None => std::thread::yield_now(),
        }
    };
    served.reload(|| Router::new().get("/which", |_| "new")).unwrap();
    client.send(GET);
    responder.respond("old");
    assert_eq!(client.answer().body, b"old");
    assert_eq!(client.answer().body, b"new");
}

#[test]
fn routes_that_cannot_be_leave_the_old_ones() {
    let served = Served::new(|| Router::new().get("/which", |_| "old"));
    let error = served.reload(|| Router::new().get("which", |_| "new")).unwrap_err();
    assert!(error.to_string().contains("begins with a slash"), "{error}");
    assert!(
        served.ask("GET /which HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").ends_with("old")
    );
}

#[test]
fn no_request_fails_while_routes_are_exchanged() {
    const RELOADS: u32 = 50;
    let served = Served::new(|| Router::new().get("/which", |_| "0"));
    let (ends, responses) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = served.connect();
                let mut last = 0;
                while !ends.load(Ordering::Relaxed) {
                    client.send(GET);
                    let response = client.answer();
                    assert_eq!(response.status, 200);
                    let number = String::from_utf8(response.body).unwrap().parse().unwrap();
                    assert!(last <= number, "old routes came back: {number} after {last}");
                    last = number;
                    responses.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for number in 1..=RELOADS {
            let before = responses.load(Ordering::Relaxed);
            served
                .reload(move || Router::new().get("/which", move |_| number.to_string()))
                .unwrap();
            while responses.load(Ordering::Relaxed) < before + 8 {
                std::thread::yield_now();
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
    let stats = served.shut_down();
    assert_eq!((stats.accepted, stats.panics), (4, 0));
}

/// Asks another thread, which leaves the request to the second handler.
fn hesitant(other: Option<Rc<dyn Handler>>) -> impl Handler {
    move |request: &mut Request<'_>| {
        let responder = request.responder();
        std::thread::spawn(move || responder.pass_on());
        other.as_ref().map_or(Reply::Later, |other| Reply::LaterOr(Rc::clone(other)))
    }
}

#[test]
fn a_request_that_is_passed_on_is_answered_by_the_other_handler() {
    let served = Served::new(|| {
        let echo = |request: &mut Request<'_>| {
            format!("{} {} {:?}", request.method(), request.path(), request.header("x-a"))
        };
        let later = |request: &mut Request<'_>| {
            let responder = request.responder();
            std::thread::spawn(move || responder.respond(StatusCode::ACCEPTED));
            Reply::Later
        };
        Router::new()
            .any("/echo/{any}", hesitant(Some(Rc::new(echo))))
            .any("/twice", hesitant(Some(Rc::new(hesitant(Some(Rc::new(later)))))))
            .any("/nobody", hesitant(None))
            .any(
                "/panic",
                hesitant(Some(Rc::new(|_: &mut Request<'_>| -> Response { panic!("on purpose") }))),
            )
    });
    let mut client = served.connect();
    client.send(b"PUT /echo/1?q HTTP/1.1\r\nhost: a\r\nx-a: b\r\n\r\n");
    assert_eq!(client.answer().body, b"PUT /echo/1 Some(\"b\")");
    for (path, status) in [("/twice", 202), ("/nobody", 404), ("/panic", 500)] {
        client.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes());
        assert_eq!(client.answer().status, status, "{path}");
    }
    // Two that wait at once: responses keep their order.
    client.send(b"GET /echo/1 HTTP/1.1\r\nhost: a\r\n\r\nGET /echo/2 HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(client.answer().body, b"GET /echo/1 None");
    assert_eq!(client.answer().body, b"GET /echo/2 None");
}

#[test]
fn other_limits_count_for_what_comes_later() {
    let served = Served::new(|| {
        let length = |_: &bolide_server::KeptRequest, body: bolide_server::Bytes| {
            Response::from(body.len().to_string())
        };
        Router::new().handle_post("/length", collect(length))
    });
    let with_head = |bytes: usize| {
        let body = "x".repeat(20);
        let padding = "p".repeat(bytes);
        format!(
            "POST /length HTTP/1.1\r\nhost: a\r\np: {padding}\r\ncontent-length: 20\r\n\r\n{body}"
        )
    };
    let mut before = served.connect();
    before.send(with_head(1000).as_bytes());
    assert_eq!(before.answer().body, b"20");
    let mut limits = Limits { body_bytes_max: 30, ..Limits::default() };
    limits.connection.h1 = Arc::new(Http1Limits {
        heads: http1_limits::Heads { head_bytes: 500, ..http1_limits::Heads::DEFAULT },
        ..Http1Limits::default()
    });
    served.set_limits(limits.clone());
    before.send(with_head(1000).as_bytes());
    assert_eq!(before.answer().body, b"20", "an open connection keeps the limits of connections");
    let mut after = served.connect();
    after.send(with_head(1000).as_bytes());
    assert_eq!(after.answer().status, 431);
    served.set_limits(Limits { body_bytes_max: 10, ..limits });
    before.send(with_head(10).as_bytes());
    assert_eq!(before.answer().status, 413, "its next request meets the new limits of requests");
}
