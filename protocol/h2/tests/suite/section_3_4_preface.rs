//! RFC 9113 §3.4: how a connection begins.

use bolide_h2::Limits;
use bolide_semantics::{End, Role};
use http::Method;

use crate::raw::{self, PROTOCOL_ERROR};
use crate::subject::{Seen, Subject};

#[test]
fn a_server_sends_settings_and_its_window_first() {
    let mut server = Subject::new(Role::Server, Limits::default());
    assert_eq!(server.turn(), []);
    let frames = server.sent();
    assert_eq!(frames.iter().map(|frame| frame.kind).collect::<Vec<_>>(), [4, 8]);
    assert_eq!((frames[1].stream, frames[1].u32_at(0)), (0, (1 << 20) - 65_535));
}

#[test]
fn a_client_sends_the_preface_first() {
    let mut client = Subject::new(Role::Client, Limits::default());
    client.ask(&Method::GET, End::Yes).unwrap();
    let bytes = client.sent_bytes();
    assert!(bytes.starts_with(raw::PREFACE));
    let kinds: Vec<_> = raw::frames(&bytes[24..]).iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [raw::SETTINGS, raw::WINDOW_UPDATE, raw::HEADERS]);
}

#[test]
fn a_wrong_preface_is_seen_at_its_first_wrong_byte() {
    for wrong in 0..24 {
        let mut server = Subject::new(Role::Server, Limits::default());
        assert_eq!(server.feed(&raw::PREFACE[..wrong]), []);
        assert_eq!(server.dies_of(b"\0"), ("protocol-error", PROTOCOL_ERROR));
    }
}

#[test]
fn the_first_frame_is_settings() {
    for first in [raw::ping([0; 8]), raw::get(1), raw::settings_ack()] {
        let mut server = Subject::new(Role::Server, Limits::default());
        let bytes = [raw::PREFACE, &first].concat();
        assert_eq!(server.dies_of(&bytes).1, PROTOCOL_ERROR);
    }
}

#[test]
fn the_peer_may_close_at_any_time() {
    let mut server = Subject::server();
    server.connection.receive_eof();
    assert_eq!(server.turn(), [Seen::Closed("eof")]);
    assert_eq!(server.turn(), [Seen::Closed("eof")]);
    assert!(!server.connection.wants_input());
}

#[test]
fn what_came_before_the_end_is_read() {
    let mut server = Subject::server();
    server.connection.receive_eof();
    let seen = server.feed(&raw::get(1));
    assert!(matches!(seen[..], [Seen::Head(1, End::Yes, _), Seen::Closed("eof")]), "{seen:?}");
}
