//! RFC 9114: HTTP/3 from the first datagram to the report, against a server of ours and against UDP ports that are none's.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_connection::Identity;
use bolide_probe::engine::{Engine, Mistake};
use bolide_probe::plan::{Load, Phase, Plan, Timeouts, TlsTrust, Version};
use bolide_probe::progress::{Control, Runner};
use bolide_probe::report::Failure;
use bolide_server::{Metrics, Response, Router, Running, Server, Tls, collect};
use bytes::Bytes;
use http::Method;

use crate::plans::{Free, lasting, plan, prepare, rate, requests, run};
use crate::planted::BODY;

fn routes() -> Router {
    Router::new()
        .get("/", |_| Response::from(Bytes::from_static(BODY)))
        .handle_post("/echo", collect(|_, body| Response::from(body)))
}

/// A server with so many workers, and the certificate that it shows.
fn start(workers: usize) -> (Running, SocketAddr, Bytes) {
    start_with(Server::new().workers(workers), routes)
}

/// A server of HTTP/3 with these routes, and the certificate that it shows.
pub(crate) fn start_with(
    server: Server,
    routes: impl Fn() -> Router + Send + Sync + 'static,
) -> (Running, SocketAddr, Bytes) {
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let pem = parameters.self_signed(&key).unwrap().pem();
    let identity = Identity::from_pem(pem.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let server = server.http3(true).drain(Duration::from_secs(20));
    let server = server.https("127.0.0.1:0", &Tls::new(&identity).unwrap());
    let running = server.start(routes).unwrap();
    assert_eq!(running.http3(), [true]);
    let address = running.addresses()[0].unwrap();
    (running, address, Bytes::from(pem))
}

fn end(running: Running) {
    running.shut_down();
    running.join().unwrap();
}

/// Ten requests in flight on each of four connections.
fn h3_plan(address: SocketAddr) -> Plan {
    let mut plan = plan(address);
    plan.origin.is_https = true;
    plan.origin.authority = format!("localhost:{}", address.port());
    Plan { version: Version::Http3, depth: 10, ..plan }
}

#[test]
fn requests_over_http3_are_counted_with_what_quic_saw() {
    let metrics = Metrics::new();
    let (running, address, pem) = start_with(Server::new().workers(1).metrics(&metrics), routes);
    let mut plan = h3_plan(address);
    plan.tls.trust = TlsTrust::Roots(pem);
    let mut engine = prepare(&plan);
    assert_eq!(engine.protocol(), "h3");
    assert_eq!(engine.tls().unwrap().version, "TLSv1.3");
    for phase in 1..=2 {
        let report = engine.run(&requests(500), &mut |_| Control::Continue);
        let counts = &report.counts;
        assert_eq!((counts.succeeded, counts.failed, counts.compared), (500, 0, 500));
        assert_eq!(report.times.connect.count, 0, "there is nothing before the handshake");
        assert_eq!(report.times.handshake.count, if phase == 1 { 4 } else { 0 });
        let quic = report.quic.unwrap();
        assert_eq!(quic.rtt.count, 4);
        assert!(quic.packets_sent >= 4 && quic.datagrams_received >= 4, "{quic:?}");
        assert!(quic.packets_lost <= quic.packets_sent, "{quic:?}");
        assert!(report.traffic.wire_sent_bytes > 500 && report.traffic.retransmits == 0);
        assert_eq!(report.traffic.payload_received_bytes, 500 * BODY.len() as u64);
    }
    drop(engine);
    // The server is told that the connections are over: it has none long before it would give up silent ones.
    let give_up = Instant::now() + Duration::from_secs(20);
    while metrics.snapshot().event_loop.open > 0 {
        assert!(Instant::now() < give_up, "{:?}", metrics.snapshot().event_loop);
        std::thread::yield_now();
    }
    end(running);
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let (running, address, _) = start(2);
    let report = run(&h3_plan(address), &lasting(rate(400.0), 1000));
    assert!(report.counts.succeeded >= 200, "{:?}", report.counts);
    assert_eq!((report.counts.failed, report.counts.due >= 390), (0, true), "{:?}", report.counts);
    end(running);
}

#[test]
fn bodies_are_posted_and_come_back() {
    const LENGTH: usize = 300_000;
    let (running, address, _) = start(1);
    let mut plan = h3_plan(address);
    let body = Bytes::from(vec![7; LENGTH]);
    let request = &mut plan.requests[0];
    (request.method, request.target) = (Method::POST, "/echo".to_owned());
    request.response = Some(bolide_probe::plan::ExpectedBody::Exact(body.clone()));
    request.body = body;
    let report = run(&plan, &requests(60));
    assert_eq!((report.counts.succeeded, report.counts.failed), (60, 0), "{:?}", report.failures);
    assert_eq!(report.traffic.payload_sent_bytes, (60 * LENGTH) as u64);
    assert_eq!(report.traffic.payload_received_bytes, (60 * LENGTH) as u64);
    end(running);
}

#[test]
fn more_connections_than_sockets_share_them() {
    let (running, address, _) = start(2);
    let plan = Plan { connections: 150, depth: 2, ..h3_plan(address) };
    let report = run(&plan, &requests(900));
    assert_eq!((report.counts.succeeded, report.counts.failed), (900, 0), "{:?}", report.failures);
    assert_eq!((report.times.handshake.count, report.counts.connections), (150, 150));
    end(running);
}

#[test]
fn each_request_can_have_a_connection_of_its_own() {
    let (running, address, _) = start(1);
    let phase = Phase { load: Load::Connect, ..requests(40) };
    let report = run(&Plan { depth: 1, ..h3_plan(address) }, &phase);
    assert_eq!((report.counts.succeeded, report.counts.failed), (40, 0), "{:?}", report.failures);
    // The one that was made to look whether the server is there counts, too.
    assert_eq!(report.times.handshake.count, 41);
    end(running);
}

#[test]
fn a_server_that_leaves_serves_what_it_has_taken() {
    let (running, address, _) = start(2);
    let mut engine = prepare(&h3_plan(address));
    let (mut completed, mut leaves) = (0, false);
    let report = engine.run(&lasting(Load::Closed, 30_000), &mut |progress| {
        completed = completed.max(progress.completed);
        if completed > 0 && !std::mem::replace(&mut leaves, true) {
            running.shut_down();
        }
        Control::Continue
    });
    assert!(engine.server_died_after_ns().is_some(), "{:?}", report.counts);
    assert!(report.counts.succeeded > 0 && report.first_loss.is_none(), "{:?}", report.first_loss);
    // Nothing failed but connections to a server that takes none.
    let kinds: Vec<_> = report.failures.keys().collect();
    assert!(kinds.iter().all(|kind| **kind == Failure::Connect), "{kinds:?}");
    drop(engine);
    running.join().unwrap();
}

fn mistake(plan: &Plan) -> String {
    match Engine::prepare(plan, Box::new(Free)).unwrap_err() {
        Mistake::Connection(said) => said,
        Mistake::Plan(said) | Mistake::Parts(said) => panic!("{said}"),
    }
}

#[test]
fn ports_without_http3_are_told_apart() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let connect_timeout = Duration::from_millis(300);
    let plan = Plan {
        timeouts: Timeouts { connect_timeout, ..h3_plan(silent.local_addr().unwrap()).timeouts },
        ..h3_plan(silent.local_addr().unwrap())
    };
    let said = mistake(&plan);
    assert!(said.starts_with("no HTTP/3 connection to 127.0.0.1:"), "{said}");
    assert!(said.contains("nothing replied over UDP"), "{said}");
    drop(silent);
    if cfg!(target_os = "linux") {
        let said = mistake(&plan);
        assert!(said.contains("connection refused (nothing listens on that UDP port"), "{said}");
    }
    let unspecified = Plan {
        timeouts: Timeouts { connect_timeout, ..h3_plan("0.0.0.0:9".parse().unwrap()).timeouts },
        ..h3_plan("0.0.0.0:9".parse().unwrap())
    };
    let said = mistake(&unspecified);
    assert!(said.contains("0.0.0.0:9") && !said.contains('\n'), "{said}");
}

