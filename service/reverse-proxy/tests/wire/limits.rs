//! Messages above the limits.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use bolide_reverse_proxy::{ProxyLimits, limits};

use crate::scene::{Behind, Proxy};
use crate::takeover::closed_port;

#[test]
fn a_waiting_flood_is_turned_away_and_waits_no_longer_than_allowed() {
    let gate = Arc::new(Barrier::new(2));
    let held = Arc::clone(&gate);
    let behind = Behind::new(move |talk, _| {
        talk.head();
        held.wait();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        talk.rest();
    });
    let limits = ProxyLimits {
        connections_count: 1,
        waiting_count: 1,
        times: limits::Times { wait_timeout: Duration::from_millis(200), ..limits::Times::DEFAULT },
        ..ProxyLimits::default()
    };
    let proxy = Proxy::limited(&[&behind.url()], limits);
    let (mut first, mut second) = (proxy.connect(), proxy.connect());
    first.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    while proxy.settings.stats()[0].requests == 0 {
        std::thread::yield_now();
    }
    second.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let waited = second.message();
    assert!(waited.contains("no connection became free in time"), "{waited}");
    second.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    // Either of the two finds that the other waits already.
    let turned_away = proxy.get();
    assert!(turned_away.starts_with("HTTP/1.1 503"), "{turned_away}");
    gate.wait();
    assert!(first.message().ends_with("ok"));
    second.abort();
}

#[test]
fn a_request_that_waits_gets_the_connection_that_becomes_free() {
    let behind = Behind::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let limits = ProxyLimits { connections_count: 1, ..ProxyLimits::default() };
    let proxy = Proxy::limited(&[&behind.url()], limits);
    let mut talks: Vec<_> = (0..20).map(|_| proxy.connect()).collect();
    for _ in 0..3 {
        for talk in &mut talks {
            talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        }
        for talk in &mut talks {
            assert!(talk.message().ends_with("ok"));
        }
    }
    assert_eq!(behind.connections(), 1);
}

#[test]
fn an_outstanding_flood_is_turned_away() {
    let behind = Behind::new(|talk, _| drop(talk.rest()));
    let limits = ProxyLimits { outstanding_count: 1, ..ProxyLimits::default() };
    let proxy = Proxy::limited(&[&behind.url()], limits);
    let mut first = proxy.connect();
    first.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    while behind.connections() == 0 {
        std::thread::yield_now();
    }
    let response = proxy.get();
    assert!(response.contains("connection_limit_reached"), "{response}");
    first.abort();
}

#[test]
fn a_client_that_goes_away_ends_its_request_upstream() {
    let (sender, receiver) = mpsc::channel();
    let behind = Behind::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart");
        talk.rest();
        sender.send(()).expect("the test waits");
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    // A client that closes with something unread resets.
    talk.stream.peek(&mut [0]).expect("the response begins");
    drop(talk);
    receiver.recv_timeout(Duration::from_secs(10)).expect("the upstream's connection ends too");
}

#[test]
fn a_proxy_that_shuts_down_completes_what_is_open() {
    let drains = Arc::new(Barrier::new(2));
    let gate = Arc::clone(&drains);
    let behind = Behind::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nha");
        gate.wait();
        talk.send("lf");
        talk.rest();
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    talk.head();
    let address = proxy.address;
    let ended = std::thread::spawn(move || proxy.shut_down());
    // It listens until it begins to drain.
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    drains.wait();
    assert_eq!(talk.rest(), "half");
    drop(talk);
    assert_eq!(ended.join().expect("it ends").panics, 0);
}

#[test]
fn a_connection_that_carries_nothing_ends_in_time() {
    let (ended, ends) = mpsc::channel();
    let behind = Behind::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 204 No Content\r\n\r\n");
        let answered = Instant::now();
        assert_eq!(talk.rest(), "");
        ended.send(answered.elapsed()).expect("the test waits");
    });
    let idle_timeout = Duration::from_millis(150);
    let limits = ProxyLimits {
        times: limits::Times { idle_timeout, ..limits::Times::DEFAULT },
        ..ProxyLimits::default()
    };
    let proxy = Proxy::limited(&[&behind.url()], limits);
    assert!(proxy.get().starts_with("HTTP/1.1 204"));
    let took = ends.recv_timeout(Duration::from_secs(20)).expect("it ends");
    assert!(took >= idle_timeout, "{took:?}");
    assert!(proxy.get().starts_with("HTTP/1.1 204"), "the next goes over another");
    assert_eq!(behind.connections(), 2);
}

