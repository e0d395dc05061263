//! Findings of the proxy about upstreams that do not come from responses: health, and addresses.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use bolide_reverse_proxy::{
    HealthCheck, ProxyLimits, ProxySettings, Upstream, UpstreamStats, limits,
};

use crate::scene::{Behind, Proxy, settings};

/// Checks follow each other closely here.
pub(crate) const SHORT: Duration = Duration::from_millis(10);

/// Waits until the counters of an upstream show what is expected.
pub(crate) fn until(
    settings: &ProxySettings,
    upstream: usize,
    is_it: impl Fn(&UpstreamStats) -> bool,
) {
    let latest = Instant::now() + Duration::from_secs(20);
    while !is_it(&settings.stats()[upstream]) {
        assert!(Instant::now() < latest, "{:?}", settings.stats());
        std::thread::yield_now();
    }
}

/// Answers with its name, and to checks as it feels.
pub(crate) fn named(name: &'static str, is_well: &Arc<AtomicBool>) -> Behind {
    let is_well = Arc::clone(is_well);
    Behind::new(move |talk, _| {
        loop {
            let head = talk.head();
            if head.is_empty() {
                return;
            }
            let status = if head.starts_with("GET /health ") && !is_well.load(Ordering::SeqCst) {
                "500 Ill"
            } else {
                "200 OK"
            };
            talk.send(&format!("HTTP/1.1 {status}\r\ncontent-length: 1\r\n\r\n{name}"));
        }
    })
}

#[test]
fn an_upstream_whose_checks_fail_is_not_asked_until_they_succeed() {
    let is_well = Arc::new(AtomicBool::new(false));
    let (ill, well) = (named("a", &is_well), named("b", &Arc::new(AtomicBool::new(true))));
    let check = HealthCheck::new("/health").interval(SHORT).fall(2).rise(2);
    let settings = settings(&[&ill.url(), &well.url()]).health_check(check).expect("a path");
    let proxy = Proxy::with(settings);
    until(&proxy.settings, 0, |stats| stats.is_down);
    for _ in 0..6 {
        assert!(proxy.get().ends_with('b'));
    }
    let stats = proxy.settings.stats();
    assert!(
        stats[0].health_check_failures >= 2 && stats[1].health_check_failures == 0,
        "{stats:?}"
    );
    assert_eq!(
        (stats[0].requests, stats[1].responses),
        (0, 6),
        "checks are no requests: {stats:?}"
    );
    is_well.store(true, Ordering::SeqCst);
    until(&proxy.settings, 0, |stats| !stats.is_down);
    let responses: Vec<_> = (0..2).map(|_| proxy.get()).collect();
    assert!(responses.iter().any(|response| response.ends_with('a')), "{responses:?}");
}

#[test]
fn when_all_are_down_somebody_is_asked() {
    let ill = Arc::new(AtomicBool::new(false));
    let (one, other) = (named("a", &ill), named("b", &ill));
    let check = HealthCheck::new("/health").interval(SHORT).fall(1);
    let settings = settings(&[&one.url(), &other.url()]).health_check(check).expect("a path");
    let proxy = Proxy::with(settings);
    for upstream in 0..2 {
        until(&proxy.settings, upstream, |stats| stats.is_down);
    }
    assert!(proxy.get().starts_with("HTTP/1.1 200"));
}

#[test]
fn a_silent_upstream_fails_its_checks_in_time() {
    let silent = Behind::new(|talk, _| drop(talk.rest()));
    let check = HealthCheck::new("/").interval(SHORT).timeout(SHORT * 5).fall(2);
    let settings = settings(&[&silent.url()]).health_check(check).expect("a path");
    let proxy = Proxy::with(settings);
    until(&proxy.settings, 0, |stats| stats.is_down);
}

#[test]
fn a_check_that_can_not_be_made_is_refused() {
    for check in [
        HealthCheck::new("health"),
        HealthCheck::new("/a b"),
        HealthCheck::new("/").interval(Duration::ZERO),
    ] {
        let error = settings(&["http://127.0.0.1:1"]).health_check(check).unwrap_err().to_string();
        assert!(error.starts_with("the health check `"), "{error}");
    }
}

