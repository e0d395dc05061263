//! RFC 9113 §9.1, §10.5: what happens when nothing happens.

use std::time::Duration;

use bolide_h2::Limits;
use bolide_semantics::{DeadlineReason, End, Role};

use crate::raw::{
    self, ACK, CANCEL, GOAWAY, PING, RST_STREAM, SETTINGS_TIMEOUT, data, frame, headers,
};
use crate::subject::{Seen, Subject, of_kind};

const SECOND: Duration = Duration::from_secs(1);

/// Waits as the owner would: until each deadline, at most until `time` has passed.
fn wait(subject: &mut Subject, time: Duration) -> Vec<Seen> {
    let until = subject.now + time;
    let mut seen = Vec::new();
    loop {
        let next = subject.deadline.map(|deadline| deadline.at).filter(|at| *at <= until);
        let Some(at) = next else { break };
        assert!(at > subject.now, "a deadline that does not move");
        subject.now = at.max(subject.now);
        let now = subject.turn();
        let closed = matches!(now.last(), Some(Seen::Closed(_)));
        seen.extend(now);
        if closed {
            return seen;
        }
    }
    subject.now = until;
    seen
}

fn reason(subject: &Subject) -> Option<DeadlineReason> {
    subject.deadline.map(|deadline| deadline.reason)
}

#[test]
fn an_idle_connection_says_goodbye() {
    let mut server = Subject::server();
    assert_eq!(wait(&mut server, 59 * SECOND), []);
    assert_eq!(reason(&server), Some(DeadlineReason::Idle));
    assert_eq!(wait(&mut server, SECOND), [Seen::Closed("idle")]);
    assert_eq!(server.sent_one().kind, GOAWAY);
}

#[test]
fn a_request_puts_the_end_off() {
    let mut server = Subject::server();
    assert_eq!(wait(&mut server, 59 * SECOND), []);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::Yes).unwrap();
    server.turn();
    server.sent();
    server.turn();
    assert_eq!(wait(&mut server, 59 * SECOND), []);
    assert_eq!(wait(&mut server, SECOND), [Seen::Closed("idle")]);
}

#[test]
fn a_request_in_the_last_moment_is_served() {
    let mut server = Subject::server();
    wait(&mut server, 59 * SECOND);
    server.now += 2 * SECOND;
    let seen = server.feed(&raw::get(1));
    assert!(matches!(seen[..], [Seen::Head(1, ..)]), "{seen:?}");
}

#[test]
fn a_frame_that_has_begun_puts_the_end_off() {
    let mut server = Subject::server();
    assert_eq!(wait(&mut server, 55 * SECOND), []);
    let get = raw::get(1);
    assert_eq!(server.feed(&get[..5]), []);
    assert_eq!(wait(&mut server, 9 * SECOND), []);
    let seen = server.feed(&get[5..]);
    assert!(matches!(seen[..], [Seen::Head(1, ..)]), "{seen:?}");
}

#[test]
fn the_preface_has_ten_seconds() {
    for bytes in [&b""[..], raw::PREFACE] {
        let mut server = Subject::new(Role::Server, Limits::default());
        server.feed(bytes);
        server.sent();
        server.turn();
        assert_eq!(wait(&mut server, Duration::from_millis(9999)), []);
        assert_eq!(wait(&mut server, SECOND), [Seen::Closed("preface-timeout")]);
    }
}

#[test]
fn settings_are_acknowledged_in_thirty_seconds() {
    let mut server = Subject::new(Role::Server, Limits::default());
    server.feed(&raw::client_preface(&[]));
    server.sent();
    server.turn();
    assert_eq!(wait(&mut server, 30 * SECOND), [Seen::Closed("settings-timeout")]);
    assert_eq!(server.sent_one().u32_at(4), SETTINGS_TIMEOUT);
}

#[test]
fn silence_with_an_open_exchange_is_asked_about() {
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    assert_eq!(wait(&mut server, 70 * SECOND), []);
    let ping = server.sent_one();
    assert_eq!((ping.kind, ping.flags), (PING, 0));
    server.feed(&frame(PING, ACK, 0, &ping.payload));
    assert_eq!(wait(&mut server, 55 * SECOND), []);
    assert_eq!(server.sent(), []);
    assert_eq!(wait(&mut server, 10 * SECOND), []);
    assert_eq!(server.sent_one().kind, PING);
    server.turn();
    assert_eq!(wait(&mut server, 30 * SECOND), [Seen::Closed("ping-timeout")]);
}

#[test]
fn slow_body_of_a_call_has_minutes_and_not_for_ever() {
    let grpc = [&raw::POST[..], &[("content-type", "application/grpc")]].concat();
    let mut server = Subject::server();
    server.feed(&headers(1, false, &grpc));
    for (seconds, is_over) in [(30, false), (30, false), (30, false), (510, true)] {
        let mut seen = Vec::new();
        for _ in 0..seconds / 10 {
            seen.extend(wait(&mut server, 10 * SECOND));
            for frame in server.sent() {
                if frame.kind == PING {
                    server.feed(&self::frame(PING, ACK, 0, &frame.payload));
                }
            }
        }
        let aborted = matches!(seen[..], [Seen::Aborted(1, _)]);
        assert!(if is_over { aborted } else { seen.is_empty() }, "{seconds}: {seen:?}");
    }
}

#[test]
fn grpc_and_tunnels_may_be_silent() {
    let grpc = [&raw::POST[..], &[("content-type", "application/grpc")]].concat();
    let connect = [(":method", "CONNECT"), (":authority", "a:80")];
    for request in [headers(1, false, &grpc), headers(1, false, &connect)] {
        let mut server = Subject::server();
        server.feed(&request);
        for _ in 0..10 {
            assert_eq!(wait(&mut server, 30 * SECOND), []);
            for ping in server.sent() {
                assert_eq!(ping.kind, PING);
                server.feed(&frame(PING, ACK, 0, &ping.payload));
            }
        }
    }
}

#[test]
fn the_clock_of_a_body_stands_while_nobody_wants_it() {
    let mut server = Subject::server();
    server.feed(&[raw::post(1), data(1, false, &[0; 100])].concat());
    // The bytes are here and are not consumed.
    assert_eq!(wait(&mut server, 40 * SECOND), []);
    server.consumed(1, 100);
    server.turn();
    let seen = wait(&mut server, 36 * SECOND);
    assert!(matches!(seen[..], [Seen::Aborted(1, _)]), "{seen:?}");
    let frames = server.sent();
    assert_eq!(of_kind(&frames, RST_STREAM)[0].u32_at(0), CANCEL);
}

#[test]
fn the_clock_of_a_body_ends_with_the_response() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.answer(1, 200, End::No).unwrap();
    server.turn();
    server.sent();
    server.turn();
    assert_eq!(wait(&mut server, 55 * SECOND), []);
}

#[test]
fn a_polled_connection_has_always_a_deadline() {
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    assert!(server.deadline.is_some());
    let mut client = Subject::client();
    client.turn();
    assert!(client.deadline.is_some());
}
