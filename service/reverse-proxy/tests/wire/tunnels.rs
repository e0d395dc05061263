//! Upgrades: from the switch of protocols on, bytes pass as they are.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::mpsc;
use std::time::Duration;

use bolide_reverse_proxy::{ProxyLimits, ProxySettings, ReverseProxy, limits};
use bolide_server::{ProxyProtocol, Router, Server};

use crate::scene::{Behind, Proxy, Talk, settings};
use crate::versions::Origin;

const REQUEST: &str = "GET /chat HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                       sec-websocket-key: k\r\nsec-websocket-version: 13\r\n\r\n";

const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                        sec-websocket-accept: of the hop\r\n\r\n";

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
fn tunnels_take_no_connection_from_the_requests() {
    let behind = Behind::new(switching);
    let limits = ProxyLimits { connections_count: 1, ..ProxyLimits::default() };
    let proxy = Proxy::limited(&[&behind.url()], limits);
    let mut talks: Vec<_> = (0..5).map(|_| proxy.connect()).collect();
    // All but the first wait: each goes on once the one before it has switched.
    for talk in &mut talks {
        talk.send(REQUEST);
    }
    for talk in &mut talks {
        assert!(talk.head().starts_with("HTTP/1.1 101 "));
        assert_eq!(talk.take(6), b"\0hello");
    }
    for talk in &mut talks {
        talk.send("a");
        assert_eq!(talk.take(1), b"a");
    }
    assert_eq!(behind.connections(), 5);
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
    talk.stream.shutdown(Shutdown::Write).expect("it is open");
    assert_eq!(talk.rest(), "", "the end passes too");
    let stats = &proxy.settings.stats()[0];
    assert_eq!((stats.responses, stats.failures), (1, 0), "{stats:?}");
}

/// Checks that the upstream gets an end in order as well (RFC 9110 §9.3.6).
#[test]
fn an_upstream_ends_a_tunnel_from_any_version_to_any() {
    let (sender, rests) = mpsc::channel();
    let behind = Behind::new(move |talk, _| {
        talk.head();
        talk.send(SWITCHED);
        talk.send("bye");
        talk.stream.shutdown(Shutdown::Write).expect("it is open");
        let mut rest = Vec::new();
        let end = talk.stream.read_to_end(&mut rest);
        sender.send(end.map(|_| rest)).expect("the test waits");
    });
    through_versions(&behind, |mut talk, hops, _| {
        assert_eq!(talk.rest(), "bye", "{hops}");
        assert_eq!(rests.recv().expect("it was asked").expect(hops), b"", "{hops}");
    });
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
    let limits = ProxyLimits {
        times: limits::Times {
            tunnel_timeout: Duration::from_millis(150),
            ..limits::Times::DEFAULT
        },
        ..ProxyLimits::default()
    };
    let proxy = Proxy::limited(&[&behind.url()], limits);
    let mut talk = switch(&proxy);
    assert_eq!(talk.rest(), "");
}

/// A proxy to the upstream, and before it so many that it speaks HTTP/2 with.
fn chain(url: &str, before: usize) -> Vec<Proxy> {
    let mut proxies = vec![Proxy::to(&[url])];
    for _ in 0..before {
        let next = format!("h2c://{}", proxies.last().expect("one").address);
        proxies.push(Proxy::to(&[&next]));
    }
    proxies
}

