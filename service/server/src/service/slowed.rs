//! Content that a policy slows down, in both directions, and connections that are too many for one client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bolide_frames::{client_preface, data, request};
use bolide_semantics::Head;

use crate::{
    BodyStream, Bytes, End, Exchange, Io, Limits, Pace, Policy, Pull, Reply, Request, Response,
    Router, Running, Server, StatusCode,
};

const BODY_BYTES: usize = 10_000;
const PIECE_BYTES: usize = 999;

/// Lets one piece pass in a millisecond, and counts.
#[derive(Debug, Clone)]
struct Slow {
    began: Instant,
    sent: Arc<AtomicU64>,
}

impl Pace for Slow {
    fn ready(&self, now: Instant) -> Result<usize, Instant> {
        let next = self.sent.load(Ordering::Relaxed).div_ceil(PIECE_BYTES as u64);
        let next = self.began + Duration::from_millis(next);
        if now < next { Err(next) } else { Ok(PIECE_BYTES) }
    }

    fn sent(&self, bytes: u64, _: Instant) {
        assert!(bytes <= PIECE_BYTES as u64, "{bytes} bytes at once");
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Policy for Slow {
    fn pace(&self) -> Option<Rc<dyn Pace>> {
        Some(Rc::new(self.clone()))
    }
}

/// Sends its content as one piece, at a pace.
#[derive(Debug)]
struct Once;

impl Exchange for Once {
    fn on_start(&mut self, io: &mut Io<'_>) {
        io.start(&Response::new(StatusCode::OK), None);
        assert!(io.is_sendable());
        io.send(Bytes::from_static(&[b'x'; BODY_BYTES]), End::Yes).unwrap();
        assert!(!io.is_sendable());
    }

    fn on_data(&mut self, _: Bytes, _: End, _: &mut Io<'_>) {}
}

/// A body of unknown length.
#[derive(Debug)]
struct Pieces(usize);

impl BodyStream for Pieces {
    fn pull(&mut self, bytes_max: usize) -> Pull {
        let bytes = self.0.min(bytes_max);
        self.0 -= bytes;
        if bytes == 0 { Pull::End } else { Pull::Data(vec![b'x'; bytes].into()) }
    }
}

/// Slows the request down instead.
#[derive(Debug)]
struct Taken(Slow);

impl Policy for Taken {
    fn receive_pace(&self) -> Option<Rc<dyn Pace>> {
        Some(Rc::new(self.0.clone()))
    }
}

/// Responds with the largest piece that it was given, the length of all, and the trailers.
#[derive(Debug, Default)]
struct Largest {
    most: usize,
    all: usize,
}

impl Exchange for Largest {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        io.consumed(data.len());
        self.most = self.most.max(data.len());
        self.all += data.len();
        if end == End::Yes {
            io.respond(Response::from(format!("{} of {}", self.most, self.all)));
        }
    }

    fn on_trailers(&mut self, trailers: &Head, io: &mut Io<'_>) {
        let trailer = trailers.get_named("x-sum").map(String::from_utf8_lossy);
        let said = format!("{} of {}, {}", self.most, self.all, trailer.unwrap_or_default());
        io.respond(Response::from(said));
    }
}

fn started(limits: Limits, sent: &Arc<AtomicU64>) -> (Running, SocketAddr) {
    let sent = Arc::clone(sent);
    let router = move || {
        let slow = Slow { began: Instant::now(), sent: Arc::clone(&sent) };
        let (whole, once, taken) = (slow.clone(), slow.clone(), slow.clone());
        Router::new()
            .get("/whole", move |request: &mut Request<'_>| {
                request.set_policy(Rc::new(whole.clone()));
                Response::from(Bytes::from_static(&[b'x'; BODY_BYTES]))
            })
            .get("/pieces", move |request: &mut Request<'_>| {
                request.set_policy(Rc::new(slow.clone()));
                Response::stream(Pieces(BODY_BYTES))
            })
            .get("/once", move |request: &mut Request<'_>| {
                request.set_policy(Rc::new(once.clone()));
                Reply::Exchange(Box::new(Once))
            })
            .handle_post("/taken", move |request: &mut Request<'_>| {
                request.set_policy(Rc::new(Taken(taken.clone())));
                Reply::Exchange(Box::<Largest>::default())
            })
            .get("/", |_| "fine")
    };
    let server = Server::new().workers(1).limits(limits).http("127.0.0.1:0");
    let running = server.start(router).unwrap();
    let address = running.addresses()[0].unwrap();
    (running, address)
}

