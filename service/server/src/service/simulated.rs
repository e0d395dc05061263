//! The whole server on a simulated network: 256 seeds, any cuts, delays, short calls and resets.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use bolide_connection::{
    Alpn, ClientTls, Identity, Limits as ConnectionLimits, ServerTls, Trust, WallClock,
};
use bolide_eventloop::{Limits as LoopLimits, Stats};
use bolide_semantics::{
    Context, End, ExchangeEvent, ExchangeId, FieldName, FieldRef, Output, RequestHead,
};
use bolide_simnet::{ClientId, Faults, Random, Simulation, Wire, for_each_seed};
use bytes::Bytes;
use http::Method;

use super::*;
use crate::{BodyStream, FilePiece, FileVersion, Pull, Response, SharedFile, body_limit, collect};

const SEEDS: u64 = 256;

/// Longer than every deadline of a server.
const LONG: Duration = Duration::from_secs(3600);

/// The day that RFC 9110 §5.6.7 gives as its example: the bytes of responses are known in advance.
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

pub(super) fn wall_clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
}

/// The bytes of `/fill/{n}`, made piece by piece.
#[derive(Debug)]
pub(super) struct Fill {
    pub(super) length: u64,
    pub(super) sent: u64,
}

fn fill_byte(place: u64) -> u8 {
    (place % 251) as u8
}

impl BodyStream for Fill {
    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    fn pull(&mut self, bytes_max: usize) -> Pull {
        let third = (FILE_BYTES / 3) as u64;
        let to_file = if self.length > FILE_BYTES as u64 { u64::MAX } else { third };
        let piece = (self.length - self.sent).min(bytes_max as u64).min(to_file);
        let bytes: Vec<u8> = (self.sent..self.sent + piece).map(fill_byte).collect();
        self.sent += piece;
        if self.sent == self.length { Pull::Last(bytes.into()) } else { Pull::Data(bytes.into()) }
    }

    /// Every other third of it comes from a file.
    fn pull_file(&mut self, bytes_max: usize) -> Option<FilePiece> {
        let bytes = bytes_max.min(FILE_BYTES / 3);
        if self.length > FILE_BYTES as u64 || (self.sent / (FILE_BYTES / 3) as u64) % 2 == 1 {
            return None;
        }
        let bytes = bytes.min(usize::try_from(self.length - self.sent).expect("it is small"));
        let offset = self.sent;
        self.sent += bytes as u64;
        let is_last = self.sent == self.length;
        Some(FilePiece { file: Arc::clone(&FILLED), offset, bytes, is_last })
    }
}

/// How long the longest responses are that come from a file in part, in bytes.
const FILE_BYTES: usize = 70_000;

/// A file of what `/fill/{n}` is made of.
static FILLED: LazyLock<Arc<SharedFile>> = LazyLock::new(|| {
    let mut file = tempfile::tempfile().expect("a file");
    let bytes: Vec<u8> = (0..FILE_BYTES as u64).map(fill_byte).collect();
    file.write_all(&bytes).expect("it is open");
    let version = FileVersion::of(&file).expect("it is there");
    Arc::new(SharedFile::new(Arc::new(file.into()), version))
});

/// The settings of both ends of a TLS connection: a certificate of its own making, trusted unseen.
pub(super) fn tls(clock: fn() -> SystemTime) -> (ServerTls, ClientTls) {
    let made = rcgen::generate_simple_self_signed(["a".to_owned()]).expect("a certificate");
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("an identity");
    let server = ServerTls::new(&identity, WallClock(clock)).expect("settings");
    let client = ClientTls::new(&Trust::Any, &[Alpn::H2], WallClock(wall_clock));
    (server, client.expect("settings"))
}

fn service(tls: Option<ServerTls>) -> HttpService {
    let router = Router::new()
        .get("/ping", |_| "pong")
        .get("/fill/{n}", |request| {
            let length = request.param("n").and_then(|n| n.parse().ok()).unwrap_or_default();
            Response::stream(Fill { length, sent: 0 })
        })
        .handle_post("/back", body_limit(1 << 20, collect(|_, body| Response::from(body))));
    let start = Instant::now();
    HttpService::new(router, Limits::default(), vec![None, tls], wall_clock, start)
}

