//! RFC 9113 §6.3, §6.4, §6.7: PRIORITY, RST_STREAM and PING.

use bolide_semantics::End;

use crate::raw::{self, ACK, FRAME_SIZE_ERROR, PING, PRIORITY, PROTOCOL_ERROR, frame};
use crate::subject::{Seen, Subject};

#[test]
fn pings_are_answered_with_their_payload() {
    let mut server = Subject::server();
    assert_eq!(server.feed(&raw::ping(*b"8 bytes.")), []);
    let response = server.sent_one();
    assert_eq!(
        (response.kind, response.flags, &response.payload[..]),
        (PING, ACK, &b"8 bytes."[..])
    );
    assert_eq!(server.feed(&frame(PING, ACK, 0, &[0; 8])), []);
    assert_eq!(server.sent(), []);
}

#[test]
fn a_stream_can_not_depend_on_itself() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    let bytes = frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 9]);
    assert_eq!(server.resets(&bytes, 1), PROTOCOL_ERROR);
    let mut server = Subject::server();
    assert_eq!(server.dies_of(&bytes).1, PROTOCOL_ERROR);
    let mut server = Subject::server();
    let payload = [&[0, 0, 0, 1, 9][..], &raw::block(&raw::GET)].concat();
    let flags = raw::PRIORITY_FLAG | raw::END_HEADERS | raw::END_STREAM;
    assert_eq!(server.resets(&frame(raw::HEADERS, flags, 1, &payload), 1), PROTOCOL_ERROR);
}

#[test]
fn a_priority_frame_of_another_length_ends_its_stream() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    assert_eq!(server.resets(&frame(PRIORITY, 0, 1, &[0; 4]), 1), FRAME_SIZE_ERROR);
    let seen = server.feed(&raw::get(3));
    assert!(matches!(seen[..], [Seen::Head(3, End::Yes, _)]), "{seen:?}");
}

#[test]
fn a_server_sends_no_priority_update() {
    let mut client = Subject::client();
    assert_eq!(client.dies_of(&raw::priority_update(1, "u=1")).1, PROTOCOL_ERROR);
    let mut server = Subject::server();
    assert_eq!(server.dies_of(&raw::priority_update(0, "u=1")).1, PROTOCOL_ERROR);
    let mut server = Subject::server();
    assert_eq!(server.feed(&raw::priority_update(1, &"u=1,".repeat(1000))), []);
}
