//! RFC 9114 §6.2, §7.2, §8.1, RFC 9297 §2: unidirectional streams, settings and datagrams.

use bolide_h3::Limits;
use bolide_semantics::{Content, End, ExchangeId, Role};
use http::Method;

use crate::subject::{GET, POST, Seen, Subject, frame, headers, settings, varint};

#[test]
fn each_end_begins_with_its_streams_and_settings() {
    for (role, first) in [(Role::Server, 3), (Role::Client, 2)] {
        let mut subject = Subject::new(role, Limits::default());
        assert_eq!(subject.poll(), []);
        let bytes = subject.quic.bytes_of(first);
        assert_eq!(bytes[..2], [0, 4], "{role:?}");
        assert_eq!(subject.quic.bytes_of(first + 4), [2]);
        assert_eq!(subject.quic.bytes_of(first + 8), [3]);
    }
}

#[test]
fn settings_that_are_missing_or_come_twice() {
    Subject::new(Role::Server, Limits::default()).refuses(
        2,
        &[&[0][..], &frame(7, &[0])].concat(),
        0x10a,
    );
    Subject::new(Role::Server, Limits::default()).refuses(
        2,
        &[&[0][..], &frame(0x21, &[0])].concat(),
        0x10a,
    );
    Subject::server().refuses(2, &frame(4, b""), 0x105);
    Subject::new(Role::Server, Limits::default()).refuses(2, &settings(&[(2, 0)]), 0x109);
    Subject::new(Role::Client, Limits::default()).refuses(3, &settings(&[(8, 2)]), 0x109);
}

#[test]
fn frames_that_do_not_belong_on_a_control_stream() {
    for (kind, payload, code) in [
        (0, &b"a"[..], 0x105),
        (1, b"a", 0x105),
        (5, b"a", 0x105),
        (2, b"a", 0x105),
        (6, b"a", 0x105),
        (8, b"a", 0x105),
        (9, b"a", 0x105),
        (3, &[0], 0x108),
        (3, b"", 0x106),
        (7, b"", 0x106),
        (7, &[0, 0], 0x106),
        (0xd, &[0x40], 0x106),
        (0xf_0701, &[0], 0x108),
        (0xf_0700, &[1], 0x108),
        (0xf_0700, b"", 0x106),
    ] {
        Subject::server().refuses(2, &frame(kind, payload), code);
    }
    for (kind, code) in [(0xd, 0x105), (0xf_0700, 0x105), (3, 0x108)] {
        Subject::client().refuses(3, &frame(kind, &[0]), code);
    }
    let mut server = Subject::server();
    assert_eq!(
        server.feed(2, &[frame(0xd, &[5]), frame(0xd, &[7]), frame(0x21, b"unknown")].concat()),
        []
    );
    server.refuses(2, &frame(0xd, &[6]), 0x108);
}

#[test]
fn a_control_stream_is_the_same_in_single_bytes() {
    let bytes = [
        settings(&[(1, 100), (0x4000_0000, 1)]),
        frame(0x21, b"unknown"),
        frame(0xd, &[9]),
        frame(7, &[0]),
    ]
    .concat();
    let mut server = Subject::new(Role::Server, Limits::default());
    for byte in &bytes {
        server.quic.arrives(2, &[*byte]);
    }
    assert_eq!(server.poll(), [Seen::Draining(u32::MAX)]);
}

#[test]
fn streams_that_the_connection_needs_come_once_and_stay() {
    for kind in [0, 2, 3] {
        let mut server = Subject::server();
        if kind != 0 {
            assert_eq!(server.feed(6, &[kind]), []);
        }
        server.refuses(10, &[kind], 0x103);
        for code in [None, Some(0x100)] {
            let mut server = Subject::server();
            assert_eq!(server.feed(6, &[if kind == 0 { 2 } else { kind }]), []);
            match code {
                None => server.quic.ends(if kind == 0 { 2 } else { 6 }),
                Some(code) => server.quic.resets(if kind == 0 { 2 } else { 6 }, code),
            }
            assert_eq!(server.poll(), [Seen::Closed("closed-critical-stream")]);
            assert_eq!(server.quic.closed, Some(0x104));
        }
    }
    let mut server = Subject::server();
    server.quic.stops(3, 0x100);
    assert_eq!(server.poll(), [Seen::Closed("closed-critical-stream")]);
}

#[test]
fn streams_of_other_types() {
    let mut server = Subject::server();
    assert_eq!(server.feed(6, &[0x21, 1, 2, 3]), []);
    assert_eq!(server.quic.stopped, [(6, 0x103)]);
    assert_eq!(server.feed(10, &[0x40]), []);
    server.quic.ends(10);
    assert_eq!(server.poll(), [], "a stream may end before its type");
    server.refuses(14, &[1], 0x103);
    Subject::client().refuses(7, &[1, 0], 0x108);
    Subject::client().refuses(1, b"", 0x103);
}

#[test]
fn datagrams_belong_to_exchanges() {
    let mut server = Subject::server();
    server.feed(
        0,
        &headers(&[
            (":method", "CONNECT"),
            (":protocol", "connect-udp"),
            (":scheme", "https"),
            (":path", "/"),
            (":authority", "a"),
        ]),
    );
    server.respond(1, 200, Content::Follows).unwrap();
    for datagram in [&[0, b'a'][..], &[5, b'b']] {
        server
            .quic
            .events
            .push_back(bolide_h3::QuicEvent::Datagram(bytes::Bytes::copy_from_slice(datagram)));
    }
    assert_eq!(server.poll(), []);
    assert_eq!(
        server.connection.take_datagram(),
        Some((ExchangeId(1), bytes::Bytes::from_static(b"a")))
    );
    assert_eq!(server.connection.take_datagram(), None, "one for no exchange is dropped");
    assert!(server.with(|connection, cx| connection.send_datagram(cx, ExchangeId(1), b"c")));
    assert_eq!(server.quic.datagrams, [&[0, b'c'][..]]);
    assert!(!server.with(|connection, cx| connection.send_datagram(cx, ExchangeId(9), b"c")));
    for wrong in [vec![], vec![0x40], varint(1 << 60)] {
        let mut server = Subject::server();
        server.quic.events.push_back(bolide_h3::QuicEvent::Datagram(wrong.into()));
        server.poll();
        assert_eq!(server.quic.closed, Some(0x33));
    }
}

#[test]
fn an_extended_connect_needs_the_servers_setting() {
    let head = bolide_semantics::RequestHead {
        method: &Method::CONNECT,
        scheme: "https",
        authority: "a",
        path: "/ws",
        protocol: Some("websocket"),
        fields: &[],
    };
    let mut client = Subject::new(Role::Client, Limits::default());
    assert_eq!(client.connection.takes_protocols(), None);
    assert!(client.with(|connection, cx| connection.send_request(cx, &head, End::No)).is_err());
    let mut client = Subject::client();
    assert!(client.with(|connection, cx| connection.send_request(cx, &head, End::No)).is_ok());
}

#[test]
fn the_transport_s_end_ends_the_connection() {
    let mut server = Subject::server();
    server.feed(0, &headers(&POST));
    let reason = bolide_semantics::CloseReason::peer("eof", "the peer has gone");
    server.quic.events.push_back(bolide_h3::QuicEvent::Closed(reason));
    assert_eq!(server.poll(), [Seen::Closed("eof")]);
    assert_eq!(server.feed_all(4, &headers(&GET)), [Seen::Closed("eof")]);
}
