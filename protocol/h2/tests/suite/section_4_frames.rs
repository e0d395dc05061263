//! RFC 9113 §4, §5.5: sizes of frames, unknown frames, and header blocks.

use bolide_semantics::End;

use crate::raw::{
    self, COMPRESSION_ERROR, CONTINUATION, END_HEADERS, END_STREAM, FRAME_SIZE_ERROR, HEADERS,
    PADDED, PRIORITY_FLAG, PROTOCOL_ERROR, frame,
};
use crate::subject::{Seen, Subject};

#[test]
fn a_frame_above_the_limit_is_refused_by_its_header() {
    let mut server = Subject::server();
    let header = &frame(raw::DATA, 0, 1, &[0; 16_385])[..9];
    assert_eq!(server.dies_of(header), ("frame-size-error", FRAME_SIZE_ERROR));
}

#[test]
fn frames_of_fixed_length_have_that_length() {
    for bytes in [
        frame(raw::PING, 0, 0, &[0; 7]),
        frame(raw::PING, 0, 0, &[0; 9]),
        frame(raw::RST_STREAM, 0, 1, &[0; 3]),
        frame(raw::RST_STREAM, 0, 1, &[0; 5]),
        frame(raw::WINDOW_UPDATE, 0, 0, &[0; 3]),
        frame(raw::WINDOW_UPDATE, 0, 0, &[0; 5]),
        frame(raw::SETTINGS, 0, 0, &[0; 5]),
        frame(raw::SETTINGS, raw::ACK, 0, &[0; 6]),
        frame(raw::GOAWAY, 0, 0, &[0; 7]),
        frame(raw::PRIORITY_UPDATE, 0, 0, &[0; 3]),
    ] {
        let mut server = Subject::server();
        assert_eq!(server.dies_of(&bytes).1, FRAME_SIZE_ERROR, "{bytes:?}");
    }
}

#[test]
fn frames_of_streams_have_a_stream_and_others_have_none() {
    for kind in [raw::DATA, HEADERS, raw::PRIORITY, raw::RST_STREAM, CONTINUATION] {
        let mut server = Subject::server();
        assert_eq!(server.dies_of(&frame(kind, 4, 0, &[0; 5])).1, PROTOCOL_ERROR, "{kind}");
    }
    for kind in [raw::SETTINGS, raw::PING, raw::GOAWAY, raw::PRIORITY_UPDATE] {
        let mut server = Subject::server();
        assert_eq!(server.dies_of(&frame(kind, 0, 1, &[0; 8])).1, PROTOCOL_ERROR, "{kind}");
    }
}

#[test]
fn unknown_frames_and_flags_are_ignored() {
    let mut server = Subject::server();
    assert_eq!(server.feed(&frame(0xfa, 0xff, 77, &[1; 100])), []);
    assert_eq!(server.feed(&frame(raw::PING, 0xfe, 0, &[1; 8])), []);
    assert_eq!(server.sent_one().kind, raw::PING);
}

#[test]
fn an_unknown_frame_inside_a_header_block_is_an_error() {
    for second in [frame(0xfa, 0, 1, &[]), raw::ping([0; 8]), frame(CONTINUATION, 4, 3, &[])] {
        let mut server = Subject::server();
        let bytes = [frame(HEADERS, END_STREAM, 1, &[]), second].concat();
        assert_eq!(server.dies_of(&bytes).1, PROTOCOL_ERROR);
    }
}

#[test]
fn a_header_block_may_be_continued() {
    let block = raw::block(&raw::GET);
    for split in 0..block.len() {
        let mut server = Subject::server();
        let bytes = [
            frame(HEADERS, END_STREAM, 1, &block[..split]),
            frame(CONTINUATION, 0, 1, &block[split..split]),
            frame(CONTINUATION, END_HEADERS, 1, &block[split..]),
        ];
        let seen = server.feed(&bytes.concat());
        assert!(matches!(seen[..], [Seen::Head(1, End::Yes, _)]), "{seen:?}");
    }
}

#[test]
fn padding_and_priority_are_no_part_of_the_block() {
    let block = raw::block(&raw::GET);
    let padded = [&[3][..], &block, &[0; 3]].concat();
    let priority = [&[0, 0, 0, 3, 10][..], &block].concat();
    for (flags, payload) in [(PADDED, padded), (PRIORITY_FLAG, priority)] {
        let mut server = Subject::server();
        let bytes = frame(HEADERS, END_STREAM | END_HEADERS | flags, 1, &payload);
        let seen = server.feed(&bytes);
        assert!(matches!(seen[..], [Seen::Head(1, End::Yes, _)]), "{seen:?}");
    }
}

#[test]
fn padding_longer_than_the_frame_is_an_error() {
    for kind in [HEADERS, raw::DATA] {
        let mut server = Subject::server();
        server.feed(&raw::post(1));
        let stream = if kind == HEADERS { 3 } else { 1 };
        let bytes = frame(kind, PADDED | END_HEADERS, stream, &[5, 0, 0, 0, 0]);
        assert_eq!(server.dies_of(&bytes).1, PROTOCOL_ERROR);
    }
}

#[test]
fn a_block_that_can_not_be_decoded_ends_the_connection() {
    let mut server = Subject::server();
    let bytes = frame(HEADERS, END_STREAM | END_HEADERS, 1, &[0xff; 4]);
    assert_eq!(server.dies_of(&bytes), ("compression-error", COMPRESSION_ERROR));
}

#[test]
fn push_is_refused() {
    for mut subject in [Subject::server(), Subject::client()] {
        let bytes = frame(raw::PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]);
        assert_eq!(subject.dies_of(&bytes).1, PROTOCOL_ERROR);
    }
}
