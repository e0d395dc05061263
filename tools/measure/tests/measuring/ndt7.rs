//! ndt7 against a small server of its own: one connection, both subtests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bolide_measure::plan::{Amount, Direction, Plan};
use bolide_semantics::Role;
use bolide_websocket::{CloseCode, Codec, Event, Kind, Settings, handshake};
use bytes::Bytes;

use crate::planted::{measure, measured, plan};

const INFO: &str = r#"{"TCPInfo":{"ElapsedTime":8000,"BytesAcked":1000000,"BytesReceived":1000000,"RWndLimited":0}}"#;

/// Bytes that are moved at least before the server has measured them.
const INFO_BYTES: u64 = 1_000_000;

fn read_head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn flush(codec: &mut Codec, socket: &mut TcpStream) -> bool {
    while let Some(bytes) = codec.pop_output() {
        if socket.write_all(&bytes).is_err() {
            return false;
        }
    }
    true
}

/// Answers the handshake and carries the subtest out: a download of `messages` that ends after `pause`, or an
/// upload of what comes. Returns how much came in binary messages, and the texts.
fn serve(
    mut socket: TcpStream,
    protocol: &str,
    messages: usize,
    pause: Duration,
) -> (u64, Vec<Bytes>) {
    let head = read_head(&mut socket);
    let field = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
        line.and_then(|line| line.split_once(": ")).map(|(_, value)| value.to_owned())
    };
    assert_eq!(field("sec-websocket-protocol").as_deref(), Some("net.measurementlab.ndt.v7"));
    assert_eq!(field("sec-websocket-version").as_deref(), Some("13"));
    let accept = handshake::accept_key(field("sec-websocket-key").unwrap().as_bytes());
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{protocol}\r\n"
    );
    socket.write_all(response.as_bytes()).unwrap();
    let mut codec = Codec::new(Role::Server, Settings::default());
    for _ in 0..messages {
        codec.send(Kind::Binary, vec![0; 1 << 20]).unwrap();
        if !flush(&mut codec, &mut socket) {
            break;
        }
    }
    let mut has_measured = messages > 0;
    if has_measured {
        codec.send(Kind::Text, INFO).unwrap();
        flush(&mut codec, &mut socket);
        std::thread::sleep(pause);
        codec.send_close(CloseCode::NORMAL, "Done sending").unwrap();
    }
    flush(&mut codec, &mut socket);
    let (mut received, mut texts, mut block) = (0, Vec::new(), vec![0; 1 << 16]);
    loop {
        let count = socket.read(&mut block).unwrap_or(0);
        if count == 0 {
            return (received, texts);
        }
        let mut bytes = Bytes::copy_from_slice(&block[..count]);
        while let Some(event) = codec.receive(&mut bytes) {
            match event {
                Event::Message { kind: Kind::Binary, payload, .. } => {
                    received += payload.len() as u64;
                }
                Event::Message { payload, .. } => texts.push(payload.into_bytes()),
                _ => {}
            }
        }
        if received >= INFO_BYTES && !std::mem::replace(&mut has_measured, true) {
            codec.send(Kind::Text, INFO).unwrap();
        }
        flush(&mut codec, &mut socket);
        if codec.is_over() {
            return (received, texts);
        }
    }
}

fn start(
    protocol: &'static str,
    messages: usize,
    pause: Duration,
) -> (SocketAddr, JoinHandle<(u64, Vec<Bytes>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving =
        std::thread::spawn(move || serve(listener.accept().unwrap().0, protocol, messages, pause));
    (address, serving)
}

const AGREED: &str = "Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n";

fn subtest(address: SocketAddr, direction: Direction, time: Duration) -> Plan {
    let mut plan = plan("ws", address, &format!("/ndt/v7/{}", direction.name()));
    plan.transfer.direction = direction;
    plan.transfer.amount = Amount::Time(time);
    plan.transfer.is_ndt7 = true;
    plan
}

#[test]
fn a_download_ends_when_the_server_closes() {
    let time = Duration::from_secs(8);
    let (address, serving) = start(AGREED, 20, time / 2);
    let began = Instant::now();
    let report = measured(&subtest(address, Direction::Download, time));
    assert!(began.elapsed() < time, "it did not wait for its time");
    assert_eq!((report.protocol, report.volume.bytes), ("ws", 20 << 20));
    let told = report.told.unwrap();
    assert_eq!(told.goodput_bits_per_second, Some(1e9));
    assert_eq!(told.receive_window_limited, Some(0.0));
    serving.join().unwrap();
}

#[test]
fn a_subtest_that_the_server_ends_well_before_its_time_has_failed() {
    let (address, serving) = start(AGREED, 1, Duration::ZERO);
    let report = measure(&subtest(address, Direction::Download, Duration::from_secs(60)));
    let said = report.end.error.unwrap();
    assert!(said.contains("the server ended the subtest after "), "{said}");
    assert!(said.ends_with(" s of 10 s"), "{said}");
    assert_eq!(report.volume.bytes, 1 << 20);
    serving.join().unwrap();
}

#[test]
fn an_upload_ends_after_its_time_and_every_byte_arrives() {
    let (address, serving) = start(AGREED, 0, Duration::ZERO);
    let report = measured(&subtest(address, Direction::Upload, Duration::from_millis(300)));
    let (received, _) = serving.join().unwrap();
    assert_eq!(report.volume.bytes, received);
    assert!(
        received > 1 << 20 && report.volume.seconds >= 0.3,
        "{received} {}",
        report.volume.seconds
    );
    assert_eq!(report.told.unwrap().goodput_bits_per_second, Some(1e9));
}

#[test]
fn a_server_that_does_not_know_ndt7_is_told_of() {
    let (address, serving) = start("", 0, Duration::ZERO);
    let plan = subtest(address, Direction::Download, Duration::from_secs(1));
    let said = measure(&plan).end.error.unwrap();
    assert!(said.contains("does not agree to the subprotocol net.measurementlab.ndt.v7"), "{said}");
    serving.join().unwrap();
    let server = crate::planted::Planted::start();
    let plan = subtest(server.http, Direction::Download, Duration::from_secs(1));
    let said = measure(&plan).end.error.unwrap();
    assert!(said.contains("status 404"), "{said}");
}
