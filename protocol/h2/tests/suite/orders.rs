//! RFC 9110 §6, RFC 9113 §8.1: orders that the state does not allow are refused and change nothing.

use bolide_semantics::{End, Misuse};
use http::Method;

use crate::raw;
use crate::subject::Subject;

#[test]
fn orders_come_in_order() {
    let mut server = Subject::server();
    assert_eq!(server.answer(1, 200, End::Yes), Err(Misuse::UnknownExchange));
    server.feed(&raw::get(1));
    assert_eq!(server.give(1, b"x", End::No), Err(Misuse::OutOfOrder));
    assert_eq!(server.give_trailers(1, &[]), Err(Misuse::OutOfOrder));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(server.answer(1, 200, End::No), Err(Misuse::OutOfOrder));
    server.give(1, b"x", End::Yes).unwrap();
    assert_eq!(server.give(1, b"x", End::Yes), Err(Misuse::UnknownExchange));
    server.abort(1);
    server.consumed(1, 1);
    assert_eq!(server.sent().len(), 2);
}

#[test]
fn a_role_has_its_own_orders() {
    let mut server = Subject::server();
    assert_eq!(server.ask(&Method::GET, End::Yes), Err(Misuse::OutOfOrder));
    let mut client = Subject::client();
    let id = client.ask(&Method::GET, End::Yes).unwrap();
    assert_eq!(client.answer(id, 200, End::Yes), Err(Misuse::OutOfOrder));
}

#[test]
fn a_body_keeps_to_its_length() {
    let mut server = Subject::server();
    let length = [("content-length", "3")];
    server.feed(&[raw::get(1), raw::get(3)].concat());
    assert_eq!(server.answer_with(1, 200, &length, End::Yes), Err(Misuse::WrongLength));
    server.answer_with(1, 200, &length, End::No).unwrap();
    assert_eq!(server.give(1, b"abcd", End::Yes), Err(Misuse::WrongLength));
    assert_eq!(server.give(1, b"ab", End::Yes), Err(Misuse::WrongLength));
    assert_eq!(server.give(1, b"ab", End::No), Ok(true));
    assert_eq!(server.give_trailers(1, &[]), Err(Misuse::WrongLength));
    assert_eq!(server.give(1, b"c", End::Yes), Ok(true));
    server.answer_with(3, 304, &length, End::No).unwrap();
    assert_eq!(server.give(3, b"abc", End::Yes), Err(Misuse::WrongLength));
    assert_eq!(server.give(3, b"", End::Yes), Ok(true));
}

#[test]
fn heads_that_could_be_misread_are_refused() {
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    for bad in [("x", "a\r\nb"), ("X", "1"), ("a:b", "1"), ("content-length", "-1")] {
        assert_eq!(server.answer_with(1, 200, &[bad], End::Yes), Err(Misuse::InvalidHead));
    }
    assert_eq!(server.sent(), []);
    server.answer_with(1, 200, &[("connection", "close"), ("x", "1")], End::Yes).unwrap();
    let frames = server.sent();
    assert!(!frames[0].payload.windows(5).any(|window| window == b"close"));
}

#[test]
fn after_the_end_nothing_is_taken() {
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    server.dies_of(&raw::get(2));
    assert_eq!(server.answer(1, 200, End::Yes), Err(Misuse::UnknownExchange));
    assert_eq!(server.sent(), []);
}

#[test]
fn no_further_request_is_read_while_responses_wait() {
    let mut server = Subject::server();
    server.output_limit = 10;
    let seen = server.feed(&raw::get(1));
    assert_eq!(seen.len(), 1);
    server.answer_with(1, 200, &[("x-long", "0123456789")], End::Yes).unwrap();
    assert_eq!(server.feed(&[raw::ping([0; 8]), raw::get(3)].concat()), []);
    assert!(!server.connection.wants_input());
    server.sent();
    assert_eq!(server.turn().len(), 1);
    assert!(server.connection.wants_input());
}

#[test]
fn a_body_waits_for_room_in_the_output() {
    let mut server = Subject::server();
    server.output_limit = 20_000;
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(server.give(1, &[0; 50_000], End::No), Ok(false));
    let mut framed = 0;
    for _ in 0..4 {
        let frames = server.sent();
        framed +=
            frames.iter().map(|f| if f.kind == 0 { f.payload.len() } else { 0 }).sum::<usize>();
        if framed == 50_000 {
            break;
        }
        assert!(framed <= 50_000 && server.output.is_empty());
        server.turn();
    }
    assert_eq!(framed, 50_000);
}
