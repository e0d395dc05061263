//! A session on a real event loop, against a server that answers what it was told to.

#![cfg(test)]

mod asking;

use std::io::ErrorKind;

use bolide_client::{Speaks, Step};
use bolide_semantics::Blame;

use crate::asking::{Told, ask, refused};

#[test]
fn responses_are_told_in_order_and_the_end_is_nobodys_fault() {
    let asked = ask(
        Speaks::Http1,
        &[b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\npo", b"ng"],
    );
    assert_eq!(asked.told[..3], [Told::Connected, Told::Ready, Told::Head(200)]);
    assert_eq!(asked.body(), b"pong");
    let ending = asked.ending.unwrap();
    assert_eq!((ending.step, ending.reason.blame), (Step::Ready, None));
    assert!(asked.received.starts_with(b"GET /ping HTTP/1.1\r\nhost: test\r\n"));
}

#[test]
fn a_server_that_closes_without_a_response_may_have_acted() {
    let asked = ask(Speaks::Http1, &[]);
    assert!(asked.told.contains(&Told::Aborted));
    let ending = asked.ending.unwrap();
    assert!(!ending.is_untouched() && !ending.is_refused());
    assert_eq!(ending.reason.name, "eof");
}

#[test]
fn what_is_no_http_is_the_peers_fault() {
    let asked = ask(Speaks::Http1, &[b"nonsense\r\n\r\n"]);
    let ending = asked.ending.unwrap();
    assert_eq!((ending.step, ending.reason.blame), (Step::Ready, Some(Blame::Peer)));
    let asked = ask(Speaks::Http2, &[b"HTTP/1.1 400 Bad Request\r\n\r\n"]);
    assert_eq!(asked.ending.unwrap().reason.blame, Some(Blame::Peer));
    assert!(asked.received.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
}

#[test]
fn what_an_ended_connection_keeps_is_charged_until_it_is_closed() {
    let asked = ask(Speaks::Http2, &[b"HTTP/1.1 400 Bad Request\r\n\r\n"]);
    assert!(asked.held_bytes > 0, "its stream");
}

#[test]
fn a_refused_connection_has_touched_nobody() {
    let ending = refused();
    assert_eq!(
        (ending.step, ending.socket),
        (Step::Connecting, Some(ErrorKind::ConnectionRefused))
    );
    assert!(ending.is_refused() && ending.is_untouched());
}

#[test]
fn a_handshake_that_is_never_answered_ends_in_time() {
    let ending = asking::silent_handshake();
    assert_eq!((ending.step, ending.reason.name), (Step::Handshaking, "connect-timeout"));
    assert!(ending.is_untouched());
}

#[test]
fn tls_with_somebody_who_does_not_speak_it_says_what_came() {
    let asked = ask(asking::tls(), &[b"HTTP/1.1 400 Bad Request\r\n\r\n"]);
    let ending = asked.ending.unwrap();
    assert_eq!(ending.step, Step::Handshaking);
    assert!(ending.tls.is_some(), "{ending:?}");
    assert!(!asked.told.contains(&Told::Ready));
}
