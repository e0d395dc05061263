//! RFC 9113 §5.1: which frames a stream takes in which state.

use bolide_h2::Limits;
use bolide_semantics::{AbortReason, End, Misuse};
use http::Method;

use crate::raw::{
    self, CANCEL, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, STREAM_CLOSED, data, frame,
};
use crate::subject::{Seen, Subject, of_kind};

#[test]
fn idle_streams_take_headers_and_priorities_only() {
    for bytes in [
        data(1, false, b"x"),
        raw::rst_stream(1, CANCEL),
        raw::window_update(1, 1),
        frame(raw::CONTINUATION, 4, 1, &[]),
        data(2, false, b"x"),
        raw::rst_stream(2, CANCEL),
    ] {
        let mut server = Subject::server();
        assert_eq!(server.dies_of(&bytes).1, PROTOCOL_ERROR, "{bytes:?}");
    }
    let mut server = Subject::server();
    assert_eq!(server.feed(&frame(raw::PRIORITY, 0, 1, &[0, 0, 0, 3, 1])), []);
    assert_eq!(server.feed(&raw::priority_update(1, "u=1")), []);
    assert_eq!(server.sent(), []);
}

#[test]
fn numbers_of_streams_are_odd_and_rise() {
    let mut server = Subject::server();
    assert_eq!(server.dies_of(&raw::get(2)).1, PROTOCOL_ERROR);
    let mut server = Subject::server();
    server.feed(&raw::get(5));
    // Stream 3 was closed by the opening of 5.
    assert_eq!(server.dies_of(&raw::get(3)), ("stream-closed", STREAM_CLOSED));
}

#[test]
fn a_half_closed_stream_takes_no_more() {
    for bytes in [data(1, false, b"x"), data(1, true, b""), raw::get(1)] {
        let mut server = Subject::server();
        server.feed(&raw::get(1));
        assert_eq!(server.resets(&bytes, 1), STREAM_CLOSED);
        assert_eq!(server.answer(1, 200, End::Yes), Err(Misuse::UnknownExchange));
    }
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    server.feed(&[raw::window_update(1, 1), frame(raw::PRIORITY, 0, 1, &[0; 5])].concat());
    server.answer(1, 200, End::Yes).unwrap();
    assert_eq!(server.sent_one().kind, raw::HEADERS);
}

#[test]
fn a_closed_stream_takes_no_more() {
    let closed = || {
        let mut server = Subject::server();
        server.feed(&raw::get(1));
        server.answer(1, 200, End::Yes).unwrap();
        server.sent();
        server
    };
    assert_eq!(closed().resets(&data(1, true, b"x"), 1), STREAM_CLOSED);
    assert_eq!(closed().dies_of(&raw::get(1)).1, STREAM_CLOSED);
    for harmless in [raw::window_update(1, 1), raw::rst_stream(1, CANCEL)] {
        let mut server = closed();
        assert_eq!(server.feed(&harmless), []);
        assert_eq!(server.sent(), []);
    }
}

#[test]
fn what_crosses_our_reset_is_ignored() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.abort(1);
    assert_eq!(server.sent_one().u32_at(0), raw::INTERNAL_ERROR);
    let bytes = [
        data(1, false, &[0; 1000]),
        raw::window_update(1, 5),
        raw::headers(1, true, &[("x", "y")]),
        raw::rst_stream(1, CANCEL),
    ];
    assert_eq!(server.feed(&bytes.concat()), []);
    assert_eq!(server.sent(), []);
}

#[test]
fn a_reset_is_reported_once() {
    let mut server = Subject::server();
    let seen = server.feed(&[raw::post(1), raw::rst_stream(1, CANCEL)].concat());
    assert!(matches!(seen[..], [Seen::Head(1, ..), Seen::Aborted(1, _)]), "{seen:?}");
    assert_eq!(server.answer(1, 200, End::Yes), Err(Misuse::UnknownExchange));
    assert!(server.connection.is_idle());
}

#[test]
fn what_a_server_cancels_is_told_from_what_failed() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.cancel(1);
    server.cancel(1);
    assert_eq!(server.sent_one().u32_at(0), CANCEL);
    for (code, name) in [(CANCEL, AbortReason::CANCELLED), (raw::INTERNAL_ERROR, "server-reset")] {
        let mut client = Subject::client();
        let id = client.ask(&Method::GET, End::Yes).unwrap();
        let seen = client.feed(&raw::rst_stream(id, code));
        assert!(matches!(&seen[..], [Seen::Aborted(_, reason)] if reason.name == name), "{seen:?}");
    }
}

#[test]
fn streams_above_the_limit_are_refused() {
    let limits = Limits { concurrent_streams_count: 2, ..Limits::default() };
    let mut server = Subject::server_with(limits, &[]);
    let requests: Vec<u8> = [1, 3, 5, 7].into_iter().flat_map(raw::get).collect();
    let seen = server.feed(&requests);
    assert!(matches!(seen[..], [Seen::Head(1, ..), Seen::Head(3, ..)]), "{seen:?}");
    let frames = server.sent();
    let refused: Vec<_> =
        of_kind(&frames, raw::RST_STREAM).iter().map(|f| (f.stream, f.u32_at(0))).collect();
    assert_eq!(refused, [(5, REFUSED_STREAM), (7, REFUSED_STREAM)]);
    assert_eq!(server.connection.stats().streams_refused, 2);
    server.answer(1, 200, End::Yes).unwrap();
    let seen = server.feed(&raw::get(9));
    assert!(matches!(seen[..], [Seen::Head(9, ..)]), "{seen:?}");
}

