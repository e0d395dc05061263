//! RFC 9114 §10.5: attacks by their names: what each may cost us.

use std::time::Duration;

use bolide_h3::{Limits, limits};
use bolide_semantics::{Content, End};
use http::Method;

use crate::subject::{GET, POST, Seen, Subject, data, frame, headers, settings, varint};

/// Repeats until the connection ends by this name, at most so often. Returns how often.
#[track_caller]
fn ends_by(
    subject: &mut Subject,
    name: &str,
    most: usize,
    mut again: impl FnMut(&mut Subject, usize) -> Vec<Seen>,
) -> usize {
    for count in 0..most {
        if let Some(Seen::Closed(reason)) = again(subject, count).last() {
            assert_eq!(*reason, name);
            assert_eq!(subject.quic.closed, Some(0x107));
            return count;
        }
    }
    panic!("{name} goes on after {most}");
}

#[test]
fn rapid_reset_by_either_frame_ends_the_connection() {
    for stops in [false, true] {
        let mut server = Subject::server();
        let count = ends_by(&mut server, "rapid-reset", 1000, |server, count| {
            let stream = count as u64 * 4;
            server.feed(stream, &headers(&POST));
            if stops {
                server.quic.stops(stream, 0x10c);
            } else {
                server.quic.resets(stream, 0x10c);
            }
            server.poll()
        });
        assert_eq!(count, limits::Budgets::DEFAULT.client_resets_burst_count as usize);
        assert!(server.connection.held_bytes() < 40_000);
    }
}

#[test]
fn made_you_reset_ends_the_connection() {
    let mut server = Subject::server();
    let count = ends_by(&mut server, "made-you-reset", 1000, |server, count| {
        server.feed_all(count as u64 * 4, &headers(&GET[..2]))
    });
    assert_eq!(count, limits::Budgets::DEFAULT.own_resets_burst_count.unwrap() as usize);
}

#[test]
fn more_requests_than_allowed_are_rejected() {
    let mut server = Subject::server();
    for stream in 0..Limits::default().concurrent_streams_count {
        assert_eq!(server.feed(u64::from(stream) * 4, &headers(&POST)).len(), 1);
    }
    assert_eq!(server.feed(400, &headers(&POST)), []);
    assert_eq!(server.quic.sent[&400].reset, Some(0x10b));
    assert_eq!(server.quic.stopped, [(400, 0x10b)]);
    assert!(server.connection.held_bytes() < 200_000);
}

#[test]
fn an_unknown_frame_flood_ends_the_connection_on_any_stream() {
    let most = limits::Budgets::DEFAULT.glitches_burst_count.unwrap() as usize + 10;
    let mut server = Subject::server();
    ends_by(&mut server, "glitches", most, |server, _| server.feed(2, &frame(0x21, b"")));
    let mut server = Subject::server();
    ends_by(&mut server, "glitches", most, |server, _| server.feed(0, &frame(0x21, b"")));
    let mut server = Subject::server();
    server.feed(0, &headers(&POST));
    ends_by(&mut server, "glitches", most, |server, _| server.feed(0, &data(b"")));
}

#[test]
fn a_priority_update_flood_ends_the_connection() {
    let mut server = Subject::server();
    let held = server.connection.held_bytes();
    ends_by(
        &mut server,
        "glitches",
        limits::Budgets::DEFAULT.glitches_burst_count.unwrap() as usize + 10,
        |server, count| {
            assert!(server.connection.held_bytes() < held + 4000);
            server.feed(2, &frame(0xf_0700, &[&varint(count as u64 * 4)[..], b"u=1"].concat()))
        },
    );
}

#[test]
fn a_reserved_stream_flood_is_refused_stream_by_stream() {
    let mut server = Subject::server();
    for stream in 1..200_u64 {
        assert_eq!(server.feed(2 + stream * 4, &[0x21, 9, 9]), []);
    }
    assert_eq!(server.quic.stopped.len(), 199);
    // Streams that never say what they are.
    let mut server = Subject::server();
    let count = ends_by(&mut server, "reserved-stream-flood", 100, |server, count| {
        server.feed(6 + count as u64 * 4, b"")
    });
    assert_eq!(count, limits::UNIDIRECTIONAL_STREAMS_COUNT - 1);
}

