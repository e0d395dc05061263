//! RFC 9112 §6, §7: bodies in both directions, as a server sees them.

use bolide_semantics::{End, ExchangeEvent, ExchangeId, Misuse, Role};

use crate::wire::{Wire, serve};

const ID: ExchangeId = ExchangeId(1);

fn post(fields: &str, body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")
}

#[test]
fn a_counted_body() {
    let request = post("Content-Length: 3\r\n", "abc");
    let (log, _) = serve(request.as_bytes(), usize::MAX);
    assert_eq!(log, ["1 POST a/ [content-length: 3]", "1 data abc end"]);
}

#[test]
fn a_chunked_body_with_trailers() {
    let chunks = "3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX: 1\r\nContent-Length: 9\r\nHost: b\r\n\r\n";
    let request = post("Transfer-Encoding: Chunked\r\n", chunks);
    for piece in [usize::MAX, 1] {
        let (log, _) = serve(request.as_bytes(), piece);
        let expected =
            ["1 POST a/ [transfer-encoding: Chunked]", "1 data abcde", "1 trailers [x: 1]"];
        assert_eq!(log, expected);
    }
}

#[test]
fn a_large_body_is_shared_and_not_copied() {
    let mut wire = Wire::server();
    wire.listen(post("Content-Length: 1000000\r\n", "").as_bytes());
    let mut pieces = Vec::new();
    for _ in 0..20 {
        wire.input.start(b"");
        wire.input.extend(&[b'x'; 50_000]);
        let address = wire.input.unread().as_ptr();
        let output = wire.with(|connection, cx| connection.poll(cx));
        let bolide_semantics::Output::Exchange(_, ExchangeEvent::Data(data, _)) = output else {
            panic!("{output:?}");
        };
        assert_eq!(data.as_ptr(), address);
        wire.consumed(ID, data.len());
        pieces.push(data.len());
    }
    assert_eq!(pieces, [50_000; 20]);
}

#[test]
fn a_response_of_unknown_length_is_chunked() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.respond(ID, 200, &[("content-type", "text/plain")], End::No).unwrap();
    assert_eq!(wire.data(ID, "abc", End::No), Ok(true));
    assert_eq!(wire.data(ID, "", End::No), Ok(true));
    wire.trailers(ID, &[("x-sum", "1"), ("content-length", "3")]).unwrap();
    let expected = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n\
                    3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n";
    assert_eq!(wire.sent(), expected);
    assert_eq!(wire.data(ID, "", End::Yes), Err(Misuse::UnknownExchange));
    assert!(!wire.is_closed());
}

#[test]
fn trailers_of_a_counted_body_go_nowhere() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.respond(ID, 200, &[("content-length", "1")], End::No).unwrap();
    assert_eq!(wire.trailers(ID, &[("x", "1")]), Err(Misuse::WrongLength));
    wire.data(ID, "a", End::No).unwrap();
    wire.trailers(ID, &[("x", "1")]).unwrap();
    assert_eq!(wire.sent(), "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na");
}

#[test]
fn a_full_output_asks_for_patience() {
    let mut wire = Wire::server();
    wire.output_limit = 100;
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.respond(ID, 200, &[], End::No).unwrap();
    assert_eq!(wire.data(ID, &"x".repeat(100), End::No), Ok(false));
    assert_eq!(wire.data(ID, "y", End::No), Err(Misuse::Busy));
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 GET a/ end"]);
    wire.sent();
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 sendable"]);
    assert_eq!(wire.data(ID, "y", End::Yes), Ok(true));
    wire.listen(b"");
    assert!(wire.logged().is_empty());
}

#[test]
fn fast_body() {
    let mut wire = Wire::server();
    let limit = bolide_h1::limits::Bodies::DEFAULT.unconsumed_bytes as usize;
    wire.listen(post(&format!("Content-Length: {}\r\n", 2 * limit), "").as_bytes());
    let mut given = 0;
    while wire.connection.wants_input() {
        wire.listen(&[b'x'; 1 << 16]);
        given += 1 << 16;
    }
    assert_eq!(given, limit);
    assert!(wire.deadline.is_none(), "nothing is asked of a peer that may not send");
    wire.listen(&[b'x'; 1 << 16]);
    wire.logged();
    wire.listen(b"");
    assert!(wire.logged().is_empty());
    wire.consumed(ExchangeId(2), 1 << 16);
    assert!(!wire.connection.wants_input());
    wire.consumed(ID, 1);
    assert!(wire.connection.wants_input());
    wire.listen(b"");
    assert_eq!(wire.logged(), [format!("1 data {}", "x".repeat(1 << 16))]);
}

