//! RFC 9112 §2.2, §3, §5, §7.1: each limit, by the name of the attack that it answers.

use bolide_h1::limits::{Bodies, Heads, Limits};
use bolide_semantics::{End, Role};

use crate::wire::{Wire, answer_all, serve};

/// The status that the first request is answered with, the same for each way to split it.
fn status(request: &str) -> String {
    let mut statuses = [usize::MAX, 1, 1000].into_iter().map(|piece| {
        let (_, sent) = serve(request.as_bytes(), piece);
        sent.get(9..12).unwrap_or("none").to_owned()
    });
    let status = statuses.next().unwrap();
    assert!(statuses.all(|other| other == status), "{status}");
    status
}

#[test]
fn long_request_line() {
    let line = |length: u32| {
        let path = "x".repeat(length as usize - "GET / HTTP/1.1\r\n".len());
        format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n")
    };
    assert_eq!(status(&line(Heads::DEFAULT.request_line_bytes)), "200");
    assert_eq!(status(&line(Heads::DEFAULT.request_line_bytes + 1)), "414");
    assert_eq!(status(&"G".repeat(Heads::DEFAULT.request_line_bytes as usize)), "414");
}

#[test]
fn large_head() {
    let head = |length: u32| {
        let value = "x".repeat(length as usize - "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n".len());
        format!("GET / HTTP/1.1\r\nHost: a\r\nX: {value}\r\n\r\n")
    };
    assert_eq!(status(&head(Heads::DEFAULT.head_bytes)), "200");
    assert_eq!(status(&head(Heads::DEFAULT.head_bytes + 1)), "431");
    assert_eq!(status(&head(10 * Heads::DEFAULT.head_bytes)), "431");
}

#[test]
fn many_fields() {
    let head = |count: u16| {
        let lines = "X: y\r\n".repeat(usize::from(count) - 1);
        format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
    };
    assert_eq!(status(&head(Heads::DEFAULT.fields_count)), "200");
    assert_eq!(status(&head(Heads::DEFAULT.fields_count + 1)), "431");
}

#[test]
fn empty_lines() {
    let lines = |count: u8| {
        format!("{}GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n".repeat(usize::from(count)))
    };
    assert_eq!(status(&lines(Heads::DEFAULT.empty_lines_count)), "200");
    assert_eq!(status(&lines(Heads::DEFAULT.empty_lines_count + 1)), "400");
}

#[test]
fn empty_lines_leave_a_connection_idle() {
    let mut wire = Wire::server();
    wire.listen(b"\r\n\r\n");
    assert!(wire.connection.is_idle());
    wire.expire(60);
    assert_eq!(wire.logged(), ["closed idle"]);
}

fn chunked(body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

#[test]
fn chunk_size_overflow() {
    assert_eq!(status(&chunked("0000000000000001\r\nx\r\n0\r\n\r\n")), "200");
    assert_eq!(status(&chunked("00000000000000001\r\nx\r\n0\r\n\r\n")), "400");
    assert_eq!(status(&chunked("1ffffffffffffffff\r\n")), "400");
    assert_eq!(status(&chunked(&"0".repeat(100))), "400");
}

#[test]
fn chunk_extensions() {
    let body = |length: u32| {
        let half = "x".repeat(length as usize / 2);
        chunked(&format!("1;{half}\r\nx\r\n1;{half}\r\nx\r\n0\r\n\r\n"))
    };
    assert_eq!(status(&body(Bodies::DEFAULT.chunk_extension_bytes)), "200");
    assert_eq!(status(&body(Bodies::DEFAULT.chunk_extension_bytes + 2)), "400");
}

#[test]
fn large_trailers() {
    let body = |length: u32| {
        let value = "x".repeat(length as usize - "X: \r\n\r\n".len());
        chunked(&format!("0\r\nX: {value}\r\n\r\n"))
    };
    assert_eq!(status(&body(Bodies::DEFAULT.trailer_bytes)), "200");
    assert_eq!(status(&body(Bodies::DEFAULT.trailer_bytes + 1)), "400");
}

#[test]
fn many_trailers() {
    let body = |count: u16| chunked(&format!("0\r\n{}\r\n", "X: y\r\n".repeat(count.into())));
    assert_eq!(status(&body(Bodies::DEFAULT.trailers_count)), "200");
    assert_eq!(status(&body(Bodies::DEFAULT.trailers_count + 1)), "431");
}

#[test]
fn interim_flood() {
    let mut wire = Wire::client();
    wire.request("GET", "/", &[], End::Yes).unwrap();
    wire.sent();
    for _ in 0..Heads::DEFAULT.interim_count {
        wire.listen(b"HTTP/1.1 103 Early Hints\r\n\r\n");
    }
    assert_eq!(wire.logged().len(), usize::from(Heads::DEFAULT.interim_count));
    wire.listen(b"HTTP/1.1 103 Early Hints\r\n\r\n");
    let expected = ["1 aborted: too many interim responses came", "closed bad-message"];
    assert_eq!(wire.logged(), expected);
}

#[test]
fn partial_then_half_close() {
    for request in ["G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r", "\r"] {
        let mut wire = Wire::server();
        wire.listen(request.as_bytes());
        wire.eof();
        wire.listen(b"");
        assert_eq!(wire.logged(), ["closed truncated"], "{request:?}");
    }
}

#[test]
fn another_protocol_is_not_waited_for() {
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let mut wire = Wire::server();
    wire.turn(&hello[..1], &mut answer_all);
    assert_eq!(wire.logged(), ["1 rejected 400", "closed bad-message"]);
}

#[test]
fn a_connection_may_serve_a_limited_number() {
    let limits = Limits { requests_count: 2, ..Limits::default() };
    let mut wire = Wire::new(Role::Server, &limits);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3);
    wire.turn(&request, &mut answer_all);
    assert_eq!(wire.logged(), ["1 GET a/ end", "2 GET a/ end", "closed last"]);
    assert_eq!(wire.sent().matches("connection: close").count(), 1);
}
