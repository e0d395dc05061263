//! RFC 9114 §4.1: orders that the state of an exchange does not allow, and bodies that wait for the transport.

use bolide_semantics::{Content, End, ExchangeId, FieldRef, Misuse};
use bytes::Bytes;
use http::{Method, StatusCode};

use crate::subject::{GET, POST, Seen, Subject, headers};

#[test]
fn orders_out_of_order() {
    let mut server = Subject::server();
    assert_eq!(server.respond(1, 200, Content::None), Err(Misuse::UnknownExchange));
    server.feed_all(0, &headers(&GET));
    assert_eq!(server.give(1, b"a", End::No), Err(Misuse::OutOfOrder));
    assert_eq!(server.respond(1, 103, Content::None), Err(Misuse::InvalidHead));
    let interim = |server: &mut Subject, status| {
        server.with(|connection, cx| connection.send_interim(cx, ExchangeId(1), status, &[]))
    };
    assert_eq!(interim(&mut server, StatusCode::OK), Err(Misuse::InvalidHead));
    assert_eq!(interim(&mut server, StatusCode::SWITCHING_PROTOCOLS), Err(Misuse::InvalidHead));
    assert_eq!(server.respond(1, 200, Content::Follows), Ok(true));
    assert_eq!(interim(&mut server, StatusCode::CONTINUE), Err(Misuse::OutOfOrder));
    assert_eq!(server.respond(1, 200, Content::Follows), Err(Misuse::OutOfOrder));
    assert_eq!(server.request(&Method::GET, &[], End::Yes), Err(Misuse::OutOfOrder));
    assert_eq!(server.give(1, b"", End::Yes), Ok(true));
    assert_eq!(server.give(1, b"", End::Yes), Err(Misuse::UnknownExchange));
}

#[test]
fn lengths_are_kept() {
    let mut client = Subject::client();
    let length = [FieldRef::named("content-length", b"3")];
    assert_eq!(client.request(&Method::POST, &length, End::Yes), Err(Misuse::WrongLength));
    let id = client.request(&Method::POST, &length, End::No).unwrap();
    assert_eq!(client.give(id, b"abcd", End::No), Err(Misuse::WrongLength));
    assert_eq!(client.give(id, b"ab", End::No), Ok(true));
    assert_eq!(client.give(id, b"", End::Yes), Err(Misuse::WrongLength));
    assert_eq!(client.give(id, b"c", End::Yes), Ok(true));
    let invalid = [FieldRef::named("x", b"a\nb")];
    assert_eq!(client.request(&Method::GET, &invalid, End::Yes), Err(Misuse::InvalidHead));
    client.quic.openable = 0;
    assert_eq!(client.request(&Method::GET, &[], End::Yes), Err(Misuse::Refused));
    // HEAD has no content, whatever is given.
    let mut server = Subject::server();
    server.feed_all(
        0,
        &headers(&[(":method", "HEAD"), (":scheme", "https"), (":path", "/"), (":authority", "a")]),
    );
    let content = Content::Whole(&mut Bytes::from_static(b"pong").into());
    assert_eq!(server.respond(1, 200, content), Err(Misuse::WrongLength));
    assert_eq!(server.respond(1, 200, Content::None), Ok(true));
}

#[test]
fn a_small_body_is_written_with_its_head() {
    for (length, writes) in [(1, 1), (1024, 1), (1025, 2)] {
        let mut server = Subject::server();
        server.feed_all(0, &headers(&GET));
        let mut content = Bytes::from(vec![7; length]).into();
        assert_eq!(server.respond(1, 200, Content::Whole(&mut content)), Ok(true));
        assert_eq!(server.quic.order.len(), writes, "{length}");
        assert_eq!(server.frames(0)[1], (0, vec![7; length]));
    }
}