#[test]
fn a_fault_in_a_body_is_answered_or_aborted() {
    let request = post("Transfer-Encoding: chunked\r\n", "3\r\nabcX");
    let (log, sent) = serve(request.as_bytes(), usize::MAX);
    assert_eq!(log[1..], ["1 data abc", "1 rejected 400", "closed bad-message"]);
    assert!(sent.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{sent}");

    let mut wire = Wire::server();
    wire.turn(request.as_bytes(), &mut |wire, id, event| {
        if matches!(event, ExchangeEvent::Head(_)) {
            wire.respond(id, 200, &[], End::No).unwrap();
        }
    });
    let expected = ["1 data abc", "1 aborted: a chunk did not end in CRLF", "closed bad-message"];
    assert_eq!(wire.logged()[1..], expected);
}

#[test]
fn a_truncated_body_is_aborted() {
    for request in
        [post("Content-Length: 3\r\n", "ab"), post("Transfer-Encoding: chunked\r\n", "3\r\nab")]
    {
        let mut wire = Wire::server();
        wire.eof();
        wire.listen(request.as_bytes());
        let expected = [
            "1 data ab",
            "1 aborted: the peer ended in the middle of a message",
            "closed truncated",
        ];
        assert_eq!(wire.logged()[1..], expected);
        assert_eq!(wire.sent(), "");
    }
}

#[test]
fn unread_body() {
    let limit = bolide_h1::limits::Bodies::DEFAULT.discard_bytes as usize;
    for (length, kept) in [(limit, true), (limit + 1, false)] {
        for (status, is_whole) in [(200, false), (200, true), (404, false), (404, true)] {
            let mut wire = Wire::server();
            wire.listen(post(&format!("Content-Length: {length}\r\n"), "").as_bytes());
            if is_whole {
                wire.respond_whole(ID, status, "a").unwrap();
            } else {
                wire.respond(ID, status, &[("content-length", "1")], End::No).unwrap();
                wire.data(ID, "a", End::Yes).unwrap();
            }
            // Neither an error nor a whole response is followed by reading the body, so the end is announced.
            let is_announced = !kept && (status == 404 || is_whole);
            assert_eq!(wire.sent().contains("connection: close"), is_announced);
            assert_eq!(wire.is_closed(), !kept);
            if kept {
                assert!(!wire.connection.is_idle());
                wire.listen(&vec![b'x'; length]);
                wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                assert_eq!(wire.logged()[1..], ["2 GET a/ end"]);
            }
        }
    }
}

#[test]
fn unread_chunks() {
    let limit = bolide_h1::limits::Bodies::DEFAULT.discard_bytes as usize;
    for (chunks, kept) in [(4, true), (5, false)] {
        let mut wire = Wire::server();
        wire.listen(post("Transfer-Encoding: chunked\r\n", "").as_bytes());
        wire.respond(ID, 200, &[], End::Yes).unwrap();
        for _ in 0..chunks {
            let size = limit / 4;
            wire.listen(format!("{size:x}\r\n{}\r\n", "x".repeat(size)).as_bytes());
        }
        wire.listen(b"0\r\nX: 1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let expected = if kept { "2 GET a/ end" } else { "closed unread-body" };
        assert_eq!(wire.logged()[1..], [expected]);
    }
    // An error is hardly followed by reading the body, of whose chunks any number may follow.
    let mut wire = Wire::server();
    wire.listen(post("Transfer-Encoding: chunked\r\n", "").as_bytes());
    wire.respond(ID, 404, &[], End::Yes).unwrap();
    assert!(wire.sent().contains("connection: close"));
    assert!(wire.is_closed());
}

#[test]
fn a_new_connection_owns_nothing() {
    let wire = Wire::new(Role::Server, &bolide_h1::Limits::default());
    assert!(wire.connection.is_idle());
    assert!(wire.connection.wants_input());
    assert!(size_of_val(&wire.connection) <= 256);
}

#[test]
fn each_body_has_its_own_room() {
    let limit = bolide_h1::limits::Bodies::DEFAULT.unconsumed_bytes as usize;
    let mut wire = Wire::server();
    for id in 1..3 {
        wire.listen(post(&format!("Content-Length: {limit}\r\n"), "").as_bytes());
        wire.listen(&vec![b'x'; limit - 1]);
        assert!(wire.connection.wants_input(), "{id}");
        wire.listen(b"x");
        wire.respond(ExchangeId(id), 200, &[], End::Yes).unwrap();
    }
}

#[test]
fn a_body_that_is_here_is_not_left_to_read() {
    let length = bolide_h1::limits::Bodies::DEFAULT.discard_bytes as usize + 10;
    let mut wire = Wire::server();
    let request = post(&format!("Content-Length: {length}\r\n"), &"x".repeat(10));
    wire.input.start(b"");
    wire.input.extend(request.as_bytes());
    wire.with(|connection, cx| connection.poll(cx));
    wire.respond(ID, 404, &[], End::No).unwrap();
    wire.data(ID, "", End::Yes).unwrap();
    assert!(!wire.sent().contains("connection: close"));
    assert!(!wire.is_closed());
}

#[test]
fn nothing_is_kept_of_a_refused_connection() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/3.0\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n");
    assert_eq!(wire.logged(), ["1 rejected 505"]);
    assert!(wire.rest().is_empty());
    assert!(!wire.connection.wants_input());
}

#[test]
fn a_body_that_has_arrived_with_its_head_is_taken_once() {
    let mut wire = Wire::server();
    let two = [post("Content-Length: 3\r\n", "abc"), post("Content-Length: 3\r\n", "de")].concat();
    wire.input.start(two.as_bytes());
    let head = wire.with(|connection, cx| connection.poll(cx));
    let bolide_semantics::Output::Exchange(_, ExchangeEvent::Head(End::No)) = head else {
        panic!("{head:?}");
    };
    let take = |wire: &mut Wire, id, bytes_max| {
        wire.with(|connection, cx| connection.whole_body(cx.input, id, bytes_max))
    };
    assert_eq!(take(&mut wire, ID, 2), None, "longer than asked for");
    assert_eq!(take(&mut wire, ID, 3).as_deref(), Some(&b"abc"[..]));
    assert_eq!(take(&mut wire, ID, 3), None);
    wire.respond(ID, 200, &[("content-length", "0")], End::Yes).unwrap();
    let head = wire.with(|connection, cx| connection.poll(cx));
    let bolide_semantics::Output::Exchange(id, ExchangeEvent::Head(End::No)) = head else {
        panic!("{head:?}");
    };
    assert_eq!(take(&mut wire, id, 3), None, "a byte is missing");
}
