//! RFC 9110 §10.1.1: `Expect: 100-continue`.

use bolide_semantics::{End, ExchangeId};

use crate::wire::Wire;

const ID: ExchangeId = ExchangeId(1);
const REQUEST: &[u8] =
    b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n";

#[test]
fn the_owner_asks_for_the_body() {
    let mut wire = Wire::server();
    wire.listen(REQUEST);
    assert!(wire.deadline.is_none(), "the client waits for us");
    wire.respond(ID, 100, &[], End::No).unwrap();
    assert_eq!(wire.sent(), "HTTP/1.1 100 Continue\r\n\r\n");
    wire.listen(b"");
    assert!(wire.deadline.is_some());
    wire.listen(b"abc");
    assert_eq!(wire.logged()[1..], ["1 data abc end"]);
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    assert_eq!(wire.sent(), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert!(!wire.is_closed());
}

#[test]
fn the_owner_does_not_want_the_body() {
    let mut wire = Wire::server();
    wire.listen(REQUEST);
    wire.respond(ID, 413, &[], End::Yes).unwrap();
    let expected =
        "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert_eq!(wire.sent(), expected);
    // Whether the body follows is not known: what comes is never taken for a request.
    wire.listen(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(wire.logged().last().unwrap(), "closed last");
}

#[test]
fn the_client_did_not_wait() {
    let mut wire = Wire::server();
    wire.listen(&[REQUEST, b"abc"].concat());
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    assert_eq!(wire.sent(), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert!(!wire.is_closed());
}

#[test]
fn an_old_client_gets_no_interim_response() {
    let mut wire = Wire::server();
    wire.listen(b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    wire.respond(ID, 100, &[], End::No).unwrap();
    assert_eq!(wire.sent(), "");
    wire.listen(b"abc");
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    assert!(wire.sent().starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn interim_responses_may_repeat() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.respond(ID, 103, &[("link", "</a>"), ("content-length", "5")], End::No).unwrap();
    wire.respond(ID, 102, &[], End::Yes).unwrap();
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    let expected = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
                    HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(wire.sent(), expected);
}

#[test]
fn the_client_did_not_wait_and_is_slow() {
    let mut wire = Wire::server();
    wire.listen(&[REQUEST, b"a"].concat());
    assert!(wire.deadline.is_some());
    wire.respond(ID, 404, &[], End::Yes).unwrap();
    assert_eq!(wire.sent(), "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    wire.listen(b"bcGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(wire.logged().last().unwrap(), "2 GET a/ end");
}
