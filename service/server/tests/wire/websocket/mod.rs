//! RFC 6455 and RFC 8441 through real sockets.

mod multiplexed;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use bolide_server::websocket::{
    Close, CloseCode, Kind, Options, Owner, Payload, Socket, WebSocket,
};
use bolide_server::{Bytes, End, Request, Router};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::{Error, Message};

use crate::raw_client::{Client, Served};

type Foreign = tungstenite::WebSocket<TcpStream>;

/// Sends back what it gets, and tells a test how it ended.
#[derive(Debug)]
struct Echo(mpsc::Sender<(u16, String)>);

impl Owner for Echo {
    fn on_message(&mut self, kind: Kind, payload: Payload, end: End, socket: &mut Socket<'_, '_>) {
        if payload.clone().into_bytes() == "please close" {
            socket.close(CloseCode(4000), "as you like").expect("it is open");
        } else {
            let _ = socket.send_piece(kind, payload.into_bytes(), end);
        }
    }

    fn on_close(&mut self, close: &Close) {
        let _ = self.0.send((close.code.0, close.reason().to_owned()));
    }
}

/// A server that echoes at `/ws`, and how its connections ended.
fn served(options: Options) -> (Served, mpsc::Receiver<(u16, String)>) {
    let (ended, ends) = mpsc::channel();
    let served = Served::new(move || {
        let (options, ended) = (options.clone(), ended.clone());
        Router::new().websocket("/ws", move |request: &mut Request<'_>| {
            WebSocket::accept(request, &options, Echo(ended.clone()))
        })
    });
    (served, ends)
}

fn connect(served: &Served, protocol: Option<&str>) -> (Foreign, Option<String>) {
    let mut request = format!("ws://{}/ws", served.address).into_client_request().expect("a URL");
    if let Some(protocol) = protocol {
        let value = protocol.parse().expect("a value");
        request.headers_mut().insert("sec-websocket-protocol", value);
    }
    let stream = TcpStream::connect(served.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let (socket, response) = tungstenite::client(request, stream).expect("a handshake");
    let chosen = response.headers().get("sec-websocket-protocol");
    (socket, chosen.map(|name| name.to_str().expect("text").to_owned()))
}

#[test]
fn messages_come_back() {
    let (served, ends) = served(Options::new());
    let (mut socket, _) = connect(&served, None);
    let binary: Vec<u8> = (0..400_000_u32).map(|at| ((at * 31) >> 3) as u8).collect();
    for message in [
        Message::text("grüße"),
        Message::binary(Vec::new()),
        Message::binary(binary),
        Message::text("a".repeat(70_000)),
    ] {
        socket.send(message.clone()).expect("it is open");
        assert!(socket.read().expect("an echo") == message, "another message came back");
    }
    socket.send(Message::Ping("p".into())).expect("it is open");
    assert_eq!(socket.read().expect("a pong"), Message::Pong("p".into()));
    socket.close(None).expect("it is open");
    assert!(matches!(socket.read().expect("the reply"), Message::Close(_)));
    assert!(matches!(socket.read(), Err(Error::ConnectionClosed)), "the server ends the transport");
    assert_eq!(ends.recv().expect("it ended"), (1005, String::new()));
}

#[test]
fn the_owner_closes() {
    let (served, ends) = served(Options::new());
    let (mut socket, _) = connect(&served, None);
    socket.send(Message::text("please close")).expect("it is open");
    let Message::Close(Some(close)) = socket.read().expect("a close") else { panic!("no close") };
    assert_eq!((u16::from(close.code), close.reason.as_str()), (4000, "as you like"));
    assert!(matches!(socket.read(), Err(Error::ConnectionClosed)));
    assert_eq!(ends.recv().expect("it ended").0, 4000, "the peer's response");
}

#[test]
fn the_first_subprotocol_that_both_speak_is_chosen() {
    let (served, _ends) = served(Options::new().protocol("echo").protocol("chat"));
    assert_eq!(connect(&served, Some("other, chat, echo")).1.as_deref(), Some("chat"));
    assert_eq!(connect(&served, None).1, None);
}

#[test]
fn a_wrong_handshake_is_answered_in_words() {
    let (served, _ends) = served(Options::new().protocol("echo").require_protocol());
    let right = "upgrade: websocket\r\nconnection: upgrade\r\n\
                 sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n";
    let cases = [
        (String::new(), 426, "send Upgrade: websocket"),
        (right.replace("13", "12"), 426, "not 13"),
        (right.replace("dGhl", ""), 400, "Sec-WebSocket-Key"),
        (right.to_owned(), 400, "must offer one of: echo"),
        (format!("{right}content-length: 1\r\n"), 400, "has no body"),
    ];
    for (fields, status, words) in cases {
        let request = format!("GET /ws HTTP/1.1\r\nhost: a\r\n{fields}\r\n");
        let mut client = served.connect();
        client.send(request.as_bytes());
        let response = client.answer();
        let body = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, status, "{body}");
        assert!(body.contains(words), "{body}");
        if status == 426 {
            assert!(response.head.contains("\r\nupgrade: websocket\r\n"), "{}", response.head);
            assert!(
                response.head.contains("\r\nsec-websocket-version: 13\r\n"),
                "{}",
                response.head
            );
        }
    }
    let plain = "POST /ws HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert!(served.ask(plain).starts_with("HTTP/1.1 405 "));
}

