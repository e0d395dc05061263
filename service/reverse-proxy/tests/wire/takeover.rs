//! A proxy that takes the place of another while it runs.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use bolide_reverse_proxy::{HealthCheck, ProxyLimits, ProxySettings, limits};

use crate::scene::{Behind, Proxy, settings};
use crate::watch::{SHORT, named, until};

/// Nothing of a test takes so long.
const LONG: Duration = Duration::from_secs(3600);

fn checked(urls: &[&str], interval: Duration) -> ProxySettings {
    let check = HealthCheck::new("/health").interval(interval).fall(2).rise(2);
    settings(urls).health_check(check).expect("a path")
}

#[test]
fn who_was_down_is_down_until_the_checks_say_otherwise() {
    let is_well = Arc::new(AtomicBool::new(false));
    let (ill, well) = (named("a", &is_well), named("b", &Arc::new(AtomicBool::new(true))));
    let urls: &[&str] = &[&ill.url(), &well.url()];
    let mut proxy = Proxy::with(checked(urls, SHORT));
    until(&proxy.settings, 0, |stats| stats.is_down);
    for _ in 0..5 {
        proxy.replace(checked(urls, SHORT));
        assert!(proxy.settings.stats()[0].is_down);
        assert!(proxy.get().ends_with('b') && proxy.get().ends_with('b'));
    }
    is_well.store(true, Ordering::SeqCst);
    until(&proxy.settings, 0, |stats| !stats.is_down);
    // Without checks, nothing could ever say that it is up again.
    is_well.store(false, Ordering::SeqCst);
    until(&proxy.settings, 0, |stats| stats.is_down);
    proxy.replace(settings(urls));
    assert!(!proxy.settings.stats()[0].is_down);
    assert!((0..2).any(|_| proxy.get().ends_with('a')));
}

#[test]
fn checks_of_a_proxy_that_was_replaced_end() {
    let (ended, ends) = mpsc::channel();
    let behind = Behind::new(move |talk, number| {
        while !talk.head().is_empty() {
            talk.send("HTTP/1.1 204 No Content\r\n\r\n");
        }
        // The test may be over.
        let _ = ended.send(number);
    });
    let url = behind.url();
    let before = checked(&[&url], SHORT);
    let mut proxy = Proxy::with(before.clone());
    until(&before, 0, |stats| stats.health_checks > 2);
    assert_eq!(ends.try_recv(), Err(mpsc::TryRecvError::Empty), "checks share a connection");
    proxy.replace(checked(&[&url], LONG));
    // The interval is another: the checks are others too, and begin anew.
    until(&proxy.settings, 0, |stats| stats.health_checks == 1);
    // The client of the checks before has one connection, which ends with it, once there are no checks any more.
    assert_eq!(ends.recv_timeout(Duration::from_secs(10)), Ok(0));
    assert_eq!((behind.connections(), proxy.settings.stats()[0].health_checks), (2, 1));
}

#[test]
fn who_was_left_alone_after_failures_stays_so() {
    let limits = || ProxyLimits {
        choice: limits::Choice {
            failures_count: 1,
            ejection_time: LONG,
            ..limits::Choice::DEFAULT
        },
        ..ProxyLimits::default()
    };
    let dying = Behind::new(|talk, _| drop(talk.head()));
    let well = named("b", &Arc::new(AtomicBool::new(true)));
    let both = || settings(&[&dying.url(), &well.url()]).limits(limits());
    let mut proxy = Proxy::with(both());
    for _ in 0..2 {
        assert!(proxy.get().ends_with('b'), "it is asked again elsewhere");
    }
    assert_eq!((dying.connections(), proxy.settings.stats()[0].ejections), (1, 1));
    proxy.replace(both());
    for _ in 0..4 {
        assert!(proxy.get().ends_with('b'));
    }
    assert_eq!(dying.connections(), 1, "nobody has asked it again");
}