#[test]
fn a_small_body_is_cut_anywhere_by_the_transport() {
    let all = |first: usize| {
        let mut server = Subject::server();
        server.feed_all(0, &headers(&GET));
        server.quic.room = first;
        let respond = |server: &mut Subject| {
            server.respond(1, 200, Content::Whole(&mut Bytes::from_static(b"small").into()))
        };
        let is_whole = respond(&mut server).unwrap();
        let left = server.connection.unframed_bytes(ExchangeId(1));
        server.quic.gives_room(usize::MAX);
        assert_eq!(server.poll(), []);
        assert!(server.quic.sent[&0].ended, "{first}");
        (is_whole, left, server.quic.bytes_of(0).to_vec())
    };
    let (_, _, whole) = all(usize::MAX);
    for first in 0..=whole.len() {
        let left = (whole.len() - first).min(5) as u64;
        assert_eq!(all(first), (first == whole.len(), left, whole.clone()), "{first}");
    }
}

#[test]
fn a_body_waits_for_the_transport() {
    let mut server = Subject::server();
    server.feed_all(0, &headers(&GET));
    server.quic.room = 10;
    assert_eq!(server.respond(1, 200, Content::Follows), Ok(true));
    assert_eq!(server.give(1, &[7; 1000], End::No), Ok(false));
    assert_eq!(server.give(1, b"more", End::No), Err(Misuse::Busy));
    assert!(server.connection.unframed_bytes(ExchangeId(1)) > 990);
    assert!(server.connection.held_bytes() > 990);
    assert_eq!(server.poll(), []);
    server.quic.gives_room(500);
    assert_eq!(server.poll(), []);
    server.quic.gives_room(5000);
    assert_eq!(server.poll(), [Seen::Sendable(1)]);
    server.quic.room = 0;
    assert_eq!(server.give(1, b"last", End::No), Ok(false));
    let trailers = [FieldRef::named("x-sum", b"1")];
    let sent = server.with(|connection, cx| connection.send_trailers(cx, ExchangeId(1), &trailers));
    assert_eq!(sent, Ok(()));
    assert!(!server.connection.is_framed(ExchangeId(1)));
    server.quic.gives_room(6);
    assert_eq!(server.poll(), []);
    server.quic.gives_room(usize::MAX);
    assert_eq!(server.poll(), []);
    let frames = server.frames(0);
    assert_eq!(frames[1..3], [(0, vec![7; 1000]), (0, b"last".to_vec())]);
    assert_eq!((frames.len(), frames[3].0), (4, 1));
    assert!(server.quic.sent[&0].ended && server.connection.is_idle());
}

#[test]
fn a_head_alone_waits_too() {
    let mut client = Subject::client();
    client.quic.room = 1;
    let id = client.request(&Method::GET, &[], End::Yes).unwrap();
    assert!(!client.connection.is_framed(ExchangeId(id)));
    while !client.quic.sent[&0].ended {
        client.quic.gives_room(1);
        assert_eq!(client.poll(), []);
    }
    assert_eq!(client.frames(0).len(), 1);
    let seen = client.feed_all(0, &headers(&[(":status", "200")]));
    assert_eq!(seen, [Seen::Head(id, "200".to_owned(), End::Yes)]);
}

#[test]
fn what_nobody_consumes_is_not_read_on() {
    let mut server = Subject::server();
    server.feed(0, &headers(&POST));
    let mut reported = 0;
    for _ in 0..20 {
        for seen in server.feed(0, &crate::subject::data(&[7; 16_384])) {
            let Seen::Data(1, bytes, End::No) = seen else { panic!("{seen:?}") };
            reported += bytes.len();
        }
    }
    assert_eq!(reported, 65_536);
    assert_eq!(server.connection.unconsumed_bytes(), 65_536);
    server.consume(1, 40_000);
    reported += server
        .poll()
        .iter()
        .map(|seen| if let Seen::Data(_, bytes, _) = seen { bytes.len() } else { 0 })
        .sum::<usize>();
    assert_eq!(server.connection.unconsumed_bytes(), reported - 40_000);
    assert!((65_536..65_536 + 16_384).contains(&(reported - 40_000)), "{reported}");
    // That the client gives up is noticed all the same.
    server.quic.resets(0, 0x10c);
    assert!(matches!(server.poll()[..], [Seen::Aborted(1, _)]));
    assert_eq!(server.connection.unconsumed_bytes(), 0);
}
