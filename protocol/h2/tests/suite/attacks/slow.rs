//! RFC 9113 §10.5: peers that hold on to things by doing as little as possible.

use std::time::Duration;

use bolide_h2::{Limits, limits};
use bolide_semantics::End;

use crate::raw::{self, CANCEL, RST_STREAM, data, frame, window_update};
use crate::subject::{Seen, Subject, of_kind};

const SECOND: Duration = Duration::from_secs(1);

/// Seconds until something is reported, with bytes that arrive each second.
fn seconds(server: &mut Subject, mut each: impl FnMut(u32) -> Vec<u8>) -> (u32, Vec<Seen>) {
    for second in 1..200 {
        server.now += SECOND;
        let mut seen = server.feed(&each(second));
        seen.retain(|one| !matches!(one, Seen::Data(..)));
        if !seen.is_empty() {
            return (second, seen);
        }
        for ping in of_kind(&server.sent(), raw::PING) {
            server.feed(&frame(raw::PING, raw::ACK, 0, &ping.payload));
        }
    }
    panic!("nothing happened");
}

#[test]
fn slow_head() {
    // A byte of a frame each second, then of a header block in small frames.
    let mut server = Subject::server();
    let get = raw::get(1);
    let (second, seen) = seconds(&mut server, |second| vec![get[second as usize - 1]]);
    assert_eq!((second, seen), (11, vec![Seen::Closed("head-timeout")]));

    let limits = Limits {
        heads: limits::Heads { continuation_frames_count: 100, ..limits::Heads::DEFAULT },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits, &[]);
    server.feed(&frame(raw::HEADERS, 0, 1, b""));
    let (second, seen) = seconds(&mut server, |_| frame(raw::CONTINUATION, 0, 1, b""));
    assert_eq!((second, seen), (10, vec![Seen::Closed("head-timeout")]));
}

#[test]
fn slow_body_that_pauses() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    let (second, seen) = seconds(&mut server, |_| Vec::new());
    assert!((30..=35).contains(&second), "{second}");
    assert!(matches!(seen[..], [Seen::Aborted(1, _)]), "{seen:?}");
    let frames = server.sent();
    assert_eq!(of_kind(&frames, RST_STREAM)[0].u32_at(0), CANCEL);
}

#[test]
fn slow_body_that_drips() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.arrive(&[]);
    server.leave();
    for second in 1..60 {
        server.now += SECOND;
        let mut seen = server.feed(&data(1, false, &[0; 100]));
        server.consumed(1, 100);
        seen.retain(|one| !matches!(one, Seen::Data(..)));
        if !seen.is_empty() {
            assert!((10..=20).contains(&second), "{second}");
            assert!(matches!(seen[..], [Seen::Aborted(1, _)]), "{seen:?}");
            return;
        }
    }
    panic!("nothing happened");
}

/// Which of three requests are ended while the body of the first comes with so many bytes per second.
fn ended_beside(bytes_per_second: usize) -> Vec<u32> {
    let mut server = Subject::server();
    for stream in [1, 3, 5] {
        server.feed(&[raw::post(stream), data(stream, false, &[0; 10])].concat());
        server.consumed(stream, 10);
    }
    let mut ended = Vec::new();
    for _ in 0..60 {
        server.now += SECOND;
        for seen in server.feed(&data(1, false, &vec![0; bytes_per_second])) {
            match seen {
                Seen::Aborted(stream, _) => ended.push(stream),
                Seen::Data(..) => server.consumed(1, bytes_per_second),
                _ => {}
            }
        }
        for ping in of_kind(&server.sent(), raw::PING) {
            server.feed(&frame(raw::PING, raw::ACK, 0, &ping.payload));
        }
    }
    ended
}

#[test]
fn bodies_that_come_one_after_the_other_are_slow_only_together() {
    assert_eq!(ended_beside(1600), []);
    assert_eq!(ended_beside(1400), [3, 5]);
}

#[test]
fn slow_body_after_its_response() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.answer(1, 404, End::Yes).unwrap();
    for _ in 0..40 {
        server.now += SECOND;
        assert_eq!(server.feed(&data(1, false, &[0; 100])), []);
        let frames = server.sent();
        if let [reset] = of_kind(&frames, RST_STREAM)[..] {
            assert_eq!(reset.u32_at(0), raw::NO_ERROR);
            assert!(server.connection.is_idle());
            return;
        }
    }
    panic!("nothing happened");
}