/// A client that has done its handshake and speaks frames by hand.
fn raw(served: &Served) -> Client {
    let mut client = served.connect();
    client.send(
        b"GET /ws HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
          sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
    );
    let head = client.until("\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    client
}

#[test]
fn what_breaks_the_protocol_is_told_and_closed() {
    let (served, ends) = served(Options::new());
    let mut client = raw(&served);
    client.send(&[0x81, 0x01, b'a']);
    let rest = client.rest();
    assert_eq!((rest[0], &rest[2..4]), (0x88, &1002_u16.to_be_bytes()[..]));
    assert_eq!(ends.recv().expect("it ended").0, 1002);
}

#[test]
fn a_client_that_goes_without_a_word_is_noticed() {
    let (served, ends) = served(Options::new());
    drop(raw(&served));
    assert_eq!(ends.recv().expect("it ended").0, 1006);
}

#[test]
fn a_silent_websocket_is_pinged_and_given_up() {
    let (served, ends) = served(Options::new().ping_interval(Duration::from_millis(50)));
    let (mut alive, _) = connect(&served, None);
    // The foreign client answers pings while it reads.
    for _ in 0..3 {
        assert_eq!(alive.read().expect("a ping"), Message::Ping(Bytes::new()));
    }
    alive.send(Message::text("still here")).expect("it is open");
    while alive.read().expect("an echo") != Message::text("still here") {}
    let mut silent = raw(&served);
    assert_eq!(silent.take(2), [0x89, 0]);
    let gone = silent.stream.read(&mut [0; 16]);
    assert!(
        matches!(gone, Ok(0)) || gone.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionReset)
    );
    assert_eq!(ends.recv().expect("it ended").0, 1006);
}

#[test]
fn an_unanswered_close_ends_the_connection_in_time() {
    let (served, ends) = served(Options::new().close_timeout(Duration::from_millis(50)));
    let mut client = raw(&served);
    let masked = [&[0x81, 0x80 | 12, 0, 0, 0, 0][..], b"please close"].concat();
    client.send(&masked);
    assert_eq!(client.take(4), [0x88, 13, 0x0f, 0xa0]);
    let _ = client.take(11);
    let gone = client.stream.read(&mut [0; 16]);
    assert!(
        matches!(gone, Ok(0)) || gone.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionReset)
    );
    assert_eq!(ends.recv().expect("it ended").0, 1006);
}

