//! Closed and open loops, warm-ups, ends, and connections for one request each.

use std::collections::BTreeSet;
use std::time::Duration;

use bolide_probe::plan::{Arrivals, ExpectedBody, Load, Phase, RequestPlan, Until};
use bolide_probe::progress::Control;
use bytes::Bytes;

use crate::plans::{h2_plan, lasting, plan, prepare, rate, requests, run};
use crate::planted::{BODY, Behaviour, Planted};

#[test]
fn a_closed_loop_asks_as_often_as_it_was_told_and_counts_every_response() {
    for depth in [1, 8] {
        for h2 in [false, true] {
            let server = Planted::start(Behaviour::default());
            let mut plan = if h2 { h2_plan(server.address) } else { plan(server.address) };
            plan.depth = depth;
            plan.connections = 3;
            let report = run(&plan, &requests(1001));
            let counts = report.counts;
            assert_eq!((counts.due, counts.started, counts.completed), (1001, 1001, 1001));
            assert_eq!((counts.succeeded, counts.failed, counts.compared), (1001, 0, 1001));
            assert_eq!((counts.connections, server.connections()), (3, 3));
            assert_eq!((server.requests(), server.answers()), (1001, 1001));
            assert_eq!(report.statuses.get(&200), Some(&1001));
            assert!(report.failures.is_empty(), "{:?}", report.failures);
            assert_eq!(report.times.latency.count, 1001);
            assert_eq!(report.times.first_byte.count, 1001);
            assert_eq!(report.times.connect.count, 3);
            let traffic = report.traffic;
            assert_eq!(traffic.payload_received_bytes, 1001 * BODY.len() as u64);
            assert!(traffic.wire_received_bytes > traffic.payload_received_bytes);
            assert!(traffic.head_wire_bytes > 0 && traffic.head_decoded_bytes > 0);
            assert!(!h2 || traffic.head_wire_bytes < traffic.head_decoded_bytes / 3);
        }
    }
}

#[test]
fn each_of_several_requests_has_its_figures() {
    let server = Planted::start(Behaviour::default());
    let mut plan = plan(server.address);
    let targets = ["/a", "/b", "/wrong"];
    let request = plan.requests.remove(0);
    plan.requests = targets
        .iter()
        .map(|target| RequestPlan { target: (*target).to_owned(), ..request.clone() })
        .collect();
    plan.requests[2].response = Some(ExpectedBody::Exact(Bytes::from_static(b"something else")));
    let report = run(&plan, &requests(900));
    let found: Vec<_> = report.kinds.requests.iter().map(|one| one.target.as_str()).collect();
    assert_eq!(found, targets);
    let sum: u64 = report.kinds.requests.iter().map(|one| one.completed).sum();
    assert_eq!((sum, report.counts.completed), (900, 900));
    for one in &report.kinds.requests {
        // Two threads take them in turn.
        assert!((298..=302).contains(&one.completed), "{one:?}");
        assert_eq!(one.latency.count, one.completed);
        let failed = if one.target == "/wrong" { one.completed } else { 0 };
        assert_eq!((one.failed, one.method.as_str()), (failed, "GET"));
    }
    assert_eq!(report.counts.failed, report.kinds.requests[2].failed);
    // One request is what everything else is about, and many have no room.
    for count in [1, 65] {
        plan.requests = vec![request.clone(); count];
        assert!(run(&plan, &requests(100)).kinds.requests.is_empty(), "{count}");
    }
}

#[test]
fn connections_stay_open_between_phases() {
    let server = Planted::start(Behaviour::default());
    let mut engine = prepare(&h2_plan(server.address));
    for count in [100, 200, 300] {
        let report = engine.run(&requests(count), &mut |_| Control::Continue);
        assert_eq!(report.counts.succeeded, count);
    }
    engine.finish();
    assert_eq!((server.requests(), server.connections()), (600, 4));
}

