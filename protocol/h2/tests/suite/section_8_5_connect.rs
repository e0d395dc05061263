//! RFC 9113 §8.5, RFC 8441: tunnels.

use bolide_h2::{Connection, Limits};
use bolide_semantics::{Context, End, Misuse, RequestHead};
use http::Method;

use crate::raw::{self, PROTOCOL_ERROR, data, headers};
use crate::subject::{Seen, Subject};

const CONNECT: [(&str, &str); 2] = [(":method", "CONNECT"), (":authority", "a:80")];

#[test]
fn a_tunnel_carries_bytes_both_ways() {
    let mut server = Subject::server();
    let seen = server.feed(&headers(1, false, &CONNECT));
    assert!(matches!(seen[..], [Seen::Head(1, End::No, _)]), "{seen:?}");
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(server.give(1, b"down", End::No), Ok(true));
    assert_eq!(server.feed(&data(1, false, b"up")), [Seen::Data(1, b"up".to_vec(), End::No)]);
    // One direction ends, the other goes on.
    assert_eq!(server.give(1, b"last", End::Yes), Ok(true));
    assert_eq!(server.turn(), []);
    let frames = server.sent();
    assert!(frames.iter().all(|frame| frame.kind != raw::RST_STREAM));
    assert_eq!(server.feed(&data(1, false, b"on")), [Seen::Data(1, b"on".to_vec(), End::No)]);
    assert_eq!(server.feed(&data(1, true, b"")), [Seen::Data(1, vec![], End::Yes)]);
    assert!(server.connection.is_idle());
}

#[test]
fn a_tunnel_has_no_trailers() {
    let mut server = Subject::server();
    server.feed(&headers(1, false, &CONNECT));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(server.give_trailers(1, &[("x", "1")]), Err(Misuse::OutOfOrder));
    server.sent();
    assert_eq!(server.resets(&headers(1, true, &[("x", "1")]), 1), PROTOCOL_ERROR);
}

#[test]
fn a_refused_connect_is_an_ordinary_response() {
    let mut server = Subject::server();
    server.feed(&headers(1, false, &CONNECT));
    server.answer(1, 403, End::Yes).unwrap();
    server.turn();
    assert!(server.connection.is_idle());
}

#[test]
fn an_extended_connect_names_its_protocol() {
    let mut server = Subject::server();
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "a"),
    ];
    let seen = server.feed(&headers(1, false, &fields));
    let [Seen::Head(1, End::No, fields)] = &seen[..] else { panic!("{seen:?}") };
    assert!(fields.contains(&(":protocol".to_owned(), "websocket".to_owned())));
}

fn extended(client: &mut Subject) -> Result<u32, Misuse> {
    let head = RequestHead {
        method: &Method::CONNECT,
        scheme: "https",
        authority: "a",
        path: "/chat",
        protocol: Some("websocket"),
        fields: &[],
    };
    let send = |connection: &mut Connection, cx: &mut Context<'_>| {
        connection.send_request(cx, &head, End::No)
    };
    client.with(send).map(|id| id.0)
}

#[test]
fn a_client_waits_for_the_servers_leave() {
    let mut client = Subject::client();
    assert_eq!(extended(&mut client), Err(Misuse::Refused));
    let mut client = Subject::client_with(Limits::default(), &[(8, 1)]);
    let id = extended(&mut client).unwrap();
    let seen = client.feed(&headers(id, false, &[(":status", "200")]));
    assert!(matches!(seen[..], [Seen::Head(..)]));
    assert_eq!(client.give(id, b"frame", End::No), Ok(true));
    assert_eq!(client.feed(&data(id, false, b"x")).len(), 1);
}
