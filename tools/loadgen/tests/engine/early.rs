//! Responses that come before their request was written: they count for nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use bolide_probe::plan::{Load, Plan, Version};
use bolide_probe::report::{Failure, PhaseReport};
use bytes::Bytes;
use http::{Method, StatusCode};

use crate::plans::{lasting, plan, requests, run};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nplanted";

/// More than sockets hold, in bytes.
const CONTENT_BYTES: usize = 32 << 20;

/// A server that gives each connection to `serve`, in a thread of its own.
pub(crate) fn serve(
    serve: impl Fn(&mut BufReader<TcpStream>) + Send + Sync + 'static,
) -> SocketAddr {
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
pub(crate) fn read_head(socket: &mut BufReader<TcpStream>) -> bool {
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
    request.response = None;
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
    assert!(report.traffic.payload_sent_bytes < CONTENT_BYTES as u64, "only what left is counted");
}

/// Posts once over HTTP/2 to a server that responds to the head with this header block, and gives no window.
fn answered_early_over_http2(block: &'static [u8], expected: Vec<StatusCode>) -> PhaseReport {
    let address = serve(move |socket| {
        let mut preface = [0; 24];
        let settings = b"\0\0\0\x04\0\0\0\0\0";
        if socket.read_exact(&mut preface).is_err() || socket.get_mut().write_all(settings).is_err()
        {
            return;
        }
        let mut header = [0; 9];
        while socket.read_exact(&mut header).is_ok() {
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
            if std::io::copy(&mut socket.take(length.into()), &mut std::io::sink()).is_err() {
                return;
            }
            if header[3] == 1 {
                // HEADERS with END_STREAM and END_HEADERS.
                let mut frame = vec![0, 0, block.len() as u8, 1, 5];
                frame.extend_from_slice(&header[5..]);
                frame.extend_from_slice(block);
                let _ = socket.get_mut().write_all(&frame);
            }
        }
    });
    let mut plan = posting(address);
    plan.version = Version::Http2;
    plan.expect.statuses = expected;
    run(&plan, &requests(1))
}

#[test]
fn a_success_before_the_content_left_is_a_failure_over_http2_too() {
    let report = answered_early_over_http2(b"\x88", Vec::new());
    assert_eq!((report.counts.completed, report.counts.succeeded), (1, 0));
    assert_eq!(report.failures.iter().collect::<Vec<_>>(), [(&Failure::Protocol, &1)]);
    assert_eq!(report.traffic.payload_sent_bytes, 65_535, "as much as the window let out");
    let refusal = b"\x08\x03413";
    let report = answered_early_over_http2(refusal, vec![StatusCode::PAYLOAD_TOO_LARGE]);
    assert_eq!(report.counts.succeeded, 1, "{:?}", report.failures);
    assert_eq!(report.traffic.payload_sent_bytes, 65_535);
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
