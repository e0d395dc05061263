//! The client that `cargo xtask autobahn` lets the Autobahn test suite try: it asks a fuzzing server how many
//! cases there are, and in each one sends every message back.
//!
//! It is also the shortest program around the codec: a blocking socket, a handshake, and a loop.
//!
//! ```console
//! $ cargo run -p bolide-conformance --example autobahn_client 127.0.0.1:9001
//! ```

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bolide_semantics::{FieldName, Head, HeadKind, Role};
use bolide_websocket::{Assembly, Codec, Deflate, DeflatePolicy, Event, Settings, handshake};
use bytes::Bytes;
use http::{StatusCode, Version};

/// Size that one read is offered, in bytes.
const BLOCK_BYTES: usize = 256 * 1024;

/// The longest head of a response, in bytes.
const HEAD_BYTES: usize = 16 * 1024;

/// How long the server may say nothing.
const SILENCE: Duration = Duration::from_secs(60);

fn main() -> io::Result<()> {
    let Some(authority) = std::env::args().nth(1) else {
        return Err(invalid("HOST:PORT of the fuzzing server is missing"));
    };
    let said = converse(&authority, "/getCaseCount", false)?;
    let text = String::from_utf8_lossy(&said);
    let count: u32 = text.parse().map_err(|_| invalid("the number of cases is no number"))?;
    for case in 1..=count {
        converse(&authority, &format!("/runCase?case={case}&agent=bolide"), true)?;
    }
    converse(&authority, "/updateReports?agent=bolide", false)?;
    Ok(())
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A number that can't be guessed: the standard library's hasher is keyed by the operating system.
fn unguessable() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// One connection from its handshake to its end; the last message, or all of them sent back.
fn converse(authority: &str, path: &str, echoes: bool) -> io::Result<Bytes> {
    let mut socket = TcpStream::connect(authority)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE))?;
    let (mut codec, mut input) = open(&mut socket, authority, path)?;
    let mut assembly = Assembly::default();
    let mut last = Bytes::new();
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        while let Some(event) = codec.receive(&mut input) {
            // What else comes, the codec answers.
            if let Event::Message { kind, payload, end } = event
                && let Some(message) = assembly.push(payload, end)
            {
                if echoes {
                    // The peer may have closed: then nothing waits for it.
                    let _ = codec.send(kind, message);
                } else {
                    last = message;
                }
            }
        }
        while let Some(bytes) = codec.pop_output() {
            if socket.write_all(&bytes).is_err() {
                return Ok(last);
            }
        }
        match socket.read(&mut block) {
            Ok(0) => return Ok(last),
            Ok(count) => input = Bytes::copy_from_slice(&block[..count]),
            // The suite also ends connections in ways that are no way to end them.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(last),
            Err(error) => return Err(error),
        }
    }
}

/// The handshake (RFC 6455 §4.1); what has come behind it.
fn open(socket: &mut TcpStream, authority: &str, path: &str) -> io::Result<(Codec, Bytes)> {
    let policy = DeflatePolicy::default();
    let bytes = u128::from(unguessable()) << 64 | u128::from(unguessable());
    let key = handshake::key(bytes.to_be_bytes());
    let (version, offer) = (handshake::VERSION, Deflate::offer(&policy));
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: {version}\r\nSec-WebSocket-Key: {key}\r\n\
         Sec-WebSocket-Extensions: {offer}\r\n\r\n"
    )?;
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        text.push(byte[0]);
        if text.len() > HEAD_BYTES {
            return Err(invalid("the response's head is too long"));
        }
    }
    let head = parse(&String::from_utf8_lossy(&text))?;
    handshake::check_response(&head, &key, &[]).map_err(invalid)?;
    let responses = head.get_all(FieldName::SecWebsocketExtensions);
    let deflate = Deflate::accepted(responses, &policy).map_err(invalid)?;
    let settings = Settings { deflate, mask_seed: unguessable(), ..Settings::default() };
    Ok((Codec::new(Role::Client, settings), Bytes::new()))
}

/// The head of a response: its status, and the fields of the handshake.
fn parse(text: &str) -> io::Result<Head> {
    const WANTED: [(&str, FieldName); 5] = [
        ("upgrade", FieldName::Upgrade),
        ("connection", FieldName::Connection),
        ("sec-websocket-accept", FieldName::SecWebsocketAccept),
        ("sec-websocket-protocol", FieldName::SecWebsocketProtocol),
        ("sec-websocket-extensions", FieldName::SecWebsocketExtensions),
    ];
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status = status.and_then(|status| StatusCode::from_bytes(status.as_bytes()).ok());
    let mut head = Head::default();
    head.clear(HeadKind::Response, Version::HTTP_11);
    head.set_status(status.ok_or_else(|| invalid("the response has no status"))?);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name = name.to_ascii_lowercase();
        if let Some((_, known)) = WANTED.iter().find(|(wanted, _)| *wanted == name) {
            head.push_field(*known, value.trim().as_bytes());
        }
    }
    Ok(head)
}
