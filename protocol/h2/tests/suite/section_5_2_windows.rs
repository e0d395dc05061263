//! RFC 9113 §5.2, §6.9: flow control, in both directions and at both levels.

use std::time::Duration;

use bolide_h2::{Limits, limits};
use bolide_semantics::{End, Misuse, Role};

use crate::raw::{
    self, FLOW_CONTROL_ERROR, PADDED, PROTOCOL_ERROR, WINDOW_UPDATE, data, frame, window_update,
};
use crate::subject::{Seen, Subject, of_kind};

fn updates(server: &mut Subject) -> Vec<(u32, u32)> {
    let frames = server.sent();
    of_kind(&frames, WINDOW_UPDATE).iter().map(|frame| (frame.stream, frame.u32_at(0))).collect()
}

#[test]
fn window_updates_of_zero_are_errors() {
    let mut server = Subject::server();
    assert_eq!(server.dies_of(&window_update(0, 0)).1, PROTOCOL_ERROR);
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    assert_eq!(server.resets(&window_update(1, 0), 1), PROTOCOL_ERROR);
}

#[test]
fn windows_have_an_upper_end() {
    let mut server = Subject::server();
    assert_eq!(server.dies_of(&window_update(0, 0x7fff_ffff)).1, FLOW_CONTROL_ERROR);
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    assert_eq!(server.feed(&window_update(1, 0x7fff_ffff - 65_535)), []);
    assert_eq!(server.resets(&window_update(1, 1), 1), FLOW_CONTROL_ERROR);
}

#[test]
fn a_body_is_sent_as_far_as_the_windows_allow() {
    let mut server = Subject::server_with(Limits::default(), &[(4, 10)]);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(server.give(1, &[7; 25], End::Yes), Ok(false));
    assert_eq!(server.give(1, b"", End::Yes), Err(Misuse::OutOfOrder));
    let frames = server.sent();
    assert_eq!((frames[1].payload.len(), frames[1].flags), (10, 0));
    assert_eq!(server.feed(&window_update(1, 14)), []);
    let sent = server.sent_one();
    assert_eq!((sent.payload.len(), sent.flags), (14, 0));
    assert_eq!(server.feed(&window_update(1, 14)), []);
    let sent = server.sent_one();
    assert_eq!((sent.payload.len(), sent.flags), (1, 1));
    assert!(server.connection.is_idle());
}

#[test]
fn the_connections_window_holds_for_all_streams() {
    let mut server = Subject::server_with(Limits::default(), &[(4, 1 << 20)]);
    server.feed(&[raw::get(1), raw::get(3)].concat());
    server.answer(1, 200, End::No).unwrap();
    server.answer(3, 200, End::No).unwrap();
    assert_eq!(server.give(1, &[1; 65_000], End::Yes), Ok(true));
    assert_eq!(server.give(3, &[3; 1000], End::No), Ok(false));
    assert_eq!(server.give(3, &[3; 1000], End::No), Err(Misuse::Busy));
    let frames = server.sent();
    let sent: usize = of_kind(&frames, raw::DATA).iter().map(|frame| frame.payload.len()).sum();
    assert_eq!(sent, 65_535);
    assert_eq!(server.feed(&window_update(0, 10_000)), [Seen::Sendable(3)]);
    assert_eq!(server.sent_one().payload.len(), 465);
}

#[test]
fn who_filled_the_window_hears_when_it_opens() {
    let mut server = Subject::server_with(Limits::default(), &[(4, 10)]);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(server.give(1, &[7; 10], End::No), Ok(false));
    assert_eq!(server.turn(), []);
    assert_eq!(server.feed(&window_update(1, 5)), [Seen::Sendable(1)]);
    assert_eq!(server.turn(), []);
    assert_eq!(server.give(1, &[7; 4], End::No), Ok(true));
}

#[test]
fn an_empty_end_needs_no_window() {
    let mut server = Subject::server_with(Limits::default(), &[(4, 0)]);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(server.give(1, b"", End::No), Ok(false));
    assert_eq!(server.give(1, b"", End::Yes), Ok(true));
    let frames = server.sent();
    assert_eq!((frames[1].kind, frames[1].flags, frames[1].payload.len()), (raw::DATA, 1, 0));
    assert!(server.connection.is_idle());
}

#[test]
fn the_end_of_a_body_that_fills_the_window_needs_no_other() {
    for (window, at_once) in [(10, true), (4, false)] {
        let mut server = Subject::server_with(Limits::default(), &[(4, window)]);
        server.feed(&raw::get(1));
        let length = [("content-length", "10")];
        server.answer_with(1, 200, &length, End::No).unwrap();
        assert_eq!(server.give(1, &[7; 10], End::No), Ok(at_once));
        if !at_once {
            assert_eq!(server.turn(), []);
            assert_eq!(server.feed(&window_update(1, 6)), [Seen::Sendable(1)]);
        }
        assert_eq!(server.give(1, b"", End::Yes), Ok(true));
        let last = server.sent().pop().unwrap();
        assert_eq!((last.kind, last.flags, last.payload.len()), (raw::DATA, 1, 0));
        assert!(server.connection.is_idle());
    }
}

