//! Bodies in both directions, at the pace of the slower end.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bolide::client::{Client, ClientLimits, ErrorKind};
use bolide::http::{HeaderMap, HeaderValue};

use crate::scene::{Ours, Scripted, pattern};

const LENGTH: usize = 5_000_000;

/// A body as [`pattern`] has it, which counts what was read of it.
struct Patterned {
    at: usize,
    total: usize,
    read: Arc<AtomicUsize>,
}

impl Read for Patterned {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(self.total - self.at);
        for (place, byte) in into[..count].iter_mut().enumerate() {
            *byte = pattern(self.at + place);
        }
        self.at += count;
        self.read.store(self.at, Ordering::SeqCst);
        Ok(count)
    }
}

#[test]
fn bodies_of_bytes_come_back_whole() {
    let ours = Ours::new();
    let client = ours.client().build().expect("a client");
    let body: Vec<u8> = (0..LENGTH).map(pattern).collect();
    for url in ours.urls("/echo") {
        let response = client.post(&url).body(body.clone()).send().expect("a response").collect();
        assert!(response.expect("all of it") == body, "{url}");
        let empty = client.post(&url).send().expect("a response").collect().expect("nothing");
        assert!(empty.is_empty());
    }
}

#[test]
fn a_body_is_streamed_by_a_reader_and_trailers_follow_the_response() {
    let ours = Ours::new();
    let client = ours.client().build().expect("a client");
    for url in ours.urls("/count") {
        let reader = Patterned { at: 0, total: LENGTH, read: Arc::default() };
        let mut response = client.post(&url).body_reader(reader).send().expect("a response");
        assert_eq!(response.trailers(), None, "the body was not read yet");
        assert_eq!(response.text().expect("text"), format!("{LENGTH} true"), "{url}");
        let trailers = response.trailers().expect("trailers");
        assert_eq!(trailers.get("x-count"), Some(&HeaderValue::from(LENGTH)), "{url}");
    }
}

#[test]
fn a_body_is_written_piece_by_piece_with_trailers() {
    let ours = Ours::new();
    let client = ours.client().build().expect("a client");
    let body: Vec<u8> = (0..LENGTH).map(pattern).collect();
    for url in ours.urls("/count") {
        let mut upload = client.post(&url).start().expect("it begins");
        for piece in body.chunks(77_777) {
            upload.write_all(piece).expect("it is taken");
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-after", HeaderValue::from_static("1"));
        let mut response = upload.finish_with_trailers(trailers).expect("a response");
        assert_eq!(response.text().expect("text"), format!("{LENGTH} true"), "{url}");
    }
}

#[test]
fn a_response_is_read_as_it_comes() {
    let ours = Ours::new();
    let client = ours.client().build().expect("a client");
    for url in ours.urls(&format!("/pattern/{LENGTH}")) {
        let mut response = client.get(&url).send().expect("a response");
        let (mut at, mut block) = (0, [0; 10_007]);
        loop {
            let count = response.read(&mut block).expect("more, or the end");
            if count == 0 {
                break;
            }
            assert!(block[..count].iter().zip(at..).all(|(byte, at)| *byte == pattern(at)));
            at += count;
        }
        assert_eq!(at, LENGTH, "{url}");
    }
}

#[test]
fn a_response_that_is_not_read_stays_with_the_server() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let (sender, stopped) = std::sync::mpsc::channel();
    let behind = Scripted::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n");
        talk.0.set_write_timeout(Some(std::time::Duration::from_millis(300))).expect("a timeout");
        let block = vec![b'x'; 65_536];
        while let Ok(count) = talk.0.write(&block) {
            counted.fetch_add(count, Ordering::SeqCst);
        }
        sender.send(()).expect("the test waits");
    });
    let client = Client::new().expect("a client");
    let mut response = client.get(&behind.url("/")).send().expect("a response");
    assert!(response.chunk().expect("a piece").is_some());
    // The server gives up when it can write no more, and what it wrote comes before the end.
    stopped.recv_timeout(crate::scene::PATIENCE).expect("nobody reads");
    let error = std::iter::from_fn(|| response.chunk().transpose()).find_map(Result::err);
    assert_eq!(error.expect("it broke off").kind(), ErrorKind::Closed);
    let sent = sent.load(Ordering::SeqCst);
    assert!(sent < 100_000_000, "{sent} bytes were taken from a server that nobody listened to");
}

#[test]
fn a_server_that_does_not_read_stops_the_reader_of_the_body() {
    let behind = Scripted::new(|talk, _| {
        talk.head();
        std::thread::park_timeout(std::time::Duration::from_secs(10));
    });
    let limits = ClientLimits {
        pause_timeout: std::time::Duration::from_millis(300),
        upload_bytes: 100_000,
        ..ClientLimits::default()
    };
    let client = Client::builder().limits(limits).build().expect("a client");
    let read = Arc::new(AtomicUsize::new(0));
    let reader = Patterned { at: 0, total: 1 << 40, read: Arc::clone(&read) };
    let error = client.post(&behind.url("/")).body_reader(reader).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(!error.is_retry_safe(), "some of it was sent");
    assert!(read.load(Ordering::SeqCst) < 50_000_000, "what is not taken is not read");
}

#[test]
fn an_endless_response_is_collected_up_to_a_limit() {
    let ours = Ours::new();
    let limits = ClientLimits { collected_bytes: 1000, ..ClientLimits::default() };
    let client = ours.client().limits(limits).build().expect("a client");
    let url = &ours.urls("/pattern/1000000000000")[0];
    let error = client.get(url).send().expect("a response").collect().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Response);
    assert!(error.to_string().ends_with("the response is longer than 1000 bytes"), "{error}");
}

#[test]
fn a_body_longer_than_it_was_said_to_be_is_not_sent() {
    let ours = Ours::new();
    let client = ours.client().build().expect("a client");
    for url in ours.urls("/echo") {
        let upload = client.post(&url).header("content-length", "3").start();
        let mut upload = upload.expect("it begins");
        let error = upload
            .send("four")
            .and_then(|_| upload.finish().map(drop))
            .expect_err("it is too long");
        assert_eq!(error.kind(), ErrorKind::Body, "{error}");
    }
    let mut reader = client.post(&ours.urls("/echo")[0]).body_reader(io::empty()).send().unwrap();
    assert!(reader.collect().expect("nothing").is_empty());
}
