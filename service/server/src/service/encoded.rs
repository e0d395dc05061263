//! RFC 9110 §8.4: what a policy's coding makes of responses, however their content comes.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::limits::ENCODED_INLINE_BYTES;
use crate::{
    BodyEncoder, BodyStream, Bytes, Codec, Coding, End, Exchange, Handler, Io, Offload, Policy,
    Pull, Reply, Request, Response, ResponseFields, Router, Server,
};

/// Drops every `x`, marks what can be decoded with a bar, and the end with a dollar.
#[derive(Debug)]
struct Marks;

#[derive(Debug, Default)]
struct Marking(Vec<u8>);

static MARKS: Marks = Marks;
static POOL: LazyLock<Offload> = LazyLock::new(Offload::default);
static ENCODERS: AtomicUsize = AtomicUsize::new(0);

impl Codec for Marks {
    fn name(&self) -> &'static str {
        "marks"
    }

    fn encode(&self, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut marking = Marking::default();
        marking.write(body)?;
        marking.finish()?;
        Ok(marking.take())
    }

    fn encoder(&self) -> io::Result<Box<dyn BodyEncoder>> {
        ENCODERS.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Marking::default()))
    }
}

impl BodyEncoder for Marking {
    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        if data.contains(&b'!') {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if data.contains(&b'?') {
            panic!("on purpose");
        }
        self.0.extend(data.iter().filter(|byte| **byte != b'x'));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.push(b'|');
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.push(b'$');
        Ok(())
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    fn held_bytes(&self) -> usize {
        0
    }
}

/// Encodes everything.
#[derive(Debug)]
struct Always;

impl Policy for Always {
    fn coding(&self, _: &ResponseFields<'_>, length: Option<u64>) -> Coding {
        if length == Some(1) { Coding::Varies } else { Coding::By(&MARKS, &POOL) }
    }
}

struct Coded<H>(H);

impl<H: Handler> Handler for Coded<H> {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        request.set_policy(Rc::new(Always));
        self.0.handle(request)
    }
}

/// Sends pieces as an exchange does, and then trailers or none.
#[derive(Debug)]
struct Pieces {
    left: Vec<Bytes>,
    trailers: bool,
}

impl Exchange for Pieces {
    fn on_start(&mut self, io: &mut Io<'_>) {
        io.start(&Response::new(StatusCode::OK).header("content-length", "12"), None);
        self.on_sendable(io);
    }

    fn on_data(&mut self, _: Bytes, _: End, _: &mut Io<'_>) {}

    fn on_sendable(&mut self, io: &mut Io<'_>) {
        while io.is_sendable() {
            let Some(piece) = self.left.pop() else {
                let mut trailers = HeaderMap::new();
                trailers.insert("x-sum", HeaderValue::from_static("1"));
                return io.finish_with(&trailers);
            };
            let end = if self.left.is_empty() && !self.trailers { End::Yes } else { End::No };
            io.send(piece, end).unwrap();
        }
    }
}

/// Has a piece, then nothing, and then another.
#[derive(Debug)]
struct Pausing(Vec<Pull>);

impl BodyStream for Pausing {
    fn pull(&mut self, _: usize) -> Pull {
        self.0.pop().unwrap_or(Pull::End)
    }
}

fn large() -> Bytes {
    "xxxxxxxxx.".repeat(ENCODED_INLINE_BYTES).into()
}

fn pieces(size: usize, trailers: bool) -> impl Handler {
    Coded(move |_: &mut Request<'_>| {
        let left = vec![Bytes::from(vec![b'b'; size]), Bytes::from(vec![b'a'; size])];
        Reply::Exchange(Box::new(Pieces { left, trailers }))
    })
}

