//! What is more than may be.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use bolide_reverse_proxy::ProxyLimits;

use crate::scene::{Behind, Proxy};

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
        wait_timeout: Duration::from_millis(200),
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
    let answer = proxy.get();
    assert!(answer.contains("connection_limit_reached"), "{answer}");
}

#[test]
fn a_client_that_goes_away_ends_its_request_upstream() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let behind = Behind::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart");
        talk.rest();
        sender.send(()).expect("the test waits");
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    // A client that closes with something unread resets: one that only ends its side still wants its answer.
    talk.stream.peek(&mut [0]).expect("the answer begins");
    drop(talk);
    receiver.recv_timeout(Duration::from_secs(10)).expect("the upstream's connection ends too");
}

#[test]
fn a_proxy_that_shuts_down_completes_what_is_open() {
    let behind = Behind::new(|talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nha");
        std::thread::sleep(Duration::from_millis(300));
        talk.send("lf");
        talk.rest();
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    talk.head();
    let ended = std::thread::spawn(move || proxy.shut_down());
    assert_eq!(talk.rest(), "half");
    assert_eq!(ended.join().expect("it ends").panics, 0);
}
