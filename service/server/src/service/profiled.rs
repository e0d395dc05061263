//! Check that what is planted in one stage shows in that stage only: on a simulated network, by clocks that stand still
//! unless a test moves them.

use std::cell::{Cell, RefCell};

use bolide_connection::ClientTls;
use bolide_eventloop::{Clocks, Limits as LoopLimits};
use bolide_simnet::{Faults, Simulation, Wire};
use bytes::Bytes;
use http::Method;

use super::simulated::{Exchange, Fill, Multiplexed, tls, wall_clock};
use super::*;
use crate::{BodyStream, End, Exchange as Driver, Io, Pull, Reply, Request, Response};
use bolide_observability::{Profile, ProfileSnapshot, Stage};

/// Time that is planted, in nanoseconds.
pub(super) const PLANTED_NS: u64 = 50_000;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1) };
}

pub(super) fn burn() {
    NOW.set(NOW.get() + PLANTED_NS);
}

/// Burns whenever the time of day is asked for.
fn burning_clock() -> SystemTime {
    burn();
    wall_clock()
}

pub(super) const STILL: Clocks = Clocks { passing: || NOW.get(), cpu: || NOW.get() };

/// A body that burns when it is asked for its length, while the head is encoded, or for its piece.
#[derive(Debug)]
struct Burning {
    in_length: bool,
    in_pull: bool,
}

impl BodyStream for Burning {
    fn length(&self) -> Option<u64> {
        if self.in_length {
            burn();
        }
        Some(4)
    }

    fn pull(&mut self, _: usize) -> Pull {
        if self.in_pull {
            burn();
        }
        Pull::Last(Bytes::from_static(b"pong"))
    }
}

/// An exchange that burns before and after it answers.
#[derive(Debug)]
struct Twice;

impl Driver for Twice {
    fn on_start(&mut self, io: &mut Io<'_>) {
        burn();
        io.respond(Response::stream(Burning { in_length: true, in_pull: false }));
        burn();
    }

