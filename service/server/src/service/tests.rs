//! Allocations of a request: nothing, once a connection has served a few.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant, SystemTime};

use bolide_eventloop::{Limits as LoopLimits, MioKernel, MioListener, Worker};
use bolide_frames::frame;

use super::*;
use crate::{AccessLog, LogFormat, LogTarget, Metrics};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A request whose query and cookie no other has; both enter the table, from which older ones are evicted.
fn h2_request(stream: u32) -> Vec<u8> {
    let mut block = b"\x82\x86\x01\x01a".to_vec();
    block.extend(format!("\x44\x10/ping?{stream:010}").bytes());
    block.extend(format!("\x60\x0fuser={stream:010}").bytes());
    frame(1, 5, stream, &block)
}

/// The same over HTTP/1.1.
fn http1_request(number: u32) -> Vec<u8> {
    format!("GET /ping?{number:010} HTTP/1.1\r\nhost: a\r\ncookie: user={number:010}\r\n\r\n")
        .into_bytes()
}

/// A worker on this thread and a client of it.
struct OneThread {
    worker: Worker<MioKernel, HttpService>,
    client: TcpStream,
}

impl OneThread {
    fn new() -> Self {
        Self::observed(&Observed::default())
    }

    fn observed(observed: &Observed) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().get("/ping", |_| "pong");
        let mut worker = Worker::new(MioKernel::new().unwrap(), LoopLimits::default(), |_| {
            let limits = Limits::default();
            let now = Instant::now();
            HttpService::observed(router, limits, vec![None], SystemTime::now, now, observed)
        });
        worker.listen(MioListener::new(listener.into()).unwrap(), 0).unwrap();
        let client = TcpStream::connect(address).unwrap();
        client.set_nonblocking(true).unwrap();
        Self { worker, client }
    }

    /// Sends `request` and turns the loop until `length` bytes have come back into `response`.
    fn exchange(&mut self, request: &[u8], response: &mut [u8], length: usize) {
        self.client.write_all(request).unwrap();
        let mut received = 0;
        while received < length {
            self.worker.step(Some(Duration::from_millis(1))).unwrap();
            match self.client.read(&mut response[received..]) {
                Ok(0) => panic!("the server closed"),
                Ok(count) => received += count,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert_eq!(received, length);
    }

    /// Reads whatever comes until nothing more does.
    fn settle(&mut self, request: &[u8], response: &mut [u8]) -> usize {
        self.client.write_all(request).unwrap();
        let mut received = 0;
        let mut quiet = 0;
        while quiet < 5 {
            self.worker.step(Some(Duration::from_millis(1))).unwrap();
            match self.client.read(&mut response[received..]) {
                Ok(count) => {
                    received += count;
                    quiet = 0;
                }
                Err(_) => quiet += 1,
            }
        }
        received
    }
}

/// A thousand different requests over HTTP/1.1, one after the other, once twenty have been served.
fn ask_over_http1(mut one: OneThread) -> allocation_counter::AllocationInfo {
    let mut response = vec![0; 65_536];
    let requests: Vec<_> = (0..1021).map(http1_request).collect();
    let length = one.settle(&requests[0], &mut response);
    assert!(response[..length].ends_with(b"pong"));
    for request in &requests[1..21] {
        one.exchange(request, &mut response, length);
    }
    allocation_counter::measure(|| {
        for request in &requests[21..] {
            one.exchange(request, &mut response, length);
        }
    })
}

#[test]
fn an_http1_request_allocates_nothing() {
    let counted = ask_over_http1(OneThread::new());
    // The date's text is made anew once a second.
    assert!(counted.count_total <= 8, "{counted:?}");
}

#[test]
fn a_request_that_is_counted_and_logged_allocates_nothing() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let target = LogTarget::File(file.path().to_owned());
    let log = AccessLog::open(target, LogFormat::Json).unwrap();
    let metrics = Some(Metrics::new());
    let counted = ask_over_http1(OneThread::observed(&Observed {
        metrics,
        access_log: Some(log),
        ..Observed::default()
    }));
    // The same, and a few blocks of lines until the first comes back.
    assert!(counted.count_total <= 24, "{counted:?}");
}

#[test]
fn an_http2_request_allocates_nothing() {
    let mut one = OneThread::new();
    let mut response = vec![0; 65_536];
    let mut opening = PREFACE.to_vec();
    opening.extend_from_slice(&h2_request(1));
    one.settle(&opening, &mut response);
    // Ten requests at once, as a busy client sends them. The requests are made beforehand.
    let batches: Vec<Vec<u8>> = (0..220_u32)
        .map(|batch| (0..10).flat_map(|n| h2_request(3 + 2 * (10 * batch + n))).collect())
        .collect();
    for batch in &batches[..20] {
        let length = one.settle(batch, &mut response);
        assert!(response[..length].ends_with(b"pong"));
    }
    let length = one.settle(&batches[20], &mut response);
    let counted = allocation_counter::measure(|| {
        for batch in &batches[21..] {
            // A new second makes one response longer by its date: read what comes.
            one.client.write_all(batch).unwrap();
            let mut received = 0;
            while received < length {
                one.worker.step(Some(Duration::from_millis(1))).unwrap();
                match one.client.read(&mut response[received..]) {
                    Ok(count) => received += count,
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
        }
    });
    assert!(counted.count_total <= 8, "{counted:?} for {} requests", 10 * (batches.len() - 21));
}
