//! RFC 9114, RFC 7838: HTTP/3 next to TLS, by our own client over a real socket.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use bolide_buffers::{Datagram, DatagramBatch, DatagramSink, ReceiveBuffer, SendQueue};
use bolide_connection::{
    Arrival, ClientOptions, ClientTls, Connection, HandshakeRules, Identity, Limits, Membership,
    QuicEndpoint, ServerOptions, Trust, WallClock, http3_limits,
};
use bolide_semantics::{Context, End, ExchangeEvent, ExchangeId, Head, Output, RequestHead};
use bolide_server::{
    LoopLimits, Metrics, Reply, Responder, Response, Router, Running, Server, Tls, collect,
};
use bytes::{Bytes, BytesMut};
use http::Method;

struct Socket(UdpSocket);

impl DatagramSink for Socket {
    fn send(&mut self, batch: &DatagramBatch, buffer: &[u8]) -> io::Result<()> {
        let bytes = &buffer[..batch.bytes];
        for piece in bytes.chunks(batch.segment_bytes.unwrap_or(bytes.len())) {
            // One that is lost is sent again.
            let _ = self.0.send_to(piece, batch.to);
        }
        Ok(())
    }
}

/// Parts of one response that have come.
#[derive(Debug, Default)]
struct RawResponse {
    status: u16,
    fields: String,
    body: Vec<u8>,
    is_over: bool,
    aborted: Option<&'static str>,
}

struct Client {
    endpoint: QuicEndpoint<()>,
    connection: Connection,
    socket: Socket,
    limits: Limits,
    head: Head,
    responses: BTreeMap<ExchangeId, RawResponse>,
    closed: Option<&'static str>,
}

impl Client {
    fn connect(to: SocketAddr) -> Self {
        let mut client = Self::begin(to);
        client.until(|client| client.connection.exchanges_available() > 0);
        client
    }

    fn begin(to: SocketAddr) -> Self {
        let tls = ClientTls::new(&Trust::Any, &[], WallClock(SystemTime::now));
        Self::begin_with(to, &tls.expect("settings"))
    }

    fn begin_with(to: SocketAddr, tls: &ClientTls) -> Self {
        let clock = WallClock(SystemTime::now);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let limits = Limits::default();
        let mut endpoint = QuicEndpoint::new(None, clock, [7; 32], (0, Membership::default()))
            .expect("an endpoint");
        let target = (tls, to, "localhost");
        let connection =
            endpoint.connect(target, (), &limits, Instant::now()).expect("a connection");
        let (head, responses, closed) = (Head::default(), BTreeMap::new(), None);
        let socket = Socket(socket);
        Self { endpoint, connection, socket, limits, head, responses, closed }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Connection, &mut Context<'_>, &Limits) -> T) -> T {
        let mut cx = Context {
            input: &mut ReceiveBuffer::new(64),
            output: &mut SendQueue::new(),
            output_limit: 1 << 20,
            head: &mut self.head,
            now: Instant::now(),
        };
        act(&mut self.connection, &mut cx, &self.limits)
    }

    fn send(&mut self, method: &Method, path: &str, body: Bytes) -> ExchangeId {
        self.until(|client| client.connection.exchanges_available() > 0);
        let authority = "localhost";
        let head =
            RequestHead { method, scheme: "https", authority, path, protocol: None, fields: &[] };
        let id = self.with(|connection, cx, _| {
            let end = if body.is_empty() { End::Yes } else { End::No };
            let id = connection.send_request(cx, &head, end).expect("a stream");
            if !body.is_empty() {
                connection.send_data(cx, id, body, End::Yes).expect("it waits, if it must");
            }
            id
        });
        self.responses.insert(id, RawResponse::default());
        id
    }

    fn get(&mut self, path: &str) -> &RawResponse {
        let id = self.send(&Method::GET, path, Bytes::new());
        self.wait_for(id)
    }

    fn wait_for(&mut self, id: ExchangeId) -> &RawResponse {
        self.until(|client| client.closed.is_some() || client.responses[&id].is_over);
        &self.responses[&id]
    }

    fn event(&mut self, id: ExchangeId, event: ExchangeEvent) {
        let response = self.responses.entry(id).or_default();
        match event {
            ExchangeEvent::Head(end) => {
                response.status = self.head.status().as_u16();
                response.fields = format!("{:?}", self.head);
                response.is_over = end == End::Yes;
            }
            ExchangeEvent::Data(data, end) => {
                response.body.extend_from_slice(&data);
                response.is_over = end == End::Yes;
                self.with(|connection, cx, _| connection.consumed(cx, id, data.len()));
            }
            ExchangeEvent::Aborted(reason) => {
                (response.aborted, response.is_over) = (Some(reason.name), true);
            }
            _ => {}
        }
    }

