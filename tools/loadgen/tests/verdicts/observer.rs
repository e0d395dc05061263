//! Latency as an observer between the generator and the server sees it: a relay that delays each response by a time of
//! its own, and notes when requests come and when their responses have left.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bolide_probe::engine::Engine;
use bolide_probe::plan::{
    Arrivals, EventsPlan, Load, Phase, Plan, RequestKind, StreamFormat, Until, Version,
    WebSocketPlan,
};
use bolide_probe::progress::Control;
use bolide_probe::report::{Latencies, PhaseReport};
use bolide_server::websocket::{Options, Owner, Payload, Socket, WebSocket};
use bolide_server::{End, Response, Router, Running, Server};
use bolide_websocket::Kind;
use fastrand::Rng;
use http::{HeaderMap, HeaderValue, Method};

use crate::Free;

/// How long a response is delayed, in milliseconds; each time of these is as likely.
const DELAYS_MS: std::ops::Range<u64> = 200..600;

/// How far the generator's latencies may be from the relay's, as a share of them: some milliseconds, within which a busy machine
/// lets both of them run.
const PRECISION: f64 = 0.01;

/// How likely a wrong program has all of the relay's latencies by chance: five figures in a hundredth of each.
pub(crate) const BY_CHANCE: f64 = 0.001;

const REQUESTS_COUNT: u64 = 300;
const CONNECTIONS_COUNT: usize = 160;

/// Server that is loaded.
pub(crate) struct Seen {
    pub(crate) name: &'static str,
    load: Load,
    change: fn(&mut Plan),
}

const OPEN: Load = Load::Open { rate: 200.0, arrivals: Arrivals::Poisson };

pub(crate) const KINDS: [Seen; 6] = [
    Seen { name: "latency_is_what_an_observer_sees", load: Load::Closed, change: |_| {} },
    Seen { name: "latency_of_an_open_loop_is_what_an_observer_sees", load: OPEN, change: |_| {} },
    Seen {
        name: "latency_over_http2_is_what_an_observer_sees",
        load: Load::Closed,
        change: |plan| plan.version = Version::Http2,
    },
    Seen {
        name: "latency_of_events_is_what_an_observer_sees",
        load: OPEN,
        change: |plan| events(plan, StreamFormat::Events),
    },
    Seen {
        name: "latency_of_calls_is_what_an_observer_sees",
        load: Load::Closed,
        change: |plan| {
            plan.version = Version::Http2;
            plan.requests[0].method = Method::POST;
            plan.requests[0].target = "/call".to_owned();
            plan.requests[0].body = CALL.into();
            events(plan, StreamFormat::Grpc);
        },
    },
    Seen {
        name: "latency_of_messages_is_what_an_observer_sees",
        load: OPEN,
        change: |plan| {
            plan.requests[0].target = "/chat".to_owned();
            plan.requests[0].body = b"message"[..].into();
            plan.kind = RequestKind::WebSocket(WebSocketPlan { echo: true, ..Default::default() });
        },
    },
];

/// A message of gRPC with two bytes.
const CALL: &[u8] = b"\0\0\0\0\x02ab";

fn events(plan: &mut Plan, format: StreamFormat) {
    plan.kind = RequestKind::Events(EventsPlan { stall_ns: 1_000_000_000, format });
}

#[derive(Debug)]
struct Echo;

impl Owner for Echo {
    fn on_message(&mut self, kind: Kind, payload: Payload, end: End, socket: &mut Socket<'_, '_>) {
        // A peer that has closed wants no echo.
        let _ = socket.send_piece(kind, payload.into_bytes(), end);
    }
}

fn server() -> (Running, SocketAddr) {
    let routes = || {
        let ended = HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            HeaderValue::from_static("0"),
        )]);
        Router::new()
            .get("/", |_| Response::text("data: an event\n\n"))
            .handle_post(
                "/call",
                bolide_server::collect(move |_, _| {
                    let kind = HeaderValue::from_static("application/grpc");
                    Response::with_type(kind, CALL).trailers(None, ended.clone())
                }),
            )
            .websocket("/chat", |request: &mut bolide_server::Request<'_>| {
                WebSocket::accept(request, &Options::new(), Echo)
            })
    };
    let running = Server::new().workers(1).http("127.0.0.1:0").start(routes).unwrap();
    let address = running.addresses()[0].unwrap();
    (running, address)
}

/// A connection's request that has not been responded to, or whose response may go on.
#[derive(Debug, Default, Clone, Copy)]
struct Exchange {
    came: Option<Instant>,
    /// When what there is of its response had left.
    left: Option<Instant>,
}

/// A client's SETTINGS frame that acknowledges the server's (RFC 9113 §6.5): the only thing that it sends after its
/// preface and before its first request.
const SETTINGS_ACK: &[u8] = b"\0\0\0\x04\x01\0\0\0\0";

/// Stands between the generator and the server.
#[derive(Debug, Default, Clone)]
struct Relay {
    /// Of each connection.
    exchanges: Arc<Mutex<Vec<Arc<Mutex<Exchange>>>>>,
    /// From a request's first byte to its response's last.
    times: Arc<Mutex<Vec<Duration>>>,
}

