//! RFC 9001 §4.6, RFC 8446 §8: requests with a client's first packets.

use bolide_quic::Connection;
use bolide_quic_pair::{CLOCK, Side, World, identity};
use bolide_semantics::{Content, End, ExchangeEvent, Output, ResponseHead, Role};
use bolide_tls::{ClientOptions, ClientTls, HandshakeRules, Identity, ServerOptions, ServerTls};
use bytes::Bytes;
use http::{Method, StatusCode};

/// A server that accepts early data, or does not.
fn server(identity: &Identity, early_data: bool) -> ServerTls {
    let rules = HandshakeRules { early_data, ..HandshakeRules::default() };
    let identities = std::slice::from_ref(identity);
    let options = ServerOptions { identities, rules, ..ServerOptions::default() };
    ServerTls::with(&options, CLOCK).expect("settings")
}

/// A server's settings and those of a client that sends early data to it where it may.
fn settings(early_data: bool) -> (Identity, ServerTls, ClientTls) {
    let (identity, trust) = identity();
    let options =
        ClientOptions { trust: &trust, alpn: &[], identity: None, resume: true, early_data: true };
    let client = ClientTls::with(&options, CLOCK).expect("settings");
    let server = server(&identity, early_data);
    (identity, server, client)
}

/// A connection that has begun: the client's first packet is on its way.
fn begin(server: &ServerTls, client: &ClientTls) -> World {
    let server = Side::new(Role::Server, Some(server), 1);
    let mut world = World::between(server, client, 1, 0);
    world.turn();
    world
}

/// A connection whose client gets a ticket.
fn visit(server: &ServerTls, client: &ClientTls) -> World {
    let mut world = begin(server, client);
    assert_eq!(world.client().available(), 0, "there is no session yet");
    world.until("streams", |world| world.sides[0].available() > 0);
    world.settle();
    world
}

fn is_resumed(side: &Side) -> bool {
    side.quic.as_ref().and_then(Connection::facts).is_some_and(|facts| facts.resumed)
}

#[test]
fn a_client_that_comes_back_sends_requests_before_the_handshake_is_complete() {
    let (_, server, client) = settings(true);
    let first = visit(&server, &client);
    assert!(!first.sides.iter().any(is_resumed));
    for _ in 0..2 {
        let mut world = begin(&server, &client);
        let now = world.now;
        let id = world.client().request(now, &Method::GET, "/", End::Yes);
        world.flush(0);
        while world.server().seen.is_empty() {
            world.step();
        }
        assert!(world.sides[1].quic.as_ref().is_some_and(Connection::is_early));
        let now = world.now;
        let (at, event) = world.server().seen.remove(0);
        assert!(matches!(event, ExchangeEvent::Head(End::Yes)), "{event:?}");
        let head = ResponseHead::new(StatusCode::OK, &[]);
        let sent = world.server().with(now, |http, cx| {
            http.send_response(cx, at, &head, Content::Whole(&mut Bytes::new().into()))
        });
        assert!(sent.is_ok(), "{sent:?}");
        world.until("the response", |world| !world.sides[0].seen.is_empty());
        assert_eq!(world.client().seen[0].0, id);
        world.settle();
        assert!(world.sides.iter().all(is_resumed));
        assert!(!world.sides[1].quic.as_ref().is_some_and(Connection::is_early));
    }
}

#[test]
fn a_replay_reaches_nobody() {
    let (_, server, client) = settings(true);
    visit(&server, &client);
    let mut world = begin(&server, &client);
    let now = world.now;
    world.client().request(now, &Method::GET, "/", End::Yes);
    world.flush(0);
    let seen: Vec<Vec<u8>> = world.wire.iter().map(|(_, _, bytes)| bytes.clone()).collect();
    world.until("the request", |world| !world.sides[1].seen.is_empty());
    // What was seen on the way comes again, at another worker that shares the sessions.
    let mut again = World::between(Side::new(Role::Server, Some(&server), 2), &client, 1, 0);
    for bytes in &seen {
        again.arrive(1, bytes);
    }
    let now = again.now;
    let side = again.server();
    let quic = side.quic.as_mut().expect("it begins a connection");
    quic.advance(&mut side.endpoint, now);
    assert!(quic.is_early());
    let next = side.with(now, |http, cx| http.poll(cx));
    assert!(matches!(next, Output::Wait(_)), "{next:?}");
}

#[test]
fn a_server_without_early_data_is_asked_for_none() {
    let (_, server, client) = settings(false);
    for _ in 0..2 {
        visit(&server, &client);
    }
}

#[test]
fn a_server_that_has_forgotten_the_session_ends_what_was_sent_early() {
    let (identity, old, client) = settings(true);
    visit(&old, &client);
    let new = server(&identity, true);
    let mut world = begin(&new, &client);
    let now = world.now;
    world.client().request(now, &Method::GET, "/", End::Yes);
    world.until("the end", |world| world.sides[0].closed.is_some());
    assert_eq!(world.client().closed, Some("early-data-ignored"));
    assert!(world.server().seen.is_empty());
    // The next one begins in full, and those after it early.
    visit(&new, &client);
    assert!(begin(&new, &client).client().available() > 0);
}
