//! RFC 9114 §5.2: the orderly end, in two steps, in both roles.

use std::time::Duration;

use bolide_semantics::{Content, End, Misuse};
use http::Method;

use crate::subject::{GET, POST, Seen, Subject, frame, headers, varint};

const NOTICE: Duration = Duration::from_secs(1);

fn goaways(subject: &Subject, stream: u64) -> Vec<Vec<u8>> {
    let mut rest = &subject.quic.bytes_of(stream)[1..];
    let mut identifiers = Vec::new();
    while !rest.is_empty() {
        let (kind, length) = (rest[0], usize::from(rest[1]));
        if kind == 7 {
            identifiers.push(rest[2..2 + length].to_vec());
        }
        rest = &rest[2 + length..];
    }
    identifiers
}

#[test]
fn a_server_leaves_in_two_steps() {
    let mut server = Subject::server();
    server.feed(0, &headers(&POST));
    server.with(|connection, cx| connection.shut_down(cx));
    assert_eq!(server.poll(), []);
    assert_eq!(goaways(&server, 3), [varint((1 << 62) - 4)]);
    // A request that was on its way is served.
    assert_eq!(server.feed_all(4, &headers(&GET)).len(), 1);
    assert_eq!(server.respond(2, 200, Content::None), Ok(true));
    assert_eq!(server.later(NOTICE), []);
    assert_eq!(goaways(&server, 3)[1..], [varint(8)]);
    // One that comes later is not acted on.
    assert_eq!(server.feed_all(8, &headers(&GET)), []);
    assert_eq!(server.quic.sent[&8].reset, Some(0x10b));
    assert_eq!(server.quic.stopped, [(8, 0x10b)]);
    server.feed_all(0, b"");
    assert_eq!(server.respond(1, 200, Content::None), Ok(true));
    assert_eq!(server.poll(), [Seen::Closed("drained")]);
    assert_eq!(server.quic.closed, Some(0x100));
}

#[test]
fn a_client_leaves_in_one() {
    let mut client = Subject::client();
    let id = client.request(&Method::GET, &[], End::Yes).unwrap();
    client.with(|connection, cx| connection.shut_down(cx));
    assert_eq!(client.request(&Method::GET, &[], End::Yes), Err(Misuse::Refused));
    assert_eq!(client.poll(), []);
    assert_eq!(goaways(&client, 2), [varint(0)]);
    let seen = client.feed_all(0, &headers(&[(":status", "200")]));
    assert_eq!(seen, [Seen::Head(id, "200".to_owned(), End::Yes), Seen::Closed("drained")]);
}

#[test]
fn a_client_is_told_which_requests_were_not_served() {
    let mut client = Subject::client();
    let ids: Vec<u32> =
        (0..3).map(|_| client.request(&Method::POST, &[], End::No).unwrap()).collect();
    let seen = client.feed(3, &frame(7, &varint((1 << 62) - 4)));
    assert_eq!(seen, [Seen::Draining(u32::MAX)]);
    let seen = client.feed(3, &frame(7, &varint(4)));
    assert_eq!(seen[0], Seen::Draining(ids[0]));
    let unserved: Vec<u32> = seen[1..]
        .iter()
        .map(|seen| match seen {
            Seen::Aborted(id, reason) if reason.untouched && reason.name == "not-served" => *id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(unserved, ids[1..]);
    assert_eq!(client.request(&Method::GET, &[], End::Yes), Err(Misuse::Refused));
    assert_eq!(client.give(ids[0], b"", End::Yes), Ok(true));
    let seen = client.feed_all(0, &headers(&[(":status", "204")]));
    assert_eq!(seen[1..], [Seen::Closed("goaway")]);
}

#[test]
fn identifiers_never_rise_and_are_requests() {
    let mut client = Subject::client();
    client.request(&Method::GET, &[], End::Yes).unwrap();
    client.feed(3, &frame(7, &varint(8)));
    client.refuses(3, &frame(7, &varint(12)), 0x108);
    for identifier in [1, 2, 3, 5] {
        Subject::client().refuses(3, &frame(7, &varint(identifier)), 0x108);
    }
    // A client's is about pushes: any number may be.
    let mut server = Subject::server();
    assert_eq!(server.feed(2, &frame(7, &varint(3))), [Seen::Draining(u32::MAX)]);
    server.refuses(2, &frame(7, &varint(4)), 0x108);
}

#[test]
fn an_idle_connection_is_left() {
    let mut server = Subject::server();
    server.feed_all(0, &headers(&GET));
    assert_eq!(server.respond(1, 204, Content::None), Ok(true));
    assert_eq!(server.poll(), []);
    // First it gives its memory back.
    let held = server.connection.held_bytes();
    server.now = server.deadline.expect("it waits for a request").at;
    assert_eq!(server.poll(), []);
    assert!(server.connection.held_bytes() < held && server.connection.held_bytes() < 2500);
    server.now = server.deadline.expect("it waits for a request").at;
    assert_eq!(server.poll(), [Seen::Closed("idle")]);
    assert_eq!(server.quic.closed, Some(0x100));
}
