//! RFC 9113 §10.5: floods of frames that do nothing.

use bolide_h2::{Limits, limits};
use bolide_semantics::End;

use crate::raw::{
    self, ACK, ENHANCE_YOUR_CALM, PADDED, PING, PRIORITY, data, frame, headers, window_update,
};
use crate::subject::{Seen, Subject};

/// Sends one frame repeatedly and reads the responses. Returns how many frames it took until the server closed, and for what reason.
fn flood(server: &mut Subject, bytes: &[u8]) -> (usize, &'static str) {
    for round in 0..200 {
        let seen = server.feed(&bytes.repeat(100));
        if let Some(Seen::Closed(name)) = seen.last() {
            assert_eq!(server.sent().last().unwrap().u32_at(4), ENHANCE_YOUR_CALM);
            return (round * 100, name);
        }
        server.sent();
    }
    panic!("still open");
}

#[test]
fn ping_flood() {
    let mut server = Subject::server();
    assert_eq!(flood(&mut server, &raw::ping([0; 8])), (10_000, "glitches"));
}

#[test]
fn ping_flood_without_reading() {
    let mut server = Subject::server();
    let seen = server.feed(&raw::ping([0; 8]).repeat(5000));
    assert_eq!(seen, [Seen::Closed("unread-control-frames")]);
    assert!(server.output.len() < 18_000);
}

#[test]
fn ping_ack_flood() {
    let mut server = Subject::server();
    assert_eq!(flood(&mut server, &frame(PING, ACK, 0, &[0; 8])).1, "glitches");
}

#[test]
fn settings_flood() {
    let mut server = Subject::server();
    assert_eq!(flood(&mut server, &raw::settings(&[])), (0, "settings-flood"));
}

#[test]
fn settings_flood_of_entries() {
    let mut server = Subject::server();
    let entries = vec![(0x77, 1); 33];
    let (name, code) = server.dies_of(&raw::settings(&entries));
    assert_eq!((name, code), ("settings-flood", ENHANCE_YOUR_CALM));
}

#[test]
fn settings_ack_flood() {
    let mut server = Subject::server();
    assert_eq!(flood(&mut server, &raw::settings_ack()).1, "glitches");
}

#[test]
fn priority_churn() {
    let mut server = Subject::server();
    assert_eq!(flood(&mut server, &frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 1])).1, "glitches");
}

#[test]
fn priority_update_flood() {
    let mut server = Subject::server();
    assert_eq!(flood(&mut server, &raw::priority_update(1, "u=1")).1, "glitches");
}

#[test]
fn unknown_frames() {
    let mut server = Subject::server();
    assert_eq!(flood(&mut server, &frame(0xee, 0, 0, &[])).1, "glitches");
}

#[test]
fn window_update_flood() {
    let mut server = Subject::server();
    assert_eq!(flood(&mut server, &window_update(0, 1)).1, "glitches");
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    assert_eq!(flood(&mut server, &window_update(1, 1)).1, "glitches");
}

#[test]
fn stale_frames() {
    for stale in [window_update(1, 1), raw::rst_stream(1, 8)] {
        let mut server = Subject::server();
        server.feed(&raw::get(1));
        server.answer(1, 200, End::Yes).unwrap();
        assert_eq!(flood(&mut server, &stale).1, "glitches");
    }
}

#[test]
fn stale_headers() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.abort(1);
    assert_eq!(flood(&mut server, &headers(1, false, &[("x", "y")])).1, "glitches");
}

#[test]
fn empty_data() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    assert_eq!(flood(&mut server, &data(1, false, b"")), (10_000, "glitches"));
}

#[test]
fn padded_data() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    let bytes = frame(raw::DATA, PADDED, 1, &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(flood(&mut server, &bytes).1, "glitches");
}

#[test]
fn one_byte_data() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    assert_eq!(flood(&mut server, &data(1, false, b"x")), (10_000, "small-data"));
}

#[test]
fn one_byte_data_in_a_tunnel_is_no_attack() {
    let mut server = Subject::server();
    server.feed(&headers(1, false, &[(":method", "CONNECT"), (":authority", "a:80")]));
    server.answer(1, 200, End::No).unwrap();
    for _ in 0..200 {
        let seen = server.feed(&data(1, false, b"x").repeat(100));
        assert_eq!(seen.len(), 100);
        server.consumed(1, 100);
        server.sent();
    }
}

#[test]
fn one_byte_data_that_nobody_reads_in_a_tunnel() {
    let limits = Limits {
        budgets: limits::Budgets { tunnel_data_burst_count: 5000, ..limits::Budgets::DEFAULT },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits, &[]);
    server.feed(&headers(1, false, &[(":method", "CONNECT"), (":authority", "a:80")]));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(flood(&mut server, &data(1, false, b"x")), (5000, "tunnel-data"));
}

#[test]
fn empty_data_in_a_tunnel() {
    let mut server = Subject::server();
    server.feed(&headers(1, false, &[(":method", "CONNECT"), (":authority", "a:80")]));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(flood(&mut server, &data(1, false, b"")), (10_000, "glitches"));
}

#[test]
fn continuation_empty() {
    let mut server = Subject::server();
    let mut bytes = frame(raw::HEADERS, 0, 1, &[]);
    bytes.extend(frame(raw::CONTINUATION, 0, 1, &[]).repeat(9));
    assert_eq!(server.dies_of(&bytes), ("continuation-flood", ENHANCE_YOUR_CALM));
}

#[test]
fn goaway_flood() {
    let limits = Limits {
        budgets: limits::Budgets { glitches_burst_count: Some(50), ..limits::Budgets::DEFAULT },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits, &[]);
    assert_eq!(flood(&mut server, &raw::goaway(0, 0)).1, "glitches");
}