    /// Sends and receives until something is so.
    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let give_up = Instant::now() + Duration::from_secs(60);
        let mut buffer = vec![0; 65_536];
        loop {
            let now = Instant::now();
            self.connection.receive_datagrams(&mut self.endpoint, now);
            while self.closed.is_none() {
                match self.with(|connection, cx, limits| connection.poll(cx, limits)) {
                    Output::Wait(_) => break,
                    Output::Closed(reason) => self.closed = Some(reason.name),
                    Output::Connection(_) => {}
                    Output::Exchange(id, event) => self.event(id, event),
                }
            }
            let flushed = self.connection.flush_datagrams(&mut self.endpoint, &mut self.socket);
            if done(self) {
                return;
            }
            assert!(now < give_up, "{:?} {:?}", self.closed, self.responses.keys());
            let wait = flushed.deadline.map_or(Duration::from_secs(1), |at| at - now);
            let wait = wait.clamp(Duration::from_millis(1), Duration::from_secs(1));
            self.socket.0.set_read_timeout(Some(wait)).expect("a timeout");
            match self.socket.0.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    let bytes = BytesMut::from(&buffer[..length]);
                    let datagram = Datagram { from, to: None, ecn: 0, bytes };
                    let arrival =
                        self.endpoint.receive(datagram, false, Instant::now(), &mut self.socket);
                    assert!(matches!(arrival, Arrival::Nothing | Arrival::For(())), "{arrival:?}");
                }
                Err(error) => {
                    let kinds = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                    assert!(kinds.contains(&error.kind()), "{error}");
                }
            }
        }
    }
}

fn tls() -> Tls {
    tls_of(HandshakeRules::default())
}

fn tls_of(rules: HandshakeRules) -> Tls {
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()])
        .and_then(|parameters| parameters.self_signed(&key))
        .expect("a certificate");
    let pem = (certificate.pem(), key.serialize_pem());
    let identity = Identity::from_pem(pem.0.as_bytes(), pem.1.as_bytes());
    let identities = &[identity.expect("what rcgen made")];
    Tls::of(&ServerOptions { identities, rules, ..ServerOptions::default() }).expect("settings")
}

/// Responder of the request for `/held`.
static HELD: Mutex<Option<Responder>> = Mutex::new(None);

fn routes() -> Router {
    Router::new()
        .get("/ping", |request| format!("pong over {:?}", request.version()))
        .get("/early", |request| request.header("early-data").unwrap_or("none").to_owned())
        .get("/scheme", |request| request.scheme().to_owned())
        .get("/never", |_| Reply::Later)
        .get("/held", |request| {
            *HELD.lock().expect("nobody panicked") = Some(request.responder());
            Reply::Later
        })
        .get("/long", |_| Response::from(Bytes::from(vec![7; 3_000_000])))
        .handle_post("/echo", collect(|_, body| Response::from(body)))
}

fn start(server: Server) -> (Running, SocketAddr) {
    let server = server.drain(Duration::from_secs(20)).https("127.0.0.1:0", &tls());
    let running = server.start(routes).expect("a free port");
    let address = running.addresses()[0].expect("an address");
    (running, address)
}

fn end(running: Running) -> bolide_server::Stats {
    running.shut_down();
    running.join().expect("no worker failed")
}

/// How many requests have responses.
fn answered(metrics: &Metrics) -> u64 {
    metrics.snapshot().routes.iter().flat_map(|route| route.statuses).sum()
}