impl Relay {
    /// Returns where it listens, and what it is to be asked for.
    fn start(to: SocketAddr) -> (SocketAddr, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, this) = (listener.local_addr().unwrap(), Self::default());
        let relay = this.clone();
        std::thread::spawn(move || {
            for (number, client) in listener.incoming().map_while(Result::ok).enumerate() {
                let server = TcpStream::connect(to).unwrap();
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let exchange = Arc::<Mutex<Exchange>>::default();
                relay.exchanges.lock().unwrap().push(Arc::clone(&exchange));
                let (requests, times) = (Arc::clone(&exchange), Arc::clone(&relay.times));
                let both = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pass_requests(both, &requests, &times));
                let random = Rng::with_seed(number as u64);
                std::thread::spawn(move || pass_responses((server, client), &exchange, random));
            }
        });
        (address, this)
    }

    /// Returns what it has seen since it was asked before.
    fn take(&self) -> Vec<Duration> {
        for exchange in &*self.exchanges.lock().unwrap() {
            exchange.lock().unwrap().end(&self.times);
        }
        std::mem::take(&mut *self.times.lock().unwrap())
    }
}

impl Exchange {
    fn end(&mut self, times: &Mutex<Vec<Duration>>) {
        if let Self { came: Some(came), left: Some(left) } = std::mem::take(self) {
            times.lock().unwrap().push(left - came);
        }
    }
}

fn pass_requests(
    (mut client, mut server): (TcpStream, TcpStream),
    exchange: &Mutex<Exchange>,
    times: &Mutex<Vec<Duration>>,
) {
    let mut block = [0; 4096];
    while let Ok(count @ 1..) = client.read(&mut block) {
        let now = Instant::now();
        if block[..count] != *SETTINGS_ACK {
            let mut exchange = exchange.lock().unwrap();
            if exchange.left.is_some() {
                exchange.end(times);
            }
            exchange.came.get_or_insert(now);
        }
        if server.write_all(&block[..count]).is_err() {
            break;
        }
    }
    // The server may have closed already.
    let _ = server.shutdown(std::net::Shutdown::Both);
}

fn pass_responses(
    (mut server, mut client): (TcpStream, TcpStream),
    exchange: &Mutex<Exchange>,
    mut random: Rng,
) {
    let mut block = [0; 4096];
    while let Ok(count @ 1..) = server.read(&mut block) {
        if exchange.lock().unwrap().left.is_none() {
            std::thread::sleep(Duration::from_millis(random.u64(DELAYS_MS)));
        }
        let mut exchange = exchange.lock().unwrap();
        if client.write_all(&block[..count]).is_err() {
            break;
        }
        exchange.left = Some(Instant::now());
    }
    // The client may have closed already.
    let _ = client.shutdown(std::net::Shutdown::Both);
}

/// Checks whether the report has what the relay saw; what differs, in words.
pub(crate) fn compare(seen: &Seen) -> Result<(), String> {
    let (running, server) = server();
    let (address, relay) = Relay::start(server);
    let mut plan = crate::plan_for(address);
    plan.connections = CONNECTIONS_COUNT;
    (seen.change)(&mut plan);
    let phase = Phase {
        name: seen.name.to_owned(),
        load: seen.load,
        warm_up: Duration::ZERO,
        until: Until { requests: Some(REQUESTS_COUNT), time: None },
    };
    let mut engine = Engine::prepare(&plan, Box::new(Free)).unwrap();
    engine.connect(&phase, &mut || Control::Continue);
    // What connections begin with is no request.
    relay.take();
    let report = engine.run(&phase, &mut |_| Control::Continue);
    let mut times = relay.take();
    engine.finish();
    running.shut_down();
    running.join().unwrap();
    times.sort_unstable();
    is_same(&times, &report, &report.times.latency)?;
    report.kinds.events.as_ref().map_or(Ok(()), |events| is_same(&times, &report, &events.first))
}

fn is_same(times: &[Duration], report: &PhaseReport, latency: &Latencies) -> Result<(), String> {
    let counts = (latency.count, report.counts.succeeded, times.len() as u64);
    if counts != (REQUESTS_COUNT, REQUESTS_COUNT, REQUESTS_COUNT) {
        return Err(format!("counts {counts:?}, failures {:?}", report.failures));
    }
    let mean_ns = times.iter().map(Duration::as_nanos).sum::<u128>() as f64 / times.len() as f64;
    let at = |share: f64| times[(share * times.len() as f64).ceil() as usize - 1].as_nanos() as f64;
    let said = |name: &str| latency.percentiles_ns[name] as f64;
    let pairs = [
        ("mean", latency.mean_ns, mean_ns),
        ("p50", said("p50"), at(0.5)),
        ("p90", said("p90"), at(0.9)),
        ("p99", said("p99"), at(0.99)),
        ("greatest", latency.max_ns as f64, at(1.0)),
    ];
    match pairs.iter().find(|(_, own, seen)| (own / seen - 1.0).abs() > PRECISION) {
        Some((what, own, seen)) => {
            Err(format!("{what}: reported {:.3} ms, seen {:.3} ms", own / 1e6, seen / 1e6))
        }
        None => Ok(()),
    }
}
