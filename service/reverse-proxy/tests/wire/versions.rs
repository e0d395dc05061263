//! Every pair of versions: chains of proxies over HTTP/1.1, HTTP/2, TLS and Unix sockets.

use bolide_reverse_proxy::{HealthCheck, HealthKind, ProxySettings, ReverseProxy, Trust, Upstream};
use bolide_server::{
    Identity, ProxyProtocol, ProxyVersion, Reply, Request, Response, Router, Running, Server, Tls,
    collect,
};

use crate::scene::{Proxy, Talk};
use crate::watch::{SHORT, until};

/// Answers POST with its body, and GET with the version in which it was asked.
fn origin() -> Router {
    Router::new()
        .get("/version", |request| format!("{:?}", request.version()))
        .get("/fields", |request: &mut Request<'_>| {
            let fields = request.head().fields().map(|field| field.name.to_owned());
            fields.collect::<Vec<_>>().join(",")
        })
        .handle_post(
            "/echo",
            bolide_server::body_limit(1 << 30, collect(|_, body| Response::from(body))),
        )
        .get("/later", |request: &mut Request<'_>| {
            let responder = request.responder();
            std::thread::spawn(move || responder.respond("later"));
            Reply::Later
        })
}

/// An upstream of our own.
pub(crate) struct Origin {
    running: Option<Running>,
    address: std::net::SocketAddr,
    certificate: String,
}

impl Origin {
    fn new(tls: bool, router: impl Fn() -> Router + Send + Sync + 'static) -> Self {
        Self::with(Server::new(), tls, ProxyProtocol::Off, router)
    }

    /// On a server that is set up so far.
    pub(crate) fn with(
        server: Server,
        tls: bool,
        protocol: ProxyProtocol,
        router: impl Fn() -> Router + Send + Sync + 'static,
    ) -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("one");
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("an identity");
        let server = server.workers(1);
        let server = if tls {
            server.http3(true).https("127.0.0.1:0", &Tls::new(&identity).expect("settings"))
        } else {
            server.http("127.0.0.1:0")
        };
        let running = server.proxy_protocol(protocol).start(router).expect("a free port");
        let address = running.addresses()[0].expect("an address");
        Self { running: Some(running), address, certificate: chain }
    }

    pub(crate) fn settings(&self, scheme: &str) -> ProxySettings {
        let upstream = Upstream::parse(&format!("{scheme}://{}", self.address)).expect("one");
        let trust = Trust::Pem(self.certificate.clone().into_bytes());
        ProxySettings::trusting(vec![upstream], &trust).expect("settings")
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let running = self.running.take().expect("it runs");
        running.shut_down();
        assert_eq!(running.join().expect("no worker failed").panics, 0);
    }
}

