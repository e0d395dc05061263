//! RFC 9113 §8.1: requests, responses, interim responses, bodies and trailers.

use bolide_h2::Limits;
use bolide_semantics::{End, Misuse};
use http::Method;

use crate::raw::{self, GET, POST, PROTOCOL_ERROR, data, headers};
use crate::subject::{Seen, Subject, of_kind};

#[test]
fn a_request_and_its_response() {
    let mut server = Subject::server();
    let seen = server.feed(&raw::get(1));
    let [Seen::Head(1, End::Yes, fields)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(fields[0], (":method".to_owned(), "GET".to_owned()));
    server.answer_with(1, 200, &[("content-length", "4")], End::No).unwrap();
    assert_eq!(server.give(1, b"pong", End::Yes), Ok(true));
    let frames = server.sent();
    assert_eq!(frames.iter().map(|f| (f.kind, f.flags)).collect::<Vec<_>>(), [(1, 4), (0, 1)]);
    assert_eq!(frames[1].payload, b"pong");
    assert!(server.connection.is_idle());
}

#[test]
fn malformed_requests_reset_their_stream() {
    let long: &[&[(&str, &str)]] = &[
        &[("connection", "close")],
        &[("X-Upper", "1")],
        &[("te", "gzip")],
        &[("x", " 1")],
        &[("content-length", "1")],
        &[("host", "b")],
        &[(":path", "/")],
    ];
    for more in long {
        let mut server = Subject::server();
        let fields = [&GET[..], more].concat();
        assert_eq!(server.resets(&headers(1, true, &fields), 1), PROTOCOL_ERROR, "{more:?}");
        let seen = server.feed(&raw::get(3));
        assert!(matches!(seen[..], [Seen::Head(3, ..)]), "{seen:?}");
    }
}

#[test]
fn a_body_is_as_long_as_its_content_length() {
    let head = headers(1, false, &[&POST[..], &[("content-length", "3")]].concat());
    for body in [
        data(1, true, b"ab"),
        data(1, false, b"abcd"),
        [data(1, false, b"ab"), data(1, true, b"cd")].concat(),
        [data(1, false, b"ab"), headers(1, true, &[("x", "y")])].concat(),
    ] {
        let mut server = Subject::server();
        server.feed(&head);
        assert_eq!(server.resets(&body, 1), PROTOCOL_ERROR, "{body:?}");
    }
    let mut server = Subject::server();
    server.feed(&head);
    let seen = server.feed(&[data(1, false, b"abc"), data(1, true, b"")].concat());
    assert_eq!(seen.last(), Some(&Seen::Data(1, vec![], End::Yes)));
}

#[test]
fn trailers_end_a_message() {
    let mut server = Subject::server();
    let bytes = [raw::post(1), data(1, false, b"a"), headers(1, true, &[("x-sum", "1")])].concat();
    let seen = server.feed(&bytes);
    let fields = vec![("x-sum".to_owned(), "1".to_owned())];
    assert_eq!(seen[1..], [Seen::Data(1, b"a".to_vec(), End::No), Seen::Trailers(1, fields)]);
    for bad in [
        headers(1, false, &[("x", "1")]),
        headers(1, true, &[(":path", "/")]),
        headers(1, true, &[("connection", "close")]),
    ] {
        let mut server = Subject::server();
        server.feed(&raw::post(1));
        assert_eq!(server.resets(&bad, 1), PROTOCOL_ERROR);
    }
}

#[test]
fn trailers_are_sent_after_the_body() {
    let mut server = Subject::server_with(Limits::default(), &[(4, 3)]);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(server.give(1, b"abcde", End::No), Ok(false));
    server.give_trailers(1, &[("grpc-status", "0")]).unwrap();
    assert_eq!(server.give_trailers(1, &[]), Err(Misuse::OutOfOrder));
    assert_eq!(server.give(1, b"x", End::No), Err(Misuse::OutOfOrder));
    assert_eq!(server.sent().len(), 2);
    assert_eq!(server.feed(&raw::window_update(1, 10)), []);
    let frames = server.sent();
    assert_eq!(frames.iter().map(|f| (f.kind, f.flags)).collect::<Vec<_>>(), [(0, 0), (1, 5)]);
    assert!(server.connection.is_idle());
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.answer(1, 100, End::No).unwrap();
    server.answer_with(1, 103, &[("link", "</a>")], End::No).unwrap();
    assert_eq!(server.answer(1, 100, End::Yes), Err(Misuse::InvalidHead));
    assert_eq!(server.answer(1, 101, End::No), Err(Misuse::InvalidHead));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(server.answer(1, 103, End::No), Err(Misuse::OutOfOrder));
    assert_eq!(of_kind(&server.sent(), raw::HEADERS).len(), 3);

    let mut client = Subject::client();
    let id = client.ask(&Method::GET, End::Yes).unwrap();
    let interim = headers(id, false, &[(":status", "103")]);
    assert_eq!(client.feed(&interim), [Seen::Informational(id, 103)]);
    assert_eq!(client.feed(&interim), [Seen::Informational(id, 103)]);
    let seen = client.feed(&headers(id, true, &[(":status", "204")]));
    assert!(matches!(seen[..], [Seen::Head(_, End::Yes, _)]), "{seen:?}");
    let id = client.ask(&Method::GET, End::Yes).unwrap();
    client.sent_bytes();
    let ends = headers(id, true, &[(":status", "103")]);
    assert_eq!(client.resets(&ends, id), PROTOCOL_ERROR);
}

#[test]
fn a_response_begins_with_its_head() {
    let mut client = Subject::client();
    let id = client.ask(&Method::GET, End::Yes).unwrap();
    client.sent_bytes();
    assert_eq!(client.resets(&data(id, true, b"x"), id), PROTOCOL_ERROR);
}

#[test]
fn some_responses_have_no_body() {
    let length = ("content-length", "5");
    for (method, status, fits) in
        [(Method::HEAD, "200", true), (Method::GET, "304", true), (Method::GET, "200", false)]
    {
        let mut client = Subject::client();
        let id = client.ask(&method, End::Yes).unwrap();
        client.sent_bytes();
        let seen = client.feed(&headers(id, true, &[(":status", status), length]));
        assert_eq!(matches!(seen[..], [Seen::Head(..)]), fits, "{seen:?}");
    }
    let mut client = Subject::client();
    let id = client.ask(&Method::HEAD, End::Yes).unwrap();
    client.sent_bytes();
    client.feed(&headers(id, false, &[(":status", "200"), length]));
    assert_eq!(client.resets(&data(id, true, b"12345"), id), PROTOCOL_ERROR);
}

#[test]
fn a_client_hears_of_a_reset_after_the_response() {
    let mut client = Subject::client();
    let id = client.ask(&Method::POST, End::No).unwrap();
    client.feed(&headers(id, true, &[(":status", "404")]));
    let seen = client.feed(&raw::rst_stream(id, raw::NO_ERROR));
    assert!(matches!(&seen[..], [Seen::Aborted(..)]), "{seen:?}");
}

#[test]
fn an_upload_ends_after_its_response() {
    let mut client = Subject::client();
    let id = client.ask(&Method::POST, End::No).unwrap();
    client.feed(&headers(id, true, &[(":status", "200")]));
    assert_eq!(client.give(id, b"rest", End::Yes), Ok(true));
    assert!(client.connection.is_idle());
    assert_eq!(client.give(id, b"", End::Yes), Err(Misuse::UnknownExchange));
}