#[test]
fn a_client_that_ignores_the_limit_is_served_in_the_end() {
    let mut server = Subject::new(bolide_semantics::Role::Server, Limits::default());
    let mut bytes = raw::client_preface(&[]);
    bytes.extend((0..1000).flat_map(|index| raw::get(1 + 2 * index)));
    let mut answered = 0;
    server.arrive(&bytes);
    while let Some(seen) = server.poll() {
        assert!(matches!(seen, Seen::Head(..)), "{seen:?}");
        answered += 1;
    }
    server.leave();
    assert_eq!(answered, 100);
    assert_eq!(of_kind(&server.sent(), raw::RST_STREAM).len(), 900);
    for index in 0..100 {
        server.answer(1 + 2 * index, 200, End::Yes).unwrap();
    }
    assert_eq!(of_kind(&server.sent(), raw::HEADERS).len(), 100);
    let seen = server.feed(&raw::get(2001));
    assert!(matches!(seen[..], [Seen::Head(2001, ..)]));
}

#[test]
fn an_early_response_lets_a_short_rest_arrive() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.answer(1, 404, End::Yes).unwrap();
    assert_eq!(server.turn(), []);
    let frames = server.sent();
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].kind, frames[0].flags & 1), (raw::HEADERS, 1));
    assert_eq!(server.feed(&data(1, true, b"rest")), []);
    assert_eq!(server.sent(), []);
    assert!(server.connection.is_idle());
}

#[test]
fn an_early_response_refuses_a_long_rest() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.answer(1, 404, End::Yes).unwrap();
    server.turn();
    server.sent();
    let mut resets = Vec::new();
    for _ in 0..4 {
        assert_eq!(server.feed(&data(1, false, &[0; 16_384])), []);
        let frames = server.sent();
        resets.extend(of_kind(&frames, raw::RST_STREAM).iter().map(|f| (f.stream, f.u32_at(0))));
    }
    assert_eq!(resets, [(1, NO_ERROR)]);
    assert!(server.connection.is_idle());
}

#[test]
fn an_early_response_does_not_hide_what_is_wrong_with_the_rest() {
    for rest in [raw::post(1), raw::headers(1, true, &[(":status", "200")])] {
        let mut server = Subject::server();
        server.feed(&raw::post(1));
        server.answer(1, 404, End::Yes).unwrap();
        server.turn();
        server.sent();
        assert_eq!(server.feed(&rest), []);
        let frames = server.sent();
        let resets = of_kind(&frames, raw::RST_STREAM);
        assert_eq!(resets.iter().map(|f| f.u32_at(0)).collect::<Vec<_>>(), [PROTOCOL_ERROR]);
    }
}

#[test]
fn a_response_before_the_request_is_read_refuses_nothing() {
    let mut server = Subject::server();
    server.arrive(&[raw::post(1), data(1, false, b"ab"), data(1, true, b"cd")].concat());
    assert!(matches!(server.poll(), Some(Seen::Head(1, End::No, _))));
    server.answer(1, 200, End::Yes).unwrap();
    assert_eq!(server.poll(), None);
    server.leave();
    assert_eq!(server.sent_one().kind, raw::HEADERS);
    assert!(server.connection.is_idle());
}

#[test]
fn a_client_takes_no_stream_from_a_server() {
    let mut client = Subject::client();
    assert_eq!(client.dies_of(&raw::headers(2, true, &[(":status", "200")])).1, PROTOCOL_ERROR);
    let mut client = Subject::client();
    assert_eq!(client.dies_of(&raw::headers(1, true, &[(":status", "200")])).1, PROTOCOL_ERROR);
}

#[test]
fn a_client_is_told_what_may_be_repeated() {
    let mut client = Subject::client();
    for (code, untouched) in [(REFUSED_STREAM, true), (CANCEL, false), (PROTOCOL_ERROR, false)] {
        let id = client.ask(&Method::GET, End::Yes).unwrap();
        let seen = client.feed(&raw::rst_stream(id, code));
        let [Seen::Aborted(aborted, reason)] = seen[..] else { panic!("{seen:?}") };
        assert_eq!((aborted, reason.untouched), (id, untouched));
    }
}

#[test]
fn a_client_keeps_to_the_servers_limit() {
    let mut client = Subject::client_with(Limits::default(), &[(3, 2)]);
    assert_eq!(client.connection.exchanges_available(), 2);
    let first = client.ask(&Method::GET, End::Yes).unwrap();
    client.ask(&Method::GET, End::Yes).unwrap();
    assert_eq!(client.ask(&Method::GET, End::Yes), Err(Misuse::Refused));
    client.feed(&raw::headers(first, true, &[(":status", "200")]));
    assert_eq!(client.ask(&Method::GET, End::Yes), Ok(5));
}
