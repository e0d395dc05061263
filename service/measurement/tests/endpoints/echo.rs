//! `/ws` and `/echo`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

use bolide_measurement::{Ndt7Settings, Settings};
use bolide_server::websocket::{Limits, Options};
use bolide_server::{Around, Server};
use flate2::{Compress, Compression, FlushCompress};
use tungstenite::Message;

use crate::served::Served;

#[test]
fn messages_come_back_with_and_without_the_subprotocol() {
    let served = Served::new(Ndt7Settings::default());
    for protocol in [None, Some("echo")] {
        let mut socket = served.websocket("/ws", protocol).expect("it is granted");
        for message in [Message::text("häh?"), Message::binary(vec![7; 100_000])] {
            socket.send(message.clone()).expect("it is open");
            assert!(socket.read().expect("an echo") == message, "another message came back");
        }
    }
}

#[test]
fn a_browser_that_only_looks_is_told_what_it_is() {
    let served = Served::new(Ndt7Settings::default());
    let request = "GET /ws HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let response = served.ask(request, 10_000);
    assert!(response.starts_with("HTTP/1.1 426 "), "{response}");
    assert!(response.contains("this is a WebSocket endpoint"), "{response}");
}

const CHUNKED: &str =
    "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";

#[test]
fn a_wrong_chunk_that_comes_with_the_head_is_400_and_nothing_else() {
    let served = Served::new(Ndt7Settings::default());
    for wrong in ["xyz\r\n", "5\r\nhelloXX", "5\r\nhello\r\nxyz\r\n", "0\r\nbad trailer\r\n\r\n"] {
        let response = served.ask(&format!("{CHUNKED}{wrong}"), 10_000);
        assert!(response.starts_with("HTTP/1.1 400 "), "{wrong:?}: {response}");
        assert_eq!(response.matches("HTTP/1.1").count(), 1, "{wrong:?}: {response}");
        assert!(!response.contains("hello"), "{wrong:?}: {response}");
    }
}

#[test]
fn chunks_come_back_whether_they_come_with_the_head_or_after_the_response_has_begun() {
    let served = Served::new(Ndt7Settings::default());
    let expected = "\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let response = served.ask(&format!("{CHUNKED}5\r\nhello\r\n0\r\n\r\n"), 10_000);
    assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with(expected), "{response}");
    let mut stream = served.stream();
    stream.write_all(CHUNKED.as_bytes()).unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("the head comes before any of the body");
        response.push(byte[0]);
    }
    stream.write_all(b"5\r\nhello\r\n0\r\n\r\n").unwrap();
    stream.read_to_end(&mut response).unwrap();
    let response = String::from_utf8(response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with(expected), "{response}");
}

#[test]
fn sizes_that_take_turns_get_what_each_asks_for() {
    let served = Served::new(Ndt7Settings::default());
    for (method, query, length) in [
        ("GET", "?size=3", 3),
        ("GET", "?size=3", 3),
        ("GET", "?size=30", 30),
        ("GET", "?a=b&size=3", 3),
        ("GET", "?size=%33", 3),
        ("HEAD", "?size=3", 3),
        ("GET", "", 64),
        ("GET", "?", 64),
        ("GET", "?size=300000", 300_000),
        ("GET", "?size=0", 0),
        ("GET", "?size=3", 3),
    ] {
        let request =
            format!("{method} /echo{query} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let response = served.ask(&request, 1 << 20);
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("content-length: {length}")), "{query}: {head}");
        let length = if method == "HEAD" { 0 } else { length };
        assert_eq!(body, "x".repeat(length), "{method} {query}");
    }
    for wrong in ["?size=x", "?size=", "?size=1073741825", "?size=-1"] {
        let response = served.ask(
            &format!("GET /echo{wrong} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
            10_000,
        );
        assert!(response.starts_with("HTTP/1.1 400 "), "{wrong}: {response}");
    }
}

#[test]
fn messages_beyond_the_limit_that_was_set_close_the_connection() {
    let limits = Limits { message_bytes: 10, ..Limits::default() };
    let websocket = Options::new().limits(limits);
    let served = Served::new(Settings { websocket, ..Settings::default() });
    let mut socket = served.websocket("/ws", None).expect("it is granted");
    socket.send(Message::binary(vec![1; 10])).expect("it takes ten");
    assert_eq!(socket.read().expect("they come back").into_data().len(), 10);
    socket.send(Message::binary(vec![1; 11])).expect("it is open");
    let Message::Close(Some(close)) = socket.read().expect("a frame") else {
        panic!("no close frame");
    };
    assert_eq!(u16::from(close.code), 1009);
}

#[test]
fn a_large_message_comes_back_to_a_client_that_reads_nothing_before_it_has_sent_all() {
    let served = Served::new(Ndt7Settings::default());
    let mut socket = served.websocket("/ws", None).expect("it is granted");
    let large: Vec<u8> = (0..16_u32 << 20).map(|at| ((at * 31) >> 3) as u8).collect();
    for _ in 0..2 {
        socket.send(Message::binary(large.clone())).expect("it is open");
        assert!(socket.read().expect("an echo").into_data() == large, "another message came back");
    }
}

