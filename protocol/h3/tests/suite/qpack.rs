//! RFC 9204 §2: the dynamic table between two ends: blocked sections, acknowledgements and cancellations.

use std::time::Duration;

use bolide_h3::{Limits, limits};
use bolide_semantics::{Content, End, ExchangeId, FieldRef, ResponseHead};
use http::StatusCode;

use crate::subject::{GET, Seen, Subject, frame, headers};

/// A capacity of 4096 bytes, and `x: y` as the first entry.
const ONE_ENTRY: [u8; 8] = [2, 0x3f, 0xe1, 0x1f, 0x41, b'x', 1, b'y'];

/// A request whose last line is the first entry.
fn referring() -> Vec<u8> {
    let section = &headers(&GET)[2..];
    frame(1, &[&[2, 0], &section[2..], &[0x80]].concat())
}

#[test]
fn a_section_that_comes_before_its_entries_waits() {
    let mut server = Subject::server();
    assert_eq!(server.feed_all(0, &referring()), []);
    assert_eq!(server.feed_all(4, &headers(&GET)).len(), 1, "others do not wait");
    assert_eq!(server.feed(6, &ONE_ENTRY[..5]), []);
    assert_eq!(server.feed(6, &ONE_ENTRY[5..]), [Seen::Head(1, "GET /".to_owned(), End::Yes)]);
    assert_eq!(server.head.get_named("x"), Some(&b"y"[..]));
    // The section is acknowledged; that says all about the entry, too.
    assert_eq!(server.quic.bytes_of(11), [3, 0x80]);
    assert_eq!(server.feed_all(8, &referring()).len(), 1);
    assert_eq!(server.quic.bytes_of(11), [3, 0x80, 0x88]);
}

#[test]
fn a_blocked_stream_hold_ends_in_time_and_is_counted() {
    let mut server = Subject::server();
    for stream in 0..16 {
        assert_eq!(server.feed_all(stream * 4, &referring()), []);
    }
    let held = server.connection.held_bytes();
    assert!(held < 40_000, "{held}");
    let mut other = Subject::server();
    for stream in 0..16 {
        other.feed_all(stream * 4, &referring());
    }
    other.refuses(64, &referring(), 0x200);
    // The heads take too long; what was blocked is cancelled, and no longer blocks others.
    assert_eq!(server.later(Duration::from_secs(11)), []);
    assert!(server.connection.is_idle());
    assert_eq!(server.quic.bytes_of(11).len(), 1 + 16);
    for stream in 20..36 {
        assert_eq!(server.feed_all(stream * 4, &referring()), []);
    }
    assert_eq!(server.feed(6, &ONE_ENTRY).len(), 16);
}

#[test]
fn a_stream_that_is_given_up_is_cancelled() {
    let mut server = Subject::server();
    assert_eq!(server.feed(0, &referring()), []);
    server.quic.resets(0, 0x10c);
    assert_eq!(server.poll(), []);
    server.feed(6, &ONE_ENTRY);
    server.poll();
    assert!(server.connection.is_idle());
    assert!(server.quic.bytes_of(11).contains(&0x40), "{:?}", server.quic.bytes_of(11));
}

#[test]
fn repeated_fields_of_responses_become_references() {
    let mut server = Subject::server();
    assert_eq!(server.feed(10, &[3]), []);
    let own = [FieldRef::named("x-served-by", b"a machine with a long name")];
    let mut sizes = Vec::new();
    for number in 0..4_u32 {
        let stream = u64::from(number) * 4;
        server.feed_all(stream, &headers(&GET));
        let head = ResponseHead::new(StatusCode::OK, &own);
        server
            .with(|connection, cx| {
                connection.send_response(cx, ExchangeId(number + 1), &head, Content::None)
            })
            .unwrap();
        server.poll();
        sizes.push(server.frames(stream)[0].1.len());
        if number == 1 {
            // The client has the entry.
            assert!(server.quic.bytes_of(7).len() > 10);
            assert_eq!(server.feed(10, &[1]), []);
        }
    }
    assert!(sizes[1] > 20 && sizes[2..] == [4, 4], "{sizes:?}");
    // An acknowledgement of what was never referred to.
    server.refuses(10, &[0x80 | 60], 0x202);
}

#[test]
fn instructions_that_are_wrong_end_the_connection() {
    Subject::server().refuses(6, &[2, 0x03], 0x201);
    Subject::server().refuses(6, &[3, 0x00], 0x202);
    Subject::server().refuses(0, &frame(1, &[2, 0x81, 0x80]), 0x200);
}

#[test]
fn a_list_above_the_limit_is_answered_and_one_far_above_is_the_end() {
    let limits = Limits {
        heads: limits::Heads { header_list_bytes: 300, ..limits::Heads::DEFAULT },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits.clone());
    let long = "v".repeat(200);
    let with = |count: usize| {
        let mut lines: Vec<(&str, &str)> = GET.to_vec();
        lines.extend(std::iter::repeat_n(("x", &long[..]), count));
        headers(&lines)
    };
    assert_eq!(server.feed_all(0, &with(1)), [Seen::Rejected(1, 431)]);
    assert_eq!(server.respond(1, 431, Content::None), Ok(true));
    server.refuses(4, &with(8), 0x107);
}
