//! Fields of a head that pass, and those that are added.

use std::sync::mpsc;

use bolide_reverse_proxy::{DotSegments, Origin};

use crate::scene::{Behind, Proxy, lines, settings};

/// Returns what the upstream reads when the client sends this.
fn sent_on(origin: Origin, rewrites_host: bool, request: &str) -> (String, String) {
    let (sender, receiver) = mpsc::channel();
    let behind = Behind::new(move |talk, _| {
        sender.send(talk.head()).expect("the test waits");
        talk.send("HTTP/1.1 204 No Content\r\n\r\n");
        talk.rest();
    });
    let settings = settings(&[&behind.url()]).origin(origin).rewrites_host(rewrites_host);
    let proxy = Proxy::with(settings.pseudonym("bolide").expect("a name"));
    let response = proxy.ask(request);
    assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    (receiver.recv().expect("the upstream was asked"), behind.address.to_string())
}

const REQUEST: &str = "GET /a?b=%20c HTTP/1.1\r\nHost: Site.Example:8080\r\nConnection: X-Own, keep-alive\r\n\
                       X-Own: 1\r\nKeep-Alive: 5\r\nProxy-Authorization: secret\r\nTE: trailers, gzip\r\n\
                       X-Kept: 2\r\nX-Forwarded-Port: 1\r\nX-Forwarded-Server: evil\r\n\
                       x-forwarded-prefix: /evil\r\nX-Real-IP: 198.51.100.1\r\nX-Forwarded-For: 198.51.100.1\r\nForwarded: for=evil\r\nCookie: a=1\r\n\
                       Cookie: b=2\r\n\r\n";

#[test]
fn fields_of_one_connection_end_and_the_origin_is_said_anew() {
    let (head, _) = sent_on(Origin::Replace, false, REQUEST);
    assert_eq!(
        lines(&head),
        [
            "GET /a?b=%20c HTTP/1.1",
            "host: Site.Example:8080",
            "x-kept: 2",
            "cookie: a=1; b=2",
            "te: trailers",
            "via: 1.1 bolide",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: Site.Example:8080",
            "x-forwarded-proto: http",
            "forwarded: for=127.0.0.1;host=\"Site.Example:8080\";proto=http",
            "connection: te",
        ]
    );
}

#[test]
fn the_origin_is_appended_or_hidden_when_asked_for() {
    let (head, _) = sent_on(Origin::Append, false, REQUEST);
    let (came, own) = ("x-forwarded-for: 198.51.100.1\r\n", "x-forwarded-for: 127.0.0.1\r\n");
    assert!(head.find(came).expect("what came") < head.find(own).expect("our own"), "{head}");
    assert!(head.contains("x-forwarded-port: 1\r\n") && head.contains("x-real-ip: 198"), "{head}");
    let (head, _) = sent_on(Origin::Hide, false, REQUEST);
    assert!(!head.contains("forwarded") && !head.contains("x-real-ip"), "{head}");
}

#[test]
fn the_host_is_the_upstreams_when_asked_for() {
    let (head, address) = sent_on(Origin::Hide, true, REQUEST);
    assert!(head.contains(&format!("\r\nhost: {address}\r\n")), "{head}");
    let (head, address) = sent_on(Origin::Hide, false, "GET / HTTP/1.0\r\n\r\n");
    assert!(head.contains(&format!("\r\nhost: {address}\r\n")), "nothing else is known: {head}");
}

#[test]
fn a_response_loses_the_fields_of_one_connection_only() {
    let behind = Behind::answering(
        "HTTP/1.1 207 Odd\r\nconnection: x-own\r\nx-own: 1\r\nkeep-alive: 5\r\nserver: s\r\n\
         set-cookie: a\r\nset-cookie: b\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-length: 2\r\n\r\nok",
    );
    let proxy = Proxy::to(&[&behind.url()]);
    let response = proxy.get();
    assert_eq!(
        response,
        "HTTP/1.1 207 Multi-Status\r\nserver: s\r\nset-cookie: a\r\nset-cookie: b\r\n\
         date: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-length: 2\r\n\r\nok"
    );
}

