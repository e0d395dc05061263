//! RFC 9113 §6.1, §6.9: frame after frame of one body that lie in the input together count as each of them would.

use bolide_h2::{Limits, limits};
use bolide_semantics::End;

use crate::raw::{self, FLOW_CONTROL_ERROR, PROTOCOL_ERROR, RST_STREAM, WINDOW_UPDATE, data};
use crate::subject::{Seen, Subject, of_kind};

const FRAME: [u8; 16_384] = [7; 16_384];

fn frames(count: usize) -> Vec<u8> {
    data(1, false, &FRAME).repeat(count)
}

fn post_of(length: &str) -> Vec<u8> {
    let fields = [&raw::POST[..], &[("content-length", length)]].concat();
    raw::headers(1, false, &fields)
}

fn given_back(server: &mut Subject, stream: u32) -> u32 {
    let frames = server.sent();
    let updates = of_kind(&frames, WINDOW_UPDATE);
    updates.iter().filter(|frame| frame.stream == stream).map(|frame| frame.u32_at(0)).sum()
}

#[test]
fn a_run_may_not_go_beyond_the_streams_window() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    assert_eq!(server.resets(&frames(5), 1), FLOW_CONTROL_ERROR);
}

#[test]
fn a_run_may_not_go_beyond_the_connections_window() {
    let limits = Limits {
        windows: limits::Windows {
            stream_window_bytes: 1 << 20,
            connection_window_bytes: 65_535,
            ..limits::Windows::DEFAULT
        },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits, &[]);
    server.feed(&raw::post(1));
    assert_eq!(server.dies_of(&frames(5)).1, FLOW_CONTROL_ERROR);
}

#[test]
fn a_run_may_not_go_beyond_the_bodys_length() {
    let mut server = Subject::server();
    server.feed(&post_of("50000"));
    assert_eq!(server.resets(&frames(4), 1), PROTOCOL_ERROR);
}

#[test]
fn a_run_ends_with_the_body() {
    let mut server = Subject::server();
    server.feed(&post_of("49152"));
    let seen = server.feed(&[frames(2), data(1, true, &FRAME)].concat());
    let piece = |end| Seen::Data(1, FRAME.to_vec(), end);
    assert_eq!(seen, [piece(End::No), piece(End::No), piece(End::Yes)]);
    server.answer(1, 204, End::Yes).unwrap();
    assert!(server.connection.is_idle());
}

#[test]
fn what_was_consumed_in_a_run_is_given_back_at_its_end() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.arrive(&frames(3));
    for _ in 0..3 {
        assert_eq!(server.poll(), Some(Seen::Data(1, FRAME.to_vec(), End::No)));
        server.consumed(1, FRAME.len());
    }
    assert_eq!(server.turn(), []);
    assert_eq!(given_back(&mut server, 1), 49_152);
    // As much again may come, and not a byte more than the window.
    assert_eq!(server.feed(&frames(3)).len(), 3);
    assert_eq!(server.resets(&frames(2), 1), FLOW_CONTROL_ERROR);
}

#[test]
fn other_streams_are_heard_between_frames_of_a_run() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    let seen = server.feed(&[frames(2), raw::get(3), frames(1)].concat());
    let kinds: Vec<u32> = seen
        .iter()
        .map(|one| match one {
            Seen::Data(id, ..) | Seen::Head(id, ..) => *id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, [1, 1, 3, 1]);
}

#[test]
fn an_abort_in_a_run_gives_the_connection_everything_back() {
    let limits = Limits {
        windows: limits::Windows { connection_window_bytes: 65_535, ..limits::Windows::DEFAULT },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits, &[]);
    server.feed(&raw::post(1));
    server.arrive(&frames(3));
    for _ in 0..2 {
        assert_eq!(server.poll(), Some(Seen::Data(1, FRAME.to_vec(), End::No)));
    }
    server.abort(1);
    assert_eq!(server.turn(), []);
    let frames = server.sent();
    assert_eq!(of_kind(&frames, RST_STREAM).len(), 1);
    let updates = of_kind(&frames, WINDOW_UPDATE);
    let updates: Vec<(u32, u32)> =
        updates.iter().map(|frame| (frame.stream, frame.u32_at(0))).collect();
    assert_eq!(updates, [(0, 32_768)]);
}

#[test]
fn what_is_sure_to_come_is_what_the_length_and_the_windows_say() {
    let mut server = Subject::server();
    server.feed(&post_of("49152"));
    assert_eq!(server.connection.expects(), 0);
    server.feed(&frames(1));
    assert_eq!(server.connection.expects(), 32_768);
    server.feed(&frames(1));
    assert_eq!(server.connection.expects(), 16_384);
    server.feed(&data(1, true, &FRAME));
    assert_eq!(server.connection.expects(), 0);

    let mut server = Subject::server();
    server.feed(&post_of("500000"));
    server.feed(&frames(2));
    let window = u64::from(Limits::default().windows.stream_window_bytes);
    assert_eq!(server.connection.expects(), window - 32_768, "nothing was consumed");

    let mut server = Subject::server();
    server.feed(&[raw::post(1), frames(2)].concat());
    assert_eq!(server.connection.expects(), 0, "no length is known");
}