fn exercise(talk: &mut Talk, version: &str) {
    talk.send("GET /version HTTP/1.1\r\nhost: a\r\n\r\n");
    let response = talk.message();
    assert!(response.ends_with(version), "{response}");
    for length in [0, 10, 100_000, 2_000_000] {
        let body: String = (0..length).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
        talk.send(&format!(
            "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}"
        ));
        let response = talk.message();
        assert!(response.starts_with("HTTP/1.1 200"), "{response:.300}");
        assert!(response.split_once("\r\n\r\n").expect("a head").1 == body, "{length} bytes");
        talk.send("POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
        for piece in body.as_bytes().chunks(40_000) {
            let piece = String::from_utf8_lossy(piece);
            talk.send(&format!("{:x}\r\n{piece}\r\n", piece.len()));
        }
        talk.send("0\r\n\r\n");
        let response = talk.message();
        assert!(
            response.split_once("\r\n\r\n").expect("a head").1 == body,
            "{length} bytes chunked"
        );
    }
    talk.send("HEAD /version HTTP/1.1\r\nhost: a\r\n\r\nGET /later HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(talk.head().starts_with("HTTP/1.1 200"));
    assert!(talk.message().ends_with("later"));
}

#[test]
fn every_version_is_spoken_behind() {
    for (tls, scheme, version) in [
        (false, "http", "HTTP/1.1"),
        (false, "h2c", "HTTP/2.0"),
        (true, "https", "HTTP/2.0"),
        (true, "h3", "HTTP/3.0"),
    ] {
        let origin = Origin::new(tls, origin);
        let proxy = Proxy::with(origin.settings(scheme));
        exercise(&mut proxy.connect(), version);
    }
}

#[test]
fn an_upstream_over_http3_is_checked_over_it_and_gets_no_proxy_header() {
    let origin = Origin::new(true, origin);
    let settings = origin.settings("h3");
    let error = settings.clone().proxy_protocol(ProxyVersion::V1).unwrap_err().to_string();
    assert!(error.contains("speaks HTTP/3, which has no PROXY header"), "{error}");
    let check = HealthCheck::of(HealthKind::WebSocket("/".to_owned()));
    let error = settings.clone().health_check(check).unwrap_err().to_string();
    assert!(error.contains("no check of a WebSocket"), "{error}");
    let check = HealthCheck::new("/version").interval(SHORT);
    let proxy = Proxy::with(settings.health_check(check).expect("a path"));
    assert!(proxy.ask("GET /version HTTP/1.1\r\nhost: a\r\n\r\n").ends_with("HTTP/3.0"));
    until(&proxy.settings, 0, |stats| stats.health_checks > 0);
    assert_eq!(proxy.settings.stats()[0].health_check_failures, 0);
}

#[test]
fn over_http3_clients_that_read_nothing_keep_no_other_back() {
    let large = || Router::new().get("/large", |_| vec![7_u8; 8 << 20]).get("/small", |_| "small");
    let origin = Origin::new(true, large);
    let proxy = Proxy::with(origin.settings("h3"));
    let mut clients: Vec<Talk> = (0..20).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send("GET /large HTTP/1.1\r\nhost: a\r\n\r\n");
        assert!(!client.peek(1).is_empty());
    }
    for _ in 0..20 {
        let response = proxy.ask("GET /small HTTP/1.1\r\nhost: a\r\n\r\n");
        assert!(response.ends_with("small"), "{response}");
    }
    for mut client in clients {
        assert!(client.head().starts_with("HTTP/1.1 200"));
        assert_eq!(client.take(8 << 20).len(), 8 << 20);
    }
}

#[test]
fn proxies_stand_in_a_chain_of_versions() {
    let origin = Origin::new(false, origin);
    let behind = origin.settings("http");
    let middle = Origin::new(true, move || Router::new().fallback(ReverseProxy::new(&behind)));
    let before = middle.settings("https");
    let front = Origin::new(false, move || Router::new().fallback(ReverseProxy::new(&before)));
    let first = Proxy::with(front.settings("h2c"));
    let mut talk = first.connect();
    exercise(&mut talk, "HTTP/1.1");
    talk.send("GET /fields HTTP/1.1\r\nhost: a\r\n\r\n");
    let fields = talk.message();
    assert!(
        fields.ends_with(
            "host,via,via,via,x-forwarded-for,x-forwarded-host,x-forwarded-proto,forwarded"
        ),
        "{fields}"
    );
}

#[test]
fn many_requests_share_one_connection_behind() {
    let origin = Origin::new(false, origin);
    let proxy = Proxy::with(origin.settings("h2c"));
    let mut talks: Vec<_> = (0..30).map(|_| proxy.connect()).collect();
    for _ in 0..10 {
        for talk in &mut talks {
            talk.send("GET /later HTTP/1.1\r\nhost: a\r\n\r\n");
        }
        for talk in &mut talks {
            assert!(talk.message().ends_with("later"));
        }
    }
    let stats = &proxy.settings.stats()[0];
    assert_eq!((stats.connections, stats.responses, stats.failures), (1, 300, 0), "{stats:?}");
}

#[test]
fn a_unix_socket_stands_behind() {
    let directory = std::env::temp_dir().join(format!("bolide-proxy-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let url = format!("unix:{}", directory.join("socket").display());
    let running = Server::new().workers(1).http(&url).start(origin).expect("a socket");
    let proxy = Proxy::to(&[&url]);
    exercise(&mut proxy.connect(), "HTTP/1.1");
    drop(proxy);
    running.shut_down();
    running.join().expect("no worker failed");
    std::fs::remove_dir(&directory).expect("the socket's file is gone");
}
