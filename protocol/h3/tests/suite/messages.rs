//! RFC 9114 §4.1 to §4.4: requests, responses, and what is malformed.

use bolide_semantics::{Content, End, ExchangeEvent, ExchangeId, FieldRef, Misuse, Output};
use http::{Method, StatusCode};

use crate::subject::{GET, POST, Pair, Seen, Subject, data, frame, headers};

fn with(more: &[Pair]) -> Vec<Pair> {
    POST.iter().chain(more).copied().collect()
}

#[test]
fn a_request_and_its_response() {
    let mut server = Subject::server();
    let seen = server.feed_all(0, &headers(&GET));
    assert_eq!(seen, [Seen::Head(1, "GET /".to_owned(), End::Yes)]);
    let whole = Content::Whole(&mut bytes::Bytes::from_static(b"pong").into());
    assert_eq!(server.respond(1, 200, whole), Ok(true));
    let frames = server.frames(0);
    assert_eq!(frames[0], (1, vec![0, 0, 0xc0 | 25]));
    assert_eq!(frames[1..], [(0, b"pong".to_vec())]);
    assert!(server.quic.sent[&0].ended);
    assert!(server.connection.is_idle());
    assert_eq!(server.quic.stopped, []);
}

#[test]
fn a_message_is_the_same_in_any_pieces() {
    let request = [
        headers(&with(&[("content-length", "5")])),
        frame(0x21, b"unknown"),
        data(b"ab"),
        data(b"cde"),
        frame(0x40, b""),
        headers(&[("x-sum", "1")]),
        frame(0x21, b""),
    ]
    .concat();
    for piece in [1, 2, 3, 7, request.len()] {
        let mut server = Subject::server();
        for part in request.chunks(piece) {
            server.quic.arrives(0, part);
        }
        server.quic.ends(0);
        let (mut body, mut trailers) = (Vec::new(), 0);
        for seen in server.poll() {
            match seen {
                Seen::Head(1, _, End::No) => {}
                Seen::Data(1, bytes, End::No) => body.extend(bytes),
                Seen::Trailers(1, fields) => trailers += fields,
                other => panic!("{other:?} in pieces of {piece}"),
            }
        }
        assert_eq!((&body[..], trailers), (&b"abcde"[..], 1), "in pieces of {piece}");
        assert_eq!(server.respond(1, 204, Content::None), Ok(true));
        assert!(server.connection.is_idle() && server.quic.stopped.is_empty());
    }
}

#[test]
fn an_end_that_comes_late_is_reported() {
    let mut server = Subject::server();
    assert_eq!(server.feed(0, &headers(&POST)), [Seen::Head(1, "POST /".to_owned(), End::No)]);
    assert_eq!(server.feed(0, &data(b"a")), [Seen::Data(1, b"a".to_vec(), End::No)]);
    assert_eq!(server.feed_all(0, b""), [Seen::Data(1, Vec::new(), End::Yes)]);
}

#[test]
fn interim_responses_and_trailers_reach_the_client() {
    let mut client = Subject::client();
    let id = client.request(&Method::GET, &[], End::Yes).unwrap();
    assert!(client.quic.sent[&0].ended);
    let response = [
        headers(&[(":status", "103")]),
        headers(&[(":status", "200")]),
        data(b"pong"),
        headers(&[("grpc-status", "0")]),
    ];
    let seen = client.feed_all(0, &response.concat());
    assert_eq!(
        seen,
        [
            Seen::Informational(id, 103),
            Seen::Head(id, "200".to_owned(), End::No),
            Seen::Data(id, b"pong".to_vec(), End::No),
            Seen::Trailers(id, 1),
        ]
    );
    assert!(client.connection.is_idle());
}

