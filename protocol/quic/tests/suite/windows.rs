//! RFC 9000 §4, RFC 9218 §10: slow receivers among others, and the order in which bodies are sent.

use std::time::Duration;

use bolide_quic::Connection;
use bolide_quic::limits::{
    SEND_WINDOW_BYTES, SEND_WINDOW_BYTES_MAX, STREAM_WINDOW_BYTES, STREAM_WINDOW_BYTES_MAX,
};
use bolide_quic_pair::World;
use bolide_semantics::{
    Content, End, ExchangeEvent, ExchangeId, FieldRef, RequestHead, ResponseHead,
};
use bytes::Bytes;
use http::{Method, StatusCode};

/// Both ends of a path on which nothing is overtaken.
fn connected() -> World {
    let mut world = World::connected(1);
    world.jitter = Duration::ZERO;
    world
}

/// Sends a response to each request that has come, whose body has so many bytes.
fn respond(world: &mut World, bytes: usize) {
    let now = world.now;
    let seen = std::mem::take(&mut world.server().seen);
    for (id, event) in seen {
        assert!(matches!(event, ExchangeEvent::Head(_)), "{event:?}");
        let head = ResponseHead::new(StatusCode::OK, &[]);
        let sent = world.server().with(now, |http, cx| {
            let begun = http.send_response(cx, id, &head, Content::Follows);
            begun.and_then(|_| http.send_data(cx, id, Bytes::from(vec![7; bytes]), End::Yes))
        });
        assert!(sent.is_ok(), "{sent:?}");
    }
}

/// Takes what has come for the client: whose first bytes, and whose last ones.
fn take(world: &mut World, first: &mut Vec<ExchangeId>, last: &mut Vec<ExchangeId>) {
    let now = world.now;
    let client = world.client();
    for (id, event) in std::mem::take(&mut client.seen) {
        if let ExchangeEvent::Data(bytes, end) = event {
            client.with(now, |http, cx| http.consumed(cx, id, bytes.len()));
            if !first.contains(&id) {
                first.push(id);
            }
            if end == End::Yes {
                last.push(id);
            }
        }
    }
}

/// How many of 8 responses to requests with this priority have begun when one is complete, for each of them.
fn begun(priority: &[u8]) -> Vec<usize> {
    let mut world = connected();
    let now = world.now;
    let request = |world: &mut World| {
        let (method, scheme, authority, path) = (&Method::GET, "https", "localhost", "/");
        let fields = &[FieldRef::named("priority", priority)];
        let head = RequestHead { method, scheme, authority, path, protocol: None, fields };
        let sent = world.client().with(now, |http, cx| http.send_request(cx, &head, End::Yes));
        sent.expect("a stream")
    };
    let ids: Vec<ExchangeId> = (0..8).map(|_| request(&mut world)).collect();
    world.until("requests", |world| world.sides[1].seen.len() == ids.len());
    respond(&mut world, 100_000);
    let (mut first, mut last, mut begun) = (Vec::new(), Vec::new(), Vec::new());
    while last.len() < ids.len() {
        world.step();
        take(&mut world, &mut first, &mut last);
        begun.resize(last.len(), first.len());
    }
    assert!(first == ids || priority.ends_with(b"i"), "{first:?}");
    begun
}

#[test]
fn responses_are_sent_one_after_the_other_unless_they_are_of_use_in_parts() {
    let one_by_one = begun(b"u=3");
    assert!(
        one_by_one[..4].iter().zip(1..).all(|(begun, done)| *begun <= done + 1),
        "{one_by_one:?}"
    );
    let together = begun(b"u=3, i");
    assert!(together[1] == 8, "{together:?}");
}

#[test]
fn a_stalled_upload_leaves_room_for_other_requests() {
    let mut world = connected();
    let now = world.now;
    let stalled: Vec<ExchangeId> = (0..3)
        .map(|_| {
            let id = world.client().request(now, &Method::POST, "/", End::No);
            let body = Bytes::from(vec![7; 8 << 20]);
            let sent = world.client().with(now, |http, cx| http.send_data(cx, id, body, End::No));
            assert!(sent.is_ok(), "{sent:?}");
            id
        })
        .collect();
    world.settle();
    world.server().seen.clear();
    let now = world.now;
    for _ in 0..20 {
        let id = world.client().request(now, &Method::GET, "/", End::Yes);
        assert!(!stalled.contains(&id));
    }
    world.until("requests", |world| {
        let heads = world.sides[1].seen.iter();
        heads.filter(|(_, event)| matches!(event, ExchangeEvent::Head(End::Yes))).count() == 20
    });
}

#[test]
fn what_waits_in_the_transport_follows_the_congestion_window() {
    let mut world = connected();
    let now = world.now;
    world.client().request(now, &Method::GET, "/", End::Yes);
    world.until("a request", |world| !world.sides[1].seen.is_empty());
    respond(&mut world, 32 << 20);
    let held =
        |world: &World| world.sides[1].quic.as_ref().map_or(0, Connection::held_bytes) as u64;
    let first = held(&world);
    assert!((SEND_WINDOW_BYTES..2 * SEND_WINDOW_BYTES).contains(&first), "{first}");
    let (mut most, mut some) = (first, Vec::new());
    while world.sides[1].quic.as_ref().is_some_and(|quic| !bolide_h3::Quic::is_acknowledged(quic)) {
        world.step();
        take(&mut world, &mut some, &mut Vec::new());
        most = most.max(held(&world));
    }
    assert!((2 * SEND_WINDOW_BYTES..SEND_WINDOW_BYTES_MAX + 4096).contains(&most), "{most}");
}

/// Returns what a client sends of a body that is not read, in bytes.
fn sent_unread(has_room: bool) -> usize {
    let mut world = World::new(1, 0);
    world.jitter = Duration::ZERO;
    world.server().endpoint.accept(true, has_room);
    world.turn();
    world.until("streams", |world| world.sides[0].available() >= 100);
    let now = world.now;
    let id = world.client().request(now, &Method::POST, "/", End::No);
    let body = Bytes::from(vec![7; 8 << 20]);
    let sent = world.client().with(now, |http, cx| http.send_data(cx, id, body, End::No));
    assert!(sent.is_ok(), "{sent:?}");
    (0..3).for_each(|_| world.settle());
    world.sides[1].quic.as_ref().map_or(0, Connection::held_bytes)
}

#[test]
fn a_server_that_has_room_lets_an_upload_go_ahead() {
    for (has_room, window) in [(false, STREAM_WINDOW_BYTES), (true, STREAM_WINDOW_BYTES_MAX)] {
        let (sent, window) = (sent_unread(has_room), window as usize);
        assert!((window..window + window / 8).contains(&sent), "{sent} bytes of {window}");
    }
}