#[test]
fn a_certificate_that_is_not_trusted_is_a_mistake_with_a_way_out() {
    let (running, address, _) = start(1);
    let mut plan = h3_plan(address);
    plan.tls.trust = TlsTrust::Roots(start(1).2);
    let said = mistake(&plan);
    assert!(said.contains("the TLS handshake failed: invalid peer certificate"), "{said}");
    assert!(said.contains("--insecure"), "{said}");
    end(running);
}

#[test]
fn cleartext_is_a_mistake_before_anything_is_sent() {
    let plan = Plan { version: Version::Http3, ..plan("127.0.0.1:9".parse().unwrap()) };
    let Err(Mistake::Plan(said)) = Engine::prepare(&plan, Box::new(Free)) else {
        panic!("it is taken")
    };
    assert_eq!(said, "HTTP/3 needs TLS: every URL must begin with https://");
}

/// Response of a hostile port to a datagram.
type Hostile = fn(&[u8]) -> Vec<u8>;

#[test]
fn a_port_that_sends_anything_breaks_nothing() {
    let responses: [(Hostile, &str); 5] = [
        // A version negotiation (RFC 9000 §17.2.1) with a version that is none of ours.
        (version_negotiation, "does not speak version 1 of QUIC"),
        (|datagram| datagram.to_vec(), "timed out"),
        (|datagram| datagram.iter().map(|byte| byte ^ 0x55).collect(), "timed out"),
        (|datagram| datagram[..datagram.len().min(7)].to_vec(), "timed out"),
        (|_| Vec::new(), "timed out"),
    ];
    for (response, expected) in responses {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let seen_over = Arc::clone(&is_over);
        let serving = std::thread::spawn(move || {
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let mut buffer = [0; 2000];
            while !seen_over.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                for _ in 0..10 {
                    let _ = socket.send_to(&response(&buffer[..length]), from);
                }
            }
        });
        let connect_timeout = Duration::from_millis(300);
        let said = mistake(&Plan {
            timeouts: Timeouts { connect_timeout, ..h3_plan(address).timeouts },
            ..h3_plan(address)
        });
        is_over.store(true, Ordering::Relaxed);
        serving.join().unwrap();
        assert!(said.contains(expected), "{said}");
    }
}

/// Of an Initial: its identifiers swapped, and a version.
fn version_negotiation(initial: &[u8]) -> Vec<u8> {
    let to_length = usize::from(initial[5]);
    let to = &initial[6..6 + to_length];
    let from_length = usize::from(initial[6 + to_length]);
    let from = &initial[7 + to_length..7 + to_length + from_length];
    let lengths = [to_length as u8, from_length as u8];
    [&[0x80, 0, 0, 0, 0, lengths[1]], from, &lengths[..1], to, &[0x0a, 0x1a, 0x2a, 0x3b]].concat()
}