#[test]
fn malformed_messages_end_their_stream_only() {
    let length = |more: &[Pair]| headers(&with(more));
    for (bytes, what) in [
        (headers(&GET[..3]), "no authority"),
        (headers(&with(&[("connection", "close")])), "a connection-specific field"),
        (headers(&with(&[("te", "gzip")])), "te"),
        (headers(&with(&[("X-Upper", "1")])), "a name in upper case"),
        (headers(&with(&[(":path", "/")])), "a pseudo-field after a field"),
        (headers(&with(&[("transfer-encoding", "chunked")])), "a transfer coding"),
        (length(&[("content-length", "5")]), "a length without content"),
        ([length(&[("content-length", "5")]), data(b"abcd")].concat(), "a short body"),
        ([length(&[("content-length", "3")]), data(b"abcd")].concat(), "a long body"),
        (
            [length(&[("content-length", "3")]), data(b"ab"), headers(&[("x", "1")])].concat(),
            "short, with trailers",
        ),
        ([headers(&POST), headers(&[(":status", "200")])].concat(), "a pseudo-field in trailers"),
    ] {
        let mut server = Subject::server();
        let seen = server.feed_all(0, &bytes);
        assert!(!seen.iter().any(|seen| matches!(seen, Seen::Closed(_))), "{what}: {seen:?}");
        assert_eq!(server.quic.sent[&0].reset, Some(0x10e), "{what}");
        assert!(server.connection.is_idle(), "{what}");
        assert_eq!(server.feed_all(4, &headers(&GET)).len(), 1, "{what}: the next is served");
        assert_eq!(server.connection.unconsumed_bytes(), 0);
    }
}

#[test]
fn a_request_without_a_head_is_incomplete() {
    for bytes in [&b""[..], &frame(0x21, b"unknown")] {
        let mut server = Subject::server();
        assert_eq!(server.feed_all(0, bytes), []);
        assert_eq!(server.quic.sent[&0].reset, Some(0x10d));
    }
}

#[test]
fn frames_in_a_wrong_order_end_the_connection() {
    let head = headers(&POST);
    for (bytes, code) in [
        (data(b"a"), 0x105),
        ([&head[..], &headers(&[("x", "1")]), &data(b"a")].concat(), 0x105),
        ([&head[..], &headers(&[("x", "1")]), &headers(&[("x", "1")])].concat(), 0x105),
        ([&head[..], &frame(4, b"")].concat(), 0x105),
        ([&head[..], &frame(7, &[0])].concat(), 0x105),
        ([&head[..], &frame(3, &[0])].concat(), 0x105),
        ([&head[..], &frame(0xd, &[0])].concat(), 0x105),
        ([&head[..], &frame(5, &[0])].concat(), 0x105),
        ([&head[..], &frame(2, &[0])].concat(), 0x105),
        ([&head[..], &frame(6, &[0])].concat(), 0x105),
        ([&head[..], &frame(8, &[0])].concat(), 0x105),
        ([&head[..], &frame(9, &[0])].concat(), 0x105),
        ([&head[..], &frame(0xf_0700, &[0])].concat(), 0x105),
        (frame(1, b""), 0x200),
        (frame(1, &[0, 0, 0xff, 36]), 0x200),
    ] {
        Subject::server().refuses(0, &bytes, code);
    }
    let mut client = Subject::client();
    client.request(&Method::GET, &[], End::Yes).unwrap();
    client.refuses(0, &frame(5, &[0, 0, 0]), 0x108);
}

#[test]
fn a_stream_that_ends_within_a_frame_ends_the_connection() {
    for bytes in [&[0][..], &[1, 9, 0, 0], &[0x40]] {
        let mut server = Subject::server();
        server.quic.arrives(0, &headers(&POST));
        server.quic.arrives(0, bytes);
        server.quic.ends(0);
        assert!(matches!(server.poll().last(), Some(Seen::Closed("frame-error"))), "{bytes:?}");
        assert_eq!(server.quic.closed, Some(0x106));
    }
}

