//! RFC 9112 §2.2, §9.3: a head that came before means what it meant then, on whichever connection it comes again.

use bolide_h1::{Limits, REMEMBERED_REQUEST_BYTES};
use bolide_semantics::{Head, Role};
use proptest::prelude::*;

use crate::wire::{Wire, answer_all};

/// Requests that are like each other in all but a little.
const REQUESTS: [&str; 12] = [
    "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: b\r\n\r\n",
    "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 31\r\n\r\nGET /x HTTP/1.1\r\nHost: smuggled",
    "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n",
];

/// Two connections that take turns; `shared`: they have one head, as those of a worker do.
fn served(pieces: &[(bool, &[u8])], shared: bool) -> [(Vec<String>, Vec<u8>); 2] {
    let mut wires = [Wire::server(), Wire::server()];
    let mut head = Head::default();
    for (second, piece) in pieces {
        let wire = &mut wires[usize::from(*second)];
        if shared {
            std::mem::swap(&mut head, &mut wire.head);
        } else {
            // Nothing is remembered.
            wire.head = Head::default();
        }
        wire.turn(piece, &mut |wire, id, event| {
            let mark = wire.head.mark();
            answer_all(wire, id, event);
            assert_eq!(wire.head.mark(), mark, "an answer changes no request");
        });
        if shared {
            std::mem::swap(&mut head, &mut wire.head);
        }
    }
    wires.map(|mut wire| (wire.logged(), wire.sent_bytes()))
}

proptest! {
    #[test]
    fn memory_changes_nothing(
        requests in proptest::collection::vec((any::<bool>(), 0..REQUESTS.len(), 1_usize..5, 1_usize..90), 1..30),
    ) {
        let mut pieces = Vec::new();
        for (second, request, times, length) in requests {
            for _ in 0..times {
                pieces.extend(REQUESTS[request].as_bytes().chunks(length).map(|piece| (second, piece)));
            }
        }
        prop_assert_eq!(served(&pieces, true), served(&pieces, false));
    }
}

/// One more request of a connection, and whether its head was known.
fn is_known(wire: &mut Wire, request: &str) -> bool {
    let before = wire.head.mark();
    wire.turn(request.as_bytes(), &mut answer_all);
    before.is_some() && wire.head.mark() == before
}

#[test]
fn the_same_octets_are_not_read_twice() {
    let mut wire = Wire::server();
    assert!(!is_known(&mut wire, REQUESTS[0]));
    assert!(is_known(&mut wire, REQUESTS[0]));
    assert!(!is_known(&mut wire, REQUESTS[1]));
    assert!(!is_known(&mut wire, REQUESTS[6]));
    assert!(is_known(&mut wire, REQUESTS[6]));
    // A trailer section takes the place of the head.
    assert!(!is_known(&mut wire, REQUESTS[8]));
    assert!(!is_known(&mut wire, REQUESTS[8]));
}

#[test]
fn no_more_than_its_limit_is_remembered() {
    let request = |length: usize| {
        let rest = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n".len();
        format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(length - rest))
    };
    let mut wire = Wire::server();
    for (length, expected) in
        [(REMEMBERED_REQUEST_BYTES, true), (REMEMBERED_REQUEST_BYTES + 1, false)]
    {
        assert!(!is_known(&mut wire, &request(length)));
        assert_eq!(is_known(&mut wire, &request(length)), expected, "{length}");
    }
}

#[test]
fn what_one_connection_may_send_another_may_not() {
    let request = "GET /abc HTTP/1.1\r\nHost: a\r\nX-A: b\r\n\r\n";
    for (less, status) in [
        (Limits { request_line_bytes: 18, ..Limits::default() }, "414"),
        (Limits { head_bytes: request.len() as u32 - 1, ..Limits::default() }, "431"),
        (Limits { fields_count: 1, ..Limits::default() }, "431"),
    ] {
        let (mut free, mut bound) = (Wire::server(), Wire::new(Role::Server, &less));
        free.turn(request.as_bytes(), &mut answer_all);
        std::mem::swap(&mut free.head, &mut bound.head);
        bound.turn(request.as_bytes(), &mut answer_all);
        assert!(bound.sent().starts_with(&format!("HTTP/1.1 {status}")), "{status}");
    }
}
