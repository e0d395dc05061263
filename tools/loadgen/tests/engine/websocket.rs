//! RFC 6455, RFC 7692, RFC 8441: messages to servers that reply, push, close, cut, stall and break the protocol as
//! planted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bolide_probe::engine::Engine;
use bolide_probe::plan::{
    ExpectedBody, Load, Phase, Plan, RequestKind, TlsTrust, Version, WebSocketPlan,
};
use bolide_probe::report::{Failure, PhaseReport};
use bolide_semantics::Role;
use bolide_server::websocket::{DeflatePolicy, Options, Owner, Payload, Socket, WebSocket};
use bolide_server::{End, Router, Running, Server};
use bolide_websocket::{Assembly, CloseCode, Codec, Event, Kind, Settings, handshake};
use bytes::Bytes;

use crate::early::serve;
use crate::http3::start_with;
use crate::plans::{Free, plan, prepare, rate, requests, run};

/// Behavior that a message meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Echo,
    /// The echo in two frames, with a ping between them.
    Pieces,
    /// A message that nothing waits for, and later the echo.
    Late,
    /// Other bytes of the same length.
    Wrong,
    /// The same bytes as the other kind of message.
    WrongKind,
    Close(u16),
    Cut,
    /// A frame with a reserved opcode.
    BadFrame,
    Silence,
}

/// Observations of the server.
#[derive(Debug, Default)]
struct Seen {
    messages: AtomicU64,
    /// Close codes of the client.
    closes: Mutex<Vec<u16>>,
    heads: Mutex<Vec<String>>,
}

/// Reads the head of a handshake, and responds with `Sec-WebSocket-Accept` of its key.
fn accept(socket: &mut BufReader<TcpStream>, seen: &Seen) -> bool {
    let (mut head, mut line) = (String::new(), String::new());
    while line != "\r\n" {
        line.clear();
        if !socket.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            return false;
        }
        head.push_str(&line);
    }
    let key = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("sec-websocket-key").then(|| value.to_owned())
    });
    seen.heads.lock().unwrap().push(head);
    let accept = handshake::accept_key(key.unwrap_or_default().as_bytes());
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
    );
    socket.get_mut().write_all(response.as_bytes()).is_ok()
}

fn flush(codec: &mut Codec, socket: &mut BufReader<TcpStream>) {
    while let Some(bytes) = codec.pop_output() {
        let _ = socket.get_mut().write_all(&bytes);
    }
}

/// Carries one act out. Whether the connection goes on.
fn carry_out(act: Act, kind: Kind, message: &Bytes, codec: &mut Codec) -> bool {
    let other = match kind {
        Kind::Text => Kind::Binary,
        Kind::Binary => Kind::Text,
    };
    let half = message.len() / 2;
    match act {
        Act::Echo => codec.send(kind, message.clone()).unwrap(),
        Act::Pieces => {
            codec.send_piece(kind, message.slice(..half), End::No).unwrap();
            codec.send_ping(Bytes::from_static(b"?")).unwrap();
            codec.send_piece(kind, message.slice(half..), End::Yes).unwrap();
        }
        Act::Late => {
            codec.send(kind, message.clone()).unwrap();
            codec.send(kind, Bytes::from_static(b"news")).unwrap();
        }
        Act::Wrong => codec.send(kind, vec![b'!'; message.len()]).unwrap(),
        Act::WrongKind => codec.send(other, message.clone()).unwrap(),
        Act::Close(code) => codec.send_close(CloseCode(code), "").unwrap(),
        Act::Cut => return false,
        Act::BadFrame | Act::Silence => {}
    }
    true
}

/// A server whose `n`th message over all connections, from 0, meets `acts(n)`.
fn planted(acts: impl Fn(u64) -> Act + Send + Sync + 'static) -> (SocketAddr, Arc<Seen>) {
    let seen = Arc::<Seen>::default();
    let told = Arc::clone(&seen);
    let address = serve(move |socket| {
        if !accept(socket, &told) {
            return;
        }
        let mut codec = Codec::new(Role::Server, Settings::default());
        let (mut assembly, mut block) = (Assembly::default(), vec![0; 65_536]);
        while let Ok(count @ 1..) = socket.read(&mut block) {
            let mut bytes = Bytes::copy_from_slice(&block[..count]);
            while let Some(event) = codec.receive(&mut bytes) {
                let (kind, payload, end) = match event {
                    Event::Message { kind, payload, end } => (kind, payload, end),
                    Event::Closed(close) => {
                        told.closes.lock().unwrap().push(close.code.0);
                        return flush(&mut codec, socket);
                    }
                    _ => continue,
                };
                let Some(message) = assembly.push(payload, end) else { continue };
                let act = acts(told.messages.fetch_add(1, Ordering::SeqCst));
                let goes_on = carry_out(act, kind, &message, &mut codec);
                flush(&mut codec, socket);
                if act == Act::BadFrame {
                    let _ = socket.get_mut().write_all(&[0x83, 0]);
                }
                if !goes_on {
                    return;
                }
            }
        }
    });
    (address, seen)
}