#[test]
fn one_byte_data_ends_the_connection() {
    let mut server = Subject::server();
    server.feed(0, &headers(&POST));
    ends_by(
        &mut server,
        "small-data",
        limits::Budgets::DEFAULT.small_data_burst_count.unwrap() as usize + 10,
        |server, _| {
            let seen = server.feed(0, &data(b"a"));
            server.consume(1, 1);
            seen
        },
    );
}

#[test]
fn a_large_section_is_refused_by_its_header() {
    let mut server = Subject::server();
    server.refuses(
        0,
        &[&[1][..], &varint(u64::from(limits::Heads::DEFAULT.section_bytes) + 1)].concat(),
        0x107,
    );
    // One within the limit is charged while it comes.
    let mut server = Subject::server();
    server.feed(0, &[&[1][..], &varint(100_000)].concat());
    let before = server.connection.held_bytes();
    server.feed(0, &[0; 50_000]);
    assert!(server.connection.held_bytes() >= before + 50_000);
    server.quic.resets(0, 0x10c);
    server.poll();
    assert!(server.connection.held_bytes() < before + 1000);
}

#[test]
fn a_qpack_bomb_and_cookie_crumbs_are_counted() {
    let mut server = Subject::server();
    let value = "v".repeat(3000);
    let mut entry = vec![2, 0x3f, 0xe1, 0x1f, 0x41, b'x', 0x7f, 0xb9, 0x16];
    entry.extend(value.as_bytes());
    assert_eq!(server.feed(6, &entry), []);
    let bomb = [&[2, 0][..], &headers(&GET)[4..], &[0x80; 16_000]].concat();
    server.refuses(0, &frame(1, &bomb), 0x107);
    let mut server = Subject::server();
    let mut crumbs = GET.to_vec();
    crumbs.extend([("cookie", "a=b"); 101]);
    assert_eq!(server.feed_all(0, &headers(&crumbs)), [Seen::Rejected(1, 431)]);
}

#[test]
fn an_interim_flood_ends_the_exchange() {
    let mut client = Subject::client();
    client.request(&Method::GET, &[], End::Yes).unwrap();
    let mut count = 0;
    let last = loop {
        let seen = client.feed(0, &headers(&[(":status", "103")]));
        if seen != [Seen::Informational(1, 103)] {
            break seen;
        }
        count += 1;
    };
    assert_eq!(count, limits::Heads::DEFAULT.interim_count);
    assert!(matches!(last[..], [Seen::Aborted(1, reason)] if reason.name == "stream-error"));
    assert_eq!(client.quic.stopped, [(0, 0x107)]);
}

#[test]
fn a_settings_flood_is_refused() {
    let many: Vec<(u64, u64)> = (0x100..0x200).map(|id| (id, 0)).collect();
    Subject::new(bolide_semantics::Role::Server, Limits::default()).refuses(
        2,
        &settings(&many),
        0x107,
    );
    let long = [&[0, 4][..], &varint(u64::from(limits::CONTROL_FRAME_BYTES) + 1)].concat();
    Subject::new(bolide_semantics::Role::Server, Limits::default()).refuses(2, &long, 0x107);
}

#[test]
fn a_control_stream_stalled_ends_the_connection() {
    let mut server = Subject::server();
    server.quic.stream_room = 100;
    server.feed(6, &[2, 0x3f, 0xe1, 0x1f, 0x41, b'x', 1, b'y']);
    let section = &headers(&GET)[4..];
    let referring = frame(1, &[&[2, 0], section, &[0x80]].concat());
    ends_by(&mut server, "control-stream-stalled", 20_000, |server, count| {
        let stream = count as u64 * 4;
        let seen = server.feed_all(stream, &referring);
        // The response is short enough for any room.
        let _ = server.respond(count as u32 + 1, 200, Content::None);
        seen
    });
    assert!(server.connection.held_bytes() < 100_000);
}