#[test]
fn responses_that_are_malformed() {
    for (bytes, what) in [
        (headers(&[(":status", "101")]), "101"),
        (headers(&[("x", "1")]), "no status"),
        (headers(&[(":status", "103")]), "nothing but an interim response"),
        (
            [headers(&[(":status", "200"), ("content-length", "2")]), data(b"a")].concat(),
            "a short body",
        ),
        ([headers(&[(":status", "204")]), data(b"a")].concat(), "content where there is none"),
    ] {
        let mut client = Subject::client();
        let id = client.request(&Method::GET, &[], End::Yes).unwrap();
        let seen = client.feed_all(0, &bytes);
        let aborted = seen.last().is_some_and(|seen| matches!(seen, Seen::Aborted(it, reason) if *it == id && reason.name == "stream-error"));
        assert!(aborted, "{what}: {seen:?}");
    }
    let mut client = Subject::client();
    let id = client.request(&Method::HEAD, &[], End::Yes).unwrap();
    let seen = client.feed_all(0, &headers(&[(":status", "200"), ("content-length", "2")]));
    assert_eq!(
        seen,
        [Seen::Head(id, "200".to_owned(), End::Yes)],
        "HEAD has a length and no content"
    );
}

#[test]
fn a_connect_becomes_a_tunnel() {
    let mut server = Subject::server();
    let seen = server.feed(0, &headers(&[(":method", "CONNECT"), (":authority", "a:1")]));
    assert_eq!(seen, [Seen::Head(1, "CONNECT ".to_owned(), End::No)]);
    assert_eq!(server.respond(1, 200, Content::Follows), Ok(true));
    assert_eq!(server.feed(0, &data(b"to")), [Seen::Data(1, b"to".to_vec(), End::No)]);
    assert_eq!(server.give(1, b"fro", End::Yes), Ok(true));
    assert_eq!(server.feed_all(0, &data(b"!")), [Seen::Data(1, b"!".to_vec(), End::Yes)]);
    assert!(server.connection.is_idle() && server.quic.stopped.is_empty());
    // RFC 9220: WebSocket.
    let mut server = Subject::server();
    let extended = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/ws"),
        (":authority", "a"),
    ];
    assert_eq!(
        server.feed(0, &headers(&extended)),
        [Seen::Head(1, "CONNECT /ws".to_owned(), End::No)]
    );
    assert_eq!(server.head.protocol(), Some("websocket"));
    server.respond(1, 200, Content::Follows).unwrap();
    server.refuses(0, &headers(&[("x", "1")]), 0x105);
}

#[test]
fn a_response_before_the_end_of_its_request_stops_that() {
    let mut server = Subject::server();
    server.feed(0, &headers(&POST));
    assert_eq!(server.respond(1, 413, Content::None), Ok(true));
    assert_eq!(server.quic.stopped, [(0, 0x100)]);
    assert!(server.quic.sent[&0].ended);
    assert_eq!(server.feed(0, &data(b"late")), []);
    // And for a client.
    let mut client = Subject::client();
    let id = client.request(&Method::POST, &[], End::No).unwrap();
    client.quic.stops(0, 0x100);
    assert_eq!(client.poll(), [Seen::Sendable(id)]);
    client.quic.stops(0, 0x100);
    assert_eq!(client.poll(), [], "it is told once");
    assert_eq!(client.give(id, b"refused", End::No), Err(Misuse::OutOfOrder));
    assert_eq!(client.give(id, b"refused", End::Yes), Err(Misuse::OutOfOrder));
    let seen = client.feed_all(0, &headers(&[(":status", "413")]));
    assert_eq!(seen[0], Seen::Head(id, "413".to_owned(), End::Yes));
    assert!(matches!(seen[1], Seen::Aborted(_, reason) if reason.name == "not-needed"), "{seen:?}");
    assert_eq!(client.quic.sent[&0].reset, Some(0x100));
    // What is reset once is not reset again, whatever the server does then.
    let mut client = Subject::client();
    client.request(&Method::POST, &[], End::No).unwrap();
    client.quic.stops(0, 0x100);
    client.quic.stops(0, 0x102);
    assert!(matches!(client.poll()[..], [Seen::Sendable(1), Seen::Aborted(1, _)]));
    assert_eq!(client.quic.sent[&0].reset, Some(0x100));
}