/// A listener that takes no more connections, and those that it has.
#[cfg(target_os = "linux")]
fn full() -> (SocketAddr, Vec<TcpStream>, impl Sized) {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&listener, &"127.0.0.1:0".parse::<SocketAddr>().expect("an address")).expect("a port");
    listen(&listener, 0).expect("it listens");
    let address = getsockname(&listener).expect("an address");
    let address = SocketAddr::try_from(address).expect("an address of IPv4");
    let patience = Duration::from_millis(300);
    let next = || TcpStream::connect_timeout(&address, patience).ok();
    let taken = std::iter::from_fn(next).take(10).collect();
    (address, taken, listener)
}

#[cfg(target_os = "linux")]
#[test]
fn a_connection_that_takes_too_long_to_make_is_given_up() {
    let (address, taken, _listener) = full();
    assert!(taken.len() < 10, "it takes connections");
    let connect_timeout = Duration::from_millis(200);
    let limits = ProxyLimits {
        retries_count: 0,
        times: limits::Times { connect_timeout, ..limits::Times::DEFAULT },
        ..ProxyLimits::default()
    };
    let proxy = Proxy::limited(&[&format!("http://{address}")], limits);
    let begun = Instant::now();
    let response = proxy.get();
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    assert!(response.contains("error=connection_timeout"), "{response}");
    assert!(begun.elapsed() >= connect_timeout);
    let stats = &proxy.settings.stats()[0];
    assert_eq!((stats.timeouts, stats.connect_failures), (1, 1), "{stats:?}");
}

#[test]
fn a_response_with_too_large_a_head_is_no_response() {
    let long = "x".repeat(1 << 20);
    let many = "x: 1\r\n".repeat(10_000);
    for fields in [format!("x: {long}\r\n"), many] {
        let behind = Behind::new(move |talk, _| {
            talk.head();
            let response = format!("HTTP/1.1 200 OK\r\n{fields}content-length: 0\r\n\r\n");
            // It is not read to its end.
            let _ = std::io::Write::write_all(&mut talk.stream, response.as_bytes());
        });
        let proxy = Proxy::to(&[&behind.url()]);
        let response = proxy.get();
        assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
        assert!(response.contains("error=http_protocol_error"), "{response}");
        assert_eq!(behind.connections(), 1, "it has acted on the request");
    }
}

#[test]
fn a_retry_storm_is_stopped_by_the_budget() {
    let behind = Behind::new(|talk, _| drop(talk.head()));
    let limits = ProxyLimits {
        retry_budget_percent: 10,
        choice: limits::Choice { failures_count: u32::MAX, ..limits::Choice::DEFAULT },
        ..ProxyLimits::default()
    };
    let proxy = Proxy::limited(&[&behind.url()], limits);
    for _ in 0..100 {
        assert!(proxy.get().starts_with("HTTP/1.1 502 "));
    }
    // Ten at once, and one for ten requests: what was saved was full at first.
    let stats = &proxy.settings.stats()[0];
    assert!((18..=20).contains(&stats.retries), "{stats:?}");
    assert_eq!(behind.connections() as u64, 100 + stats.retries);
}

#[test]
fn what_no_upstream_got_is_repeated_beyond_the_budget() {
    let behind = Behind::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let limits = ProxyLimits {
        retry_budget_percent: 0,
        choice: limits::Choice { failures_count: u32::MAX, ..limits::Choice::DEFAULT },
        ..ProxyLimits::default()
    };
    let gone = format!("http://{}", closed_port());
    let proxy = Proxy::limited(&[&gone, &behind.url()], limits);
    for _ in 0..50 {
        let response = proxy.ask("POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    }
    let stats = &proxy.settings.stats()[0];
    assert!(stats.retries > 10, "more than the budget begins with: {stats:?}");
}
