//! RFC 9112 §9.3, §9.6: which connections live on.

use std::time::Duration;

use bolide_h1::LEAVE_NOTICE;
use bolide_semantics::{End, ExchangeEvent, ExchangeId};

use crate::wire::Wire;

const ID: ExchangeId = ExchangeId(1);
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Returns what is sent for a request that is answered with these fields and `pong`, and whether the
/// connection closes after it.
fn answered(request: &str, fields: &[(&str, &str)]) -> (String, bool) {
    let mut wire = Wire::server();
    wire.listen(request.as_bytes());
    wire.respond(ID, 200, fields, End::No).unwrap();
    wire.data(ID, "pong", End::Yes).unwrap();
    let closed = wire.is_closed();
    (wire.sent(), closed)
}

const LENGTH: &[(&str, &str)] = &[("content-length", "4")];

#[test]
fn http_1_1_persists_unless_told_otherwise() {
    let (sent, closed) = answered("GET / HTTP/1.1\r\nHost: a\r\n\r\n", LENGTH);
    assert_eq!(sent, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npong");
    assert!(!closed);
    let (sent, closed) =
        answered("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n", LENGTH);
    assert_eq!(sent, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\npong");
    assert!(closed);
}

#[test]
fn http_1_0_closes_unless_told_otherwise() {
    let (sent, closed) = answered("GET / HTTP/1.0\r\n\r\n", LENGTH);
    assert_eq!(sent, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\npong");
    assert!(closed);
    let (sent, closed) = answered("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", LENGTH);
    assert_eq!(sent, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: keep-alive\r\n\r\npong");
    assert!(!closed);
}

#[test]
fn http_1_0_gets_no_chunks() {
    let (sent, closed) = answered("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &[]);
    assert_eq!(sent, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\npong");
    assert!(closed);
}

#[test]
fn the_owner_may_close() {
    let fields = &[("content-length", "4"), ("connection", "close")];
    let (sent, closed) = answered("GET / HTTP/1.1\r\nHost: a\r\n\r\n", fields);
    assert_eq!(sent, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\npong");
    assert!(closed);
}

#[test]
fn head_sends_the_length_and_no_body() {
    let (sent, closed) = answered("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", LENGTH);
    assert_eq!(sent, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n");
    assert!(!closed);
    let (sent, closed) = answered("HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &[]);
    assert_eq!(sent, "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\n\r\n");
    assert!(!closed);
}

#[test]
fn statuses_without_content() {
    for (status, fields, expected) in [
        (204, LENGTH, "HTTP/1.1 204 No Content\r\n\r\n"),
        (304, LENGTH, "HTTP/1.1 304 Not Modified\r\ncontent-length: 4\r\n\r\n"),
        (304, &[], "HTTP/1.1 304 Not Modified\r\n\r\n"),
        (205, &[], "HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n"),
        (599, &[], "HTTP/1.1 599 \r\ncontent-length: 0\r\n\r\n"),
    ] {
        let mut wire = Wire::server();
        wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        wire.respond(ID, status, fields, End::Yes).unwrap();
        assert_eq!(wire.sent(), expected);
        assert!(!wire.is_closed());
    }
}

#[test]
fn shutting_down_an_idle_connection_closes_it() {
    let mut wire = Wire::server();
    wire.shut_down();
    wire.listen(b"");
    assert_eq!(wire.logged(), ["closed shutdown"]);
}

#[test]
fn shutting_down_lets_what_is_open_finish() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.shut_down();
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    assert_eq!(wire.sent(), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 GET a/ end", "closed shutdown"]);
}

#[test]
fn shutting_down_answers_a_request_that_has_begun() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHo");
    wire.shut_down();
    wire.listen(b"st: a\r\n\r\n");
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 GET a/ end", "closed shutdown"]);
    assert!(wire.sent().contains("connection: close\r\n"));
}

#[test]
fn leaving_answers_one_more_request_and_says_that_it_was_the_last() {
    let mut wire = Wire::server();
    wire.leave();
    wire.listen(b"");
    assert_eq!(wire.logged(), [""; 0], "a request may be on its way");
    wire.listen(GET);
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    assert!(wire.sent().contains("connection: close\r\n"));
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 GET a/ end", "closed shutdown"]);
}

#[test]
fn leaving_says_so_in_the_response_that_is_open() {
    let mut wire = Wire::server();
    wire.listen(GET);
    wire.leave();
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    assert!(wire.sent().contains("connection: close\r\n"));
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 GET a/ end", "closed shutdown"]);
}

/// Its client may have sent the next request before it saw the end.
#[test]
fn leaving_waits_behind_a_response_that_promised_more() {
    let mut wire = Wire::server();
    wire.listen(GET);
    wire.respond(ID, 200, &[], End::No).unwrap();
    wire.leave();
    wire.now += 10 * LEAVE_NOTICE;
    wire.data(ID, "", End::Yes).unwrap();
    wire.listen(b"");
    assert!(!wire.is_closed());
    wire.listen(GET);
    wire.sent();
    wire.respond(ExchangeId(2), 200, &[], End::Yes).unwrap();
    assert!(wire.sent().contains("connection: close\r\n"));
    wire.listen(b"");
    assert!(wire.is_closed());
}

#[test]
fn leaving_closes_what_stays_idle() {
    let mut wire = Wire::server();
    wire.now += Duration::from_secs(7);
    wire.leave();
    wire.listen(b"");
    let deadline = wire.deadline.expect("it doesn't wait for ever").at;
    assert_eq!(deadline, wire.now + LEAVE_NOTICE);
    wire.now = deadline;
    wire.listen(b"");
    assert_eq!(wire.logged(), ["closed shutdown"]);
}

#[test]
fn the_peers_end_is_seen_behind_its_requests() {
    let mut wire = Wire::server();
    wire.eof();
    wire.turn(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &mut |wire, id, event| {
        if matches!(event, ExchangeEvent::Head(_)) {
            wire.respond(id, 200, &[], End::Yes).unwrap();
        }
    });
    assert_eq!(wire.logged(), ["1 GET a/ end", "closed eof"]);
    assert!(wire.sent().starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn a_client_that_half_closed_gets_its_response() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.eof();
    wire.listen(b"");
    assert!(!wire.connection.wants_input());
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 GET a/ end", "closed eof"]);
}

#[test]
fn giving_up_closes() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.respond(ID, 200, &[], End::No).unwrap();
    wire.abort(ID);
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 GET a/ end", "closed aborted"]);
}

#[test]
fn an_upgrade_may_be_required() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.respond(ID, 426, &[("upgrade", "websocket")], End::Yes).unwrap();
    let expected = "HTTP/1.1 426 Upgrade Required\r\nupgrade: websocket\r\ncontent-length: 0\r\n\
                    connection: upgrade\r\n\r\n";
    assert_eq!(wire.sent(), expected);
}