#[test]
fn a_body_of_a_kilobyte_per_second_is_no_attack() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    for _ in 0..100 {
        server.now += SECOND;
        let seen = server.feed(&data(1, false, &[0; 1000]));
        assert!(matches!(seen[..], [Seen::Data(..)]), "{seen:?}");
        server.consumed(1, 1000);
        server.sent();
    }
}

fn with_response(window: u32) -> Subject {
    let mut server = Subject::server_with(Limits::default(), &[(4, window)]);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    server.give(1, &[0; 50_000], End::Yes).unwrap();
    server.turn();
    server.sent();
    server.turn();
    server
}

#[test]
fn h2_bomb_with_a_closed_window() {
    let mut server = with_response(0);
    let (second, seen) = seconds(&mut server, |_| Vec::new());
    assert!((30..=35).contains(&second), "{second}");
    assert!(matches!(seen[..], [Seen::Aborted(1, _)]), "{seen:?}");
}

#[test]
fn h2_bomb_with_a_dripping_window() {
    let mut server = with_response(0);
    let (second, seen) = seconds(&mut server, |_| window_update(1, 1));
    assert!((30..=35).contains(&second), "{second}");
    assert!(matches!(seen[..], [Seen::Aborted(1, _)]), "{seen:?}");
}

#[test]
fn h2_bomb_with_windows_that_close_alternately() {
    // At every other look the stream waits for its own window, at the others for the connection's; six bytes a second pass.
    let mut server = Subject::server_with(Limits::default(), &[(4, 65_535)]);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    server.give(1, &[0; 200_000], End::Yes).unwrap();
    server.turn();
    server.sent();
    let (second, seen) = seconds(&mut server, |second| match second % 10 {
        4 => window_update(0, 60),
        9 => window_update(1, 60),
        _ => Vec::new(),
    });
    assert!((30..=130).contains(&second), "{second}");
    let ends = matches!(seen[..], [Seen::Aborted(1, _)] | [Seen::Closed("zero-window")]);
    assert!(ends, "{seen:?}");
}

#[test]
fn tcp_window_that_opens_for_a_byte_now_and_then() {
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    server.give(1, &[0; 10_000], End::Yes).unwrap();
    server.turn();
    server.output.advance(1);
    assert_eq!(server.after(29 * SECOND), []);
    server.output.advance(1);
    assert_eq!(server.after(2 * SECOND), [Seen::Closed("write-stall")]);
}

#[test]
fn a_reader_of_a_kilobyte_per_second_is_no_attack() {
    let mut server = with_response(0);
    for _ in 0..49 {
        server.now += SECOND;
        assert_eq!(server.feed(&window_update(1, 1000)), []);
        server.sent();
    }
}

#[test]
fn zero_window() {
    let mut server = Subject::server_with(Limits::default(), &[(4, 1 << 20)]);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    server.give(1, &[0; 100_000], End::Yes).unwrap();
    server.turn();
    server.sent();
    server.turn();
    let (second, seen) = seconds(&mut server, |_| Vec::new());
    assert!((60..=70).contains(&second), "{second}");
    assert_eq!(seen, [Seen::Closed("zero-window")]);
}

#[test]
fn tcp_window_closed() {
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    server.answer(1, 200, End::Yes).unwrap();
    assert_eq!(server.turn(), []);
    assert_eq!(server.after(29 * SECOND), []);
    assert_eq!(server.after(SECOND), [Seen::Closed("write-stall")]);
}

#[test]
fn settings_ack_withheld() {
    let mut server = Subject::new(bolide_semantics::Role::Server, Limits::default());
    server.feed(&raw::client_preface(&[]));
    server.sent();
    let (second, seen) = seconds(&mut server, |_| raw::ping([0; 8]));
    assert_eq!((second, seen), (30, vec![Seen::Closed("settings-timeout")]));
}

#[test]
fn partial_frames() {
    // A truncated PING is no reason to be woken before its deadline.
    let mut server = Subject::server();
    assert_eq!(server.feed(&raw::ping([0; 8])[..12]), []);
    let deadline = server.deadline.unwrap();
    assert_eq!(deadline.at - server.now, 10 * SECOND);
    assert_eq!(server.turn(), []);
    assert_eq!(server.deadline, Some(deadline));
    server.connection.receive_eof();
    assert_eq!(server.turn(), [Seen::Closed("eof")]);
}