/// Text messages on one connection, each with its echo.
fn messages(address: SocketAddr) -> Plan {
    let mut plan = plan(address);
    let text = Bytes::from_static("from \u{2192} to".as_bytes());
    plan.kind = RequestKind::WebSocket(WebSocketPlan { echo: true, ..WebSocketPlan::default() });
    plan.requests[0].body = text.clone();
    plan.requests[0].response = Some(ExpectedBody::Exact(text));
    Plan { connections: 1, threads: 1, ..plan }
}

fn failures(report: &PhaseReport) -> Vec<(Failure, u64)> {
    report.failures.iter().map(|(failure, count)| (*failure, *count)).collect()
}

#[test]
fn each_message_has_its_echo() {
    let (address, seen) = planted(|number| [Act::Echo, Act::Pieces][number as usize % 2]);
    let mut plan = Plan { connections: 4, threads: 2, depth: 8, ..messages(address) };
    plan.requests[0].target = "/chat?of={connection}".to_owned();
    plan.requests[0].has_placeholders = true;
    let report = run(&plan, &requests(400));
    let counts = &report.counts;
    assert_eq!((counts.succeeded, counts.failed, counts.compared), (400, 0, 400));
    assert_eq!((counts.connections, report.times.latency.count), (4, 400));
    let length = plan.requests[0].body.len() as u64;
    assert_eq!(report.traffic.payload_sent_bytes, 400 * length);
    assert_eq!(report.traffic.payload_received_bytes, 400 * length);
    assert!(report.statuses.is_empty(), "{:?}", report.statuses);
    let websocket = report.kinds.websocket.unwrap();
    assert_eq!((websocket.upgrade.count, websocket.pushed, websocket.compressed), (4, 0, 0));
    let heads = seen.heads.lock().unwrap();
    for (number, head) in heads.iter().enumerate() {
        assert!(head.contains("sec-websocket-version: 13\r\n"), "{head}");
        assert_eq!(heads.iter().filter(|other| *other == head).count(), 1, "{number}: {head}");
        assert!(head.starts_with("GET /chat?of=") && !head.contains("content-length"), "{head}");
    }
}

#[test]
fn in_an_open_loop_latency_counts_from_the_intended_time() {
    let (address, _) = planted(|_| {
        std::thread::sleep(Duration::from_millis(20));
        Act::Echo
    });
    let phase = Phase { load: rate(100.0), ..requests(20) };
    let report = run(&messages(address), &phase);
    assert_eq!(report.counts.succeeded, 20);
    // One after the other, 20 ms each, and intended each 10 ms: the last one waits for 190 ms.
    assert!(report.times.latency.max_ns > 190_000_000, "{}", report.times.latency.max_ns);
}

#[test]
fn every_way_to_fail_is_counted_as_what_it_is() {
    let acts = [
        (Act::Echo, None),
        (Act::Wrong, Some(Failure::Body)),
        (Act::WrongKind, Some(Failure::Body)),
        (Act::Close(1011), Some(Failure::Closed)),
        (Act::Cut, Some(Failure::Reset)),
        (Act::BadFrame, Some(Failure::Protocol)),
        (Act::Silence, Some(Failure::Timeout)),
        (Act::Echo, None),
    ];
    for (act, expected) in acts {
        let (address, _) = planted(move |number| if number == 1 { act } else { Act::Echo });
        let mut plan = messages(address);
        plan.timeouts.request_timeout = Duration::from_millis(500);
        let report = run(&plan, &requests(4));
        let expected: Vec<_> = expected.map(|failure| (failure, 1)).into_iter().collect();
        assert_eq!(failures(&report), expected, "{act:?}");
        assert_eq!(report.counts.succeeded, 4 - expected.len() as u64, "{act:?}");
        let closes = report.kinds.websocket.unwrap().closes;
        assert_eq!(closes.get(&1011).copied(), (act == Act::Close(1011)).then_some(1), "{act:?}");
    }
}

