//! Profile of the CPU time, on real threads by real clocks.

use std::time::{Duration, Instant};

use bolide_server::{
    Metrics, Profile, ProfileSnapshot, Reply, Router, Server, Stage, admin_routes,
};

use crate::raw_client::Served;

/// How far the parts may be from the whole.
const MISSED_MOST: f64 = 0.03;

/// Keeps the core busy.
fn burn(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

fn routes() -> Router {
    Router::new().get("/ping", |_| "pong").get("/busy", |_| {
        burn(Duration::from_micros(50));
        "pong"
    })
}

/// Asks so many times: single requests and batches of ten by turns.
fn ask(served: &Served, path: &str, times: usize) {
    let mut client = served.connect();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    for round in 0..times {
        let batch = if round % 2 == 0 { 1 } else { 10 };
        client.send(request.repeat(batch).as_bytes());
        for _ in 0..batch {
            assert_eq!(client.answer().status, 200);
        }
    }
}

fn us_per_request(snapshot: &ProfileSnapshot, stage: Stage) -> f64 {
    let found = snapshot.stages.iter().find(|one| one.stage == stage);
    snapshot.per_request_us(found.expect("every stage is there"))
}

#[test]
fn the_stages_sum_up_to_the_threads_own_cpu_time() {
    let profile = Profile::new(1);
    let served = Served::with(Server::new().profile(&profile), routes);
    ask(&served, "/ping", 2000);
    served.shut_down();
    let snapshot = profile.snapshot();
    // A turn that others interrupted twice is dropped, and its requests with it.
    assert!(snapshot.requests > 5000, "{snapshot:?}");
    assert!((snapshot.accounted() - 1.0).abs() < MISSED_MOST, "{}", snapshot.table());
}

#[test]
fn a_handler_that_burns_shows_as_the_handler() {
    let measure = |path| {
        let profile = Profile::new(1);
        let served = Served::with(Server::new().profile(&profile), routes);
        ask(&served, path, 400);
        served.shut_down();
        profile.snapshot()
    };
    let (idle, busy) = (measure("/ping"), measure("/busy"));
    let grown = |stage| us_per_request(&busy, stage) - us_per_request(&idle, stage);
    // In 50 µs of the clock on the wall, others may have had the core.
    assert!(grown(Stage::Handler) > 20.0, "{}", busy.table());
    for stage in [Stage::Parse, Stage::Route, Stage::Encode] {
        assert!(grown(stage) < 10.0, "{stage:?}\n{}\n{}", idle.table(), busy.table());
    }
}

#[test]
fn it_is_turned_on_and_off_while_the_server_runs() {
    let (profile, metrics) = (Profile::new(0), Metrics::new());
    let served = Served::with(Server::new().profile(&profile).metrics(&metrics), routes);
    let admin = Served::new(move || admin_routes(&metrics, &[], &[]));
    let admin = |request: &str| {
        admin.ask(&format!("{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
    };
    ask(&served, "/ping", 20);
    assert!(!admin("GET /metrics").contains("bolide_request_stage_cpu_seconds"));
    assert!(admin("GET /profile").contains("\"one_in\":0,\"turns\":0,"));

    assert!(admin("PUT /profile?one-in=1").contains("\"one_in\":1,"));
    ask(&served, "/ping", 20);
    let before = profile.snapshot();
    assert!(before.requests > 0);
    let scraped = admin("GET /metrics");
    let counted = "bolide_request_stage_cpu_seconds_count{stage=\"tls-seal\"} ";
    assert!(scraped.contains(counted), "{scraped}");
    assert!(admin("GET /profile").contains("\"stage\":\"handler\""));

    assert!(admin("DELETE /profile").contains("\"one_in\":0,"));
    // A turn that has begun may still be measured.
    ask(&served, "/ping", 2);
    let before = profile.snapshot();
    ask(&served, "/ping", 20);
    assert_eq!(profile.snapshot().turns, before.turns);

    assert!(admin("PUT /profile").contains("\"one_in\":64,"));
    let refused = admin("PUT /profile?one-in=often");
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
    assert!(refused.contains("one-in=often: give a number from 1 to 1000000"), "{refused}");
}

#[test]
fn a_server_without_a_profile_says_so() {
    let metrics = Metrics::new();
    let admin = Served::new(move || admin_routes(&metrics, &[], &[]));
    let said = admin.ask("GET /profile HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert!(said.starts_with("HTTP/1.1 404 ") && said.contains("no profile"), "{said}");
}

#[test]
fn answers_tell_what_they_took_when_that_is_asked_for() {
    let routes = || {
        Router::new()
            .get("/now", |_| {
                burn(Duration::from_millis(2));
                "pong"
            })
            .get("/later", |request| {
                let responder = request.responder();
                std::thread::spawn(move || responder.respond("pong"));
                Reply::Later
            })
    };
    let head = |served: &Served, path: &str| {
        let mut client = served.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes());
        client.answer().head
    };
    let told = Served::with(Server::new().server_timing(true), routes);
    let now = head(&told, "/now");
    let (_, handler) = now.split_once("server-timing: route;dur=").expect("the field");
    let (_, handler) = handler.split_once(", handler;dur=").expect("two durations");
    let took: f64 = handler.lines().next().expect("a number").parse().expect("milliseconds");
    assert!((2.0..2000.0).contains(&took), "{now}");
    assert!(head(&told, "/later").contains("server-timing: total;dur="));
    let silent = Served::new(routes);
    assert!(!head(&silent, "/now").contains("server-timing"));
}
