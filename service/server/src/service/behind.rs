//! Servers behind proxies: PROXY headers, forwarding fields and names of requests, on a simulated network. Its clients connect
//! from 192.0.2.1.

use bolide_eventloop::Limits as LoopLimits;
use bolide_simnet::{ClientId, Faults, Simulation, Wire};

use super::simulated::wall_clock;
use super::*;
use crate::limits::PROXY_HEADER_TIMEOUT;
use crate::{Metrics, Network, ProxyHeader, ProxyVersion, Request, RequestId, Response};

const HEADER: &[u8] = b"PROXY TCP4 203.0.113.7 198.51.100.1 4000 443\r\n";
const REQUEST: &[u8] = b"GET /who HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

/// Says whose request it is.
fn router() -> Router {
    Router::new().get("/who", |request: &mut Request<'_>| {
        let [peer, local] = [request.peer(), request.local()]
            .map(|one| one.map_or_else(|| "unix".to_owned(), |one| one.to_string()));
        let client = request.client().map_or_else(|| "unix".to_owned(), |one| one.to_string());
        let id = request.header("x-request-id").unwrap_or("none");
        let (scheme, host) = (request.scheme(), request.client_authority().unwrap_or("none"));
        Response::from(format!("{client} {peer} {local} {scheme} {host} id={id}"))
    })
}

struct Scene {
    simulation: Simulation<HttpService>,
    metrics: Metrics,
}

impl Scene {
    fn new(proxy_protocol: ProxyProtocol, trusted: &[&str]) -> Self {
        let metrics = Metrics::new();
        let observed = Observed { metrics: Some(metrics.clone()), ..Observed::default() };
        let networks = trusted.iter().map(|text| text.parse::<Network>().expect("a network"));
        let ingress = Ingress {
            trusted: networks.collect(),
            request_id: if trusted.is_empty() { RequestId::Off } else { RequestId::Response },
            ..Ingress::default()
        };
        let simulation = Simulation::with(1, Faults::none(), LoopLimits::default(), |_| {
            let (limits, now) = (Limits::default(), Instant::now());
            HttpService::observed(router(), limits, vec![None], wall_clock, now, &observed)
                .behind(vec![proxy_protocol], &ingress)
        });
        Self { simulation, metrics }
    }

    /// Sends these bytes, piece by piece, and returns what comes back.
    fn ask(&mut self, pieces: &[&[u8]]) -> String {
        let client = self.connect(pieces);
        self.simulation.run_for(Duration::from_secs(1));
        String::from_utf8(self.simulation.received(client)).expect("text")
    }

    fn connect(&mut self, pieces: &[&[u8]]) -> ClientId {
        let mut pieces: Vec<Vec<u8>> = pieces.iter().rev().map(|piece| piece.to_vec()).collect();
        self.simulation.connect(move |wire: &mut Wire<'_>| {
            if let Some(piece) = pieces.pop() {
                wire.send(&piece);
                wire.wake_after(Duration::from_millis(1));
            }
        })
    }

    /// How many connections were closed for this reason.
    fn closed(&self, reason: &str) -> u64 {
        let text = self.metrics.snapshot();
        let found = text.ends.closes.iter().find(|(name, _)| **name == *reason);
        found.map_or(0, |(_, count)| *count)
    }
}

const LINE: &str = "203.0.113.7 203.0.113.7:4000 198.51.100.1:443 http a ";

#[test]
fn a_proxy_header_names_the_client_of_its_connection() {
    let mut scene = Scene::new(ProxyProtocol::Required, &["192.0.2.0/24"]);
    let whole = [HEADER, REQUEST].concat();
    assert!(scene.ask(&[&whole]).contains(LINE));
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    assert!(scene.ask(&bytes).contains(LINE), "byte by byte");
    let mut binary = Vec::new();
    let (source, destination) = ("[2001:db8::7]:4000", "[2001:db8::1]:443");
    let [source, destination] = [source, destination].map(|text| text.parse().expect("one"));
    ProxyHeader::Inet { source, destination }.write(ProxyVersion::V2, &mut binary);
    binary.extend_from_slice(REQUEST);
    for bytes in [vec![&binary[..]], binary.chunks(1).collect()] {
        assert!(scene.ask(&bytes).contains("2001:db8::7 [2001:db8::7]:4000 [2001:db8::1]:443 "));
    }
    let mut unix = Vec::new();
    ProxyHeader::Unix.write(ProxyVersion::V2, &mut unix);
    assert!(scene.ask(&[&unix, REQUEST]).contains("unix unix unix http a "));
    assert!(scene.ask(&[b"PROXY UNKNOWN\r\n", REQUEST]).contains("192.0.2.1 192.0.2.1:"));
}

