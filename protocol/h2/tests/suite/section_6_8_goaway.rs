//! RFC 9113 §6.8: leaving, on either side.

use std::time::Duration;

use bolide_h2::Connection;
use bolide_semantics::{Context, End, Misuse};
use http::Method;

use crate::raw::{self, ACK, GOAWAY, NO_ERROR, PING, PROTOCOL_ERROR, frame, goaway};
use crate::subject::{Seen, Subject};

fn shut_down(subject: &mut Subject) {
    subject.with(|connection: &mut Connection, cx: &mut Context<'_>| connection.shut_down(cx));
}

fn reply_to_ping(subject: &mut Subject) -> Vec<u8> {
    let frames = subject.sent();
    assert_eq!(frames.iter().map(|frame| frame.kind).collect::<Vec<_>>(), [GOAWAY, PING]);
    assert_eq!((frames[0].u32_at(0), frames[0].u32_at(4)), (0x7fff_ffff, NO_ERROR));
    frame(PING, ACK, 0, &frames[1].payload)
}

#[test]
fn a_server_leaves_in_two_steps() {
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    shut_down(&mut server);
    shut_down(&mut server);
    let reply = reply_to_ping(&mut server);
    // A request that crossed the first GOAWAY is served, one behind the second is not.
    let seen = server.feed(&[raw::get(3), reply, raw::get(5)].concat());
    assert!(matches!(seen[..], [Seen::Head(3, ..)]), "{seen:?}");
    let last = server.sent_one();
    assert_eq!((last.kind, last.u32_at(0), last.u32_at(4)), (GOAWAY, 3, NO_ERROR));
    assert_eq!(server.feed(&raw::data(5, true, b"x")), []);
    server.answer(3, 200, End::Yes).unwrap();
    assert_eq!(server.turn(), []);
    server.answer(1, 200, End::Yes).unwrap();
    assert_eq!(server.turn(), [Seen::Closed("drained")]);
}

#[test]
fn an_idle_server_leaves_after_the_ping() {
    let mut server = Subject::server();
    shut_down(&mut server);
    assert_eq!(server.turn(), []);
    let reply = reply_to_ping(&mut server);
    assert_eq!(server.feed(&reply), [Seen::Closed("drained")]);
}

#[test]
fn a_ping_without_reply_delays_for_a_second_only() {
    let mut server = Subject::server();
    shut_down(&mut server);
    assert_eq!(server.turn(), []);
    server.sent();
    let at = server.deadline.unwrap().at;
    assert_eq!(at - server.now, Duration::from_secs(1));
    assert_eq!(server.after(Duration::from_millis(999)), []);
    assert_eq!(server.after(Duration::from_millis(1)), [Seen::Closed("drained")]);
}

#[test]
fn a_client_leaves_after_its_exchanges() {
    let mut client = Subject::client();
    let id = client.ask(&Method::GET, End::Yes).unwrap();
    shut_down(&mut client);
    assert_eq!(client.ask(&Method::GET, End::Yes), Err(Misuse::Refused));
    assert_eq!(client.turn(), []);
    let seen = client.feed(&raw::headers(id, true, &[(":status", "200")]));
    assert!(matches!(seen[..], [Seen::Head(..), Seen::Closed("drained")]), "{seen:?}");
}

#[test]
fn a_client_hears_what_was_not_served() {
    let mut client = Subject::client();
    let ids: Vec<_> = (0..3).map(|_| client.ask(&Method::GET, End::Yes).unwrap()).collect();
    assert_eq!(client.feed(&goaway(0x7fff_ffff, NO_ERROR)), [Seen::Draining(0x7fff_ffff)]);
    assert_eq!(client.ask(&Method::GET, End::Yes), Err(Misuse::Refused));
    let seen = client.feed(&goaway(ids[0], NO_ERROR));
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(seen[0], Seen::Draining(ids[0]));
    for (one, id) in seen[1..].iter().zip(&ids[1..]) {
        let Seen::Aborted(aborted, reason) = one else { panic!("{one:?}") };
        assert!(aborted == id && reason.untouched);
    }
    let seen = client.feed(&raw::headers(ids[0], true, &[(":status", "200")]));
    assert!(matches!(seen[..], [Seen::Head(1, ..), Seen::Closed("goaway")]), "{seen:?}");
}

#[test]
fn the_last_stream_may_not_rise() {
    let mut client = Subject::client();
    client.ask(&Method::GET, End::Yes).unwrap();
    client.feed(&goaway(1, NO_ERROR));
    assert_eq!(client.dies_of(&goaway(3, NO_ERROR)).1, PROTOCOL_ERROR);
}

#[test]
fn a_client_that_says_goodbye_is_still_served() {
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    let debug = [goaway(0, NO_ERROR)[9..].to_vec(), vec![b'x'; 5000]].concat();
    assert_eq!(server.feed(&frame(GOAWAY, 0, 0, &debug)), [Seen::Draining(0)]);
    server.answer(1, 200, End::Yes).unwrap();
    assert_eq!(server.feed(&raw::ping([0; 8])), []);
    assert_eq!(server.sent().len(), 2);
}
