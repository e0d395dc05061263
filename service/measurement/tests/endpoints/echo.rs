//! `/ws`.

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