#[test]
fn what_the_server_did_not_need_counts_as_not_sent() {
    for gives_up in [false, true] {
        let mut client = Subject::client();
        let id = client.request(&Method::POST, &[], End::No).unwrap();
        client.quic.room = 0;
        assert_eq!(client.give(id, b"waits", End::Yes), Ok(false));
        client.quic.stops(0, 0x100);
        assert_eq!(client.poll(), []);
        client.quic.arrives(0, &headers(&[(":status", "413")]));
        client.quic.ends(0);
        let output = client.with(|connection, cx| connection.poll(cx));
        assert!(matches!(output, Output::Exchange(_, ExchangeEvent::Head(End::Yes))), "{output:?}");
        assert!(!client.connection.is_framed(ExchangeId(id)));
        assert_eq!(client.connection.unframed_bytes(ExchangeId(id)), 5);
        if gives_up {
            client.with(|connection, cx| connection.abort(cx, ExchangeId(id)));
            assert_eq!(client.poll(), []);
        } else {
            let seen = client.poll();
            assert!(matches!(seen[..], [Seen::Aborted(_, reason)] if reason.name == "not-needed"));
        }
        assert!(client.connection.is_idle());
    }
}

#[test]
fn resets_have_the_same_reasons_as_over_http2() {
    for (code, name, untouched) in [
        (0x10b, "refused", true),
        (0x10c, "server-cancelled", false),
        (0x102, "server-reset", false),
    ] {
        for stops in [false, true] {
            let mut client = Subject::client();
            let id = client.request(&Method::POST, &[], End::No).unwrap();
            if stops {
                client.quic.stops(0, code);
            } else {
                client.quic.resets(0, code);
            }
            let seen = client.poll();
            assert!(
                matches!(seen[..], [Seen::Aborted(it, reason)] if it == id && reason.name == name && reason.untouched == untouched),
                "{seen:?}"
            );
            assert_eq!(client.quic.sent[&0].reset, Some(0x10c));
        }
    }
    let mut server = Subject::server();
    server.feed_all(0, &headers(&GET));
    server.quic.stops(0, 0x10c);
    assert!(
        matches!(server.poll()[..], [Seen::Aborted(1, reason)] if reason.name == "client-reset")
    );
    server.feed(4, &headers(&POST));
    server.with(|connection, cx| connection.abort(cx, ExchangeId(2)));
    assert_eq!(server.quic.sent[&4].reset, Some(0x102));
    server.feed(8, &headers(&POST));
    server.with(|connection, cx| connection.cancel(cx, ExchangeId(3)));
    assert_eq!(server.quic.sent[&8].reset, Some(0x10c));
    assert_eq!(server.quic.stopped[1..], [(8, 0x10c)]);
}

#[test]
fn interim_responses_of_a_server_and_its_trailers() {
    let mut server = Subject::server();
    server.feed_all(0, &headers(&GET));
    let fields = [FieldRef::named("link", b"</a>")];
    let early = StatusCode::EARLY_HINTS;
    let sent =
        server.with(|connection, cx| connection.send_interim(cx, ExchangeId(1), early, &fields));
    assert_eq!(sent, Ok(()));
    assert_eq!(server.respond(1, 200, Content::Follows), Ok(true));
    assert_eq!(server.give(1, b"body", End::No), Ok(true));
    let fields = [FieldRef::named("x-sum", b"1")];
    let sent = server.with(|connection, cx| connection.send_trailers(cx, ExchangeId(1), &fields));
    assert_eq!(sent, Ok(()));
    let kinds: Vec<u64> = server.frames(0).iter().map(|frame| frame.0).collect();
    assert_eq!(kinds, [1, 1, 0, 1]);
    assert!(server.quic.sent[&0].ended && server.connection.is_idle());
    assert_eq!(server.give(1, b"", End::Yes), Err(Misuse::UnknownExchange));
}
