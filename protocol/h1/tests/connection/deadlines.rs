//! RFC 9112 §9.5, RFC 9110 §15.5.9: peers that do nothing, or too little.

use std::time::Duration;

use bolide_semantics::{DeadlineReason, End, ExchangeEvent, ExchangeId};

use crate::wire::{Wire, answer_all};

const ID: ExchangeId = ExchangeId(1);

#[test]
fn idle_connections() {
    let mut wire = Wire::server();
    wire.listen(b"");
    wire.expire(60);
    assert_eq!(wire.logged(), ["closed idle"]);

    let mut wire = Wire::server();
    wire.listen(b"");
    wire.now += Duration::from_secs(59);
    wire.turn(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &mut answer_all);
    wire.sent();
    wire.listen(b"");
    assert!(wire.connection.is_idle());
    wire.expire(60);
    assert_eq!(wire.logged(), ["1 GET a/ end", "closed idle"]);
}

#[test]
fn slow_head() {
    let mut wire = Wire::server();
    for byte in b"GET / HTT" {
        wire.listen(&[*byte]);
        assert!(!wire.connection.is_idle());
        wire.now += Duration::from_secs(1);
    }
    wire.listen(b"P");
    let deadline = wire.deadline.unwrap();
    assert_eq!(deadline.reason, DeadlineReason::Head);
    assert_eq!(deadline.at - wire.now, Duration::from_secs(1));
    wire.now = deadline.at;
    wire.turn(b"/1.1\r\nHo", &mut answer_all);
    assert_eq!(wire.logged(), ["1 rejected 408", "closed head-timeout"]);
    assert!(wire.sent().starts_with("HTTP/1.1 408 Request Timeout\r\n"));
}

#[test]
fn slow_body() {
    let mut wire = Wire::server();
    wire.listen(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    // 500 bytes a second over 10 seconds are asked for.
    wire.listen(&[b'x'; 5000]);
    assert_eq!(wire.deadline.unwrap().reason, DeadlineReason::Body);
    wire.expire(10);
    wire.listen(&[b'x'; 4999]);
    wire.logged();
    wire.now = wire.deadline.unwrap().at;
    wire.turn(b"", &mut answer_all);
    assert_eq!(wire.logged(), ["1 rejected 408", "closed body-timeout"]);
}

#[test]
fn slow_body_after_the_response_began() {
    let mut wire = Wire::server();
    wire.turn(
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n",
        &mut |wire, id, event| {
            if matches!(event, ExchangeEvent::Head(_)) {
                wire.respond(id, 200, &[], End::No).unwrap();
            }
        },
    );
    wire.sent();
    wire.now += Duration::from_secs(29);
    wire.listen(b"x");
    wire.expire(30);
    assert_eq!(
        wire.logged()[1..],
        ["1 data x", "1 aborted: the body came too slowly", "closed body-timeout"]
    );
}

#[test]
fn a_body_that_the_owner_does_not_take_is_not_slow() {
    let mut wire = Wire::server();
    wire.listen(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    while wire.connection.wants_input() {
        wire.listen(&[b'x'; 1 << 16]);
    }
    assert_eq!(wire.deadline, None);
    wire.now += Duration::from_secs(1000);
    wire.consumed(ID, 1 << 18);
    wire.listen(b"");
    assert_eq!(wire.deadline.unwrap().at - wire.now, Duration::from_secs(10));
}

#[test]
fn slow_discard() {
    let mut wire = Wire::server();
    wire.listen(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n");
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    wire.sent();
    wire.listen(b"x");
    wire.expire(10);
    assert_eq!(wire.logged()[1..], ["closed body-timeout"]);
}

#[test]
fn slow_read() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.respond(ID, 200, &[], End::No).unwrap();
    wire.data(ID, &"x".repeat(1000), End::No).unwrap();
    wire.listen(b"");
    assert_eq!(wire.deadline.unwrap().reason, DeadlineReason::Write);
    wire.now += Duration::from_secs(29);
    wire.output.advance(1);
    wire.listen(b"");
    wire.expire(1);
    let expected = ["1 aborted: the peer took too little for too long", "closed write-timeout"];
    assert_eq!(wire.logged()[1..], expected);
}

#[test]
fn small_responses_that_are_taken_at_once_are_not_a_slow_read() {
    let mut wire = Wire::server();
    for second in 0..100 {
        wire.turn(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &mut answer_all);
        assert!(!wire.is_closed(), "after {second} s");
        wire.sent();
        wire.now += Duration::from_secs(1);
    }
}

#[test]
fn slow_read_between_requests() {
    let mut wire = Wire::server();
    wire.turn(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &mut answer_all);
    wire.now += Duration::from_secs(20);
    wire.listen(b"");
    wire.expire(10);
    assert_eq!(wire.logged(), ["1 GET a/ end", "closed write-timeout"]);
}

#[test]
fn a_slow_response_is_the_owners_affair() {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(wire.deadline, None);
    let mut wire = Wire::client();
    wire.request("GET", "/", &[], End::Yes).unwrap();
    wire.sent();
    wire.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(wire.deadline, None);
}

#[test]
fn the_rest_of_a_request_that_was_answered_early_has_a_deadline() {
    let mut wire = Wire::client();
    wire.request("POST", "/", &[("content-length", "3")], End::No).unwrap();
    wire.sent();
    wire.now += Duration::from_secs(40);
    wire.listen(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(wire.logged(), ["1 403 [content-length: 0] end"]);
    for byte in ["a", "b"] {
        let deadline = wire.deadline.unwrap();
        assert_eq!(deadline.reason, DeadlineReason::Idle);
        assert_eq!(deadline.at - wire.now, Duration::from_secs(60));
        wire.now += Duration::from_secs(59);
        wire.data(ID, byte, End::No).unwrap();
        wire.sent();
        wire.listen(b"");
    }
    wire.expire(60);
    assert_eq!(wire.logged(), ["closed idle"]);
}

#[test]
fn a_client_is_idle_since_its_last_response() {
    let mut wire = Wire::client();
    wire.listen(b"");
    wire.now += Duration::from_secs(59);
    wire.request("GET", "/", &[], End::Yes).unwrap();
    wire.sent();
    wire.now += Duration::from_secs(10);
    wire.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    wire.expire(60);
    assert_eq!(wire.logged(), ["1 200 [content-length: 0] end", "closed idle"]);
}

#[test]
fn tunnels_may_be_silent() {
    let mut wire = Wire::server();
    wire.listen(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
    wire.respond(ID, 200, &[], End::No).unwrap();
    wire.sent();
    wire.listen(b"x");
    assert_eq!(wire.deadline, None);
}
