//! Times of requests in the access log, on a simulated network: its clock moves as the tests say.

use bolide_eventloop::Limits as LoopLimits;
use bolide_simnet::{Faults, Simulation, Wire};
use bytes::Bytes;

use super::profiled::{PLANTED_NS, STILL, burn};
use super::simulated::wall_clock;
use super::*;
use crate::{AccessLog, Exchange, Io, LogFormat, LogTarget, Reply, Request, Response};
use crate::{End, StatusCode};
use bolide_observability::{Profile, Stage};

/// Time that the handlers and the client wait for, in milliseconds.
const BODY_MS: u64 = 30;
const RESPONSE_MS: u64 = 20;
const REST_MS: u64 = 40;

/// Answers a while after it has the whole request, and completes its response a while after that.
#[derive(Debug, Default)]
struct Slow {
    started: bool,
}

impl Exchange for Slow {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        io.consumed(data.len());
        if end == End::Yes {
            io.wake_at(Some(io.now() + Duration::from_millis(RESPONSE_MS)));
        }
    }

    fn on_wake(&mut self, io: &mut Io<'_>) {
        if std::mem::replace(&mut self.started, true) {
            io.send(Bytes::from_static(b"later"), End::Yes).expect("it is sendable");
        } else {
            io.start(&Response::new(StatusCode::OK), Some(5));
            io.wake_at(Some(io.now() + Duration::from_millis(REST_MS)));
        }
    }
}

fn router() -> Router {
    Router::new()
        .get("/ping", |_| "pong")
        .get("/burns", |_| {
            burn();
            "pong"
        })
        .post("/slow", |_: &mut Request<'_>| Reply::Exchange(Box::<Slow>::default()))
}

/// Serves a client until nothing happens any more. Returns what the log says.
fn logged(profile: &Profile, client: impl FnMut(&mut Wire<'_>) + 'static) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let log = AccessLog::open(LogTarget::File(path.clone()), LogFormat::Json).expect("a log");
    let observed = Observed {
        access_log: Some(log.clone()),
        profile: Some(profile.clone()),
        ..Observed::default()
    };
    let mut simulation = Simulation::with(1, Faults::none(), LoopLimits::default(), |_| {
        let (limits, now) = (Limits::default(), Instant::now());
        HttpService::observed(router(), limits, vec![None], wall_clock, now, &observed)
    });
    simulation.connect(client);
    simulation.run_for(Duration::from_secs(5));
    drop(simulation);
    assert!(log.flush(Duration::from_secs(20)));
    let text = std::fs::read_to_string(path).expect("the log");
    text.lines().map(str::to_owned).collect()
}

/// The number that stands in a field of a line.
fn number(line: &str, field: &str) -> Option<u64> {
    let (_, rest) = line.split_once(&format!("\"{field}\":"))?;
    let digits = rest.split(|byte: char| !byte.is_ascii_digit()).next();
    digits.map(|digits| digits.parse().expect("a number"))
}

#[test]
fn a_line_says_how_long_each_stage_of_a_slow_request_took() {
    let mut is_complete = false;
    let lines = logged(&Profile::with_clocks(0, STILL), move |wire| {
        if wire.is_new() {
            wire.send(b"POST /slow HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n");
            wire.wake_after(Duration::from_millis(BODY_MS));
        } else if wire.now() >= Duration::from_millis(BODY_MS) && !is_complete {
            is_complete = true;
            wire.send(b"ab");
        }
    });
    let [line] = &lines[..] else { panic!("one line: {lines:?}") };
    let response = BODY_MS + RESPONSE_MS;
    for (field, ms) in [("receive_us", BODY_MS), ("response_us", response), ("send_us", REST_MS)] {
        let us = number(line, field).unwrap_or_else(|| panic!("no {field} in {line}"));
        // Alarms may come some milliseconds late.
        assert!((ms * 1000..(ms + 10) * 1000).contains(&us), "{field} is {us} in {line}");
    }
    assert!(!line.contains("upstream") && !line.contains("stages_ns"), "{line}");
}

#[test]
fn a_request_that_is_answered_at_once_says_nothing_of_stages() {
    let lines = logged(&Profile::with_clocks(0, STILL), |wire| {
        if wire.is_new() {
            wire.send(b"GET /ping HTTP/1.1\r\nhost: a\r\n\r\n");
        }
    });
    let [line] = &lines[..] else { panic!("one line: {lines:?}") };
    assert!(line.ends_with(",\"received_bytes\":0,\"sent_bytes\":4}"), "{line}");
}

#[test]
fn lines_of_measured_turns_sum_up_to_the_profile() {
    let profile = Profile::with_clocks(1, STILL);
    let lines = logged(&profile, |wire| {
        if wire.is_new() {
            let ping = "GET /ping HTTP/1.1\r\nhost: a\r\n\r\n";
            let burns = ping.replace("ping", "burns");
            wire.send(format!("{burns}{ping}{burns}{ping}").as_bytes());
        }
    });
    let snapshot = profile.snapshot();
    let of_handler = snapshot.stages.iter().find(|stage| stage.stage == Stage::Handler);
    assert_eq!(of_handler.map(|stage| stage.spent.as_nanos() as u64), Some(2 * PLANTED_NS));
    assert_eq!((snapshot.requests, lines.len()), (4, 4));
    for line in &lines {
        let share = format!(",\"stages_ns\":{{\"handler\":{}}}}}", PLANTED_NS / 2);
        assert!(line.ends_with(&share), "what is planted in one stage stands in it alone: {line}");
    }
}