/// Size that a worker's memory may come to in the test below: what it may read ahead, and for each of 24 connections a block
/// of input, what waits in any case, and what waits for the socket. Whole messages would be 360 MiB.
const HOARD_BYTES_MAX: u64 = (64 + 24 * 2) << 20;

/// A connection to `/ws` whose frames are made by hand.
fn by_hand(served: &Served, extension: Option<&str>) -> TcpStream {
    let mut stream = served.stream();
    let offer = extension.map(|offer| format!("sec-websocket-extensions: {offer}\r\n"));
    let head = format!(
        "GET /ws HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n{}\r\n",
        offer.unwrap_or_default()
    );
    stream.write_all(head.as_bytes()).expect("it reads");
    let (mut response, mut byte) = (Vec::new(), [0]);
    while !response.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a response");
        response.push(byte[0]);
    }
    let response = String::from_utf8(response).expect("text");
    assert!(response.starts_with("HTTP/1.1 101 "), "{response}");
    let agreed = response.lines().find(|line| line.starts_with("sec-websocket-extensions: "));
    for part in extension.iter().flat_map(|offer| offer.split("; ")) {
        assert!(agreed.is_some_and(|agreed| agreed.contains(part)), "{response}");
    }
    stream
}

/// The first byte of a server's frame, and its content.
fn read_frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let (mut head, mut length) = ([0; 2], [0; 8]);
    stream.read_exact(&mut head).expect("a frame");
    match head[1] {
        126 => stream.read_exact(&mut length[6..]).expect("a length"),
        127 => stream.read_exact(&mut length).expect("a length"),
        short => length[7] = short,
    }
    let length = usize::try_from(u64::from_be_bytes(length)).expect("it fits");
    let mut content = vec![0; length];
    stream.read_exact(&mut content).expect("the content");
    (head[0], content)
}

/// Small on the wire and large behind it, and none is ever complete: nothing is held beyond what a worker may hold.
#[test]
fn a_websocket_hoard_of_messages_in_the_making_is_bounded() {
    let (peak, peaks) = mpsc::channel();
    let around = Around::new(move |work| {
        let counted = allocation_counter::measure(work);
        peak.send(counted.bytes_max).expect("the test waits");
    });
    let served = Served::on(Server::new().around_workers(around), Ndt7Settings::default());
    // 40 bytes in 4096 that don't repeat: it deflates to about a hundredth.
    let noise = |at: u32| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8;
    let byte = |at: u32| if at % 4096 < 40 { noise(at) } else { 0 };
    let plain: Vec<u8> = (0..15 << 20).map(byte).collect();
    let mut wire = Vec::with_capacity(1 << 20);
    let mut compress = Compress::new(Compression::default(), false);
    compress.compress_vec(&plain, &mut wire, FlushCompress::Sync).expect("it can be compressed");
    assert!(wire.len() < plain.len() / 50, "{} bytes", wire.len());
    // No compressor has so small a window: messages come back as they are.
    let extension = "permessage-deflate; server_max_window_bits=8";
    let mut streams: Vec<TcpStream> = (0..24).map(|_| by_hand(&served, Some(extension))).collect();
    for stream in &mut streams {
        // The first frame, compressed, of a message; its mask changes nothing.
        let mut head = vec![0x42, 0x80 | 127];
        head.extend_from_slice(&(wire.len() as u64).to_be_bytes());
        head.extend_from_slice(&[0; 4]);
        stream.write_all(&head).expect("it reads");
        stream.write_all(&wire).expect("it reads");
    }
    // Nothing was lost: each gets all of it once it reads.
    for stream in &mut streams {
        let (mut echo, mut first) = (Vec::new(), 0x02);
        while echo.len() < plain.len() {
            let (begins, content) = read_frame(stream);
            assert_eq!(begins, first);
            echo.extend_from_slice(&content);
            first = 0x00;
        }
        assert!(echo == plain, "another message came back");
        stream.write_all(&[0x80, 0x80 | 1, 0, 0, 0, 0, 0]).expect("it reads");
        assert_eq!(read_frame(stream), (0x80, Vec::new()));
    }
    drop(streams);
    drop(served);
    let peak = peaks.recv().expect("the worker has ended");
    eprintln!("{peak} bytes at once");
    assert!(peak < HOARD_BYTES_MAX, "{peak} bytes at once");
}

#[test]
fn small_pieces_of_a_message_that_arrive_together_come_back_together() {
    const PIECES: usize = 1000;
    let served = Served::new(Ndt7Settings::default());
    let mut stream = by_hand(&served, None);
    let first = |at| match at {
        0 => 0x02,
        at if at + 1 == PIECES => 0x80,
        _ => 0x00,
    };
    let piece = |at: usize| [first(at), 0x80 | 1, 0, 0, 0, 0, at as u8];
    let message: Vec<u8> = (0..PIECES).flat_map(piece).collect();
    stream.write_all(&message).expect("it reads");
    let (mut echo, mut frames, mut is_last) = (Vec::new(), 0, false);
    while !is_last {
        let (first, content) = read_frame(&mut stream);
        echo.extend_from_slice(&content);
        frames += 1;
        is_last = first & 0x80 != 0;
    }
    assert!(echo.into_iter().eq((0..PIECES).map(|at| at as u8)), "another message came back");
    assert!(frames < PIECES / 10, "{frames} frames");
}
