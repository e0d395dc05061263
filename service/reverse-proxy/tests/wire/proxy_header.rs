//! PROXY headers to upstreams: whose requests a connection carries.

use std::sync::mpsc;
use std::time::Duration;

use bolide_reverse_proxy::{HealthCheck, ProxyLimits};
use bolide_server::{
    Ingress, Network, ProxyProtocol, ProxyVersion, Request, Response, Router, Server,
};

use crate::scene::{Behind, Proxy, Talk, settings};
use crate::versions::Origin;
use crate::watch::{SHORT, until};

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Tells the lines that connections begin with, and answers requests.
fn announced() -> (Behind, mpsc::Receiver<String>) {
    let (sender, receiver) = mpsc::channel();
    let behind = Behind::new(move |talk, _| {
        sender.send(talk.until("\r\n")).expect("the test waits");
        while !talk.head().is_empty() {
            talk.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        }
    });
    (behind, receiver)
}

/// The header of the client's connection.
fn header_of(proxy: &Proxy, talk: &Talk) -> String {
    let from = talk.stream.local_addr().expect("an address");
    format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} {}\r\n", from.port(), proxy.address.port())
}

fn ask(talk: &mut Talk) -> String {
    talk.send(GET);
    talk.message()
}

#[test]
fn a_connection_begins_with_its_client_and_carries_no_other() {
    let (behind, lines) = announced();
    let proxy =
        Proxy::with(settings(&[&behind.url()]).proxy_protocol(ProxyVersion::V1).expect("TCP"));
    let (mut one, mut other) = (proxy.connect(), proxy.connect());
    for _ in 0..3 {
        assert!(ask(&mut one).ends_with("ok") && ask(&mut other).ends_with("ok"));
    }
    assert_eq!(behind.connections(), 2, "each client uses its own again");
    let told: Vec<String> = (0..2).map(|_| lines.recv().expect("a line")).collect();
    for talk in [&one, &other] {
        assert!(told.contains(&header_of(&proxy, talk)), "{told:?}");
    }
    let stats = &proxy.settings.stats()[0];
    assert_eq!((stats.idle_connections, stats.open_requests), (2, 0), "{stats:?}");
}

#[test]
fn a_client_that_a_trusted_proxy_names_is_the_one_in_the_header() {
    let (behind, lines) = announced();
    let trusted = ["127.0.0.0/8".parse::<Network>().expect("a network")].into_iter().collect();
    let server = Server::new().ingress(Ingress { trusted, ..Ingress::default() });
    let settings = settings(&[&behind.url()]).proxy_protocol(ProxyVersion::V1).expect("TCP");
    let proxy = Proxy::on(server, settings);
    let mut talk = proxy.connect();
    for client in ["192.0.2.1", "192.0.2.2"] {
        talk.send(&GET.replace("\r\n\r\n", &format!("\r\nx-forwarded-for: {client}\r\n\r\n")));
        assert!(talk.message().ends_with("ok"));
        let line = lines.recv().expect("a line");
        let expected = format!("PROXY TCP4 {client} 127.0.0.1 0 {}\r\n", proxy.address.port());
        assert_eq!(line, expected);
    }
}

/// An upstream that requires headers, and says whose connection a request came over.
fn strict(tls: bool) -> Origin {
    let trusted = ["127.0.0.0/8".parse::<Network>().expect("a network")].into_iter().collect();
    let server = Server::new().ingress(Ingress { trusted, ..Ingress::default() });
    let router = || {
        Router::new().get("/", |request: &mut Request<'_>| {
            Response::text(format!("{:?} {:?}", request.version(), request.peer()))
        })
    };
    Origin::with(server, tls, ProxyProtocol::Required, router)
}

#[test]
fn both_versions_come_before_http1_http2_and_tls_and_checks_have_one_too() {
    for version in [ProxyVersion::V1, ProxyVersion::V2] {
        for (scheme, tls, spoken) in
            [("http", false, "HTTP/1.1"), ("h2c", false, "HTTP/2.0"), ("https", true, "HTTP/2.0")]
        {
            let origin = strict(tls);
            let check = HealthCheck::new("/").interval(SHORT).fall(1);
            let settings = origin.settings(scheme).proxy_protocol(version).expect("TCP");
            let proxy = Proxy::with(settings.health_check(check).expect("a path"));
            let mut talk = proxy.connect();
            let peer = talk.stream.local_addr().expect("an address");
            for _ in 0..2 {
                let response = ask(&mut talk);
                let expected = format!("{spoken} Some({peer})");
                assert!(response.ends_with(&expected), "{version:?} {scheme}: {response}");
            }
            until(&proxy.settings, 0, |stats| stats.health_checks > 0);
            let stats = &proxy.settings.stats()[0];
            assert_eq!((stats.health_check_failures, stats.connections), (0, 1), "{stats:?}");
        }
    }
}

#[test]
fn an_idle_connection_of_another_client_makes_room_and_a_busy_one_does_not() {
    let (sender, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let behind = Behind::new(move |talk, _| {
        talk.until("\r\n");
        loop {
            let head = talk.head();
            if head.is_empty() {
                return;
            }
            if head.starts_with("GET /slow ") {
                let gate = gate.lock().expect("no test failed before");
                gate.recv_timeout(Duration::from_secs(20)).expect("the test opens it");
            }
            talk.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        }
    });
    let limits = ProxyLimits { connections_count: 1, ..ProxyLimits::default() };
    let settings = settings(&[&behind.url()]).proxy_protocol(ProxyVersion::V1).expect("TCP");
    let proxy = Proxy::with(settings.limits(limits));
    // More than are kept when they are empty.
    for count in 1..=60 {
        assert!(ask(&mut proxy.connect()).ends_with("ok"), "client {count}");
        assert_eq!(behind.connections(), count);
    }
    let mut slow = proxy.connect();
    slow.send("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n");
    until(&proxy.settings, 0, |stats| stats.busy_connections == 1 && stats.idle_connections == 0);
    let refused = ask(&mut proxy.connect());
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("connection_limit_reached"), "{refused}");
    sender.send(()).expect("the upstream waits");
    assert!(slow.message().ends_with("ok"));
    until(&proxy.settings, 0, |stats| stats.idle_connections == 1);
    assert!(ask(&mut proxy.connect()).ends_with("ok"));
}