/// A request and what it must bring.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    pub(super) response: Vec<u8>,
}

fn exchange(random: &mut Random) -> Exchange {
    let length = [0, 1, 1, 100, 100, 5_000, 70_000][random.within(0..=6)];
    match random.within(0..=2) {
        0 => Exchange {
            method: Method::GET,
            path: "/ping".to_owned(),
            body: Vec::new(),
            response: b"pong".to_vec(),
        },
        1 => Exchange {
            method: Method::GET,
            path: format!("/fill/{length}"),
            body: Vec::new(),
            response: (0..length as u64).map(fill_byte).collect(),
        },
        _ => {
            let body = random.bytes(length);
            let (method, path) = (Method::POST, "/back".to_owned());
            Exchange { method, path, body: body.clone(), response: body }
        }
    }
}

/// The bytes of an HTTP/1.1 request; chunked or with a length.
fn on_the_wire(exchange: &Exchange, chunked: bool) -> Vec<u8> {
    let Exchange { method, path, body, .. } = exchange;
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nhost: a\r\n").into_bytes();
    if *method == Method::GET {
        bytes.extend_from_slice(b"\r\n");
    } else if chunked {
        bytes.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
        for chunk in body.chunks(999) {
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
    } else {
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
    }
    bytes
}

/// The bytes of its response.
fn response_on_the_wire(exchange: &Exchange) -> Vec<u8> {
    let kind = match exchange.path.as_str() {
        "/ping" => "content-type: text/plain; charset=utf-8\r\n",
        "/back" => "content-type: application/octet-stream\r\n",
        _ => "",
    };
    let length = exchange.response.len();
    let head = format!("HTTP/1.1 200 OK\r\n{kind}content-length: {length}\r\ndate: {DATE}\r\n\r\n");
    [head.as_bytes(), &exchange.response].concat()
}

/// A client that pipelines all of its requests and then ends its side.
fn pipeline(seed: u64) -> (impl FnMut(&mut Wire<'_>), Vec<u8>) {
    let mut random = Random::new(seed);
    let exchanges: Vec<_> = (0..random.within(1..=6)).map(|_| exchange(&mut random)).collect();
    let requests: Vec<u8> =
        exchanges.iter().flat_map(|one| on_the_wire(one, random.within(0..=1) == 0)).collect();
    let expected = exchanges.iter().flat_map(response_on_the_wire).collect();
    let client = move |wire: &mut Wire<'_>| {
        if wire.is_new() {
            wire.send(&requests);
            wire.finish();
        }
    };
    (client, expected)
}

/// Responses of an HTTP/2 client, by exchange.
pub(super) type Responses = Rc<RefCell<Vec<(Vec<u8>, bool)>>>;

/// A client of our own core that opens all of its streams at once.
pub(super) struct Multiplexed {
    connection: Connection,
    limits: ConnectionLimits,
    input: ReceiveBuffer,
    plain: ReceiveBuffer,
    rest: Box<[u8]>,
    output: SendQueue,
    head: Head,
    start: Instant,
    read: usize,
    exchanges: Vec<Exchange>,
    asked: Vec<ExchangeId>,
    responses: Responses,
}

impl Multiplexed {
    pub(super) fn new(
        exchanges: Vec<Exchange>,
        responses: Responses,
        tls: Option<&ClientTls>,
    ) -> Self {
        let start = Instant::now();
        let limits = ConnectionLimits::default();
        // Prior knowledge: what ALPN decides over TLS is decided by the first bytes here, which a
        // client has to write itself.
        let connection = match tls {
            None => Connection::with_prior_knowledge(&limits, start),
            Some(tls) => {
                let layer = tls.connect("a").expect("a name");
                Connection::new(Role::Client, Some(layer), start)
            }
        };
        Self {
            connection,
            limits,
            input: ReceiveBuffer::new(65_536),
            plain: ReceiveBuffer::new(65_536),
            rest: Box::default(),
            output: SendQueue::new(),
            head: Head::default(),
            start,
            read: 0,
            exchanges,
            asked: Vec::new(),
            responses,
        }
    }

    pub(super) fn advance(&mut self, wire: &mut Wire<'_>) {
        self.input.start(&self.rest);
        self.input.extend(&wire.received()[self.read..]);
        self.read = wire.received().len();
        self.connection.open_records(&mut self.input, &mut self.plain);
        if wire.eof() {
            self.connection.receive_eof();
        }
        // With TLS, the handshake may end within this call: nothing can be asked before.
        self.work(self.start + wire.now());
        self.work(self.start + wire.now());
        self.connection.keep_records(&mut self.plain);
        self.rest = self.input.take_rest();
        if !wire.was_reset() && !wire.eof() {
            let mut bytes = Vec::new();
            self.connection.flush(&mut self.output, &mut bytes).expect("memory takes everything");
            wire.send(&bytes);
        }
    }

    /// Asks what can be asked, and takes what has come.
    fn work(&mut self, now: Instant) {
        let Self { connection, limits, output, head, .. } = self;
        let input = if connection.is_tls() { &mut self.plain } else { &mut self.input };
        let mut cx = Context { input, output, output_limit: 1 << 20, head, now };
        while self.asked.len() < self.exchanges.len() {
            let one = &self.exchanges[self.asked.len()];
            let length = one.body.len().to_string();
            let fields = [FieldRef::known(FieldName::ContentLength, length.as_bytes())];
            let outgoing = RequestHead {
                method: &one.method,
                scheme: "http",
                authority: "a",
                path: &one.path,
                protocol: None,
                fields: &fields,
            };
            let Ok(id) = connection.send_request(&mut cx, &outgoing, End::No) else { break };
            let body = Bytes::from(one.body.clone());
            connection.send_data(&mut cx, id, body, End::Yes).expect("the first piece");
            self.asked.push(id);
        }
        loop {
            let (id, data, end) = match connection.poll(&mut cx, limits) {
                Output::Exchange(id, ExchangeEvent::Data(data, end)) => (id, data, end),
                Output::Exchange(id, ExchangeEvent::Head(end)) => (id, Bytes::new(), end),
                Output::Exchange(..) | Output::Connection(_) => continue,
                Output::Closed(_) | Output::Wait(_) => break,
            };
            connection.consumed(&mut cx, id, data.len());
            let place = self.asked.iter().position(|asked| *asked == id).expect("it was asked");
            let mut responses = self.responses.borrow_mut();
            responses[place].0.extend_from_slice(&data);
            responses[place].1 |= end == End::Yes;
            if responses.iter().all(|(_, ended)| *ended) {
                connection.shut_down(&mut cx);
            }
        }
    }
}

fn multiplex(
    seed: u64,
    tls: Option<&ClientTls>,
) -> (impl FnMut(&mut Wire<'_>) + use<>, Vec<Exchange>, Responses) {
    let mut random = Random::new(seed);
    let exchanges: Vec<_> = (0..random.within(1..=8)).map(|_| exchange(&mut random)).collect();
    let responses: Responses = Rc::new(RefCell::new(vec![(Vec::new(), false); exchanges.len()]));
    let mut client = Multiplexed::new(exchanges.clone(), Rc::clone(&responses), tls);
    (move |wire: &mut Wire<'_>| client.advance(wire), exchanges, responses)
}

struct Run {
    simulation: Simulation<HttpService>,
    pipelines: Vec<(ClientId, Vec<u8>)>,
    streams: Vec<(ClientId, Vec<Exchange>, Responses)>,
}

fn run(seed: u64, faults: Faults) -> Run {
    let mut simulation = Simulation::with(seed, faults, LoopLimits::default(), |_| service(None));
    let (mut pipelines, mut streams) = (Vec::new(), Vec::new());
    for number in 0..3 {
        let (client, expected) = pipeline(seed * 31 + number);
        pipelines.push((simulation.connect(client), expected));
        let (client, exchanges, responses) = multiplex(seed * 37 + number, None);
        streams.push((simulation.connect(client), exchanges, responses));
    }
    simulation.run_for(LONG);
    assert_eq!(simulation.stats().panics, 0);
    assert_eq!(simulation.stats().open, 0, "a connection outlives every deadline");
    Run { simulation, pipelines, streams }
}

/// Returns what clients over TLS got.
fn run_over_tls(seed: u64, faults: Faults) -> (Vec<(Vec<Exchange>, Responses)>, Stats) {
    let (server, client) = tls(wall_clock);
    let make = |_| service(Some(server));
    let mut simulation = Simulation::with(seed, faults, LoopLimits::default(), make);
    let listener = simulation.listen();
    let clients = (0..3)
        .map(|number| {
            let (client, exchanges, responses) = multiplex(seed * 41 + number, Some(&client));
            simulation.connect_after(Duration::ZERO, listener, client);
            (exchanges, responses)
        })
        .collect();
    simulation.run_for(LONG);
    let stats = simulation.stats();
    assert_eq!(stats.panics, 0);
    assert_eq!(stats.open, 0, "a connection outlives every deadline");
    (clients, stats)
}

/// No slower than what a server takes for a stalled reader: 500 bytes a second.
fn rough(seed: u64) -> Faults {
    let rough = Faults::rough(&mut Random::new(seed));
    Faults {
        stall: 0,
        delay: Duration::from_micros(50)..=Duration::from_millis(20),
        buffer_bytes: rough.buffer_bytes.max(5000),
        ..rough
    }
}

#[test]
fn every_response_arrives_through_a_rough_network() {
    for_each_seed(0..SEEDS, |seed| {
        let run = run(seed, rough(seed));
        for (client, expected) in &run.pipelines {
            let received = run.simulation.received(*client);
            assert!(received == *expected, "a pipeline's bytes differ");
        }
        for (_, exchanges, responses) in &run.streams {
            for (one, (response, ended)) in exchanges.iter().zip(&*responses.borrow()) {
                assert!(
                    *ended,
                    "{} {} ends after {} of {} bytes: {:?}",
                    one.method,
                    one.path,
                    response.len(),
                    one.response.len(),
                    run.simulation.stats()
                );
                assert!(*response == one.response, "{} {}: other bytes", one.method, one.path);
            }
        }
    });
}

#[test]
fn no_wrong_byte_through_a_hostile_network() {
    for_each_seed(0..SEEDS, |seed| {
        let run = run(seed, Faults::hostile(&mut Random::new(seed)));
        for (client, expected) in &run.pipelines {
            let received = run.simulation.received(*client);
            // A server that gave up waiting says so after complete responses; what a reset cut off is a
            // beginning of what would have come.
            let timeout = received.windows(13).position(|part| part == b"HTTP/1.1 408 ");
            let responses = &received[..timeout.unwrap_or(received.len())];
            assert!(expected.starts_with(responses), "a pipeline's bytes differ");
        }
        for (_, exchanges, responses) in &run.streams {
            for (one, (response, ended)) in exchanges.iter().zip(&*responses.borrow()) {
                assert!(one.response.starts_with(response), "{}: other bytes", one.path);
                assert!(!*ended || *response == one.response, "{}: a short response", one.path);
            }
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for_each_seed(0..16, |seed| {
        let digest = || run(seed, Faults::hostile(&mut Random::new(seed))).simulation.digest();
        assert_eq!(digest(), digest());
    });
}

#[test]
fn every_response_arrives_over_tls_through_a_rough_network() {
    for_each_seed(0..SEEDS, |seed| {
        // Without file descriptors, connections that have not asked anything yet are shed.
        let faults = Faults { accept_failure: 0, ..rough(seed) };
        let (clients, stats) = run_over_tls(seed, faults);
        for (exchanges, responses) in clients {
            for (one, (response, ended)) in exchanges.iter().zip(&*responses.borrow()) {
                let (got, all) = (response.len(), one.response.len());
                assert!(*ended, "{} {}: {got} of {all} bytes: {stats:?}", one.method, one.path);
                assert!(*response == one.response, "{} {}: other bytes", one.method, one.path);
            }
        }
    });
}

#[test]
fn no_wrong_byte_over_tls_through_a_hostile_network() {
    for_each_seed(0..SEEDS, |seed| {
        let hostile = Faults::hostile(&mut Random::new(seed));
        for (exchanges, responses) in run_over_tls(seed, hostile).0 {
            for (one, (response, ended)) in exchanges.iter().zip(&*responses.borrow()) {
                assert!(one.response.starts_with(response), "{}: other bytes", one.path);
                assert!(!*ended || *response == one.response, "{}: a short response", one.path);
            }
        }
    });
}