fn text(text: &'static str) -> impl Handler {
    Coded(move |_: &mut Request<'_>| Response::text(text).header("etag", "\"1\""))
}

fn router() -> Router {
    let pausing = |request: &mut Request<'_>| {
        let waker = request.waker();
        std::thread::spawn(move || waker.wake());
        let pulls = vec![Pull::Last("b".into()), Pull::Pending, Pull::Data("a".into())];
        Response::stream(Pausing(pulls))
    };
    Router::new()
        .handle(Method::GET, "/small", text("xxxxx small"))
        .handle(Method::GET, "/grows", text("grows"))
        .handle(Method::GET, "/varies", text("v"))
        .handle(
            Method::GET,
            "/large",
            Coded(|_: &mut Request<'_>| Response::text(large()).header("accept-ranges", "bytes")),
        )
        .handle(Method::GET, "/pausing", Coded(pausing))
        .handle(Method::GET, "/pieces", pieces(3, false))
        .handle(Method::GET, "/pieces/trailers", pieces(3, true))
        .handle(Method::GET, "/pieces/large", pieces(ENCODED_INLINE_BYTES + 1, false))
        .handle(Method::GET, "/pieces/large/trailers", pieces(ENCODED_INLINE_BYTES + 1, true))
        .handle(
            Method::GET,
            "/trailed",
            Coded(|_: &mut Request<'_>| {
                let mut trailers = HeaderMap::new();
                trailers.insert("x-sum", HeaderValue::from_static("1"));
                Response::text("xxtrailed").trailers(Some(9), trailers)
            }),
        )
        .handle(
            Method::GET,
            "/fails",
            Coded(|_: &mut Request<'_>| {
                Response::stream(Pausing(vec![Pull::Data("a!".into()), Pull::Data("b".into())]))
            }),
        )
        .handle(
            Method::GET,
            "/fails/large",
            Coded(|_: &mut Request<'_>| Response::text("!".repeat(ENCODED_INLINE_BYTES + 1))),
        )
        .handle(
            Method::GET,
            "/panics/large",
            Coded(|_: &mut Request<'_>| Response::text("?".repeat(ENCODED_INLINE_BYTES + 1))),
        )
        .handle(Method::GET, "/nothing", Coded(|_: &mut Request<'_>| StatusCode::NO_CONTENT))
        .handle(Method::GET, "/same", Coded(|_: &mut Request<'_>| StatusCode::NOT_MODIFIED))
}

/// The responses to requests, one after the other.
fn ask(requests: &[&str]) -> Vec<String> {
    let server = Server::new().workers(1).http("127.0.0.1:0").start(router).unwrap();
    let address = server.addresses()[0].unwrap();
    let ask_one = |request: &&str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: h\r\nte: trailers\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    };
    let responses = requests.iter().map(ask_one).collect();
    server.shut_down();
    server.join().unwrap();
    responses
}

/// The content of chunks, and what follows them. `None`: the end is missing.
fn chunks(response: &str) -> Option<(String, String)> {
    let (_, mut rest) = response.split_once("\r\n\r\n").unwrap();
    let mut content = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return Some((content, after.to_owned()));
        }
        content.push_str(after.get(..size)?);
        rest = after.get(size + 2..)?;
    }
}

#[test]
fn a_small_content_is_encoded_at_once_with_its_length() {
    let [small, grows, varies] = &ask(&["GET /small", "GET /grows", "GET /varies"])[..] else {
        panic!("three responses");
    };
    assert!(small.ends_with("\r\n\r\n small$"), "{small}");
    for line in
        ["content-encoding: marks", "vary: accept-encoding", "etag: W/\"1\"", "content-length: 7"]
    {
        assert!(small.contains(&format!("\r\n{line}\r\n")), "{line}: {small}");
    }
    for (plain, length) in [(grows, 5), (varies, 1)] {
        assert!(plain.contains("\r\nvary: accept-encoding\r\n"), "{plain}");
        assert!(plain.contains("\r\netag: \"1\"\r\n"), "{plain}");
        assert!(plain.contains(&format!("\r\ncontent-length: {length}\r\n")), "{plain}");
        assert!(!plain.contains("content-encoding"), "{plain}");
    }
}

#[test]
fn content_that_comes_in_pieces_is_flushed_when_its_source_pauses() {
    let paths = ["/pausing", "/pieces", "/pieces/trailers", "/trailed"];
    let requests = paths.map(|path| format!("GET {path}"));
    let responses = ask(&requests.each_ref().map(String::as_str));
    let expected =
        [("a|b$", ""), ("aaabbb$", ""), ("aaabbb$", "x-sum: 1\r\n"), ("trailed$", "x-sum: 1\r\n")];
    for (response, (content, trailers)) in responses.iter().zip(expected) {
        assert!(response.contains("\r\ncontent-encoding: marks\r\n"), "{response}");
        assert!(!response.contains("content-length"), "{response}");
        let whole = Some((content.to_owned(), format!("{trailers}\r\n")));
        assert_eq!(chunks(response), whole, "{response}");
    }
}

#[test]
fn large_content_is_encoded_beside_the_loop() {
    let before = ENCODERS.load(Ordering::Relaxed);
    let responses = ask(&["GET /large", "GET /pieces/large", "GET /pieces/large/trailers"]);
    assert!(ENCODERS.load(Ordering::Relaxed) >= before + 3);
    assert!(!responses[0].contains("accept-ranges"), "{}", responses[0]);
    let without_marks = |response: &str| {
        let (content, trailers) = chunks(response).unwrap();
        assert!(content.ends_with('$'));
        (content.replace(['|', '$'], ""), trailers)
    };
    let dots = ".".repeat(ENCODED_INLINE_BYTES);
    assert_eq!(without_marks(&responses[0]), (dots, "\r\n".to_owned()));
    let both = ["a", "b"].map(|letter| letter.repeat(ENCODED_INLINE_BYTES + 1)).concat();
    assert_eq!(without_marks(&responses[1]), (both.clone(), "\r\n".to_owned()));
    assert_eq!(without_marks(&responses[2]), (both, "x-sum: 1\r\n\r\n".to_owned()));
}

#[test]
fn an_encoder_that_fails_or_panics_breaks_the_message_off() {
    for response in ask(&["GET /fails", "GET /fails/large", "GET /panics/large"]) {
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        assert_eq!(chunks(&response), None, "{response}");
    }
}

#[test]
fn head_says_what_get_would_and_responses_without_content_stay() {
    let responses =
        ask(&["HEAD /small", "HEAD /large", "HEAD /pieces", "GET /nothing", "GET /same"]);
    for response in &responses[..3] {
        assert!(response.contains("\r\ncontent-encoding: marks\r\n"), "{response}");
        assert!(response.contains("\r\nvary: accept-encoding\r\n"), "{response}");
        assert!(!response.contains("content-length"), "{response}");
        assert!(response.ends_with("\r\n\r\n"), "{response}");
    }
    for response in &responses[3..] {
        assert!(!response.contains("content-encoding"), "{response}");
        assert!(!response.contains("vary"), "{response}");
    }
}