#[test]
fn a_reply_is_matched_with_the_oldest_message_and_the_rest_is_lost_with_the_connection() {
    let (address, _) = planted(|number| if number == 3 { Act::Cut } else { Act::Echo });
    let report = run(&Plan { depth: 4, ..messages(address) }, &requests(8));
    let lost = report.counts.failed;
    assert_eq!(failures(&report), [(Failure::Reset, lost)]);
    assert!((1..=4).contains(&lost), "{lost}");
    assert_eq!(report.counts.succeeded, 8 - lost);
    // What it is told as depends on whether the server had read everything when it closed.
    assert!(report.first_loss.is_some());
}

#[test]
fn what_the_server_pushes_is_counted_apart() {
    let (address, _) = planted(|number| if number == 0 { Act::Late } else { Act::Echo });
    // The second message is far behind the push.
    let phase = Phase { load: rate(4.0), ..requests(2) };
    let report = run(&messages(address), &phase);
    assert_eq!((report.counts.succeeded, report.counts.failed), (2, 0), "{:?}", report.failures);
    assert_eq!(report.kinds.websocket.unwrap().pushed, 1);
}

#[test]
fn one_way_messages_are_complete_when_they_have_left() {
    let (address, seen) = planted(|_| Act::Silence);
    let mut plan = Plan { depth: 10, ..messages(address) };
    plan.kind = RequestKind::WebSocket(WebSocketPlan { one_way: true, ..WebSocketPlan::default() });
    plan.requests[0].body = Bytes::from(vec![b'x'; 10_000]);
    plan.requests[0].response = None;
    let phase = Phase { load: Load::Connect, ..requests(20) };
    for phase in [requests(500), phase] {
        let report = run(&plan, &phase);
        let all = phase.until.requests.unwrap();
        assert_eq!((report.counts.succeeded, report.counts.failed), (all, 0));
        assert!(report.kinds.websocket.unwrap().one_way);
    }
    // Each connection of the second phase was closed in order, behind its message.
    while seen.closes.lock().unwrap().len() < 20 {
        std::thread::yield_now();
    }
    assert!(seen.closes.lock().unwrap().iter().all(|code| *code == 1000));
}

#[test]
fn a_server_that_reads_nothing_lets_one_way_messages_time_out() {
    let address = serve(|socket| {
        if accept(socket, &Seen::default()) {
            std::thread::sleep(Duration::from_secs(5));
        }
    });
    let mut plan = messages(address);
    plan.kind = RequestKind::WebSocket(WebSocketPlan { one_way: true, ..WebSocketPlan::default() });
    plan.requests[0].body = Bytes::from(vec![b'x'; 32 << 20]);
    plan.requests[0].response = None;
    plan.timeouts.request_timeout = Duration::from_millis(300);
    let report = run(&plan, &requests(1));
    assert_eq!(failures(&report), [(Failure::Timeout, 1)]);
}

#[test]
fn connections_that_are_refused_or_never_accepted_say_why() {
    type Responds = fn(&mut BufReader<TcpStream>);
    let wrong_key: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n";
    let (never, refuses, closes): (Responds, Responds, Responds) = (
        |_| std::thread::sleep(Duration::from_secs(3)),
        |socket| {
            let refusal = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno";
            let _ = socket.get_mut().write_all(refusal);
            let _ = socket.read_to_end(&mut Vec::new());
        },
        |_| {},
    );
    for (respond, what) in [
        (never, "the server did not respond to the handshake"),
        (refuses, "the server refused the WebSocket connection with status 403"),
        (closes, "closed before it responded"),
    ] {
        let address = serve(move |socket| {
            if crate::early::read_head(socket) {
                respond(socket);
            }
        });
        let mut plan = messages(address);
        plan.timeouts.connect_timeout = Duration::from_millis(500);
        let mistake = Engine::prepare(&plan, Box::new(Free)).unwrap_err().to_string();
        assert!(mistake.contains(what), "{mistake}");
    }
    let address = serve(move |socket| {
        if crate::early::read_head(socket) {
            let _ = socket.get_mut().write_all(wrong_key);
            let _ = socket.read_to_end(&mut Vec::new());
        }
    });
    let mistake = Engine::prepare(&messages(address), Box::new(Free)).unwrap_err().to_string();
    assert!(mistake.contains("Sec-WebSocket-Accept does not fit the key"), "{mistake}");
}

/// Sends back what comes.
#[derive(Debug)]
struct Echo;

impl Owner for Echo {
    fn on_message(&mut self, kind: Kind, payload: Payload, end: End, socket: &mut Socket<'_, '_>) {
        let _ = socket.send_piece(kind, payload.into_bytes(), end);
    }
}

