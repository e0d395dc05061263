//! Each planted failure is counted once, as what it is.

use std::net::TcpListener;
use std::time::Duration;

use bolide_probe::engine::Engine;
use bolide_probe::plan::{ExpectedBody, Load, ServerAddress};
use bolide_probe::progress::{Control, Runner};
use bolide_probe::report::Failure;
use http::{HeaderName, HeaderValue};

use crate::plans::{Free, h2_plan, lasting, plan, prepare, requests, run};
use crate::planted::{Behaviour, Plant, Planted};

/// Runs 1000 requests against a server where every hundredth meets `plant`.
#[track_caller]
fn every_hundredth(plant: Plant, failure: Failure, h2: bool) {
    let server = Planted::start(Behaviour::every(100, plant));
    let mut plan = if h2 { h2_plan(server.address) } else { plan(server.address) };
    plan.timeouts.request_timeout = Duration::from_millis(400);
    // With several in flight, others would go down with the connection.
    plan.depth = if plant == Plant::Close { 1 } else { plan.depth };
    let report = run(&plan, &requests(1000));
    assert_eq!(report.failures.get(&failure), Some(&10), "{plant:?}: {:?}", report.failures);
    assert_eq!(report.failures.len(), 1, "{plant:?}: {:?}", report.failures);
    assert_eq!((report.counts.due, report.counts.failed), (1000, 10), "{plant:?}");
    assert_eq!(report.counts.succeeded, 990, "{plant:?}");
}

#[test]
fn every_hundredth_body_is_wrong() {
    every_hundredth(Plant::WrongBody, Failure::Body, false);
    every_hundredth(Plant::WrongBody, Failure::Body, true);
}

#[test]
fn trailers_of_every_response_are_compared() {
    for wrong in [Plant::Trailers("13"), Plant::Right] {
        let right = Plant::Trailers("0");
        let plant = move |number: u64| if number.is_multiple_of(100) { wrong } else { right };
        let server = Planted::start(Behaviour { plant: Box::new(plant), ..Behaviour::default() });
        let mut plan = h2_plan(server.address);
        let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
        plan.expect.trailers.push(status);
        let report = run(&plan, &requests(1000));
        assert_eq!(report.failures.get(&Failure::Trailers), Some(&10), "{wrong:?}");
        assert_eq!((report.counts.failed, report.counts.succeeded), (10, 990), "{wrong:?}");
    }
}

#[test]
fn header_fields_of_every_response_are_compared() {
    for (value, wrong_count) in [("0", 10), ("7", 1000)] {
        let plant = |number: u64| {
            if number.is_multiple_of(100) { Plant::Right } else { Plant::Refusal("0") }
        };
        for h2 in [false, true] {
            let behaviour = Behaviour { plant: Box::new(plant), ..Behaviour::default() };
            let server = Planted::start(behaviour);
            let mut plan = if h2 { h2_plan(server.address) } else { plan(server.address) };
            let field = (HeaderName::from_static("grpc-status"), HeaderValue::from_static(value));
            plan.requests[0].response_fields.push(field);
            plan.requests[0].response = None;
            let report = run(&plan, &requests(1000));
            assert_eq!(report.failures.get(&Failure::Fields), Some(&wrong_count), "{value}");
            assert_eq!(report.counts.failed, wrong_count, "{value}: {:?}", report.failures);
        }
    }
}

#[test]
fn every_hundredth_status_is_wrong() {
    every_hundredth(Plant::WrongStatus, Failure::Status, false);
    every_hundredth(Plant::WrongStatus, Failure::Status, true);
}

#[test]
fn every_hundredth_connection_is_closed_without_a_response() {
    every_hundredth(Plant::Close, Failure::Reset, false);
    every_hundredth(Plant::Close, Failure::Reset, true);
}

#[test]
fn every_hundredth_stream_is_reset() {
    every_hundredth(Plant::Reset, Failure::Reset, true);
}

#[test]
fn every_hundredth_response_never_comes() {
    every_hundredth(Plant::Silence, Failure::Timeout, false);
    every_hundredth(Plant::Silence, Failure::Timeout, true);
}

#[test]
fn bodies_are_compared_with_the_first_or_by_digest() {
    for response in [ExpectedBody::SameAsFirst, ExpectedBody::Sha256([0; 32])] {
        let server = Planted::start(Behaviour::every(100, Plant::WrongBody));
        let mut plan = plan(server.address);
        let wrong = if matches!(response, ExpectedBody::SameAsFirst) { 10 } else { 1000 };
        plan.requests[0].response = Some(response);
        let report = run(&plan, &requests(1000));
        assert_eq!(report.failures.get(&Failure::Body), Some(&wrong));
    }
}

#[test]
fn what_a_goaway_left_out_is_told_from_what_was_answered() {
    let behaviour = Behaviour { goaway_after: Some(100), ..Behaviour::default() };
    let server = Planted::start(behaviour);
    let report = run(&h2_plan(server.address), &requests(1000));
    let left_out = report.failures.get(&Failure::Goaway).copied().unwrap_or(0);
    assert!(left_out > 0);
    assert_eq!(report.failures.len(), 1, "{:?}", report.failures);
    assert_eq!(report.counts.succeeded, server.answers());
    assert_eq!(report.counts.succeeded + left_out, 1000);
    assert!(report.counts.connections >= 8, "{}", report.counts.connections);
}

#[test]
fn a_refused_connection_is_a_mistake() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mistake = Engine::prepare(&plan(address), Box::new(Free)).unwrap_err().to_string();
    assert_eq!(mistake, format!("no connection to {address}: connection refused"));
    let mut unix = plan(address);
    unix.origin.addresses = vec![ServerAddress::Unix("/nowhere/at/all".into())];
    let mistake = Engine::prepare(&unix, Box::new(Free)).unwrap_err().to_string();
    assert!(mistake.starts_with("no connection to /nowhere/at/all: "), "{mistake}");
}

#[test]
fn more_pipelined_requests_than_a_connection_carries_are_a_mistake() {
    let server = Planted::start(Behaviour::default());
    let mut plan = plan(server.address);
    plan.depth = 65;
    let mistake = Engine::prepare(&plan, Box::new(Free)).unwrap_err().to_string();
    assert!(mistake.contains("at most 64 requests in flight, not 65"), "{mistake}");
    plan.version = bolide_probe::plan::Version::Http2;
    prepare(&plan).finish();
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_server_of_another_version_is_a_mistake() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 1024]);
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    let mistake = Engine::prepare(&h2_plan(address), Box::new(Free)).unwrap_err().to_string();
    assert!(mistake.starts_with(&format!("no connection to {address}: ")), "{mistake}");
    serving.join().unwrap();
}

#[test]
fn a_server_that_dies_ends_the_run_with_what_was_measured() {
    let server = Planted::start(Behaviour::default());
    let mut engine = prepare(&plan(server.address));
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.answers() < 1000 {
                std::thread::yield_now();
            }
            server.die();
        });
        engine.run(&lasting(Load::Closed, 60_000), &mut |_| Control::Continue)
    });
    assert!(report.counts.succeeded >= 1000);
    assert!(report.failures.contains_key(&Failure::Connect), "{:?}", report.failures);
    assert!(report.elapsed_ns < 20_000_000_000, "{}", report.elapsed_ns);
    let died_ns = engine.server_died_after_ns().unwrap();
    assert!(died_ns > 0 && died_ns < report.elapsed_ns, "{died_ns}");
}