/// Returns what a response over TLS says.
fn over_tls(address: SocketAddr) -> String {
    use std::io::{Read, Write};
    let clock = WallClock(SystemTime::now);
    let tls = ClientTls::new(&Trust::Any, &[bolide_connection::Alpn::Http11], clock);
    let mut layer = tls.expect("settings").connect("localhost").expect("a name");
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    let (mut queue, mut input, mut plain) =
        (SendQueue::new(), ReceiveBuffer::new(65_536), ReceiveBuffer::new(65_536));
    queue.push(Bytes::from_static(
        b"GET /ping HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ));
    let (mut rest, mut text) = (Vec::new(), Vec::new());
    let mut buffer = [0; 16_384];
    loop {
        layer.flush(&mut queue, &mut stream).expect("it is taken");
        let length = stream.read(&mut buffer).expect("it goes on");
        rest.extend_from_slice(&buffer[..length]);
        input.start(&rest);
        let ended = layer.receive(&mut input, &mut plain).expect("records");
        rest = input.take_rest().to_vec();
        text.extend_from_slice(plain.unread());
        let unread = plain.len();
        plain.consume(unread);
        if ended || length == 0 {
            let _ = stream.flush();
            return String::from_utf8_lossy(&text).into_owned();
        }
    }
}

#[test]
fn requests_over_http3_find_the_handlers_of_the_others() {
    let metrics = Metrics::new();
    let (running, address) = start(Server::new().workers(2).http3(true).metrics(&metrics));
    assert_eq!(running.http3(), [true]);
    let mut client = Client::connect(address);
    let response = client.get("/ping");
    assert_eq!((response.status, &*response.body), (200, &b"pong over HTTP/3.0"[..]));
    assert!(!response.fields.contains("alt-svc"), "{}", response.fields);
    assert_eq!(client.get("/scheme").body, b"https");
    assert_eq!(client.get("/missing").status, 404);
    let body: Bytes = (0..1 << 20).map(|at| (at ^ (at >> 7)) as u8).collect::<Vec<_>>().into();
    let id = client.send(&Method::POST, "/echo", body.clone());
    let response = client.wait_for(id);
    assert_eq!(response.status, 200);
    assert!(response.body == body, "{} bytes came back", response.body.len());
    assert_eq!(client.get("/long").body.len(), 3_000_000);
    let ids: Vec<_> = (0..100).map(|_| client.send(&Method::GET, "/ping", Bytes::new())).collect();
    for id in ids {
        assert_eq!(client.wait_for(id).body, b"pong over HTTP/3.0");
    }
    assert_eq!(client.closed, None);
    running.shut_down();
    client.until(|client| client.closed.is_some());
    assert_eq!(running.join().expect("no worker failed").accepted, 1);
    assert_eq!(answered(&metrics), 105);
}

#[test]
fn early_requests_are_served_where_a_replay_does_no_harm() {
    let rules = HandshakeRules { early_data: true, ..HandshakeRules::default() };
    let metrics = Metrics::new();
    // What the connections are told is not read at the end.
    let drain = Duration::from_millis(10);
    let server = Server::new().workers(2).http3(true).metrics(&metrics).drain(drain);
    let running = server.https("127.0.0.1:0", &tls_of(rules)).start(routes).expect("a free port");
    let address = running.addresses()[0].expect("an address");
    let options = ClientOptions {
        trust: &Trust::Any,
        alpn: &[],
        identity: None,
        resume: true,
        early_data: true,
    };
    let tls = ClientTls::with(&options, WallClock(SystemTime::now)).expect("settings");
    let mut first = Client::begin_with(address, &tls);
    assert_eq!(first.get("/early").body, b"none");
    for round in 0..3 {
        let mut again = Client::begin_with(address, &tls);
        let (get, post) = (
            again.send(&Method::GET, "/early", Bytes::new()),
            again.send(&Method::POST, "/echo", Bytes::from_static(b"order")),
        );
        assert!(again.connection.tls_facts().is_none(), "the handshake is not complete");
        // What the server finds together with the end of the handshake is not early any more: the client reads nothing
        // until both requests have responses.
        again.connection.flush_datagrams(&mut again.endpoint, &mut again.socket);
        let give_up = Instant::now() + Duration::from_secs(60);
        while answered(&metrics) < 1 + 4 * round + 2 {
            assert!(Instant::now() < give_up, "{:?}", metrics.snapshot());
            // What the worker has counted is told in its next turn.
            running.set_server_timing(false);
            std::thread::yield_now();
        }
        assert_eq!(again.wait_for(get).body, b"1");
        assert_eq!(again.wait_for(post).status, 425);
        let facts = again.connection.tls_facts().expect("it is complete");
        assert!(facts.resumed);
        assert_eq!(again.get("/early").body, b"none");
        let post = again.send(&Method::POST, "/echo", Bytes::from_static(b"order"));
        assert_eq!(again.wait_for(post).body, b"order");
    }
    end(running);
}

#[test]
fn a_wrong_request_is_refused_and_the_connection_goes_on() {
    let (running, address) = start(Server::new().workers(1).http3(true));
    let mut client = Client::connect(address);
    let id = client.send(&Method::POST, "/ping", Bytes::from_static(b"a body"));
    assert_eq!(client.wait_for(id).status, 405);
    let id = client.send(&Method::GET, "//%", Bytes::new());
    assert_eq!(client.wait_for(id).status, 404);
    assert_eq!(client.get("/ping").status, 200);
    running.shut_down();
    client.until(|client| client.closed.is_some());
    running.join().expect("no worker failed");
}

#[test]
fn responses_over_tls_name_http3_once_its_port_is_open() {
    let (running, address) = start(Server::new().workers(2).http3(true));
    let text = over_tls(address);
    let port = address.port();
    assert!(text.contains(&format!("\r\nalt-svc: h3=\":{port}\"; ma=86400\r\n")), "{text}");
    end(running);
    let (running, address) = start(Server::new().workers(2));
    assert_eq!(running.http3(), [false]);
    assert!(!over_tls(address).contains("alt-svc"));
    end(running);
}

#[test]
fn a_port_that_is_taken_leaves_tls_alone() {
    // A port whose UDP side is taken, and whose TCP side is free.
    let (taken, address) = loop {
        let taken = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = taken.local_addr().expect("an address");
        if std::net::TcpListener::bind(address).is_ok() {
            break (taken, address);
        }
    };
    let server = Server::new().workers(2).http3(true).https(&address.to_string(), &tls());
    let running = server.start(routes).expect("TCP goes on");
    assert_eq!(running.http3(), [false]);
    let text = over_tls(address);
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && !text.contains("alt-svc"), "{text}");
    end(running);
    drop(taken);
}

#[test]
fn a_shutdown_lets_what_is_open_finish() {
    let (running, address) = start(Server::new().workers(1).http3(true));
    let mut client = Client::connect(address);
    let mut idle = Client::connect(address);
    assert_eq!(idle.get("/ping").status, 200);
    let id = client.send(&Method::GET, "/long", Bytes::new());
    client.until(|client| !client.responses[&id].body.is_empty());
    running.shut_down();
    // GOAWAY in two steps: the exchange ends as it would have, and nothing new begins.
    let response = client.wait_for(id);
    assert_eq!((response.body.len(), response.aborted), (3_000_000, None));
    client.until(|client| client.closed.is_some());
    idle.until(|idle| idle.closed.is_some());
    for closed in [client.closed, idle.closed] {
        assert!(matches!(closed, Some("goaway" | "eof")), "{closed:?}");
    }
    let stats = running.join().expect("no worker failed");
    assert_eq!((stats.accepted, stats.closed.finished, stats.open), (2, 2, 0));
}

/// A connection that came by a datagram and had no room isn't taken for the next that comes over TCP.
#[test]
fn a_connection_without_room_becomes_nobody_elses() {
    use std::io::{Read, Write};
    let event_loop = LoopLimits { connections_max_count: 1, ..LoopLimits::default() };
    let limits = bolide_server::Limits { event_loop, ..bolide_server::Limits::default() };
    let metrics = Metrics::new();
    let server = Server::new().workers(1).limits(limits).http3(true).metrics(&metrics);
    let (running, cleartext) = start(server.http("127.0.0.1:0"));
    let address = running.addresses()[1].expect("that of TLS");
    let ask = |stream: &mut std::net::TcpStream, text: &[u8]| {
        stream.write_all(text).expect("it is read");
        let mut response = String::new();
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream.read_to_string(&mut response).expect("a response");
        response
    };
    let mut first = std::net::TcpStream::connect(cleartext).expect("it listens");
    let held = b"GET /held HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    first.write_all(held).expect("it is read");
    let give_up = Instant::now() + Duration::from_secs(30);
    // What has a request makes no room for others.
    let responder = loop {
        if let Some(responder) = HELD.lock().expect("nobody panicked").take() {
            break responder;
        }
        assert!(Instant::now() < give_up, "the request is not seen");
        std::thread::yield_now();
    };
    let mut unwanted = Client::begin(address);
    unwanted.connection.receive_datagrams(&mut unwanted.endpoint, Instant::now());
    unwanted.connection.flush_datagrams(&mut unwanted.endpoint, &mut unwanted.socket);
    while metrics.snapshot().event_loop.refused == 0 {
        assert!(Instant::now() < give_up, "{:?}", metrics.snapshot().event_loop);
        // What the worker has counted is told in its next turn.
        running.set_server_timing(false);
        std::thread::yield_now();
    }
    responder.respond("now");
    assert!(ask(&mut first, b"").ends_with("now"));
    let mut second = std::net::TcpStream::connect(cleartext).expect("it listens");
    let response = ask(&mut second, b"GET /ping HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert!(response.ends_with("pong over HTTP/1.1"), "{response}");
    end(running);
}

#[test]
fn a_client_that_goes_silent_holds_nothing_for_long() {
    let mut connection = Limits::default();
    let h3 = bolide_connection::Http3Limits {
        times: http3_limits::Times {
            idle_time: Duration::from_millis(200),
            ..http3_limits::Times::DEFAULT
        },
        ..bolide_connection::Http3Limits::default()
    };
    connection.h3 = std::sync::Arc::new(h3);
    let limits = bolide_server::Limits { connection, ..bolide_server::Limits::default() };
    let (running, address) = start(Server::new().workers(1).http3(true).limits(limits));
    let mut client = Client::connect(address);
    assert_eq!(client.get("/ping").status, 200);
    client.until(|client| client.closed.is_some());
    assert!(matches!(client.closed, Some("goaway" | "eof")), "{:?}", client.closed);
    end(running);
}
