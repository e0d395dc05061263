//! Upgrades: from the switch of protocols on, bytes pass as they are.

use std::io::Write;
use std::time::Duration;

use bolide_reverse_proxy::ProxyLimits;

use crate::scene::{Behind, Proxy, Talk};

const REQUEST: &str = "GET /chat HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                       sec-websocket-key: k\r\nsec-websocket-version: 13\r\n\r\n";

/// Switches, greets, and sends back what it gets.
fn switching(talk: &mut Talk, _: usize) {
    let head = talk.head();
    assert!(head.contains("\r\nconnection: upgrade\r\n"), "{head}");
    assert!(head.contains("\r\nupgrade: websocket\r\n"), "{head}");
    assert!(head.contains("\r\nsec-websocket-key: k\r\n"), "{head}");
    talk.send(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: x\r\n\r\n\0hello",
    );
    loop {
        let bytes = talk.take(1);
        if bytes.is_empty() {
            return;
        }
        talk.stream.write_all(&bytes).expect("it reads");
    }
}

fn switch(proxy: &Proxy) -> Talk {
    let mut talk = proxy.connect();
    talk.send(REQUEST);
    let head = talk.head();
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    assert!(head.contains("\r\nsec-websocket-accept: x\r\n"), "{head}");
    assert!(head.contains("upgrade: websocket\r\n") && head.contains("connection: upgrade\r\n"));
    assert_eq!(talk.take(6), b"\0hello");
    talk
}

#[test]
fn bytes_pass_both_ways_after_an_upgrade() {
    let behind = Behind::new(switching);
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = switch(&proxy);
    for text in ["a", "GET / HTTP/1.1\r\n\r\n", "\0\u{1}\u{2}"] {
        talk.send(text);
        assert_eq!(talk.take(text.len()), text.as_bytes());
    }
    talk.stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    assert_eq!(talk.rest(), "", "the end passes too");
    let stats = &proxy.settings.stats()[0];
    assert_eq!((stats.answers, stats.failures), (1, 0), "{stats:?}");
}

#[test]
fn an_upstream_ends_a_tunnel() {
    let behind = Behind::new(|talk, _| {
        talk.head();
        talk.send(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nbye",
        );
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    talk.send("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    assert!(talk.rest().ends_with("upgrade: x\r\nconnection: upgrade\r\n\r\nbye"));
}

#[test]
fn an_upgrade_may_be_declined() {
    let behind = Behind::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno");
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    for _ in 0..2 {
        talk.send(REQUEST);
        assert!(talk.message().ends_with("no"));
    }
}

#[test]
fn an_idle_tunnel_ends() {
    let behind = Behind::new(switching);
    let limits =
        ProxyLimits { tunnel_timeout: Duration::from_millis(150), ..ProxyLimits::default() };
    let proxy = Proxy::limited(&[&behind.url()], limits);
    let mut talk = switch(&proxy);
    assert_eq!(talk.rest(), "");
}
