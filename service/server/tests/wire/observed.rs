//! Metrics and access log of what happened on the wire.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use crate::raw_client::Served;
use bolide_frames::{client_preface, frame, rst_stream, window_update};
use bolide_server::{
    AbortReason, AccessLog, Bytes, End, Exchange, Io, LogFormat, LogLimits, LogTarget, Metrics,
    Protocol, Reply, Request, Response, Router, Server, ServerState, Snapshot, Standing,
    StatusCode, admin_routes, collect,
};

/// Begins a response that never ends.
#[derive(Debug)]
struct Endless;

impl Exchange for Endless {
    fn on_start(&mut self, io: &mut Io<'_>) {
        io.note_upstream("http://behind");
        io.start(&Response::new(StatusCode::OK), Some(10));
        io.send(Bytes::from_static(b"12345"), End::No).expect("the first piece");
    }

    fn on_data(&mut self, data: Bytes, _: End, io: &mut Io<'_>) {
        io.consumed(data.len());
    }

    fn on_abort(&mut self, _: AbortReason) {}
}

fn routes() -> Router {
    Router::new()
        .get("/ping", |_| "pong")
        .get("/users/{id}", |request| {
            let responder = request.responder();
            std::thread::spawn(move || responder.respond("later"));
            Reply::Later
        })
        .get("/endless", |_: &mut Request<'_>| Reply::Exchange(Box::new(Endless)))
        .get("/panic", |_| -> Response { panic!("this test panics on purpose") })
        .get("/stuck", |_| {
            std::thread::sleep(Duration::from_millis(1100));
            "at last"
        })
        .handle_post("/body", collect(|_, body| Response::from(body.len().to_string())))
}

fn ask(served: &Served, request: &str) -> String {
    served.ask(&format!("{request}\r\nconnection: close\r\n\r\n"))
}

/// The requests of a route by the class of their response.
fn statuses(snapshot: &Snapshot, name: &str) -> [u64; 6] {
    let route = snapshot.routes.iter().find(|route| route.name == name);
    route.map_or([0; 6], |route| route.statuses)
}

#[test]
fn every_kind_of_request_counts_once() {
    let metrics = Metrics::new();
    assert_eq!(metrics.state(), ServerState::Starting);
    let served = Served::with(Server::new().metrics(&metrics), routes);
    assert_eq!(metrics.state(), ServerState::Ready);
    for _ in 0..3 {
        ask(&served, "GET /ping HTTP/1.1\r\nhost: a");
    }
    ask(&served, "GET /users/7 HTTP/1.1\r\nhost: a");
    ask(&served, "PUT /ping HTTP/1.1\r\nhost: a");
    ask(&served, "GET /nowhere HTTP/1.1\r\nhost: a");
    ask(&served, "GET /panic HTTP/1.1\r\nhost: a");
    ask(&served, "GET /ping HTTP/1.1");
    ask(&served, &format!("GET /{} HTTP/1.1\r\nhost: a", "x".repeat(20_000)));
    ask(&served, "POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 9999999");
    let mut client = served.connect();
    client.send(b"GET /endless HTTP/1.1\r\nhost: a\r\n\r\n");
    client.until("12345");
    assert_eq!(metrics.snapshot().in_flight, 1);
    client.abort();
    served.shut_down();

    let counted = metrics.snapshot();
    assert_eq!(counted.state, ServerState::Draining);
    assert_eq!(statuses(&counted, "/ping"), [0, 0, 3, 0, 1, 0]);
    assert_eq!(statuses(&counted, "/users/{id}"), [0, 0, 1, 0, 0, 0]);
    assert_eq!(statuses(&counted, "/endless"), [0, 0, 1, 0, 0, 0]);
    assert_eq!(statuses(&counted, "/panic"), [0, 0, 0, 0, 0, 1]);
    assert_eq!(statuses(&counted, "/body"), [0, 0, 0, 0, 1, 0]);
    assert_eq!(statuses(&counted, "(none)"), [0, 0, 0, 0, 1, 0]);
    assert_eq!(statuses(&counted, "(refused)"), [0, 0, 0, 0, 2, 0]);
    for route in &counted.routes {
        assert_eq!(route.durations.count(), route.requests(), "{}", route.name);
    }
    assert_eq!((counted.in_flight, counted.handler_panics, counted.workers), (0, 1, 1));
    assert_eq!(counted.ends.limits, [("body-bytes-max", 1), ("request-line-bytes", 1)]);
    assert_eq!(counted.ends.aborts.iter().map(|(_, count)| count).sum::<u64>(), 1, "{counted:?}");
    assert_eq!(counted.event_loop.accepted, 11);
    let closed: u64 = counted.ends.closes.iter().map(|(_, count)| count).sum();
    assert_eq!(closed, 11, "{:?}", counted.ends.closes);
    assert!(counted.connections.iter().all(|kind| kind.count == 0), "{:?}", counted.connections);
    assert!(counted.turns.count() > 0 && counted.event_loop.bytes_sent > 0);
}

#[test]
fn resets_count_by_their_error_code() {
    let metrics = Metrics::new();
    let served = Served::with(Server::new().metrics(&metrics), routes);
    let mut client = served.connect();
    client.send(&client_preface(&[]));
    for (stream, code) in [(1, 8), (3, 8), (5, 0x77)] {
        client.send(&frame(1, 5, stream, b"\x82\x86\x41\x01a\x04\x08/endless"));
        client.send(&rst_stream(stream, code));
    }
    // An increment of 0 is the stream's error (RFC 9113 §6.9).
    client.send(&frame(1, 5, 7, b"\x82\x86\x41\x01a\x04\x08/endless"));
    client.send(&window_update(7, 0));
    // A PING of a stream ends the connection (RFC 9113 §6.7), once all that came before is done.
    client.send(&frame(6, 0, 1, &[0; 8]));
    client.rest();
    drop(client);
    served.shut_down();
    let counted = metrics.snapshot();
    assert_eq!(counted.http2.resets_received, [("CANCEL", 2), ("other", 1)]);
    assert_eq!(counted.http2.resets_sent, [("PROTOCOL_ERROR", 1)]);
    let admin = Served::new(move || admin_routes(&metrics, &[], &[]));
    let text = ask(&admin, "GET /metrics HTTP/1.1\r\nhost: localhost");
    let line = "\nbolide_h2_resets_total{direction=\"received\",code=\"CANCEL\"} 2\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn an_open_connection_stands_where_it_is() {
    let metrics = Metrics::new();
    let served = Served::with(Server::new().metrics(&metrics), routes);
    let mut client = served.connect();
    client.send(b"GET /ping HTTP/1.1\r\nhost: a\r\n\r\n");
    client.answer();
    let open = |metrics: &Metrics| -> Vec<_> {
        let open = metrics.snapshot().connections;
        open.into_iter()
            .filter(|kind| kind.count > 0)
            .map(|kind| (kind.protocol, kind.standing, kind.tls, kind.count))
            .collect()
    };
    assert_eq!(open(&metrics), [(Protocol::Http1, Standing::Idle, false, 1)]);
    client.send(b"GET /endless HTTP/1.1\r\nhost: a\r\n\r\n");
    client.until("12345");
    assert_eq!(open(&metrics), [(Protocol::Http1, Standing::Active, false, 1)]);
    client.abort();
}

#[test]
fn stuck_handler_turns_are_counted() {
    let metrics = Metrics::new();
    let served = Served::with(Server::new().metrics(&metrics), routes);
    let response = ask(&served, "GET /stuck HTTP/1.1\r\nhost: a");
    assert!(response.ends_with("at last"), "{response}");
    served.shut_down();
    let counted = metrics.snapshot();
    assert_eq!(counted.long_turns, 1);
    let stuck = counted.routes.iter().find(|route| route.name == "/stuck").expect("the route");
    assert!(stuck.durations.sum > Duration::from_secs(1), "{stuck:?}");
}

#[test]
fn the_log_has_a_line_for_each_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let log = AccessLog::open(LogTarget::File(path.clone()), LogFormat::Json).expect("a log");
    let served = Served::with(Server::new().access_log(&log), routes);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    ask(
        &served,
        &format!(
            "GET /ping?a=\"b HTTP/1.1\r\nhost: a\r\nuser-agent: x\"\\\r\nauthorization: secret\r\n\
             cookie: secret\r\ntraceparent: 00-{trace}-00f067aa0ba902b7-01"
        ),
    );
    ask(&served, "GET /users/7 HTTP/1.1\r\nhost: a\r\nreferer: http://b/");
    ask(&served, "HEAD /ping HTTP/1.0");
    ask(&served, "GET /ping HTTP/1.1");
    let mut client = served.connect();
    client.send(b"POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n12");
    client.send(b"345");
    assert_eq!(client.answer().body, b"5");
    client.send(b"GET /endless HTTP/1.1\r\nhost: a\r\n\r\n");
    client.until("12345");
    client.abort();
    served.shut_down();
    assert!(log.flush(Duration::from_secs(20)));
    let text = std::fs::read_to_string(&path).expect("the log");
    assert!(!text.contains("secret"), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let expected: [&[&str]; 6] = [
        &[
            "\"peer\":\"127.0.0.1:",
            "\"version\":\"HTTP/1.1\",\"host\":\"a\",\"user_agent\":\"x\\\"\\\\\",\"method\":\"GET\",",
            "\"target\":\"/ping?a=\\\"b\",\"route\":\"/ping\",\"status\":200,\"received_bytes\":0,",
            "\"sent_bytes\":4,\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\"}",
        ],
        &[
            "\"host\":\"a\",\"method\":\"GET\",\"target\":\"/users/7\",\"route\":\"/users/{id}\"",
            "\"sent_bytes\":5,\"response_us\":",
            "\"referer\":\"http://b/\"}",
        ],
        &[
            "\"method\":\"HEAD\"",
            "\"version\":\"HTTP/1.0\",",
            "\"status\":200",
            "\"sent_bytes\":0}",
        ],
        &["\"peer\":\"127.0.0.1:", "\"HTTP/1.1\",\"route\":\"(refused)\"", "\"status\":400,"],
        &["\"method\":\"POST\"", "\"status\":200,\"received_bytes\":5,\"sent_bytes\":1"],
        &[
            "\"target\":\"/endless\"",
            "\"upstream\":\"http://behind\",\"abort\":\"",
            "\"sent_bytes\":5,",
        ],
    ];
    assert_eq!(lines.len(), expected.len(), "{text}");
    for (line, parts) in lines.into_iter().zip(expected) {
        assert!(line.starts_with("{\"time\":\"20") && line.ends_with('}'), "{line}");
        for part in parts {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }
    assert_eq!((log.stats().written, log.stats().dropped, log.stats().failed), (6, 0, 0));
}

/// Lines may wait for an hour here: only the change of the file can have written them.
#[test]
fn a_line_belongs_to_the_log_in_force_when_it_was_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, other, moved] = ["one", "other", "moved"].map(|name| directory.path().join(name));
    let limits = LogLimits { delay: Duration::from_secs(3600), ..LogLimits::default() };
    let target = LogTarget::File(one.clone());
    let log = AccessLog::with_limits(target, LogFormat::Common, limits).expect("a log");
    // A log may have lines of several servers, with a worker each.
    let servers = [(); 2].map(|()| Served::with(Server::new().access_log(&log), routes));
    let written = |path: &Path| {
        assert!(log.flush(Duration::from_secs(20)));
        let text = std::fs::read_to_string(path).expect("a log");
        let target = |line: &str| line.split(' ').nth(6).unwrap_or_default().to_owned();
        text.lines().map(target).collect::<Vec<_>>()
    };
    let ask = |what: &str| {
        for served in &servers {
            let mut client = served.connect();
            client.send(format!("GET /ping?{what} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes());
            assert_eq!(client.answer().body, b"pong");
        }
    };
    ask("first");
    assert!(written(&one).is_empty(), "they wait");
    // A file that can't be opened changes nothing.
    let nowhere = LogTarget::File(directory.path().join("none/log"));
    assert_eq!(log.redirect(nowhere).expect_err("no directory").kind(), ErrorKind::NotFound);
    log.redirect(LogTarget::File(other.clone())).expect("another file");
    assert_eq!(written(&one), ["/ping?first"; 2]);
    ask("redirected");
    std::fs::rename(&other, &moved).expect("it is there");
    log.reopen();
    assert_eq!(written(&moved), ["/ping?redirected"; 2]);
    ask("reopened");
    assert!(written(&other).is_empty(), "they wait");
    for served in servers {
        served.shut_down();
    }
    assert_eq!(written(&other), ["/ping?reopened"; 2]);
    assert_eq!((written(&one).len(), written(&moved).len()), (2, 2));
    assert_eq!((log.stats().written, log.stats().dropped, log.stats().failed), (6, 0, 0));
    // No connection is left that could have lines.
    log.reopen();
}

#[test]
fn the_admin_routes_say_how_it_is() {
    let metrics = Metrics::new();
    let watched = metrics.clone();
    let admin = Served::new(move || admin_routes(&watched, &[], &[]));
    let response = ask(&admin, "GET /readyz HTTP/1.1\r\nhost: localhost");
    assert!(response.starts_with("HTTP/1.1 503") && response.ends_with("starting\n"), "{response}");
    let served = Served::with(Server::new().metrics(&metrics), routes);
    ask(&served, "GET /ping HTTP/1.1\r\nhost: a");
    let response = ask(&admin, "GET /readyz HTTP/1.1\r\nhost: localhost");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let response = ask(&admin, "GET /metrics HTTP/1.1\r\nhost: localhost");
    assert!(
        response.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{response}"
    );
    let line = "\nbolide_requests_total{route=\"/ping\",status=\"2xx\"} 1\n";
    assert!(response.contains(line), "{response}");
    served.shut_down();
    let response = ask(&admin, "GET /readyz HTTP/1.1\r\nhost: localhost");
    assert!(response.starts_with("HTTP/1.1 503") && response.ends_with("draining\n"), "{response}");
    assert!(ask(&admin, "GET /healthz HTTP/1.1\r\nhost: localhost").starts_with("HTTP/1.1 200"));
}

#[test]
fn the_admin_routes_refuse_other_names_and_pages_of_other_sites() {
    let metrics = Metrics::new();
    let names = ["metrics.example".to_owned()];
    let admin = Served::new(move || admin_routes(&metrics, &[], &names));
    let status =
        |fields: &str| ask(&admin, &format!("GET /metrics HTTP/1.1\r\n{fields}"))[9..12].to_owned();
    for own in ["localhost", "127.0.0.1:9090", "metrics.example"] {
        assert_eq!(status(&format!("host: {own}")), "200", "{own}");
        assert_eq!(status(&format!("host: {own}\r\norigin: http://{own}")), "200", "{own}");
        assert_eq!(status(&format!("host: {own}\r\norigin: http://evil.example")), "403", "{own}");
        assert_eq!(status(&format!("host: {own}\r\norigin: null")), "403", "{own}");
    }
    for path in ["/", "/metrics", "/healthz", "/readyz", "/profile"] {
        let response = ask(&admin, &format!("GET {path} HTTP/1.1\r\nhost: evil.example"));
        assert!(response.starts_with("HTTP/1.1 421"), "{path}: {response}");
    }
    let response = ask(&admin, "PUT /profile?one-in=1 HTTP/1.1\r\nhost: evil.example");
    assert!(response.starts_with("HTTP/1.1 421"), "{response}");
}