fn get(stream: &mut TcpStream, path: &str) -> String {
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response);
    response
}

#[test]
fn content_that_is_paced_comes_whole_and_in_small_pieces() {
    for path in ["/whole", "/pieces", "/once"] {
        let sent = Arc::default();
        let (running, address) = started(Limits::default(), &sent);
        let response = get(&mut TcpStream::connect(address).unwrap(), path);
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert_eq!(body.matches('x').count(), BODY_BYTES, "{path}");
        assert_eq!(sent.load(Ordering::Relaxed), BODY_BYTES as u64, "{path}");
        assert_eq!(head.contains("content-length: 10000"), path == "/whole", "{head}");
        running.shut_down();
        running.join().unwrap();
    }
}

#[test]
fn a_request_that_is_paced_is_handed_on_in_small_pieces_to_its_end() {
    let body = [b'x'; BODY_BYTES];
    let chunks: Vec<u8> = [&b"2710\r\n"[..], &body, b"\r\n0\r\n"].concat();
    for (framing, content, said) in [
        ("content-length: 10000", &body[..], "999 of 10000"),
        ("transfer-encoding: chunked", &[&chunks[..], b"\r\n"].concat(), "999 of 10000"),
        (
            "transfer-encoding: chunked\r\ntrailer: x-sum",
            &[&chunks[..], b"x-sum: 7\r\n\r\n"].concat(),
            "999 of 10000, 7",
        ),
    ] {
        let sent = Arc::default();
        let (running, address) = started(Limits::default(), &sent);
        let mut stream = TcpStream::connect(address).unwrap();
        let head =
            format!("POST /taken HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{framing}\r\n\r\n");
        stream.write_all(&[head.as_bytes(), content].concat()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.ends_with(&format!("\r\n\r\n{said}")), "{framing}: {response}");
        assert_eq!(sent.load(Ordering::Relaxed), BODY_BYTES as u64, "{framing}");
        drop(stream);
        running.shut_down();
        running.join().unwrap();
    }
}

#[test]
fn a_request_that_is_paced_over_http2_is_handed_on_in_small_pieces_to_its_end() {
    let sent = Arc::default();
    let (running, address) = started(Limits::default(), &sent);
    let mut stream = TcpStream::connect(address).unwrap();
    let mut bytes = client_preface(&[]);
    for number in [1, 3] {
        bytes.extend_from_slice(&request(number, "POST", "/taken", false));
        bytes.extend_from_slice(&data(number, true, &[b'x'; BODY_BYTES]));
    }
    stream.write_all(&bytes).unwrap();
    let mut received = Vec::new();
    let said = b"999 of 10000";
    while received.windows(said.len()).filter(|part| *part == said).count() < 2 {
        let mut block = [0; 4096];
        let count = stream.read(&mut block).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&block[..count]);
    }
    assert_eq!(sent.load(Ordering::Relaxed), 2 * BODY_BYTES as u64);
    drop(stream);
    running.shut_down();
    running.join().unwrap();
}

#[test]
fn connection_flood_of_one_client_is_closed_at_once() {
    let limits = Limits { client_connections_count: 2, ..Limits::default() };
    let (running, address) = started(limits, &Arc::default());
    let mut kept: Vec<TcpStream> = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nhost: h\r\n\r\n").unwrap();
        assert!(stream.read(&mut [0; 1]).unwrap() > 0);
        kept.push(stream);
    }
    assert_eq!(get(&mut TcpStream::connect(address).unwrap(), "/"), "", "the third");
    kept.pop();
    // The server notices the end of the one that is closed some time later.
    while get(&mut TcpStream::connect(address).unwrap(), "/").is_empty() {}
    running.shut_down();
    running.join().unwrap();
}