fn echoing() -> (Running, SocketAddr) {
    let routes = || {
        let options = Options::new().deflate(DeflatePolicy::default());
        Router::new().websocket("/", move |request: &mut bolide_server::Request<'_>| {
            WebSocket::accept(request, &options, Echo)
        })
    };
    let running = Server::new().workers(1).http("127.0.0.1:0").start(routes).unwrap();
    let address = running.addresses()[0].unwrap();
    (running, address)
}

#[test]
fn over_http2_and_with_compression_messages_come_back_too() {
    let (running, address) = echoing();
    for (version, deflate, binary) in [
        (Version::Http1, true, false),
        (Version::Http2, false, false),
        (Version::Http2, true, true),
    ] {
        let mut plan = Plan { connections: 3, depth: 4, version, ..messages(address) };
        let echo = true;
        plan.kind = RequestKind::WebSocket(WebSocketPlan {
            deflate,
            binary,
            echo,
            ..WebSocketPlan::default()
        });
        let text = Bytes::from("a text that repeats itself; ".repeat(200));
        plan.requests[0].response = Some(ExpectedBody::Exact(text.clone()));
        plan.requests[0].body = text;
        let mut engine = prepare(&plan);
        let report = engine.run(&requests(300), &mut |_| bolide_probe::progress::Control::Continue);
        assert_eq!((report.counts.succeeded, report.counts.failed), (300, 0), "{version:?}");
        let websocket = report.kinds.websocket.unwrap();
        assert_eq!(
            (websocket.upgrade.count, websocket.compressed),
            (3, if deflate { 3 } else { 0 })
        );
        let payload = report.traffic.payload_sent_bytes;
        assert_eq!(report.traffic.wire_sent_bytes * 4 < payload, deflate, "{:?}", report.traffic);
    }
    running.shut_down();
    running.join().unwrap();
}

#[test]
fn over_http3_messages_come_back_too() {
    let (running, address, pem) = start_with(Server::new().workers(1), || {
        let options = Options::new().deflate(DeflatePolicy::default());
        Router::new().websocket("/", move |request: &mut bolide_server::Request<'_>| {
            WebSocket::accept(request, &options, Echo)
        })
    });
    let mut plan = Plan { connections: 3, depth: 4, version: Version::Http3, ..messages(address) };
    plan.origin.is_https = true;
    plan.origin.authority = format!("localhost:{}", address.port());
    plan.tls.trust = TlsTrust::Roots(pem);
    let of = WebSocketPlan { deflate: true, echo: true, ..WebSocketPlan::default() };
    plan.kind = RequestKind::WebSocket(of);
    plan.requests[0].response = Some(ExpectedBody::Exact(plan.requests[0].body.clone()));
    let mut engine = prepare(&plan);
    let report = engine.run(&requests(300), &mut |_| bolide_probe::progress::Control::Continue);
    assert_eq!((report.counts.succeeded, report.counts.failed), (300, 0), "{:?}", report.failures);
    let websocket = report.kinds.websocket.unwrap();
    assert_eq!((websocket.upgrade.count, websocket.compressed), (3, 3));
    assert!(report.quic.is_some_and(|quic| quic.packets_sent > 0));
    drop(engine);
    running.shut_down();
    running.join().unwrap();
}

#[test]
fn a_connection_for_each_message_is_opened_and_closed() {
    let (address, seen) = planted(|_| Act::Echo);
    let phase = Phase { load: Load::Connect, ..requests(40) };
    let report = run(&Plan { connections: 4, threads: 2, ..messages(address) }, &phase);
    assert_eq!((report.counts.succeeded, report.counts.failed), (40, 0), "{:?}", report.failures);
    let upgrades = report.kinds.websocket.unwrap().upgrade.count;
    // The connection that the engine began with has none of them.
    assert!((40..=41).contains(&upgrades), "{upgrades}");
    assert!(seen.messages.load(Ordering::SeqCst) == 40);
}

#[test]
fn http2_without_extended_connect_is_a_mistake() {
    let address = serve(|socket| {
        // SETTINGS without SETTINGS_ENABLE_CONNECT_PROTOCOL.
        let _ = socket.get_mut().write_all(b"\0\0\0\x04\0\0\0\0\0");
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let plan = Plan { version: Version::Http2, ..messages(address) };
    let mistake = Engine::prepare(&plan, Box::new(Free)).unwrap_err().to_string();
    assert!(mistake.contains("takes no WebSocket connections by extended CONNECT"), "{mistake}");
}
