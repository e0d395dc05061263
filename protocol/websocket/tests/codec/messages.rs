//! RFC 6455 §5.4 to §5.7, §8.1: messages and control frames.

use bolide_semantics::{End, Role};
use bolide_websocket::{Codec, Kind, Misuse, Settings};
use bytes::Bytes;

use crate::wire::{Seen, binary, feed, masked, output, plain, serve, text};

#[test]
fn section_5_7_examples_are_read() {
    let single = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(serve(&single).1, [text("Hello")]);
    let mut client = Codec::new(Role::Client, Settings::default());
    let fragmented = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
    assert_eq!(feed(&mut client, [&fragmented[..]]), [text("Hello")]);
    for length in [256, 65_536] {
        let content = vec![7; length];
        let seen = feed(&mut client, [&plain(0x82, &content)[..]]);
        assert_eq!(seen, [binary(&content)]);
    }
}

#[test]
fn control_frames_may_stand_between_fragments() {
    let frames = [
        masked(0x01, "né".as_bytes()),
        masked(0x89, b"are you there"),
        masked(0x8a, b""),
        masked(0x00, b""),
        masked(0x80, b"e"),
    ];
    let (mut codec, seen) = serve(&frames.concat());
    let ping = Seen::Ping(b"are you there".to_vec());
    // The pieces are put together at the end of the message, after what stands between them.
    assert_eq!(seen, [ping, Seen::Pong(Vec::new()), text("née")]);
    assert_eq!(output(&mut codec), plain(0x8a, b"are you there"));
}

#[test]
fn fragments_must_fit_together() {
    let failed = |frames: &[Vec<u8>]| match serve(&frames.concat()).1.pop() {
        Some(Seen::Failed(code, _)) => code,
        other => panic!("{other:?}"),
    };
    assert_eq!(failed(&[masked(0x80, b"a")]), 1002);
    assert_eq!(failed(&[masked(0x01, b"a"), masked(0x81, b"b")]), 1002);
    assert_eq!(failed(&[masked(0x01, b"a"), masked(0x80, b"b"), masked(0x80, b"c")]), 1002);
    assert_eq!(failed(&[masked(0xc1, b"a")]), 1002, "no compression was agreed on");
    assert_eq!(failed(&[masked(0x83, b"")]), 1002);
    assert_eq!(failed(&[plain(0x81, b"a")]), 1002, "not masked");
}

#[test]
fn a_failure_is_told_and_ends_everything() {
    let (mut codec, seen) = serve(&[masked(0x80, b"a"), masked(0x81, b"b")].concat());
    assert_eq!(seen.len(), 1, "{seen:?}");
    let close = output(&mut codec);
    assert_eq!((close[0], &close[2..4]), (0x88, &1002_u16.to_be_bytes()[..]));
    assert!(codec.is_over() && codec.is_closing());
    assert_eq!(codec.send(Kind::Text, "late"), Err(Misuse::Closed));
}

#[test]
fn text_is_utf8_across_fragments_and_binary_is_anything() {
    let euro = "€".as_bytes();
    let whole = [masked(0x01, &euro[..1]), masked(0x00, &euro[1..2]), masked(0x80, &euro[2..])];
    assert_eq!(serve(&whole.concat()).1, [text("€")]);
    let not_utf8 = |frames: &[Vec<u8>]| {
        matches!(serve(&frames.concat()).1.last(), Some(Seen::Failed(1007, _)))
    };
    assert!(not_utf8(&[masked(0x81, b"\xff")]));
    assert!(not_utf8(&[masked(0x81, &euro[..2])]), "it ends within a character");
    assert!(not_utf8(&[masked(0x01, &euro[..2]), masked(0x80, b"a")]));
    // It fails at once, not at the end of the message.
    assert!(not_utf8(&[masked(0x01, b"\xed\xa0")]));
    assert_eq!(serve(&masked(0x82, b"\xff\xfe")).1, [binary(b"\xff\xfe")]);
}

#[test]
fn a_message_is_sent_in_the_pieces_that_it_is_given_in() {
    let mut server = Codec::new(Role::Server, Settings::default());
    server.send_piece(Kind::Text, "a", End::No).unwrap();
    assert_eq!(server.send_piece(Kind::Binary, "b", End::Yes), Err(Misuse::OutOfOrder));
    assert_eq!(server.send(Kind::Text, "b"), Err(Misuse::OutOfOrder));
    server.send_ping("p").unwrap();
    server.send_piece(Kind::Text, "b", End::Yes).unwrap();
    server.send(Kind::Binary, "c").unwrap();
    let expected = [plain(0x01, b"a"), plain(0x89, b"p"), plain(0x80, b"b"), plain(0x82, b"c")];
    assert_eq!(output(&mut server), expected.concat());
    assert_eq!(server.send_ping(vec![0; 126]), Err(Misuse::TooLong));
}

#[test]
fn a_server_sends_large_messages_without_a_copy() {
    let mut server = Codec::new(Role::Server, Settings::default());
    let message = Bytes::from(vec![1; 1 << 20]);
    server.send(Kind::Binary, message.clone()).unwrap();
    assert_eq!(server.pop_output().unwrap(), &[0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 0][..]);
    assert_eq!(server.pop_output().unwrap().as_ptr(), message.as_ptr());
    assert_eq!(server.pop_output(), None);
}

#[test]
fn a_client_receives_large_messages_without_a_copy() {
    let mut client = Codec::new(Role::Client, Settings::default());
    let frame = Bytes::from(plain(0x82, &vec![1; 100_000]));
    let mut input = frame.slice(..60_000);
    let Some(bolide_websocket::Event::Message { payload, end, .. }) = client.receive(&mut input)
    else {
        panic!("a piece is reported as it comes");
    };
    assert_eq!((payload.len(), end), (60_000 - 10, End::No));
    assert_eq!(payload.into_bytes().as_ptr(), frame[10..].as_ptr());
}

#[test]
fn each_ping_gets_its_pong_before_what_is_sent_after_it() {
    let pings = [masked(0x89, b"1"), masked(0x01, b"a"), masked(0x89, b"2"), masked(0x80, b"b")];
    let (mut server, _) = serve(&pings.concat());
    server.send(Kind::Text, "ab").unwrap();
    let wanted = [plain(0x8a, b"1"), plain(0x8a, b"2"), plain(0x81, b"ab")];
    assert_eq!(output(&mut server), wanted.concat());
}