#[test]
fn a_datagram_flood_keeps_the_last_ones() {
    let mut server = Subject::server();
    server.feed(0, &headers(&POST));
    for count in 0..1000_u32 {
        let datagram = [&[0][..], &count.to_be_bytes()].concat();
        server.quic.events.push_back(bolide_h3::QuicEvent::Datagram(datagram.into()));
    }
    server.poll();
    let kept: Vec<_> = std::iter::from_fn(|| server.connection.take_datagram()).collect();
    assert_eq!(kept.len(), limits::DATAGRAMS_COUNT);
    assert_eq!(kept[63].1[..], 999_u32.to_be_bytes());
}

#[test]
fn a_slow_head_or_slow_body_or_slow_reader_ends_its_stream() {
    let second = Duration::from_secs(1);
    let mut head = Subject::server();
    head.feed(0, &headers(&POST)[..9]);
    let mut body = Subject::server();
    body.feed(0, &headers(&POST));
    let mut reader = Subject::server();
    reader.feed_all(0, &headers(&GET));
    reader.quic.room = 5;
    reader
        .respond(1, 200, Content::Whole(&mut bytes::Bytes::from_static(&[7; 100]).into()))
        .unwrap();
    for (mut subject, seconds, reported) in
        [(head, 10, false), (body, 30, true), (reader, 30, true)]
    {
        let mut passed = 0;
        let mut seen = Vec::new();
        while !subject.connection.is_idle() {
            seen = subject.later(second);
            passed += 1;
            assert!(passed < 60, "it goes on and on");
        }
        assert!((seconds..=seconds + 5).contains(&passed), "{passed}");
        let told =
            matches!(seen[..], [Seen::Aborted(1, reason)] if reason.name == "stream-timeout");
        assert_eq!(told, reported, "{seen:?}");
    }
    let mut silent = Subject::new(bolide_semantics::Role::Server, Limits::default());
    silent.poll();
    assert_eq!(silent.later(10 * second), [Seen::Closed("slow-head")]);
}

#[test]
fn a_slow_body_that_never_pauses_ends_its_stream_and_a_slow_honest_one_does_not() {
    let second = Duration::from_secs(1);
    for (bytes_per_second, ends) in [(400, true), (600, false)] {
        let mut server = Subject::server();
        server.feed(0, &headers(&POST));
        let ended = (0..60).any(|_| {
            server.feed(0, &data(&vec![7; bytes_per_second]));
            server.consume(1, bytes_per_second);
            let seen = server.later(second);
            server.consume(1, bytes_per_second);
            seen.iter().any(|seen| matches!(seen, Seen::Aborted(1, _)))
        });
        assert_eq!(ended, ends, "{bytes_per_second} bytes per second");
    }
}

#[test]
fn bodies_that_come_one_after_the_other_are_slow_only_together() {
    let second = Duration::from_secs(1);
    for (bytes_per_second, expected) in [(1600, &[][..]), (1400, &[2, 3])] {
        let mut server = Subject::server();
        for number in [1, 2, 3] {
            server.feed(number * 4 - 4, &headers(&POST));
            server.feed(number * 4 - 4, &data(&[7; 10]));
            server.consume(number as u32, 10);
        }
        let mut ended = Vec::new();
        for _ in 0..60 {
            server.feed(0, &data(&vec![7; bytes_per_second]));
            server.consume(1, bytes_per_second);
            ended.extend(aborted(&server.later(second)));
            server.consume(1, bytes_per_second);
        }
        assert_eq!(ended, expected, "{bytes_per_second} bytes per second");
    }
}

#[test]
fn bodies_that_may_have_no_room_are_not_slow() {
    let second = Duration::from_secs(1);
    let mut server = Subject::server();
    for number in [1, 2] {
        server.feed(number * 4 - 4, &headers(&POST));
    }
    server.feed(0, &data(&[7; 1000]));
    for _ in 0..60 {
        assert_eq!(aborted(&server.later(second)), []);
    }
    server.consume(1, 1000);
    let mut ended = Vec::new();
    for _ in 0..40 {
        ended.extend(aborted(&server.later(second)));
    }
    assert_eq!(ended, [1, 2]);
}

