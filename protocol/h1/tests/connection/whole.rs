//! RFC 9112 §6: an answer that is sent in one step is the one that two steps send.

use bolide_buffers::COPIED_BYTES;
use bolide_h1::{HeadLines, WrittenHead};
use bolide_semantics::{End, ExchangeId, FieldName, FieldRef};
use http::StatusCode;

use crate::wire::Wire;

const ID: ExchangeId = ExchangeId(1);
const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// What comes of a request and its answer: whether one step was enough, what was sent, and what the connection
/// reports of another request.
fn answered(request: &str, status: u16, body: &str, in_one: bool) -> (bool, String, Vec<String>) {
    let status = StatusCode::from_u16(status).unwrap();
    let content_type = FieldRef::known(FieldName::ContentType, b"text/plain");
    let lines = HeadLines::new([content_type].into_iter()).unwrap();
    let length = Some(body.len() as u64);
    let head = WrittenHead { status, lines: &lines, length, date: Some(DATE) };
    let mut wire = Wire::server();
    wire.listen(request.as_bytes());
    let is_whole =
        in_one && wire.with(|connection, cx| connection.send_whole(cx, ID, &head, body.as_bytes()));
    if !is_whole {
        let sent = wire.with(|connection, cx| connection.send_written_head(cx, ID, &head, End::No));
        if sent == Some(Ok(())) {
            let _ = wire.data(ID, body, End::Yes);
        }
    }
    wire.listen(b"");
    assert_eq!(wire.deadline.is_some(), !wire.is_closed(), "{request}");
    wire.listen(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    (is_whole, wire.sent(), wire.logged())
}

#[test]
fn one_step_sends_what_two_send() {
    let large = "x".repeat(COPIED_BYTES);
    let cases = [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", true),
        ("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: b\r\nConnection: upgrade\r\n\r\n", false),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", false),
        ("BAD\r\n\r\n", false),
    ];
    for (request, is_usual) in cases {
        for status in [200, 404, 204, 304] {
            for body in ["", "pong", &large[1..], &large] {
                let (is_whole, sent, logged) = answered(request, status, body, true);
                let has_body = !matches!(status, 204 | 304) && body.len() < COPIED_BYTES;
                assert_eq!(is_whole, is_usual && has_body, "{request} {status} {}", body.len());
                let (_, expected, expected_log) = answered(request, status, body, false);
                assert_eq!((sent, logged), (expected, expected_log), "{request} {status}");
            }
        }
    }
}

#[test]
fn only_the_open_exchange_is_answered() {
    let lines = HeadLines::new(std::iter::empty()).unwrap();
    let head = WrittenHead { status: StatusCode::OK, lines: &lines, length: Some(1), date: None };
    let mut wire = Wire::server();
    let send = |wire: &mut Wire, id| {
        wire.with(|connection, cx| connection.send_whole(cx, ExchangeId(id), &head, b"a"))
    };
    assert!(!send(&mut wire, 1), "nobody has asked");
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(!send(&mut wire, 2));
    assert!(send(&mut wire, 1));
    assert!(!send(&mut wire, 1), "it is answered");
    let other = WrittenHead { length: Some(2), ..head };
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let sent = wire.with(|connection, cx| connection.send_whole(cx, ExchangeId(2), &other, b"a"));
    assert!(!sent, "the head announces another length");
    let mut client = Wire::client();
    assert!(!send(&mut client, 1));
}