#[test]
fn a_connection_without_the_header_that_it_needs_is_closed_and_counted() {
    let mut scene = Scene::new(ProxyProtocol::Required, &["192.0.2.0/24"]);
    assert_eq!(scene.ask(&[REQUEST]), "");
    assert_eq!(scene.ask(&[b"PROXY TCP4 nobody\r\n", REQUEST]), "");
    assert_eq!(scene.closed("proxy-header"), 2);
    let mut others = Scene::new(ProxyProtocol::Required, &["10.0.0.0/8"]);
    assert_eq!(others.ask(&[HEADER, REQUEST]), "");
    assert_eq!(others.closed("proxy-header-untrusted"), 1);
}

#[test]
fn an_optional_header_is_taken_from_trusted_peers_only() {
    let mut scene = Scene::new(ProxyProtocol::Optional, &["192.0.2.0/24"]);
    assert!(scene.ask(&[HEADER, REQUEST]).contains(LINE));
    assert!(scene.ask(&[REQUEST]).contains("192.0.2.1 192.0.2.1:"));
    let mut others = Scene::new(ProxyProtocol::Optional, &["10.0.0.0/8"]);
    assert!(others.ask(&[HEADER, REQUEST]).starts_with("HTTP/1.1 400"));
    assert!(others.ask(&[REQUEST]).contains("192.0.2.1 192.0.2.1:"));
}

#[test]
fn endless_proxy_header_ends_its_connection_in_time() {
    for pieces in [&[&b"PROXY UNKNOWN "[..]][..], &[b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x0f\x00"], &[]] {
        let mut scene = Scene::new(ProxyProtocol::Required, &["192.0.2.0/24"]);
        let client = scene.connect(pieces);
        scene.simulation.run_for(PROXY_HEADER_TIMEOUT - Duration::from_secs(1));
        assert!(!scene.simulation.was_closed(client));
        scene.simulation.run_for(Duration::from_secs(2));
        assert!(scene.simulation.was_closed(client));
        assert_eq!(scene.closed("proxy-header-timeout"), 1);
    }
    let mut scene = Scene::new(ProxyProtocol::Required, &["192.0.2.0/24"]);
    let flood = vec![&[b'x'; 50][..]; 1000];
    assert_eq!(scene.ask(&[&[&b"PROXY UNKNOWN "[..]], &flood[..]].concat()), "");
    assert_eq!(scene.closed("proxy-header"), 1);
}

fn forwarded(fields: &str) -> Vec<u8> {
    format!("GET /who HTTP/1.1\r\nhost: a\r\n{fields}connection: close\r\n\r\n").into_bytes()
}

#[test]
fn a_forged_x_forwarded_for_of_an_untrusted_peer_changes_nothing() {
    let fields = "x-forwarded-for: 203.0.113.9\r\nx-forwarded-proto: https\r\n\
                  x-forwarded-host: evil\r\nx-request-id: mine\r\n";
    for trusted in [&["10.0.0.0/8"][..], &[]] {
        let mut scene = Scene::new(ProxyProtocol::Off, trusted);
        let response = scene.ask(&[&forwarded(fields)]);
        assert!(response.contains("\r\n192.0.2.1 192.0.2.1:"), "{response}");
        assert!(response.contains(" http a id="), "{response}");
        assert_eq!(response.contains("id=mine"), trusted.is_empty(), "{response}");
    }
}

#[test]
fn a_trusted_peer_says_whose_request_it_is_and_what_it_is_called() {
    let mut scene = Scene::new(ProxyProtocol::Off, &["192.0.2.0/24"]);
    let fields = "x-forwarded-for: 8.8.8.8, 203.0.113.9\r\nx-forwarded-proto: https\r\n\
                  x-forwarded-host: b.example\r\nx-request-id: theirs\r\n";
    let response = scene.ask(&[&forwarded(fields)]);
    assert!(response.contains("\r\n203.0.113.9 192.0.2.1:"), "{response}");
    assert!(response.ends_with(" https b.example id=theirs"), "{response}");
    assert!(response.contains("\r\nx-request-id: theirs\r\n"), "{response}");
    let response = scene.ask(&[&forwarded("")]);
    let (_, id) = response.rsplit_once("id=").expect("an identifier");
    assert!(id.len() == 32 && response.contains(&format!("\r\nx-request-id: {id}\r\n")));
}
