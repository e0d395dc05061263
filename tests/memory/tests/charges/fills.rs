//! How each charge is driven to its bound.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bolide_access::{Access, ForwardAuth};
use bolide_frames::{
    CONTINUATION, HEADERS, block, client_preface, data, frame, headers, request, upgrade,
    websocket, websocket_request,
};
use bolide_measurement::{Ndt7Settings, endpoints_with};
use bolide_reverse_proxy::{ProxyLimits, ProxySettings, ReverseProxy, Upstream};
use bolide_server::websocket::{Assembly, Kind, Options, Owner, Payload, Socket, WebSocket};
use bolide_server::{
    BodyStream, Bytes, End, Exchange, Io, PieceQueue, Pull, Reply, Request, Response, Router,
    body_limit, collect,
};

use crate::world::World;

/// Keeps a body and never uses it.
#[derive(Debug, Default)]
struct Hoard(PieceQueue);

impl Exchange for Hoard {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, data: Bytes, _: End, _: &mut Io<'_>) {
        self.0.push(data);
        self.0.keep();
    }
}

/// A body without end.
#[derive(Debug)]
struct Endless;

impl BodyStream for Endless {
    fn length(&self) -> Option<u64> {
        None
    }

    fn pull(&mut self, bytes_max: usize) -> Pull {
        Pull::Data(vec![7; bytes_max].into())
    }
}

/// Puts messages together.
#[derive(Debug, Default)]
struct Whole(Assembly);

impl Owner for Whole {
    fn on_message(&mut self, _: Kind, payload: Payload, end: End, _: &mut Socket<'_, '_>) {
        self.0.push(payload, end);
    }

    fn held_bytes(&self) -> usize {
        self.0.allocated_bytes()
    }
}

/// Receives nothing.
#[derive(Debug, Default)]
struct Deaf;

impl Owner for Deaf {
    fn on_open(&mut self, socket: &mut Socket<'_, '_>) {
        socket.pause();
    }

    fn on_message(&mut self, _: Kind, _: Payload, _: End, _: &mut Socket<'_, '_>) {}
}

fn socket<O: Owner + Default>(request: &mut Request<'_>) -> Reply {
    WebSocket::accept(request, &Options::new(), O::default())
}

fn routes() -> Router {
    let hoard = |_: &mut Request<'_>| Reply::Exchange(Box::<Hoard>::default());
    let routes = Router::new()
        .handle_post("/hoard", body_limit(u64::MAX, hoard))
        .handle_post("/collect", body_limit(u64::MAX, collect(|_, _| "")))
        .get("/endless", |_| Response::stream(Endless))
        .websocket("/whole", socket::<Whole>)
        .websocket("/deaf", socket::<Deaf>);
    bolide_measurement::endpoints(routes)
}

/// A worker with a route for each thing that a server may be made to keep.
pub(crate) fn server() -> World {
    World::new(routes())
}

/// The same with a directory for the records of ndt7.
pub(crate) fn archive() -> World {
    let directory = tempfile::tempdir().unwrap();
    let ndt7 = Ndt7Settings { archive: Some(directory.path().to_owned()) };
    let mut world = World::new(endpoints_with(Router::new(), &ndt7.into()));
    world.beside = Box::new(move || assert!(directory.path().exists()));
    world
}

/// A proxy before an upstream that sends `response` to whatever it is sent.
fn proxy(response: &'static [u8]) -> World {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let upstream = Upstream::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let limits = ProxyLimits { connections_count: 16, ..ProxyLimits::default() };
    let settings = ProxySettings::new(vec![upstream]).unwrap().limits(limits);
    let mut world = World::new(Router::new().fallback(ReverseProxy::new(&settings)));
    let mut streams: Vec<(TcpStream, &[u8])> = Vec::with_capacity(1024);
    world.beside = Box::new(move || {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).unwrap();
            streams.push((stream, response));
        }
        for (stream, left) in &mut streams {
            let is_asked = stream.peek(&mut [0]).is_ok_and(|count| count > 0);
            if is_asked && let Ok(count) = stream.write(left) {
                *left = &left[count..];
            }
        }
    });
    world
}

/// Requests about which a server is asked that never responds.
pub(crate) fn forward_auth() -> World {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let auth = ForwardAuth::new(&url).unwrap().timeout(Duration::from_secs(60));
    let access = Access { forward: Some(Arc::new(auth)), ..Access::default() };
    let mut world = World::new(Router::new().fallback(access.guard(|_: &mut Request<'_>| "in")));
    world.beside = Box::new(move || assert!(listener.local_addr().is_ok()));
    world
}

/// A response of 16 MiB.
static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 16777216\r\n\r\n".to_vec();
    bytes.resize(bytes.len() + (16 << 20), 7);
    bytes
});

pub(crate) fn proxy_of_large() -> World {
    proxy(&LARGE)
}

pub(crate) fn proxy_of_nothing() -> World {
    proxy(b"")
}

/// Sends these bytes on each of so many connections.
fn each(world: &mut World, connections: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let mut streams = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut stream = world.connect();
        world.send(&mut stream, bytes);
        streams.push(stream);
    }
    streams
}