#[test]
fn idle_connections_of_a_proxy_that_was_replaced_end_at_once() {
    let (ended, ends) = mpsc::channel();
    let behind = Behind::new(move |talk, number| {
        while !talk.head().is_empty() {
            talk.send("HTTP/1.1 204 No Content\r\n\r\n");
        }
        // The test may be over.
        let _ = ended.send(number);
    });
    let limits = || ProxyLimits {
        times: limits::Times { idle_timeout: LONG, ..limits::Times::DEFAULT },
        ..ProxyLimits::default()
    };
    let mut proxy = Proxy::limited(&[&behind.url()], limits());
    assert!(proxy.get().starts_with("HTTP/1.1 204"));
    proxy.replace(settings(&[&behind.url()]).limits(limits()));
    assert_eq!(ends.recv_timeout(Duration::from_secs(10)), Ok(0));
    assert!(proxy.get().starts_with("HTTP/1.1 204"));
    assert_eq!(behind.connections(), 2);
}

#[test]
fn bodies_and_tunnels_go_on_with_the_proxy_that_began_them() {
    let goes_on = Arc::new(Barrier::new(3));
    let gate = Arc::clone(&goes_on);
    let old = Behind::new(move |talk, _| {
        let head = talk.head();
        if head.starts_with("GET ") {
            talk.send(
                "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\na",
            );
            gate.wait();
            assert_eq!(talk.take(1), b"b");
            talk.send("c");
        } else {
            talk.send("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf");
            assert_eq!(talk.take(4), b"half");
            gate.wait();
            assert_eq!(talk.take(4), b"rest");
            talk.send("rest");
            assert_eq!(talk.rest(), "", "its connection ends with it");
        }
    });
    let new = Behind::answering("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nnew");
    let mut proxy = Proxy::to(&[&old.url()]);
    let (mut body, mut tunnel) = (proxy.connect(), proxy.connect());
    body.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 8\r\n\r\nhalf");
    tunnel.send("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    assert!(body.head().starts_with("HTTP/1.1 200") && body.take(4) == b"half");
    assert!(tunnel.head().starts_with("HTTP/1.1 101") && tunnel.take(1) == b"a");
    proxy.replace(settings(&[&new.url()]));
    assert!(proxy.get().ends_with("new"));
    goes_on.wait();
    body.send("rest");
    tunnel.send("b");
    assert_eq!(body.take(4), b"rest");
    assert_eq!(tunnel.rest(), "c");
    body.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(body.message().ends_with("new"));
    assert_eq!(old.connections(), 2);
}

/// A proxy to a name with these addresses.
fn named_proxy(addresses: Vec<SocketAddr>, limits: ProxyLimits) -> Proxy {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let port = addresses[0].port();
    let limits = ProxyLimits {
        retries_count: 0,
        times: limits::Times { resolve_period: SHORT, ..limits.times },
        ..limits
    };
    let settings = settings(&[&format!("http://localhost:{port}")]).limits(limits);
    let proxy = Proxy::with(settings.resolver(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(addresses.clone())
    }));
    while asked.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now();
    }
    proxy
}

pub(crate) fn closed_port() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address")
}

#[test]
fn the_next_address_of_a_name_is_no_repetition_and_no_failure() {
    let behind = Behind::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let addresses = vec![closed_port(), closed_port(), behind.address];
    let proxy = named_proxy(addresses, ProxyLimits::default());
    let post = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi";
    let response = proxy.ask(post);
    assert!(response.ends_with("ok"), "{response}");
    let stats = &proxy.settings.stats()[0];
    let counted = (stats.connect_failures, stats.failures, stats.retries, stats.ejections);
    assert_eq!(counted, (2, 0, 0, 0), "{stats:?}");
}

#[test]
fn when_no_address_of_a_name_is_there_each_was_tried_once() {
    let proxy = named_proxy(vec![closed_port(), closed_port()], ProxyLimits::default());
    for asked in 1..=2 {
        let response = proxy.get();
        assert!(response.starts_with("HTTP/1.1 502"), "{response}");
        let stats = &proxy.settings.stats()[0];
        assert_eq!((stats.connect_failures, stats.failures), (2 * asked, asked), "{stats:?}");
    }
}
