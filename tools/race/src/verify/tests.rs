//! Servers that are planted: an honest one and some that cheat.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bolide_connection::Identity;
use bolide_server::{Response, Router, Running, Server, Tls, collect};

use super::*;
use crate::catalogue::{Certificate, Cores, Kind};
use crate::differing::Requests;
use crate::requests;

/// Answers one request whose head and body have been read.
type Respond = fn(path: &str, body: &[u8]) -> Vec<u8>;

/// Serves until the test ends: each connection in a thread of its own.
fn plant(respond: Respond) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that leaves in the middle is no failure of the server.
            thread::spawn(move || drop(converse(stream, respond)));
        }
    });
    address
}

fn converse(stream: TcpStream, respond: Respond) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some(path) = line.split(' ').nth(1).map(str::to_owned) else { return Ok(()) };
        let mut length = 0;
        loop {
            let mut field = String::new();
            reader.read_line(&mut field)?;
            let field = field.trim().to_ascii_lowercase();
            if field.is_empty() {
                break;
            }
            if let Some(value) = field.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        stream.write_all(&respond(&path, &body))?;
    }
}

fn with_status(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn right(path: &str, body: &[u8]) -> Vec<u8> {
    let body = match path.split_once("size=") {
        Some((_, size)) => vec![b'x'; size.parse().unwrap()],
        None if path == "/ping" => b"pong".to_vec(),
        None if path == "/4096" => requests::contents(Route::Static4k, None).to_vec(),
        None => body.to_vec(),
    };
    with_status("200 OK", &body)
}

fn contender() -> Contender {
    let text = "name = 'planted'\nprotocols = ['h1']\nroutes = ['ping', 'echo', 'post', 'static-4k']\n\
                [start]\ncommand = ['planted']\n";
    Contender::parse(text, "planted.toml").unwrap()
}

fn cell(route: Route, size: usize) -> Cell {
    Cell {
        protocol: Protocol::H1,
        route,
        connections: 1,
        depth: 1,
        size,
        window: None,
        load: Kind::Closed,
        cores: Cores::One,
        certificate: Certificate::default(),
        requests: Requests::default(),
    }
}

fn verdict(respond: Respond, route: Route, size: usize) -> Result<Option<String>, String> {
    let (contender, cell) = (contender(), cell(route, size));
    Subject { contender: &contender, cell: &cell, address: plant(respond) }.verify(7)
}

#[test]
fn an_honest_server_passes_everything() {
    assert_eq!(verdict(right, Route::Ping, 0), Ok(None));
    assert_eq!(verdict(right, Route::Echo, 1024), Ok(None));
    assert_eq!(verdict(right, Route::Post, 65_536), Ok(None));
    assert_eq!(verdict(right, Route::Static4k, 0), Ok(None));
}

#[test]
fn a_constant_buffer_is_caught_by_sizes_it_was_not_made_for() {
    let constant: Respond = |_, _| with_status("200 OK", &[b'x'; 1024]);
    let evidence = verdict(constant, Route::Echo, 1024).unwrap_err();
    assert!(evidence.contains(" over HTTP/1.1: the body has 1024 bytes, not "), "{evidence}");
    let evidence = verdict(constant, Route::Post, 1024).unwrap_err();
    assert!(evidence.contains("byte 0 of the body is 0x78, not"), "{evidence}");
}

#[test]
fn one_wrong_byte_is_evidence() {
    let sloppy: Respond = |_, body| {
        let mut body = body.to_vec();
        if let Some(last) = body.last_mut() {
            *last ^= 1;
        }
        with_status("200 OK", &body)
    };
    let evidence = verdict(sloppy, Route::Post, 4096).unwrap_err();
    assert!(evidence.contains("POST /echo with 4096 bytes in 1 piece(s)"), "{evidence}");
    assert!(evidence.contains("byte 4095 of the body"), "{evidence}");
}

#[test]
fn a_wrong_status_and_a_wrong_version_are_evidence() {
    let busy: Respond = |_, _| with_status("503 Busy", b"pong");
    assert!(verdict(busy, Route::Ping, 0).unwrap_err().contains("status 503 instead of 200"));
    let old: Respond = |_, _| b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\npong".to_vec();
    let evidence = verdict(old, Route::Ping, 0).unwrap_err();
    assert!(evidence.contains("HTTP/1.0 instead of HTTP/1.1"), "{evidence}");
}

#[test]
fn bytes_after_a_response_are_evidence() {
    let twice: Respond = |_, _| with_status("200 OK", b"pong").repeat(2);
    let evidence = verdict(twice, Route::Ping, 0).unwrap_err();
    assert_eq!(evidence, "GET /ping over HTTP/1.1: bytes came that belong to no response");
}

/// Answers each connection with this head, and then with `piece` until no more is taken, `pause` apart.
fn plant_endless(head: &'static [u8], piece: &'static [u8], pause: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 1000]);
                let mut written = stream.write_all(head);
                while written.is_ok() {
                    thread::sleep(pause);
                    written = stream.write_all(piece);
                }
            });
        }
    });
    address
}