#[test]
fn an_unfinished_message_is_ended_in_time_whatever_comes_between_its_frames() {
    let timeout = Duration::from_millis(300);
    let (served, ends) = served(Options::new().message_timeout(timeout));
    let mut client = raw(&served);
    // Messages of two frames each, longer than the time altogether: each has its own.
    let (first, last) = ([0x01, 0x81, 0, 0, 0, 0, b'a'], [0x80, 0x81, 0, 0, 0, 0, b'b']);
    client.send(&first);
    let began = std::time::Instant::now();
    while began.elapsed() < 2 * timeout {
        client.send(&[last, first].concat());
        assert_eq!(client.take(6), [0x01, 1, b'a', 0x80, 1, b'b']);
    }
    assert_eq!(client.take(3), [0x01, 1, b'a']);
    // Pings are heard, and answered, but complete nothing.
    let ping = [0x89, 0x80, 0, 0, 0, 0];
    let why = &b"the message was not complete in time"[..];
    let close = [&[0x88, 2 + why.len() as u8][..], &1008_u16.to_be_bytes(), why].concat();
    let mut seen = Vec::new();
    while !seen.ends_with(&close) {
        client.send(&ping);
        seen.extend(client.take(2));
        if !seen.ends_with(&[0x8a, 0]) {
            seen.extend(client.take(close.len() - 2));
            assert!(seen.ends_with(&close), "{}", seen.escape_ascii());
        }
    }
    assert!(seen.starts_with(&[0x8a, 0]), "{}", seen.escape_ascii());
    assert_eq!(ends.recv().expect("it ended").0, 1006);
}

#[test]
fn an_unread_websocket_is_not_read_either() {
    const TOTAL: usize = 64 << 20;
    let (served, _ends) = served(Options::new());
    let mut client = raw(&served);
    client.stream.set_write_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    let length = 16 << 20;
    let mut head = vec![0x82, 0x80 | 127];
    head.extend_from_slice(&(length as u64).to_be_bytes());
    head.extend_from_slice(&[0; 4]);
    let block = vec![7; 64 * 1024];
    let mut written = 0;
    let stopped = (0..TOTAL / length).any(|_| {
        let mut left = length;
        if client.stream.write_all(&head).is_err() {
            return true;
        }
        while left > 0 {
            match client.stream.write(&block[..left.min(block.len())]) {
                Ok(count) => left -= count,
                Err(_) => return true,
            }
            written += block.len();
        }
        false
    });
    assert!(stopped, "the server took {written} bytes and could send none of them back");
}

#[test]
fn a_server_that_ends_says_goodbye() {
    let (served, ends) = served(Options::new());
    let (mut socket, _) = connect(&served, None);
    let ending = std::thread::spawn(move || served.shut_down());
    let Message::Close(Some(close)) = socket.read().expect("a close") else { panic!("no close") };
    assert_eq!(u16::from(close.code), 1001);
    assert!(matches!(socket.read(), Err(Error::ConnectionClosed)));
    assert_eq!(ends.recv().expect("it ended").0, 1001);
    drop(socket);
    ending.join().expect("it ends");
}

#[test]
fn over_http2_it_is_the_same() {
    let (served, ends) = served(Options::new().protocol("echo"));
    let mut client = multiplexed::Client::connect(served.address);
    assert_eq!(client.handshake("/ws", "websocket", "echo"), (200, Some("echo".to_owned())));
    let large: Vec<u8> = (0..400_000_u32).map(|at| at as u8).collect();
    for message in [&b"hello"[..], b"", &large] {
        client.send(message);
        assert!(client.receive() == message, "another message came back");
    }
    assert_eq!(client.close(), 1000);
    assert_eq!(ends.recv().expect("it ended").0, 1000);
}

#[test]
fn over_http2_another_protocol_is_not_implemented() {
    let (served, _ends) = served(Options::new());
    let mut client = multiplexed::Client::connect(served.address);
    assert_eq!(client.handshake("/ws", "connect-udp", "echo").0, 501);
}