pub(crate) fn half_heads(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let head = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}", "a".repeat(30_000));
    each(world, connections, head.as_bytes())
}

pub(crate) fn header_blocks_in_pieces(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let mut bytes = client_preface(&[]);
    let block = block(&[("x", &"a".repeat(120_000))]);
    let mut kind = HEADERS;
    for part in block.chunks(16_000) {
        bytes.extend_from_slice(&frame(kind, 0, 1, part));
        kind = CONTINUATION;
    }
    each(world, connections, &bytes)
}

pub(crate) fn bodies_over_http1(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let head = "POST /hoard HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\n\r\n";
    each(world, connections, &[head.as_bytes(), &[7; 4 << 20]].concat())
}

pub(crate) fn bodies_over_http2(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let mut streams = each(world, connections, &client_preface(&[]));
    for id in (1..32).step_by(2) {
        let mut body = request(id, "POST", "/hoard", false);
        (0..4).for_each(|_| body.extend_from_slice(&data(id, false, &[7; 16_384])));
        // In a turn of its own: the window grows once what has come fills it.
        streams.iter_mut().for_each(|stream| world.send(stream, &body));
    }
    streams
}

pub(crate) fn small_pieces_over_http1(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let mut bytes = b"POST /hoard HTTP/1.1\r\nhost: localhost\r\n".to_vec();
    bytes.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
    bytes.extend_from_slice(&b"1\r\nx\r\n".repeat(400_000));
    each(world, connections, &bytes)
}

pub(crate) fn collected_bodies(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let head = "POST /collect HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\n\r\n";
    each(world, connections, &[head.as_bytes(), &[7; 3 << 20]].concat())
}

pub(crate) fn responses_over_http1(world: &mut World, connections: usize) -> Vec<TcpStream> {
    each(world, connections, b"GET /endless HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

/// The beginning of an HTTP/2 connection with 100 requests for a response without end.
fn endless_responses() -> Vec<u8> {
    let mut bytes = client_preface(&[]);
    for stream in (1..200).step_by(2) {
        bytes.extend_from_slice(&request(stream, "GET", "/endless", true));
    }
    bytes
}

pub(crate) fn responses_over_http2(world: &mut World, connections: usize) -> Vec<TcpStream> {
    each(world, connections, &endless_responses())
}

pub(crate) fn responses_of_an_ended_connection(
    world: &mut World,
    connections: usize,
) -> Vec<TcpStream> {
    // RFC 9113 §6.1: DATA belongs to a stream.
    let mistake = data(0, false, b"x");
    each(world, connections, &[endless_responses(), mistake].concat())
}

pub(crate) fn websockets_over_http2(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let mut bytes = client_preface(&[]);
    for stream in (1..200).step_by(2) {
        bytes.extend_from_slice(&websocket_request(stream, "/whole"));
    }
    each(world, connections, &bytes)
}

pub(crate) fn messages_in_the_making(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let half = websocket(2, &[7; 12 << 20]);
    each(world, connections, &[upgrade("/whole", ""), half].concat())
}

pub(crate) fn frames_that_nobody_reads(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let frames = websocket(0x82, b"x").repeat(100_000);
    each(world, connections, &[upgrade("/deaf", ""), frames].concat())
}

pub(crate) fn frames_to_be_sent(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let frames = websocket(0x82, &[7; 100_000]).repeat(400);
    each(world, connections, &[upgrade("/ws", ""), frames].concat())
}

pub(crate) fn compressors(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let offer = "sec-websocket-extensions: permessage-deflate\r\n";
    // The beginning of a compressed text, in a stored block that goes on; then a whole one, whose echo is compressed.
    let whole = websocket(0xc1, &[0xca, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0]);
    let begun = websocket(0x41, &[0xca, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0, 0, 0, 0xff, 0xff]);
    each(world, connections, &[upgrade("/ws", offer), whole, begun].concat())
}

pub(crate) fn measurements(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let protocol = "sec-websocket-protocol: net.measurementlab.ndt.v7\r\n";
    let made = format!("{{\"AppInfo\":[{}0]}}", "0,".repeat(3500));
    let frames = websocket(0x81, made.as_bytes()).repeat(100);
    each(world, connections, &[upgrade("/ndt/v7/upload", protocol), frames].concat())
}

pub(crate) fn exchanges(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let mut bytes = client_preface(&[]);
    for stream in (1..200).step_by(2) {
        bytes.extend_from_slice(&request(stream, "POST", "/hoard", false));
    }
    each(world, connections, &bytes)
}

pub(crate) fn proxied_responses(world: &mut World, connections: usize) -> Vec<TcpStream> {
    each(world, connections, b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

/// Requests beyond the connections to an upstream that answers none.
pub(crate) fn waiting_requests(world: &mut World, connections: usize) -> Vec<TcpStream> {
    let mut bytes = client_preface(&[]);
    let long = "a".repeat(8 << 10);
    for stream in (1..200).step_by(2) {
        let fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "localhost"),
            ("cookie", &long),
        ];
        bytes.extend_from_slice(&headers(stream, true, &fields));
    }
    each(world, connections, &bytes)
}