#[test]
fn an_endless_body_is_evidence_and_not_kept() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n";
    let address = plant_endless(head, &[b'x'; 65_536], Duration::ZERO);
    let (contender, cell) = (contender(), cell(Route::Ping, 0));
    let subject = Subject { contender: &contender, cell: &cell, address };
    let evidence = subject.verify(1).unwrap_err();
    assert!(evidence.contains("the body has more than 65540 bytes, not 4"), "{evidence}");
}

#[test]
fn a_response_that_never_ends_meets_its_deadline_though_bytes_keep_coming() {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let address = plant_endless(head, b"1\r\nx\r\n", Duration::from_millis(1));
    let mut connection = OpenConnection::open(address, Protocol::H1).unwrap();
    connection.timeout = Duration::from_millis(200);
    let (contender, cell) = (contender(), cell(Route::Ping, 0));
    let ask = Subject { contender: &contender, cell: &cell, address }.question(1);
    let error = connection.ask(&ask).unwrap_err();
    assert_eq!(error, "no response within 0.2 s");
}

#[test]
fn a_server_that_hangs_up_in_the_middle_is_evidence() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npo");
        }
    });
    let (contender, cell) = (contender(), cell(Route::Ping, 0));
    let subject = Subject { contender: &contender, cell: &cell, address };
    let Flaw::Silent(evidence) = subject.sample(1).unwrap_err() else {
        panic!("it never answered")
    };
    assert!(evidence.starts_with("GET /ping over HTTP/1.1: "), "{evidence}");
    assert_eq!(subject.verify(1).unwrap_err(), evidence);
}

/// A server of HTTP/3 that echoes what `echoed` makes of a body.
fn plant_http3(echoed: fn(Bytes) -> Bytes) -> (Running, SocketAddr) {
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let pem = parameters.self_signed(&key).unwrap().pem();
    let identity = Identity::from_pem(pem.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let server = Server::new().workers(1).http3(true);
    let server = server.https("127.0.0.1:0", &Tls::new(&identity).unwrap());
    let routes = move || {
        Router::new()
            .get("/ping", |_| Response::from(Bytes::from_static(b"pong")))
            .handle_post("/echo", collect(move |_, body| Response::from(echoed(body))))
    };
    let running = server.start(routes).unwrap();
    let address = running.addresses()[0].unwrap();
    (running, address)
}

#[test]
fn over_http3_the_same_is_verified() {
    let contender = contender();
    let verdict = |address, route, size| {
        let cell = Cell { protocol: Protocol::H3, requests: Requests::Same, ..cell(route, size) };
        Subject { contender: &contender, cell: &cell, address }.verify(7)
    };
    let (honest, address) = plant_http3(|body| body);
    assert_eq!(verdict(address, Route::Ping, 0).map(drop), Ok(()));
    assert_eq!(verdict(address, Route::Post, 300_000).map(drop), Ok(()));
    let (sloppy, wrong) = plant_http3(|body| body.slice(1..));
    let evidence = verdict(wrong, Route::Post, 4096).unwrap_err();
    assert!(evidence.contains(" over HTTP/3: the body has 4095 bytes, not 4096"), "{evidence}");
    for running in [honest, sloppy] {
        running.shut_down();
        running.join().unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_udp_port_that_is_none_is_silent_at_once() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let (contender, cell) = (contender(), Cell { protocol: Protocol::H3, ..cell(Route::Ping, 0) });
    let subject = Subject { contender: &contender, cell: &cell, address };
    let Err(Flaw::Silent(evidence)) = subject.sample(1) else { panic!("nothing listens there") };
    assert!(evidence.contains("no QUIC connection: "), "{evidence}");
}