#[test]
fn a_slow_reader_that_always_takes_a_little_ends_its_stream_and_a_slow_honest_one_does_not() {
    let second = Duration::from_secs(1);
    for (bytes_per_second, ends) in [(400, true), (600, false)] {
        let mut server = Subject::server();
        server.feed_all(0, &headers(&GET));
        server.quic.room = 5;
        let body = bytes::Bytes::from_static(&[7; 100_000]);
        server.respond(1, 200, Content::Whole(&mut body.into())).unwrap();
        let ended = (0..90).any(|_| {
            server.quic.gives_room(bytes_per_second);
            let seen = server.later(second);
            seen.iter().any(|seen| matches!(seen, Seen::Aborted(1, _)))
        });
        assert_eq!(ended, ends, "{bytes_per_second} bytes per second");
    }
}

/// A response with a body of so many bytes.
fn respond(server: &mut Subject, number: u32, bytes: usize) {
    let body = bytes::Bytes::from(vec![7; bytes]);
    assert!(server.respond(number, 200, Content::Whole(&mut body.into())).is_ok());
}

fn aborted(seen: &[Seen]) -> Vec<u32> {
    let number =
        |seen: &Seen| if let Seen::Aborted(number, _) = seen { Some(*number) } else { None };
    seen.iter().filter_map(number).collect()
}

#[test]
fn a_slow_reader_of_everything_ends_what_waits_and_a_slow_honest_one_does_not() {
    let second = Duration::from_secs(1);
    let mut server = Subject::server();
    // The second response is sent after the first.
    let lines = [&GET[..], &[("priority", "u=3")]].concat();
    for number in [1, 2] {
        server.feed_all(number * 4 - 4, &headers(&lines));
    }
    server.quic.room = 0;
    respond(&mut server, 1, 100_000);
    respond(&mut server, 2, 100_000);
    for _ in 0..90 {
        server.quic.gives_room(600);
        assert_eq!(aborted(&server.later(second)), []);
    }
    assert_eq!(server.quic.bytes_of(4), b"");
    let mut ended = Vec::new();
    for _ in 0..70 {
        server.quic.gives_room(400);
        ended.extend(aborted(&server.later(second)));
    }
    assert_eq!(ended, [1, 2]);
}

#[test]
fn a_connection_without_streams_is_not_slow() {
    let second = Duration::from_secs(1);
    let mut server = Subject::server();
    let request = |server: &mut Subject, number: u32| {
        server.feed_all(u64::from(number) * 4 - 4, &headers(&GET));
        server.quic.room = 0;
        respond(server, number, 10_000);
    };
    request(&mut server, 1);
    server.quic.gives_room(usize::MAX);
    server.poll();
    assert!(server.connection.is_idle());
    server.later(40 * second);
    request(&mut server, 2);
    for _ in 0..10 {
        server.quic.gives_room(600);
        assert_eq!(aborted(&server.later(second)), []);
    }
}

#[test]
fn a_slow_reader_of_one_response_ends_it_while_others_are_served() {
    let mut server = Subject::server();
    server.feed_all(0, &headers(&GET));
    server.quic.stream_room = 10_000;
    respond(&mut server, 1, 100_000);
    let ended = (2..).find(|number| {
        server.feed_all(u64::from(*number) * 4 - 4, &headers(&GET));
        respond(&mut server, *number, 1000);
        !aborted(&server.later(Duration::from_secs(1))).is_empty()
    });
    assert!((30..=37).contains(&ended.unwrap()), "{ended:?}");
}

#[test]
fn many_pieces_cost_what_few_do() {
    // However much came before, one more piece is dealt with in a fixed number of steps: nothing is kept of it.
    let mut server = Subject::server();
    server.feed(0, &headers(&POST));
    let bytes = data(&[7; 60_000]);
    for piece in bytes.chunks(1) {
        server.quic.arrives(0, piece);
    }
    let seen = server.poll();
    assert_eq!(seen.len(), 60_000);
    assert!(server.connection.held_bytes() < 10_000, "{}", server.connection.held_bytes());
}