#[test]
fn a_warm_up_is_not_counted() {
    let server = Planted::start(Behaviour::default());
    let phase = Phase { warm_up: Duration::from_millis(150), ..requests(500) };
    let report = run(&plan(server.address), &phase);
    assert_eq!((report.counts.succeeded, report.times.latency.count), (500, 500));
    assert!(server.requests() > 500, "{}", server.requests());
}

#[test]
fn a_phase_ends_with_its_time_and_agrees_with_littles_law() {
    let behaviour = Behaviour { service_time: Duration::from_millis(2), ..Behaviour::default() };
    let server = Planted::start(behaviour);
    let report = run(&plan(server.address), &lasting(Load::Closed, 1000));
    assert_eq!(report.elapsed_ns, 1_000_000_000);
    // One at a time, 2 ms each: 500 a second at most, however busy this machine is. What the server
    // answered was counted, but for what came too late.
    let completed = report.counts.completed;
    assert!((1..=501).contains(&completed), "{completed}");
    let late = server.answers() - completed;
    assert!(late <= 4, "{late}");
    assert!(report.times.latency.min_ns >= 1_990_000, "{}", report.times.latency.min_ns);
    let residual = report.course.littles_law_residual.unwrap();
    assert!(residual.abs() < 0.05, "{residual}");
    assert!(report.course.series.len() >= 9, "{}", report.course.series.len());
    let sampled: f64 = report.course.series.iter().map(|sample| sample.rate).sum();
    let mean = sampled / report.course.series.len() as f64;
    assert!((mean / completed as f64 - 1.0).abs() < 0.1, "{mean}");
}

#[test]
fn an_open_loop_ends_with_its_time_and_knows_what_was_due() {
    let server = Planted::start(Behaviour::default());
    let report = run(&plan(server.address), &lasting(rate(2000.0), 500));
    let counts = report.counts;
    // However busy this machine is: the intended times depend on the plan alone.
    assert!((999..=1001).contains(&counts.due), "{}", counts.due);
    assert_eq!((report.elapsed_ns, counts.failed), (500_000_000, 0));
    assert!(counts.succeeded > 0 && counts.succeeded <= counts.started);
    assert!(counts.started <= counts.due);
    assert_eq!((report.times.pacing.count, report.times.lag.count), (counts.due, counts.started));
}

#[test]
fn an_open_loop_keeps_its_rate_and_obeys_littles_law() {
    let server = Planted::start(Behaviour::default());
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let load = Load::Open { rate: 2000.0, arrivals };
        let phase = Phase { load, ..requests(1000) };
        let report = run(&plan(server.address), &phase);
        assert_eq!((report.counts.due, report.counts.succeeded), (1000, 1000));
        assert!(report.elapsed_ns >= 400_000_000, "{}", report.elapsed_ns);
        let residual = report.course.littles_law_residual.unwrap();
        assert!(residual.abs() < 0.2, "{residual}");
    }
}

#[test]
fn a_stall_counts_for_every_request_that_was_due_in_it() {
    let server = Planted::start(Behaviour::default());
    let phase = Phase {
        load: rate(1000.0),
        until: Until { requests: Some(1000), time: None },
        ..requests(0)
    };
    let mut engine = prepare(&plan(server.address));
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.answers() < 200 {
                std::thread::yield_now();
            }
            let stall = server.stall();
            std::thread::sleep(Duration::from_millis(300));
            drop(stall);
        });
        engine.run(&phase, &mut |_| Control::Continue)
    });
    assert_eq!((report.counts.due, report.counts.succeeded), (1000, 1000));
    // 300 requests were due while it stood still, and waited 150 ms on average, though no more than four
    // were handed to connections. A closed loop would have shown four.
    assert!(report.times.latency.max_ns >= 290_000_000, "{}", report.times.latency.max_ns);
    let slow = report.times.latency.histogram.as_ref().unwrap().count_between(50_000_000, u64::MAX);
    assert!((200..700).contains(&slow), "{slow}");
    assert!(report.times.latency.percentiles_ns["p90"] >= 100_000_000);
    // That was not the generator's clock.
    assert!(report.times.lag.max_ns >= 200_000_000);
    assert!(report.times.pacing.percentiles_ns["p50"] < 20_000_000);
}