#[test]
fn a_frame_is_never_larger_than_the_peer_allows() {
    for (allowed, expected) in [(16_384, 16_384), (20_000, 20_000), (1 << 23, 1 << 20)] {
        let settings = [(4, 1 << 22), (5, allowed)];
        let mut server = Subject::server_with(Limits::default(), &settings);
        server.output_limit = 1 << 23;
        server.feed(&[raw::get(1), window_update(0, 1 << 22)].concat());
        server.answer(1, 200, End::No).unwrap();
        assert_eq!(server.give(1, &vec![0; 1_500_000], End::Yes), Ok(true));
        let frames = server.sent();
        let longest = of_kind(&frames, raw::DATA).iter().map(|f| f.payload.len()).max();
        assert_eq!(longest, Some(expected));
    }
}

#[test]
fn more_than_a_window_is_an_error() {
    let limits = || Limits {
        windows: limits::Windows { connection_window_bytes: 100_000, ..limits::Windows::DEFAULT },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits(), &[]);
    server.feed(&raw::post(1));
    for _ in 0..4 {
        server.feed(&data(1, false, &[0; 16_384]));
    }
    assert_eq!(server.resets(&data(1, false, b"x"), 1), FLOW_CONTROL_ERROR);

    let mut server = Subject::server_with(limits(), &[]);
    server.feed(&[raw::post(1), raw::post(3)].concat());
    for _ in 0..3 {
        server.feed(&[data(1, false, &[0; 16_384]), data(3, false, &[0; 16_384])].concat());
    }
    assert_eq!(server.dies_of(&data(1, false, &[0; 16_384])).1, FLOW_CONTROL_ERROR);
}

/// stalled-uploads: the bodies of sixteen streams may wait for their handlers, and a client that reads no responses sends no more until
/// it does.
#[test]
fn bodies_that_wait_for_handlers_make_the_connections_window_grow_unless_responses_wait() {
    let limits = Limits { connection_window_is_granted: true, ..Limits::default() };
    let mut server = Subject::server_with(limits, &[]);
    let whole =
        |id| (0..4).map(move |_| data(id, false, &[0; 16_384])).collect::<Vec<_>>().concat();
    for id in [1, 3] {
        server.output_limit = 1 << 20;
        server.feed(&raw::post(id));
        server.output_limit = 0;
        server.feed(&whole(id));
        assert_eq!(updates(&mut server), [], "there is no room for responses");
    }
    server.output_limit = 1 << 20;
    server.turn();
    assert_eq!(updates(&mut server), [(0, 128 << 10)]);
    let mut allowed = 256 << 10;
    for id in (5..).step_by(2).take(14) {
        server.feed(&[raw::post(id), whole(id)].concat());
        allowed += updates(&mut server).iter().map(|(_, increment)| increment).sum::<u32>();
    }
    assert_eq!(allowed, 1 << 20, "sixteen bodies wait");
    assert_eq!(
        server.dies_of(&[raw::post(33), data(33, false, b"x")].concat()).1,
        FLOW_CONTROL_ERROR
    );
}

#[test]
fn half_of_a_window_is_given_back_together() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.feed(&data(1, false, &[0; 16_384]));
    server.feed(&data(1, false, &[0; 16_384]));
    server.consumed(1, 32_767);
    assert_eq!(updates(&mut server), []);
    server.consumed(1, 1);
    assert_eq!(updates(&mut server), [(1, 32_768)]);
}

#[test]
fn a_stream_that_has_ended_gets_no_window() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.feed(&data(1, false, &[0; 16_384]));
    server.feed(&data(1, false, &[0; 16_384]));
    server.feed(&data(1, true, &[0; 16_384]));
    server.consumed(1, 49_152);
    assert_eq!(updates(&mut server), []);
}

#[test]
fn a_body_that_fits_gets_a_window_only_for_an_end_that_comes_by_itself() {
    for (ends, given) in [(true, &[][..]), (false, &[(1, 65_536)])] {
        let mut server = Subject::server();
        let fields = [&raw::POST[..], &[("content-length", "65536")]].concat();
        server.feed(&raw::headers(1, false, &fields));
        for piece in 0..4 {
            assert_eq!(updates(&mut server), []);
            server.feed(&data(1, ends && piece == 3, &[0; 16_384]));
            server.consumed(1, 16_384);
        }
        assert_eq!(updates(&mut server), given);
    }
}