#[test]
fn a_websocket_passes_from_any_version_to_any() {
    for before in [1, 2] {
        let behind = Behind::new(|talk, _| {
            let head = talk.head();
            assert!(head.starts_with("GET /chat HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("\r\nsec-websocket-version: 13\r\n"), "{head}");
            assert!(!head.contains("sec-websocket-key: dGhl"), "each hop has a key of its own");
            talk.send(SWITCHED);
            let bytes = talk.take(5);
            talk.stream.write_all(&bytes).expect("it reads");
        });
        let proxies = chain(&behind.url(), before);
        let mut talk = proxies.last().expect("one").connect();
        talk.send(&REQUEST.replace("key: k", "key: dGhlIHNhbXBsZSBub25jZQ=="));
        let head = talk.head();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
        talk.send("hello");
        assert_eq!(talk.rest(), "hello", "and the upstream's end ends it");
    }
}

/// A server that passes everything on, in front of `behind`.
fn passing(tls: bool, behind: ProxySettings) -> Origin {
    let routes = move || Router::new().fallback(ReverseProxy::new(&behind));
    Origin::with(Server::new(), tls, ProxyProtocol::Off, routes)
}

/// Checks that what passes through a tunnel is not the body of the request that began it.
#[test]
fn a_hundred_megabytes_pass_each_way_through_a_tunnel_from_any_version_to_any() {
    const BYTES: usize = 100 << 20;
    let behind = Behind::new(|talk, _| {
        talk.head();
        talk.send(SWITCHED);
        talk.exchange(BYTES);
    });
    through_versions(&behind, |mut talk, _, _| talk.exchange(BYTES));
}

/// Checks that a client's end is not its upstream's (RFC 9113 §8.5), which may have much to say.
#[test]
fn a_tunnel_whose_client_has_ended_its_side_goes_on_from_any_version_to_any() {
    const BYTES: usize = 16 << 20;
    let behind = Behind::new(|talk, _| {
        talk.head();
        talk.send(SWITCHED);
        let said = talk.rest();
        talk.send(&said);
        talk.send(&"x".repeat(BYTES));
    });
    through_versions(&behind, |mut talk, hops, _| {
        talk.send("all");
        talk.stream.shutdown(Shutdown::Write).expect("it is open");
        let came = talk.rest();
        assert!(came.starts_with("allx") && came.len() == 3 + BYTES, "{hops}: {}", came.len());
    });
}

/// Checks that what is cut off doesn't look complete (RFC 9113 §8.5, RFC 8441 §5).
#[test]
fn a_tunnel_that_is_reset_has_no_end_from_any_version_to_any() {
    let (sender, ends) = mpsc::channel();
    let behind = Behind::new(move |talk, _| {
        talk.head();
        talk.send(SWITCHED);
        if talk.take(1) == b"r" {
            talk.send("last");
            return talk.will_abort();
        }
        talk.send("go");
        sender.send(talk.stream.read(&mut [0])).expect("the test waits");
    });
    let is_reset = |end: std::io::Result<usize>| {
        end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
    };
    through_versions(&behind, |mut talk, hops, first| {
        talk.send("r");
        let mut last = Vec::new();
        assert!(is_reset(talk.stream.read_to_end(&mut last)), "{hops}: the upstream's");
        // QUIC drops what a stream that is reset has not sent (RFC 9000 §3.1).
        assert!(last == b"last" || hops.contains("h3"), "{hops}: {}", last.escape_ascii());
        // A stream that is reset by CANCEL is no failure of the upstream.
        let ejections = u64::from(hops.starts_with("http "));
        assert_eq!(first.settings.stats()[0].ejections, ejections, "{hops}");
    });
    through_versions(&behind, |mut talk, hops, _| {
        talk.send("w");
        assert_eq!(talk.take(2), b"go");
        talk.abort();
        assert!(is_reset(ends.recv().expect("it was asked")), "{hops}: the client's");
    });
}

/// Tunnels to a server of HTTP/1.1 through three proxies, with each version between the first two and each between the last two.
fn through_versions(behind: &Behind, mut check: impl FnMut(Talk, &str, &Proxy)) {
    let versions = [("http", false), ("h2c", false), ("https", true), ("h3", true)];
    for (to, to_tls) in versions {
        let last = passing(to_tls, settings(&[&behind.url()]));
        for (from, from_tls) in versions {
            let hops = format!("{from} to {to}");
            let middle = passing(from_tls, last.settings(to));
            let first = Proxy::with(middle.settings(from).limits(ProxyLimits {
                choice: limits::Choice { failures_count: 1, ..limits::Choice::DEFAULT },
                ..ProxyLimits::default()
            }));
            let mut talk = first.connect();
            talk.send(&REQUEST.replace("key: k", "key: dGhlIHNhbXBsZSBub25jZQ=="));
            let head = talk.head();
            assert!(head.starts_with("HTTP/1.1 101 "), "{hops}: {head}");
            check(talk, &hops, &first);
        }
    }
}

#[test]
fn a_refused_websocket_is_no_tunnel_in_any_version() {
    for (response, expected) in [
        ("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno", "HTTP/1.1 403"),
        // For an extended CONNECT this would be a tunnel.
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno", "HTTP/1.1 502"),
    ] {
        let behind = Behind::answering(response);
        let proxies = chain(&behind.url(), 1);
        let mut talk = proxies[1].connect();
        for _ in 0..2 {
            talk.send(REQUEST);
            let response = talk.message();
            assert!(response.starts_with(expected), "{response}");
        }
    }
}

/// Speaks HTTP/2 without extended CONNECT when it is spoken to so, and HTTP/1.1 otherwise.
fn without_extended_connect(talk: &mut Talk, number: usize) {
    if talk.peek(3) != b"PRI" {
        return switching(talk, number);
    }
    talk.until("SM\r\n\r\n");
    // Empty SETTINGS, and the acknowledgement of the proxy's.
    talk.send("\0\0\0\u{4}\0\0\0\0\0\0\0\0\u{4}\u{1}\0\0\0\0");
    talk.rest();
}

#[test]
fn a_tunnel_goes_by_http1_when_the_upstreams_http2_takes_none() {
    let behind = Behind::new(without_extended_connect);
    let url = format!("h2c://{}", behind.address);
    let upstream = bolide_reverse_proxy::Upstream::parse(&url).expect("one").http1_tunnels(true);
    let settings = ProxySettings::new(vec![upstream]).expect("settings");
    let proxy = Proxy::with(settings);
    let mut talks = Vec::new();
    for connections in [2, 3] {
        talks.push(switch(&proxy));
        let talk = talks.last_mut().expect("one");
        talk.send("a");
        assert_eq!(talk.take(1), b"a");
        assert_eq!(behind.connections(), connections, "what is known is not found out again");
    }
    let stats = &proxy.settings.stats()[0];
    assert_eq!((stats.responses, stats.failures, stats.busy_connections), (2, 0, 2), "{stats:?}");
}

#[test]
fn where_http1_is_not_allowed_the_reason_is_told() {
    let behind = Behind::new(without_extended_connect);
    let proxy = Proxy::to(&[&format!("h2c://{}", behind.address)]);
    let response = proxy.ask(REQUEST);
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    assert!(
        response.contains("the upstream's HTTP/2 does not support extended CONNECT, and"),
        "{response}"
    );
}

/// Returns what an upstream of HTTP/1.1 gets: its head and so much of a body, with the response of the proxy before it.
fn passed(before: usize, request: &str, body: usize) -> (String, String) {
    let (sender, receiver) = mpsc::channel();
    let behind = Behind::new(move |talk, _| {
        let head = talk.head();
        let body = String::from_utf8_lossy(&talk.take(body)).into_owned();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        sender.send(head + &body).expect("the test waits");
        talk.rest();
    });
    let proxies = chain(&behind.url(), before);
    let response = proxies.last().expect("one").ask(request);
    (receiver.recv().expect("the upstream was asked"), response)
}

#[test]
fn a_request_with_content_goes_on_without_its_upgrade() {
    for (framing, sent, expected) in [
        ("transfer-encoding: chunked", "4\r\nbody\r\n0\r\n\r\n", "4\r\nbody\r\n0\r\n\r\n"),
        ("content-length: 4", "body", "body"),
    ] {
        for before in [0, 1] {
            for protocol in ["foo", "websocket"] {
                let request = format!(
                    "POST / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\
                     {framing}\r\n\r\n{sent}"
                );
                let (got, response) = passed(before, &request, expected.len());
                assert!(
                    response.starts_with("HTTP/1.1 200") && response.ends_with("ok"),
                    "{response}"
                );
                assert!(got.contains(&format!("\r\n{framing}\r\n")), "{got}");
                assert!(got.ends_with(&format!("\r\n\r\n{expected}")), "{got}");
                assert!(!got.contains("upgrade"), "{got}");
            }
        }
    }
}

#[test]
fn over_http2_what_has_no_meaning_there_is_asked_for_without_it() {
    for method in ["GET", "POST"] {
        let request = format!(
            "{method} /p HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: foo/1\r\n\r\n"
        );
        let (got, response) = passed(1, &request, 0);
        assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("ok"), "{response}");
        assert!(got.starts_with(&format!("{method} /p HTTP/1.1\r\n")), "{got}");
        assert!(!got.contains("upgrade"), "{got}");
    }
}

#[test]
fn http_and_tls_are_no_protocols_to_go_on_with() {
    for (asked, passes) in [
        ("upgrade: h2c, x, TLS/1.0\r\n", Some("x")),
        ("upgrade: x\r\nupgrade: H2C\r\nupgrade: y/2\r\n", Some("x, y/2")),
        ("upgrade: h2c\r\n", None),
        ("upgrade: http/2.0, H2\r\n", None),
    ] {
        let request = format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\n{asked}\r\n");
        let (got, response) = passed(0, &request, 0);
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        let line = got.lines().find_map(|line| line.strip_prefix("upgrade: "));
        assert_eq!(line, passes, "{got}");
    }
}

#[test]
fn a_switch_to_what_was_not_asked_for_is_no_tunnel() {
    for granted in ["upgrade: h2c\r\n", "upgrade: x, h2c\r\n", "upgrade: y\r\n"] {
        let behind = Behind::new(move |talk, _| {
            talk.head();
            talk.send(&format!(
                "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n{granted}\r\nPRI"
            ));
            talk.rest();
        });
        let proxy = Proxy::to(&[&behind.url()]);
        let request = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c, x\r\n\r\n";
        let response = proxy.ask(request);
        assert!(response.starts_with("HTTP/1.1 502 "), "{granted}: {response}");
        assert!(response.contains("error=http_upgrade_failed"), "{response}");
    }
}

/// A client of HTTP/2 by prior knowledge that asks for a WebSocket, with these fields more, and keeps its side open.
fn extended_connect(proxy: &Proxy, fields: &[(&str, &str)]) -> Talk {
    let own = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/chat"),
        (":authority", "a"),
        ("sec-websocket-version", "13"),
    ];
    let mut block = Vec::new();
    for (name, value) in own.iter().chain(fields) {
        // RFC 7541 §6.2.2: a literal field line without indexing.
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("a short text"));
            block.extend_from_slice(text.as_bytes());
        }
    }
    let length = u8::try_from(block.len()).expect("a short block");
    let mut talk = proxy.connect();
    talk.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0");
    // HEADERS of stream 1 with END_HEADERS.
    talk.stream.write_all(&[0, 0, length, 1, 4, 0, 0, 0, 1]).expect("it reads");
    talk.stream.write_all(&block).expect("it reads");
    talk
}

