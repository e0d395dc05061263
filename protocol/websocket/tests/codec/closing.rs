//! RFC 6455 §5.5.1, §7: the closing handshake.

use bolide_semantics::Role;
use bolide_websocket::{CloseCode, Codec, Kind, Misuse, Settings};

use crate::wire::{Seen, feed, masked, output, plain, serve};

#[test]
fn a_close_is_answered_with_its_code() {
    let (mut codec, seen) = serve(&masked(0x88, b"\x03\xe9bye"));
    assert_eq!(seen, [Seen::Closed(1001, "bye".to_owned())]);
    assert_eq!(output(&mut codec), plain(0x88, b"\x03\xe9"));
    assert!(codec.is_over());

    let (mut codec, seen) = serve(&masked(0x88, b""));
    assert_eq!(seen, [Seen::Closed(1005, String::new())]);
    assert_eq!(output(&mut codec), plain(0x88, b""));
}

#[test]
fn a_close_that_is_wrong_is_a_failure() {
    let failed = |content: &[u8]| match &serve(&masked(0x88, content)).1[..] {
        [Seen::Failed(code, _)] => *code,
        other => panic!("{other:?}"),
    };
    assert_eq!(failed(b"\x03"), 1002);
    assert_eq!(failed(&1005_u16.to_be_bytes()), 1002);
    assert_eq!(failed(&5000_u16.to_be_bytes()), 1002);
    assert_eq!(failed(b"\x03\xe8\xff"), 1007);
}

#[test]
fn after_our_close_only_the_reply_counts() {
    let mut server = Codec::new(Role::Server, Settings::default());
    server.send_close(CloseCode::NORMAL, "done").unwrap();
    assert_eq!(output(&mut server), plain(0x88, b"\x03\xe8done"));
    assert!(server.is_closing() && !server.is_over());
    assert_eq!(server.send(Kind::Text, "late"), Err(Misuse::Closed));
    assert_eq!(server.send_close(CloseCode::NORMAL, ""), Err(Misuse::Closed));
    let rest = [masked(0x82, b"on its way"), masked(0x89, b"p"), masked(0x88, b"\x03\xe8")];
    let seen = feed(&mut server, [&rest.concat()[..]]);
    assert_eq!(seen, [Seen::Ping(b"p".to_vec()), Seen::Closed(1000, String::new())]);
    assert_eq!(output(&mut server), b"");
    assert!(server.is_over());
}

#[test]
fn what_follows_a_close_is_not_looked_at() {
    let (mut codec, _) = serve(&[masked(0x88, b""), vec![0xff; 1000]].concat());
    assert!(codec.is_over());
    assert_eq!(output(&mut codec), plain(0x88, b""));
}

#[test]
fn a_pong_that_is_due_leaves_before_the_close() {
    let (mut server, _) = serve(&masked(0x89, b"p"));
    server.send_close(CloseCode::GOING_AWAY, "").unwrap();
    assert_eq!(output(&mut server), [plain(0x8a, b"p"), plain(0x88, b"\x03\xe9")].concat());
}

#[test]
fn codes_and_reasons_that_cannot_be_sent_are_refused() {
    let mut server = Codec::new(Role::Server, Settings::default());
    for code in [CloseCode::ABNORMAL, CloseCode(999), CloseCode(1015), CloseCode(5000)] {
        assert_eq!(server.send_close(code, ""), Err(Misuse::InvalidCode));
    }
    assert_eq!(server.send_close(CloseCode::NORMAL, &"a".repeat(124)), Err(Misuse::TooLong));
    assert_eq!(output(&mut server), b"");
    server.send_close(CloseCode::NONE, "left out").unwrap();
    assert_eq!(output(&mut server), plain(0x88, b""));
}