#[test]
fn the_connections_window_comes_back_whatever_becomes_of_streams() {
    // Per round 16,384 bytes are consumed, reset with the stream, discarded after our reset, or
    // padding: all of it has to come back, or the window of 65,535 is used up within four rounds.
    let limits = Limits {
        windows: limits::Windows {
            connection_window_bytes: 65_535,
            connection_window_bytes_max: 65_535,
            ..limits::Windows::DEFAULT
        },
        budgets: limits::Budgets {
            own_resets_burst_count: Some(1000),
            client_resets_burst_count: 1000,
            ..limits::Budgets::DEFAULT
        },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits, &[]);
    let mut given_back = 0;
    for round in 0..40 {
        let id = 1 + 2 * round;
        let full = &[0; 16_384];
        match round % 6 {
            0 => {
                server.feed(&[raw::post(id), data(id, true, full)].concat());
                server.consumed(id, 16_384);
                server.answer(id, 200, End::Yes).unwrap();
            }
            1 => {
                let reset = raw::rst_stream(id, raw::CANCEL);
                server.feed(&[raw::post(id), data(id, false, full), reset].concat());
            }
            2 => {
                server.feed(&raw::post(id));
                server.abort(id);
                server.feed(&data(id, false, full));
            }
            3 => {
                let mut padding = vec![0; 256];
                padding[0] = 255;
                let padded = frame(raw::DATA, PADDED, id, &padding);
                server.feed(&[raw::post(id), padded.repeat(64)].concat());
                server.abort(id);
            }
            4 => {
                server.feed(&raw::post(id));
                server.answer(id, 200, End::Yes).unwrap();
                server.feed(&data(id, false, full));
            }
            _ => {
                // Cut off in the middle of the frame.
                let frame = data(id, false, full);
                server.feed(&[&raw::post(id), &frame[..5000]].concat());
                server.abort(id);
                server.feed(&frame[5000..]);
            }
        }
        for (stream, increment) in updates(&mut server) {
            given_back += if stream == 0 { increment } else { 0 };
        }
    }
    assert!(given_back > 40 * 16_384 - 65_535, "{given_back}");
}

#[test]
fn windows_grow_when_they_hold_the_peer_back() {
    let mut server = Subject::server();
    server.connection.set_rtt(Duration::from_millis(50));
    server.feed(&raw::post(1));
    let mut available: u32 = 65_536;
    let mut received = 0;
    for _ in 0..200 {
        server.now += Duration::from_millis(10);
        let length = available.min(16_384);
        server.feed(&data(1, false, &vec![0; length as usize]));
        server.consumed(1, length as usize);
        received += length;
        available -= length;
        available +=
            updates(&mut server).iter().filter(|(id, _)| *id == 1).map(|u| u.1).sum::<u32>();
    }
    assert!(available > 100_000, "{available} after {received}");
    assert!(available <= 16 << 20);
}

#[test]
fn the_first_acknowledgement_tells_the_round_trip_whatever_came_before_it() {
    let mut server = Subject::new(Role::Server, Limits::default());
    server.now += Duration::from_millis(20);
    server.feed(&[raw::PREFACE, &raw::settings(&[])].concat());
    server.now += Duration::from_millis(50);
    server.feed(&raw::settings_ack());
    server.feed(&raw::post(1));
    server.sent();
    server.feed(&data(1, false, &[0; 16_384]).repeat(2));
    server.now += Duration::from_millis(60);
    server.consumed(1, 32_768);
    // Half of the window within two round trips: it doubles.
    let of_stream: Vec<_> = updates(&mut server).into_iter().filter(|u| u.0 == 1).collect();
    assert_eq!(of_stream, [(1, 32_768 + 65_536)]);
}

#[test]
fn windows_stay_when_the_consumer_is_slow() {
    let mut server = Subject::server();
    server.connection.set_rtt(Duration::from_millis(5));
    server.feed(&raw::post(1));
    for _ in 0..20 {
        server.feed(&data(1, false, &[0; 16_384]));
        server.feed(&data(1, false, &[0; 16_384]));
        server.now += Duration::from_millis(100);
        server.consumed(1, 32_768);
        let of_stream: Vec<_> = updates(&mut server).into_iter().filter(|u| u.0 == 1).collect();
        assert_eq!(of_stream, [(1, 32_768)]);
    }
}

#[test]
fn streams_to_come_begin_with_more_when_several_grew() {
    let mut server = Subject::server();
    server.connection.set_rtt(Duration::from_millis(50));
    let mut raised = None;
    for stream in 0..4 {
        let id = 1 + 2 * stream;
        server.feed(&raw::post(id));
        server.feed(&data(id, false, &[0; 16_384]));
        server.feed(&data(id, false, &[0; 16_384]));
        server.consumed(id, 32_768);
        raised = of_kind(&server.sent(), raw::SETTINGS).first().map(|frame| frame.payload.clone());
        assert_eq!(raised.is_some(), stream == 3);
    }
    assert_eq!(raised.unwrap(), [0, 4, 0, 2, 0, 0]);
    assert_eq!(server.feed(&raw::settings_ack()), []);
    server.feed(&raw::post(9));
    let pieces = data(9, false, &[0; 16_384]).repeat(8);
    assert_eq!(server.feed(&pieces).len(), 8);
    assert_eq!(server.resets(&data(9, false, b"x"), 9), FLOW_CONTROL_ERROR);
}
