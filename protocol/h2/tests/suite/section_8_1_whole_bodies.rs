//! RFC 9113 §8.1: bodies that have arrived by the time their heads are reported.

use bolide_h2::{Limits, limits};
use bolide_semantics::{End, ExchangeId};

use crate::raw::{self, PADDED, WINDOW_UPDATE, data, frame, get, post, window_update};
use crate::subject::{Seen, Subject};

/// How many frames a body is looked for behind its head.
const AHEAD: u32 = 128;

/// Reads one request's head, and asks for its body.
fn head_and_body(server: &mut Subject, bytes_max: usize) -> (u32, Option<Vec<u8>>) {
    let Some(Seen::Head(id, ..)) = server.poll() else { panic!("a head") };
    let whole =
        server.with(|connection, cx| connection.whole_body(cx.input, ExchangeId(id), bytes_max));
    (id, whole.map(|bytes| bytes.to_vec()))
}

fn answer(server: &mut Subject, id: u32) {
    server.answer(id, 200, End::Yes).unwrap();
}

#[test]
fn bodies_behind_their_heads_are_taken_and_not_reported_again() {
    let mut server = Subject::server();
    let mut bytes = [post(1), post(3), get(5)].concat();
    bytes.extend([data(1, true, b"one"), data(3, true, b""), get(7)].concat());
    server.arrive(&bytes);
    assert_eq!(head_and_body(&mut server, 100), (1, Some(b"one".to_vec())));
    answer(&mut server, 1);
    assert_eq!(head_and_body(&mut server, 100), (3, Some(Vec::new())));
    for id in [5, 7] {
        let Some(Seen::Head(seen, End::Yes, _)) = server.poll() else { panic!("a head") };
        assert_eq!(seen, id);
        answer(&mut server, id);
    }
    answer(&mut server, 3);
    assert_eq!(server.poll(), None);
    server.leave();
    let sent = server.sent();
    assert!(sent.iter().all(|frame| frame.kind == raw::HEADERS), "no stream is reset: {sent:?}");
}

#[test]
fn a_taken_body_counts_against_the_window_until_it_is_consumed() {
    let mut server = Subject::server_with(
        Limits {
            windows: limits::Windows {
                connection_window_bytes: 65_535,
                ..limits::Windows::DEFAULT
            },
            ..Limits::default()
        },
        &[],
    );
    for round in 0..10_u32 {
        let id = 1 + 2 * round;
        server.arrive(&[post(id), data(id, true, &[b'x'; 16_000])].concat());
        assert_eq!(head_and_body(&mut server, 16_384).1.unwrap().len(), 16_000, "{round}");
        server.with(|connection, cx| connection.consumed(cx, ExchangeId(id), 16_000));
        answer(&mut server, id);
        assert_eq!(server.poll(), None);
        server.leave();
    }
    let granted: u32 = server
        .sent()
        .iter()
        .filter(|frame| frame.kind == WINDOW_UPDATE)
        .map(|frame| frame.u32_at(0))
        .sum();
    assert!(granted >= 160_000 - 65_535, "{granted}");
}

#[test]
fn what_is_not_whole_or_breaks_a_rule_is_left_to_reading() {
    let long = [post(1), data(1, true, b"four")].concat();
    let pieces = [post(1), data(1, false, b"on"), data(1, true, b"e")].concat();
    let padded = [post(1), frame(raw::DATA, PADDED | raw::END_STREAM, 1, b"\x01one\0")].concat();
    let half = [post(1), data(1, true, b"one")[..11].to_vec()].concat();
    let behind = [post(1), window_update(0, 1), data(1, true, b"one")].concat();
    for bytes in [long, pieces, padded, half, behind] {
        let mut server = Subject::server();
        server.arrive(&bytes);
        assert_eq!(head_and_body(&mut server, 3), (1, None));
        assert!(!matches!(server.poll(), Some(Seen::Aborted(..) | Seen::Closed(_))));
    }
    let mut server = Subject::server();
    let fields = [&raw::POST[..], &[("content-length", "4")]].concat();
    server.arrive(&[raw::headers(1, false, &fields), data(1, true, b"one")].concat());
    assert_eq!(head_and_body(&mut server, 100), (1, None));
    assert!(!matches!(server.poll(), Some(Seen::Data(..))), "its length is wrong");
}

#[test]
fn bodies_far_behind_are_not_looked_for() {
    let mut server = Subject::server();
    let mut bytes = post(1);
    let others: Vec<u8> = (1..AHEAD).flat_map(|number| get(1 + 2 * number)).collect();
    bytes.extend(&others);
    bytes.extend(data(1, true, b"near"));
    server.arrive(&bytes);
    assert_eq!(head_and_body(&mut server, 100), (1, Some(b"near".to_vec())));
    let mut server = Subject::server();
    let mut bytes = post(1);
    bytes.extend(&others);
    bytes.extend(get(1 + 2 * AHEAD));
    bytes.extend(data(1, true, b"far"));
    server.arrive(&bytes);
    assert_eq!(head_and_body(&mut server, 100), (1, None));
}
