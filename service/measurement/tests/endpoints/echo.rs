//! `/ws` and `/echo`.

use std::io::{Read, Write};

use bolide_measurement::{Ndt7Settings, Settings};
use bolide_server::websocket::{Limits, Options};
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
    let answer = served.ask(request, 10_000);
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    assert!(answer.contains("this is a WebSocket endpoint"), "{answer}");
}

const CHUNKED: &str =
    "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";

#[test]
fn a_wrong_chunk_that_comes_with_the_head_is_400_and_nothing_else() {
    let served = Served::new(Ndt7Settings::default());
    for wrong in ["xyz\r\n", "5\r\nhelloXX", "5\r\nhello\r\nxyz\r\n", "0\r\nbad trailer\r\n\r\n"] {
        let answer = served.ask(&format!("{CHUNKED}{wrong}"), 10_000);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{wrong:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{wrong:?}: {answer}");
        assert!(!answer.contains("hello"), "{wrong:?}: {answer}");
    }
}

#[test]
fn chunks_come_back_whether_they_come_with_the_head_or_after_the_answer_has_begun() {
    let served = Served::new(Ndt7Settings::default());
    let expected = "\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let answer = served.ask(&format!("{CHUNKED}5\r\nhello\r\n0\r\n\r\n"), 10_000);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with(expected), "{answer}");
    let mut stream = served.stream();
    stream.write_all(CHUNKED.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut octet = [0];
        stream.read_exact(&mut octet).expect("the head comes before any of the body");
        answer.push(octet[0]);
    }
    stream.write_all(b"5\r\nhello\r\n0\r\n\r\n").unwrap();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with(expected), "{answer}");
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
        let answer = served.ask(&request, 1 << 20);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("content-length: {length}")), "{query}: {head}");
        let length = if method == "HEAD" { 0 } else { length };
        assert_eq!(body, "x".repeat(length), "{method} {query}");
    }
    for wrong in ["?size=x", "?size=", "?size=1073741825", "?size=-1"] {
        let answer = served.ask(
            &format!("GET /echo{wrong} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
            10_000,
        );
        assert!(answer.starts_with("HTTP/1.1 400 "), "{wrong}: {answer}");
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