#[test]
fn each_request_can_have_a_connection_of_its_own() {
    for h2 in [false, true] {
        let server = Planted::start(Behaviour::default());
        let plan = if h2 { h2_plan(server.address) } else { plan(server.address) };
        let mut engine = prepare(&plan);
        let phase = Phase { load: Load::Connect, ..requests(300) };
        let report = engine.run(&phase, &mut |_| Control::Continue);
        assert_eq!((report.counts.due, report.counts.succeeded), (300, 300), "{h2}");
        assert_eq!(report.counts.failed, 0, "{:?}", report.failures);
        assert_eq!(report.times.connect.count, 301, "one more stood ready before");
        // A closed loop after it has standing connections again.
        let report = engine.run(&requests(100), &mut |_| Control::Continue);
        assert_eq!(report.counts.succeeded, 100);
        assert_eq!(report.counts.connections, 4);
    }
}

#[test]
fn whoever_watches_can_end_it() {
    let server = Planted::start(Behaviour::default());
    let mut looks = 0;
    let mut last = 0;
    let report =
        prepare(&plan(server.address)).run(&lasting(Load::Closed, 60_000), &mut |progress| {
            looks += 1;
            last = progress.completed;
            if looks == 4 { Control::Stop } else { Control::Continue }
        });
    assert!(report.elapsed_ns < 10_000_000_000, "{}", report.elapsed_ns);
    assert!(last > 0 && report.counts.succeeded >= last, "{last}");
    assert_eq!(report.counts.failed, 0);
}

#[test]
fn bodies_are_sent_under_windows_of_one_byte() {
    let server = Planted::start(Behaviour::windows(1));
    let mut plan = h2_plan(server.address);
    plan.requests[0].method = http::Method::POST;
    plan.requests[0].body = Bytes::from(vec![7; 50]);
    let report = run(&plan, &requests(100));
    assert_eq!((report.counts.succeeded, report.counts.failed), (100, 0));
    assert_eq!(server.received_bytes(), 5000);
    assert_eq!(report.traffic.payload_sent_bytes, 5000);
    assert!(report.stalls.stream_window_ns > 0, "{:?}", report.stalls);
}

#[test]
fn no_two_requests_are_alike_where_a_placeholder_counts_them() {
    for h2 in [false, true] {
        let server = Planted::start(Behaviour::default());
        let mut plan = if h2 { h2_plan(server.address) } else { plan(server.address) };
        let request = &mut plan.requests[0];
        request.target = "/?n={connection}-{request}".to_owned();
        request.fields = vec![(http::header::COOKIE, "id={connection}".parse().unwrap())];
        request.has_placeholders = true;
        assert_eq!(run(&plan, &requests(501)).counts.succeeded, 501);
        let distinct = server.distinct();
        assert_eq!(distinct.len(), 501);
        for (target, cookie) in distinct {
            let connection = cookie.strip_prefix("id=").unwrap();
            assert!(target.starts_with(&format!("/?n={connection}-")), "{target} {cookie}");
            assert!(connection.parse::<u64>().unwrap() < 4, "{cookie}");
        }
    }
}

#[test]
fn random_placeholders_make_each_request_another() {
    for h2 in [false, true] {
        let server = Planted::start(Behaviour::default());
        let mut plan = if h2 { h2_plan(server.address) } else { plan(server.address) };
        let request = &mut plan.requests[0];
        request.target = "/{uuid}".to_owned();
        request.fields = vec![(http::header::COOKIE, "id={random:1..3}".parse().unwrap())];
        request.has_placeholders = true;
        assert_eq!(run(&plan, &requests(501)).counts.succeeded, 501);
        let (targets, cookies): (BTreeSet<_>, BTreeSet<_>) = server.distinct().into_iter().unzip();
        assert_eq!(targets.len(), 501);
        assert!(cookies.iter().eq(["id=1", "id=2", "id=3"]), "{cookies:?}");
    }
}