#[test]
fn responses_without_content_pass() {
    for (method, response, expected) in [
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", "content-length: 7"),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\netag: \"a\"\r\n\r\n",
            "etag: \"a\"",
        ),
        ("GET", "HTTP/1.1 204 No Content\r\nx-a: 1\r\n\r\n", "x-a: 1"),
    ] {
        let behind = Behind::answering(response);
        let proxy = Proxy::to(&[&behind.url()]);
        let mut talk = proxy.connect();
        for _ in 0..2 {
            talk.send(&format!("{method} / HTTP/1.1\r\nhost: a\r\n\r\n"));
            let head = talk.head();
            assert!(head.contains(expected), "{head}");
        }
        assert_eq!(behind.connections(), 1, "the connection is used again");
    }
}

#[test]
fn interim_responses_pass() {
    let behind = Behind::answering(
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    );
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(talk.head(), "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
    assert!(talk.message().ends_with("ok"));
}

#[test]
fn the_upstream_decides_whether_a_client_is_to_go_on() {
    let behind = Behind::new(|talk, number| {
        let head = talk.head();
        assert!(head.contains("expect: 100-continue"), "{head}");
        if number == 0 {
            talk.send("HTTP/1.1 100 Continue\r\n\r\n");
            assert_eq!(talk.take(4), b"body");
            talk.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
        } else {
            talk.send("HTTP/1.1 417 Expectation Failed\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let request = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
    let mut talk = proxy.connect();
    talk.send(request);
    assert_eq!(talk.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    talk.send("body");
    assert!(talk.message().ends_with("ok"));
    let refused = proxy.ask(request);
    assert!(refused.starts_with("HTTP/1.1 417"), "{refused}");
}

#[test]
fn a_proxy_answers_some_requests_itself() {
    let behind = Behind::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let proxy = Proxy::to(&[&behind.url()]);
    let trace = proxy.ask("TRACE / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(trace.starts_with("HTTP/1.1 405"), "{trace}");
    let last = proxy.ask("OPTIONS * HTTP/1.1\r\nhost: a\r\nmax-forwards: 0\r\n\r\n");
    assert!(last.starts_with("HTTP/1.1 204"), "{last}");
    assert_eq!(behind.connections(), 0);
    let (head, _) =
        sent_on(Origin::Hide, false, "OPTIONS * HTTP/1.1\r\nhost: a\r\nmax-forwards: 5\r\n\r\n");
    assert!(
        head.starts_with("OPTIONS * HTTP/1.1\r\n") && head.contains("max-forwards: 4"),
        "{head}"
    );
}

/// Returns what a client gets that asks for this path, and what the upstream was asked for.
fn asked_for(dot_segments: DotSegments, request: &str) -> (String, Option<String>) {
    let (sender, receiver) = mpsc::channel();
    let behind = Behind::new(move |talk, _| {
        sender.send(talk.head()).expect("the test waits");
        talk.send("HTTP/1.1 204 No Content\r\n\r\n");
        talk.rest();
    });
    let proxy = Proxy::with(settings(&[&behind.url()]).dot_segments(dot_segments));
    (proxy.ask(request), receiver.try_recv().ok())
}

#[test]
fn a_path_that_leaves_its_route_by_dot_segments_is_refused() {
    for path in [
        "/api/../secret",
        "/api/%2e%2e/secret",
        "/api/..;/secret",
        "/api/..%2fsecret",
        "/api/%5c..%5csecret",
        "/api/%252e%252e/secret",
        "http://a/api/../secret",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
        let (response, sent) = asked_for(DotSegments::Refuse, &request);
        assert!(response.starts_with("HTTP/1.1 400"), "{path}: {response}");
        assert_eq!(sent, None, "{path}");
        let (response, sent) = asked_for(DotSegments::Pass, &request);
        assert!(response.starts_with("HTTP/1.1 204"), "{path}: {response}");
        let line = format!("GET {} ", path.trim_start_matches("http://a"));
        assert!(sent.expect("it goes on").starts_with(&line), "{path}: as it came");
    }
    for path in ["/api/a.b", "/api/..a", "/api/?x=../y", "/api/...", "http://a/api/x"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
        let (response, _) = asked_for(DotSegments::Refuse, &request);
        assert!(response.starts_with("HTTP/1.1 204"), "{path}: {response}");
    }
}
