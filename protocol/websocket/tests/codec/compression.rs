//! RFC 7692 §7.2: messages compressed.

use bolide_semantics::Role;
use bolide_websocket::{Codec, Deflate, Kind, Settings};

use crate::wire::{Seen, feed, output, plain, text};

const KEPT: Deflate = Deflate {
    server_no_context_takeover: false,
    client_no_context_takeover: false,
    server_max_window_bits: 15,
    client_max_window_bits: 15,
};

fn client(deflate: Deflate) -> Codec {
    Codec::new(Role::Client, Settings { deflate: Some(deflate), ..Settings::default() })
}

#[test]
fn section_7_2_3_examples_are_read() {
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let with_context = [0xf2, 0x00, 0x11, 0x00, 0x00];
    let stored = [0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00];
    let last_block = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00];
    let two_blocks = [0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00];
    let mut codec = client(KEPT);
    for content in [&hello[..], &with_context, &hello, &stored, &two_blocks, &last_block] {
        assert_eq!(feed(&mut codec, [&plain(0xc1, content)[..]]), [text("Hello")], "{content:x?}");
    }
    let fragments = [plain(0x41, &hello[..3]), plain(0x80, &hello[3..])].concat();
    assert_eq!(feed(&mut codec, [&fragments[..]]), [text("Hello")]);
    // One message may go as it is among compressed ones.
    assert_eq!(feed(&mut codec, [&plain(0x81, b"plain")[..]]), [text("plain")]);
}

#[test]
fn what_cannot_be_inflated_is_a_failure() {
    let seen = feed(&mut client(KEPT), [&plain(0xc1, &[0xff; 20])[..]]);
    assert!(matches!(seen[..], [Seen::Failed(1007, _)]), "{seen:?}");
    let seen = feed(&mut client(KEPT), [&plain(0xc1, &[0x02, 0x00])[..]]);
    assert!(matches!(seen[..], [Seen::Failed(1007, _)] | [Seen::Message(..)]), "{seen:?}");
}

#[test]
fn text_is_checked_once_it_is_inflated() {
    // A stored block with a byte that is not UTF-8.
    let stored = [0x00, 0x01, 0x00, 0xfe, 0xff, 0xff, 0x00];
    let seen = feed(&mut client(KEPT), [&plain(0xc1, &stored)[..]]);
    assert!(matches!(seen[..], [Seen::Failed(1007, _)]), "{seen:?}");
}

#[test]
fn messages_shrink_and_later_ones_more_when_the_context_is_kept() {
    let message = "it is the same text that comes again, and again, ".repeat(4);
    let sizes = |keeps: bool| {
        let deflate = Deflate { server_no_context_takeover: !keeps, ..KEPT };
        let settings = Settings { deflate: Some(deflate), ..Settings::default() };
        let mut server = Codec::new(Role::Server, settings);
        [0; 2].map(|_| {
            server.send(Kind::Text, message.clone()).unwrap();
            output(&mut server).len()
        })
    };
    let [first, second] = sizes(false);
    assert!(first == second && first < message.len() / 2, "{first} {second}");
    let [first, second] = sizes(true);
    assert!(second < first / 2, "{first} {second}");
}

#[test]
fn small_messages_and_small_windows_go_uncompressed() {
    let settings = Settings { deflate: Some(KEPT), ..Settings::default() };
    let mut server = Codec::new(Role::Server, settings);
    server.send(Kind::Text, "short").unwrap();
    assert_eq!(output(&mut server), plain(0x81, b"short"));
    let deflate = Some(Deflate { server_max_window_bits: 8, ..KEPT });
    let mut server = Codec::new(Role::Server, Settings { deflate, ..Settings::default() });
    server.send(Kind::Text, "a".repeat(100)).unwrap();
    assert_eq!(output(&mut server), plain(0x81, "a".repeat(100).as_bytes()));
}
