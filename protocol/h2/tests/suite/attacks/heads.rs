//! RFC 9113 §10.5.1: heads that are larger than they look, or never end.

use bolide_h2::Limits;
use bolide_h2::limits::Heads;
use bolide_semantics::End;
use http::Method;

use crate::raw::{
    self, CONTINUATION, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GET, HEADERS, PROTOCOL_ERROR,
    frame, headers,
};
use crate::subject::{Seen, Subject};

#[test]
fn continuation_flood() {
    let mut server = Subject::server();
    let bytes = [
        frame(HEADERS, 0, 1, &raw::block(&GET)),
        frame(CONTINUATION, 0, 1, &raw::block(&[("x", "y")])).repeat(1000),
    ];
    assert_eq!(server.dies_of(&bytes.concat()), ("continuation-flood", ENHANCE_YOUR_CALM));
}

#[test]
fn continuation_flood_of_bytes() {
    let limits = Limits {
        heads: Heads { continuation_frames_count: 1000, ..Heads::DEFAULT },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits, &[]);
    let mut bytes = frame(HEADERS, 0, 1, &[0; 16_384]);
    bytes.extend(frame(CONTINUATION, 0, 1, &[0; 16_384]).repeat(8));
    assert_eq!(server.dies_of(&bytes).0, "continuation-flood");
}

/// A block that puts an entry with a value of `length` bytes into the table and refers to it.
fn bomb(length: usize, references: usize) -> Vec<u8> {
    let mut block = raw::block(&GET);
    let entry = raw::block(&[("x", "y".repeat(length))]);
    block.push(0x40);
    block.extend(&entry[1..]);
    block.extend(vec![0x80 | 62; references]);
    block
}

#[test]
fn hpack_bomb() {
    let mut server = Subject::server();
    let bytes = frame(HEADERS, END_STREAM | END_HEADERS, 1, &bomb(4000, 4000));
    assert_eq!(server.dies_of(&bytes), ("hpack-bomb", ENHANCE_YOUR_CALM));
}

#[test]
fn hpack_bomb_small() {
    let mut server = Subject::server();
    let bytes = frame(HEADERS, END_STREAM | END_HEADERS, 1, &bomb(4000, 20));
    assert_eq!(server.feed(&bytes), [Seen::Rejected(1, 431)]);
    server.answer(1, 431, End::Yes).unwrap();
    // The table is in step.
    let block = [raw::block(&GET), vec![0x80 | 62]].concat();
    let seen = server.feed(&frame(HEADERS, END_STREAM | END_HEADERS, 3, &block));
    assert!(matches!(seen[..], [Seen::Head(3, ..)]), "{seen:?}");
}

#[test]
fn cookie_crumbs() {
    let mut server = Subject::server();
    let crumbs = [&GET[..], &[("cookie", "a=b"); 101]].concat();
    assert_eq!(server.feed(&headers(1, true, &crumbs)), [Seen::Rejected(1, 431)]);
    let crumbs = [&GET[..], &[("cookie", "a=b"); 100]].concat();
    let seen = server.feed(&headers(3, true, &crumbs));
    assert!(matches!(seen[..], [Seen::Head(3, ..)]), "{seen:?}");
}

#[test]
fn cookie_crumbs_by_reference() {
    let mut server = Subject::server();
    // One byte each: 5000 crumbs of an entry of the table.
    let mut block = raw::block(&GET);
    block.push(0x40);
    block.extend(&raw::block(&[("cookie", "a")])[1..]);
    block.extend(vec![0x80 | 62; 5000]);
    let bytes = frame(HEADERS, END_STREAM | END_HEADERS, 1, &block);
    assert_eq!(server.dies_of(&bytes).0, "hpack-bomb");
}

#[test]
fn many_fields() {
    let mut server = Subject::server();
    let fields = [&GET[..], &[("x", "y"); 500]].concat();
    assert_eq!(server.feed(&headers(1, true, &fields)), [Seen::Rejected(1, 431)]);
}

#[test]
fn empty_name_headers() {
    let mut server = Subject::server();
    let fields = [&GET[..], &[("", "")]].concat();
    assert_eq!(server.resets(&headers(1, true, &fields), 1), PROTOCOL_ERROR);
}

#[test]
fn trailers_bomb() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    let fields = vec![("x", "y"); 200];
    assert_eq!(server.resets(&headers(1, true, &fields), 1), PROTOCOL_ERROR);
}

#[test]
fn interim_flood() {
    let mut client = Subject::client();
    let id = client.ask(&Method::GET, End::Yes).unwrap();
    let other = client.ask(&Method::GET, End::Yes).unwrap();
    client.sent_bytes();
    let interim = headers(id, false, &[(":status", "103")]);
    for _ in 0..Heads::DEFAULT.interim_count {
        assert_eq!(client.feed(&interim), [Seen::Informational(id, 103)]);
    }
    assert_eq!(client.resets(&interim, id), ENHANCE_YOUR_CALM);
    let interim = headers(other, false, &[(":status", "103")]);
    assert_eq!(client.feed(&interim), [Seen::Informational(other, 103)], "counted by stream");
}
