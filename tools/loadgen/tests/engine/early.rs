//! Responses that come before their request was written: they count for nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use bolide_loadgen::plan::{Load, Plan};
use bolide_loadgen::report::{Failure, PhaseReport};
use bytes::Bytes;
use http::{Method, StatusCode};

use crate::plans::{lasting, plan, requests, run};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nplanted";

/// More than sockets hold, in bytes.
const CONTENT_BYTES: usize = 32 << 20;

/// A server that gives each connection to `serve`, in a thread of its own.
fn serve(serve: impl Fn(&mut BufReader<TcpStream>) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(&mut BufReader::new(socket)));
        }
    });
    address
}

/// Reads a head; whether there was one.
fn read_head(socket: &mut BufReader<TcpStream>) -> bool {
    let mut line = String::new();
    while socket.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if line == "\r\n" {
            return true;
        }
        line.clear();
    }
    false
}

/// A plan for one connection.
fn single(address: SocketAddr) -> Plan {
    Plan { connections: 1, threads: 1, ..plan(address) }
}

/// A plan that posts more than sockets hold.
fn posting(address: SocketAddr) -> Plan {
    let mut plan = single(address);
    let request = &mut plan.requests[0];
    request.method = Method::POST;
    request.body = Bytes::from(vec![0; CONTENT_BYTES]);
    request.answer = None;
    plan
}

/// Posts once to a server that responds to the head and reads no content while the run lasts.
fn answered_early(response: &'static [u8], expected: Vec<StatusCode>) -> PhaseReport {
    let (hold, held) = channel::<()>();
    let held = Mutex::new(held);
    let address = serve(move |socket| {
        if read_head(socket) && socket.get_mut().write_all(response).is_ok() {
            assert!(held.lock().unwrap().recv().is_err(), "nothing is sent");
        }
    });
    let mut plan = posting(address);
    plan.expect.statuses = expected;
    let report = run(&plan, &requests(1));
    drop(hold);
    report
}

#[test]
fn a_second_response_to_one_request_breaks_the_protocol() {
    let address = serve(|socket| {
        while read_head(socket) && socket.get_mut().write_all(&RESPONSE.repeat(2)).is_ok() {}
    });
    let report = run(&single(address), &requests(6));
    assert_eq!((report.counts.started, report.counts.succeeded), (6, 3));
    assert_eq!(report.failures.iter().collect::<Vec<_>>(), [(&Failure::Protocol, &3)]);
    // No request waits for it.
    let report = run(&single(address), &requests(1));
    assert_eq!((report.counts.started, report.counts.succeeded), (1, 1));
    assert_eq!(report.failures.iter().collect::<Vec<_>>(), [(&Failure::Protocol, &1)]);
}

#[test]
fn a_server_that_reads_one_request_and_only_sends_fails_and_nothing_piles_up() {
    let address = serve(|socket| {
        let block = RESPONSE.repeat(1000);
        if read_head(socket) {
            while socket.get_mut().write_all(&block).is_ok() {}
        }
    });
    for depth in [1, 8] {
        let plan = Plan { depth: depth as usize, ..plan(address) };
        let report = run(&plan, &lasting(Load::Closed, 300));
        let counts = report.counts;
        assert!(counts.succeeded <= depth * counts.connections, "{counts:?}");
        // What was begun has responses, or is in a queue.
        assert!(counts.started <= 2 * depth * counts.connections, "{counts:?}");
        assert!(report.failures.contains_key(&Failure::Protocol), "{:?}", report.failures);
        assert!(counts.failed >= counts.succeeded / 2, "{counts:?}");
    }
}

#[test]
fn a_success_before_the_content_was_written_is_a_failure() {
    let report = answered_early(RESPONSE, Vec::new());
    assert_eq!((report.counts.completed, report.counts.succeeded), (1, 0));
    assert_eq!(report.failures.iter().collect::<Vec<_>>(), [(&Failure::Protocol, &1)]);
}

#[test]
fn a_refusal_that_is_expected_may_come_before_the_content_was_written() {
    let refusal = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n";
    let report = answered_early(refusal, vec![StatusCode::PAYLOAD_TOO_LARGE]);
    assert_eq!(report.counts.succeeded, 1, "{:?}", report.failures);
}

#[test]
fn a_response_may_begin_before_the_content_was_written() {
    let address = serve(|socket| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {CONTENT_BYTES}\r\n\r\n");
        while read_head(socket) && socket.get_mut().write_all(head.as_bytes()).is_ok() {
            let mut to = socket.get_ref().try_clone().unwrap();
            let copied = std::io::copy(&mut socket.take(CONTENT_BYTES as u64), &mut to);
            if !copied.is_ok_and(|bytes| bytes == CONTENT_BYTES as u64) {
                return;
            }
        }
    });
    let report = run(&posting(address), &requests(3));
    assert_eq!(report.counts.succeeded, 3, "{:?}", report.failures);
    assert_eq!(report.traffic.payload_received_bytes, 3 * CONTENT_BYTES as u64);
}
