//! A request whose handler is found out later comes to it with its body.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, StatusCode};

use crate::{Bytes, Handler, Reply, Request, Response, Router, Server, body_limit, collect};

/// Asks another thread, which lets requests pass unless they say no.
struct Deferring<H>(Rc<H>);

impl<H: Handler> Handler for Deferring<H> {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        let responder = request.responder();
        let passes = request.header("x-pass") != Some("no");
        std::thread::spawn(move || {
            if passes {
                responder.pass_on();
            } else {
                responder.respond(Response::error(StatusCode::FORBIDDEN));
            }
        });
        Reply::LaterOr(Rc::<H>::clone(&self.0))
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.0.body_bytes_max()
    }
}

fn router() -> Router {
    let echo = || body_limit(4 << 20, collect(|_, body: Bytes| Response::bytes(body)));
    Router::new()
        .handle(Method::POST, "/once", Deferring(Rc::new(echo())))
        .handle(Method::POST, "/twice", Deferring(Rc::new(Deferring(Rc::new(echo())))))
        .handle(Method::POST, "/now", Deferring(Rc::new(|_: &mut Request<'_>| "now")))
        .handle(Method::POST, "/small", Deferring(Rc::new(body_limit(3, collect(|_, _| "small")))))
}

fn connect(server: &crate::Running) -> TcpStream {
    let stream = TcpStream::connect(server.addresses()[0].unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// All that comes back for these bytes.
fn ask(server: &crate::Running, bytes: &[u8]) -> String {
    let mut stream = connect(server);
    stream.write_all(bytes).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn start() -> crate::Running {
    Server::new().workers(1).http("127.0.0.1:0").start(router).unwrap()
}

fn post(path: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{fields}content-length: {length}\r\n\r\n{body}"
    )
}

#[test]
fn the_body_waits_for_its_handler() {
    let server = start();
    let large = "0123456789".repeat(300_000);
    for path in ["/once", "/twice"] {
        for body in ["", "abc", &large] {
            let response = ask(&server, post(path, "", body).as_bytes());
            assert!(response.starts_with("HTTP/1.1 200 "), "{path}: {response:.200}");
            assert!(response.ends_with(&format!("\r\n\r\n{body}")), "{path} {}", body.len());
        }
        let chunked = format!(
            "POST {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n\
             3\r\nabc\r\n2\r\nde\r\n0\r\nx-trailer: 1\r\n\r\n"
        );
        let response = ask(&server, chunked.as_bytes());
        assert!(response.ends_with("\r\n\r\nabcde"), "{path}: {response}");
    }
    server.shut_down();
    server.join().unwrap();
}

#[test]
fn who_waits_for_100_is_told_by_the_handler_that_wants_the_body() {
    let server = start();
    for path in ["/once", "/twice"] {
        let mut stream = connect(&server);
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut interim = [0; 25];
        stream.read_exact(&mut interim).unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"abc").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.ends_with("\r\n\r\nabc"), "{response}");
    }
    let refused = "POST /once HTTP/1.1\r\nhost: h\r\nx-pass: no\r\nexpect: 100-continue\r\n\
                   connection: close\r\ncontent-length: 3\r\n\r\n";
    let response = ask(&server, refused.as_bytes());
    assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
    server.shut_down();
    server.join().unwrap();
}

#[test]
fn a_body_that_nobody_wants_is_dropped_and_the_connection_goes_on() {
    let server = start();
    let refused = post("/once", "x-pass: no\r\n", "abc").replace("connection: close\r\n", "");
    let now = post("/now", "", "abc").replace("connection: close\r\n", "");
    let last = post("/once", "", "last");
    let responses = ask(&server, [&refused[..], &now, &last].concat().as_bytes());
    let statuses: Vec<&str> =
        responses.match_indices("HTTP/1.1 ").map(|(at, _)| &responses[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["403", "200", "200"], "{responses}");
    assert!(responses.ends_with("\r\n\r\nlast"), "{responses}");
    let too_large = ask(&server, post("/small", "", "abcd").as_bytes());
    assert!(too_large.starts_with("HTTP/1.1 413 "), "{too_large}");
    server.shut_down();
    server.join().unwrap();
}