    fn on_data(&mut self, _: Bytes, _: End, _: &mut Io<'_>) {}
}

/// Claims its path only after it has burned: that is found out on the way to a handler.
fn ponders(path: &str) -> bool {
    let is_it = path == "/route";
    if is_it {
        burn();
    }
    is_it
}

fn router() -> Router {
    Router::new()
        .get("/ping", |_| "pong")
        .get("/handler", |_| {
            burn();
            "pong"
        })
        .get("/panic", |_| -> Response {
            burn();
            panic!("this test panics on purpose")
        })
        .get("/length", |_| Response::stream(Burning { in_length: true, in_pull: false }))
        .get("/pull", |_| Response::stream(Burning { in_length: false, in_pull: true }))
        .get("/twice", |_: &mut Request<'_>| Reply::Exchange(Box::new(Twice)))
        .claim(ponders, |_: &mut Request<'_>| "pong")
        .get("/large", |_| Response::stream(Fill { length: 4 << 20, sent: 0 }))
}

/// A server on a simulated network, and its profile.
fn simulate(profile: &Profile, tls: Option<ServerTls>) -> Simulation<HttpService> {
    simulate_at(profile, tls, wall_clock)
}

fn simulate_at(
    profile: &Profile,
    tls: Option<ServerTls>,
    clock: fn() -> SystemTime,
) -> Simulation<HttpService> {
    let observed = Observed { profile: Some(profile.clone()), ..Observed::default() };
    let tls = vec![None, tls];
    Simulation::with(1, Faults::none(), LoopLimits::default(), |_| {
        HttpService::observed(router(), Limits::default(), tls, clock, Instant::now(), &observed)
    })
}

/// Asks for these paths at once, over HTTP/1.1.
fn ask(profile: &Profile, paths: &[&str]) -> ProfileSnapshot {
    let mut simulation = simulate(profile, None);
    let requests: String =
        paths.iter().map(|path| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).collect();
    let client = simulation.connect(move |wire: &mut Wire<'_>| {
        if wire.is_new() {
            wire.send(requests.as_bytes());
            wire.finish();
        }
    });
    simulation.run_for(Duration::from_secs(5));
    let received = String::from_utf8(simulation.received(client)).expect("text");
    assert_eq!(received.matches("HTTP/1.1 ").count(), paths.len(), "{received}");
    profile.snapshot()
}

/// Asks for a path over TLS and HTTP/2.
fn ask_over_tls(simulation: &mut Simulation<HttpService>, client: &ClientTls, path: &str) {
    let listener = simulation.listen();
    let (method, path, body) = (Method::GET, path.to_owned(), Vec::new());
    let exchange = Exchange { method, path, body, response: Vec::new() };
    let responses = Rc::new(RefCell::new(vec![(Vec::new(), false)]));
    let mut client = Multiplexed::new(vec![exchange], Rc::clone(&responses), Some(client));
    let client = move |wire: &mut Wire<'_>| client.advance(wire);
    simulation.connect_after(Duration::ZERO, listener, client);
    simulation.run_for(Duration::from_secs(60));
    assert!(responses.borrow()[0].1, "no response");
}

/// Returns what the stages took, in the number of what is planted; nothing else takes any time.
fn planted(snapshot: &ProfileSnapshot) -> Vec<(Stage, u64)> {
    let of = |stage: &crate::StageSnapshot| {
        let nanos = stage.spent.as_nanos() as u64;
        assert_eq!(nanos % PLANTED_NS, 0, "{stage:?}");
        (stage.stage, nanos / PLANTED_NS)
    };
    snapshot.stages.iter().map(of).filter(|(_, times)| *times > 0).collect()
}

#[test]
fn fifty_microseconds_show_in_the_stage_that_they_are_planted_in_and_nowhere_else() {
    for (path, expected) in [
        ("/ping", vec![]),
        ("/handler", vec![(Stage::Handler, 1)]),
        ("/panic", vec![(Stage::Handler, 1)]),
        ("/length", vec![(Stage::Encode, 1)]),
        ("/pull", vec![(Stage::Handler, 1)]),
        ("/twice", vec![(Stage::Handler, 2), (Stage::Encode, 1)]),
        ("/route", vec![(Stage::Route, 1)]),
    ] {
        let snapshot = ask(&Profile::with_clocks(1, STILL), &[path]);
        assert_eq!(planted(&snapshot), expected, "{path}");
        assert_eq!((snapshot.requests, snapshot.dropped), (1, 0), "{path}");
        assert_eq!(snapshot.spent() + snapshot.reading, snapshot.cpu, "{path}");
    }
}

#[test]
fn the_time_of_day_is_looked_at_by_the_loop() {
    let profile = Profile::with_clocks(1, STILL);
    let mut simulation = simulate_at(&profile, None, burning_clock);
    simulation.run_for(Duration::from_millis(10));
    assert!(planted(&profile.snapshot()).iter().all(|(stage, _)| *stage == Stage::Loop));
}

#[test]
fn what_a_handshake_takes_is_opening() {
    let profile = Profile::with_clocks(1, STILL);
    // Tickets and certificates are made and judged by the time of day.
    let (server, _) = tls(burning_clock);
    let (_, client) = tls(wall_clock);
    let mut simulation = simulate(&profile, Some(server));
    ask_over_tls(&mut simulation, &client, "/ping");
    let planted = planted(&profile.snapshot());
    assert!(!planted.is_empty());
    assert!(planted.iter().all(|(stage, _)| *stage == Stage::TlsOpen), "{planted:?}");
}

#[test]
fn a_batch_is_divided_by_its_requests() {
    let profile = Profile::with_clocks(1, STILL);
    let snapshot = ask(&profile, &["/ping", "/handler", "/ping", "/ping", "/ping"]);
    assert_eq!(planted(&snapshot), [(Stage::Handler, 1)]);
    assert_eq!(snapshot.requests, 5);
    let handler = &snapshot.stages[4];
    assert_eq!(handler.stage, Stage::Handler);
    // All five arrived with one read: each counts for a fifth, 10 µs.
    let at = crate::STAGE_BOUNDS_NS.iter().position(|bound| *bound == 10_000).expect("a bound");
    assert_eq!((handler.per_request.buckets[at], handler.per_request.count()), (5, 5));
    assert!((snapshot.per_request_us(handler) - 10.0).abs() < 1e-9);
}

#[test]
fn nothing_is_measured_while_it_is_off() {
    let profile = Profile::with_clocks(0, STILL);
    let snapshot = ask(&profile, &["/handler", "/twice"]);
    assert_eq!(snapshot, ProfileSnapshot::default());
    profile.set_one_in(1);
    assert_eq!(ask(&profile, &["/handler"]).requests, 1);
}

#[test]
fn sealing_counts_where_there_is_tls_and_only_there() {
    let (server, client) = tls(wall_clock);
    let spent = |profile: &Profile| {
        let snapshot = profile.snapshot();
        (snapshot.stages[1].spent, snapshot.stages[6].spent)
    };
    let sealed = |path: &str| {
        let profile = Profile::new(1);
        let mut simulation = simulate(&profile, Some(server.clone()));
        ask_over_tls(&mut simulation, &client, path);
        assert_eq!(profile.snapshot().stages[6].stage, Stage::TlsSeal);
        spent(&profile)
    };
    let (open, small) = sealed("/ping");
    let (_, large) = sealed("/large");
    assert!(open > Duration::ZERO && large > small * 4, "{open:?} {small:?} {large:?}");
    let profile = Profile::new(1);
    ask(&profile, &["/ping"]);
    assert_eq!(spent(&profile), (Duration::ZERO, Duration::ZERO));
}