#[test]
fn an_extended_connect_with_a_length_that_is_refused_leaves_its_connection_free() {
    let (asked, heads) = mpsc::channel();
    let behind = Behind::new(move |talk, _| {
        loop {
            let head = talk.head();
            if head.is_empty() {
                return;
            }
            let (refused, granted) = ("403 Forbidden", "200 OK");
            let status = if head.contains("\r\nupgrade: ") { refused } else { granted };
            talk.send(&format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nno"));
            asked.send(head).expect("the test waits");
        }
    });
    let limits = ProxyLimits { connections_count: 1, ..ProxyLimits::default() };
    let proxy = Proxy::limited(&[&behind.url()], limits);
    let mut clients = Vec::new();
    for length in ["0", "5", "0", "5"] {
        clients.push(extended_connect(&proxy, &[("content-length", length)]));
        let head = heads.recv_timeout(Duration::from_secs(20)).expect("it is passed on");
        assert!(head.starts_with("GET /chat HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nupgrade: websocket\r\n"), "{head}");
        assert!(!head.contains("content-length"), "what follows is the tunnel: {head}");
        let response = proxy.get();
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        heads.recv_timeout(Duration::from_secs(20)).expect("it is passed on");
    }
    assert_eq!(behind.connections(), 1);
}

#[test]
fn a_plain_connect_goes_nowhere() {
    let proxy = Proxy::to(&["http://127.0.0.1:1"]);
    let response = proxy.ask("CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 501 "), "{response}");
    assert!(
        response.contains("error=http_request_denied; details=\"this is a reverse proxy"),
        "{response}"
    );
}