#[test]
fn requests_follow_a_name_to_its_new_address_and_what_runs_goes_on() {
    let (began, goes_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let gates = (Arc::clone(&began), Arc::clone(&goes_on));
    let old = Behind::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nold");
        gates.0.wait();
        gates.1.wait();
        talk.send("old");
        assert_eq!(talk.rest(), "", "no other request comes, and the connection ends");
    });
    let new = Behind::answering("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nnew");
    let address = Arc::new(Mutex::new(old.address));
    let (asked, known) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&address));
    let names = Arc::clone(&asked);
    let limits = ProxyLimits {
        times: limits::Times { resolve_period: SHORT, ..limits::Times::DEFAULT },
        ..ProxyLimits::default()
    };
    let upstream = Upstream::parse(&format!("http://localhost:{}", old.address.port()));
    let settings = ProxySettings::new(vec![upstream.expect("localhost has an address")])
        .expect("settings")
        .limits(limits)
        .resolver(move |host, port| {
            names.lock().unwrap().push((host.to_owned(), port));
            Ok::<Vec<SocketAddr>, _>(vec![*known.lock().unwrap()])
        });
    let proxy = Proxy::with(settings);
    // The system may know another address of this host first.
    let looked_up = || asked.lock().unwrap().len();
    let again = |count| {
        while looked_up() < count {
            std::thread::yield_now();
        }
    };
    again(2);
    let mut running = proxy.connect();
    running.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(running.head().starts_with("HTTP/1.1 200"));
    assert_eq!(running.take(3), b"old");
    began.wait();
    *address.lock().unwrap() = new.address;
    again(looked_up() + 2);
    for _ in 0..3 {
        assert!(proxy.get().ends_with("new"));
    }
    goes_on.wait();
    assert_eq!(running.take(3), b"old", "what was running is complete");
    assert_eq!(old.connections(), 1);
    assert_eq!(asked.lock().unwrap()[0], ("localhost".to_owned(), old.address.port()));
}

#[test]
fn a_name_that_has_no_address_any_more_keeps_the_one_it_had() {
    let behind = Behind::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let upstream = Upstream::parse(&format!("http://localhost:{}", behind.address.port()));
    let address = behind.address;
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let limits = ProxyLimits {
        times: limits::Times { resolve_period: SHORT, ..limits::Times::DEFAULT },
        ..ProxyLimits::default()
    };
    let settings = ProxySettings::new(vec![upstream.expect("localhost has an address")])
        .expect("settings")
        .limits(limits)
        .resolver(move |_, _| {
            let mut calls = counted.lock().unwrap();
            *calls += 1;
            if *calls == 1 {
                return Ok(vec![address]);
            }
            Err(bolide_reverse_proxy::ResolveError::Nothing { host: "localhost".to_owned() })
        });
    let proxy = Proxy::with(settings);
    while *calls.lock().unwrap() < 4 {
        std::thread::yield_now();
    }
    assert!(proxy.get().ends_with("ok"));
}

#[test]
fn the_state_of_the_pool_and_the_time_of_responses_are_shown() {
    let (began, goes_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let gates = (Arc::clone(&began), Arc::clone(&goes_on));
    let behind = Behind::new(move |talk, _| {
        talk.head();
        gates.0.wait();
        gates.1.wait();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        talk.rest();
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    began.wait();
    until(&proxy.settings, 0, |stats| {
        (stats.open_requests, stats.busy_connections, stats.idle_connections) == (1, 1, 0)
    });
    goes_on.wait();
    assert!(talk.message().ends_with("ok"));
    until(&proxy.settings, 0, |stats| {
        (stats.open_requests, stats.busy_connections, stats.idle_connections) == (0, 0, 1)
    });
    let stats = &proxy.settings.stats()[0];
    assert_eq!((stats.latency.count(), stats.connecting, stats.waiting_requests), (1, 0, 0));
}
