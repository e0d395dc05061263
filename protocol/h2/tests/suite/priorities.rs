//! RFC 9218: the urgent overtakes bulk, and equals share.

use bolide_semantics::End;

use crate::raw::{self, GET, headers, priority_update, window_update};
use crate::subject::{Subject, of_kind};

fn request(stream: u32, priority: &str) -> Vec<u8> {
    if priority.is_empty() {
        return raw::get(stream);
    }
    headers(stream, true, &[&GET[..], &[("priority", priority)]].concat())
}

/// A server whose output takes one frame a turn, and responses of eight frames each.
fn with_responses(priorities: &[(u32, &str)]) -> Subject {
    let mut server = Subject::server_with(bolide_h2::Limits::default(), &[(4, 1 << 20)]);
    server.feed(&window_update(0, 1 << 24));
    server.output_limit = 1;
    let mut bytes = Vec::new();
    for (stream, priority) in priorities {
        bytes.extend(request(*stream, priority));
    }
    assert_eq!(server.feed(&bytes).len(), priorities.len());
    for (stream, _) in priorities {
        server.answer(*stream, 200, End::No).unwrap();
        assert_eq!(server.give(*stream, &[0; 8 * 16_384], End::Yes), Ok(false));
    }
    server.sent();
    server
}

/// Returns whose frames leave, one after the other.
fn order(server: &mut Subject, turns: usize) -> Vec<u32> {
    let mut order = Vec::new();
    for _ in 0..turns {
        server.turn();
        order.extend(of_kind(&server.sent(), raw::DATA).iter().map(|frame| frame.stream));
    }
    order
}

#[test]
fn those_who_say_nothing_share() {
    let mut server = with_responses(&[(1, ""), (3, ""), (5, "")]);
    assert_eq!(order(&mut server, 6), [1, 3, 5, 1, 3, 5]);
}

#[test]
fn the_urgent_overtake_bulk() {
    let mut server = with_responses(&[(1, "u=6, i"), (3, "u=0")]);
    assert_eq!(order(&mut server, 10), [3, 3, 3, 3, 3, 3, 3, 3, 1, 1]);
}

#[test]
fn what_is_useless_in_parts_is_sent_whole() {
    let mut server = with_responses(&[(1, "u=3"), (3, "u=3")]);
    assert_eq!(order(&mut server, 10), [1, 1, 1, 1, 1, 1, 1, 1, 3, 3]);
}

#[test]
fn a_small_response_passes_a_large_one() {
    let mut server = with_responses(&[(1, "")]);
    order(&mut server, 1);
    server.feed(&raw::get(3));
    server.answer(3, 200, End::No).unwrap();
    server.give(3, b"small", End::Yes).unwrap();
    let mut frames = server.sent();
    server.turn();
    frames.extend(server.sent());
    server.turn();
    frames.extend(server.sent());
    let data = of_kind(&frames, raw::DATA);
    assert!(data.iter().any(|frame| frame.stream == 3), "{data:?}");
}

#[test]
fn priorities_may_be_updated() {
    let mut server = with_responses(&[(1, "u=3"), (3, "u=3")]);
    assert_eq!(order(&mut server, 2), [1, 1]);
    server.feed(&priority_update(3, "u=1"));
    server.sent();
    assert_eq!(order(&mut server, 2), [3, 3]);
    server.feed(&priority_update(3, "u=7"));
    server.sent();
    assert_eq!(order(&mut server, 2), [1, 1]);
}

#[test]
fn priorities_may_come_before_their_request() {
    let mut server = Subject::server_with(bolide_h2::Limits::default(), &[(4, 1 << 20)]);
    server.feed(&window_update(0, 1 << 24));
    server.feed(&priority_update(3, "u=1"));
    server.output_limit = 1;
    assert_eq!(server.feed(&[request(1, "u=3"), request(3, "u=5")].concat()).len(), 2);
    for stream in [1, 3] {
        server.answer(stream, 200, End::No).unwrap();
        server.give(stream, &[0; 8 * 16_384], End::Yes).unwrap();
    }
    server.sent();
    assert_eq!(order(&mut server, 2), [3, 3]);
}

#[test]
fn a_response_may_say_how_urgent_it_is_itself() {
    let answered = |fields: &[(&str, &str)]| {
        let mut server = Subject::server_with(bolide_h2::Limits::default(), &[(4, 1 << 20)]);
        server.feed(&window_update(0, 1 << 24));
        server.output_limit = 1;
        let bytes = [request(1, "u=2"), request(3, "u=2")].concat();
        assert_eq!(server.feed(&bytes).len(), 2);
        for (stream, fields) in [(1, &[][..]), (3, fields)] {
            server.answer_with(stream, 200, fields, End::No).unwrap();
            assert_eq!(server.give(stream, &[0; 2 * 16_384], End::Yes), Ok(false));
        }
        server.sent();
        order(&mut server, 4)
    };
    assert_eq!(answered(&[]), [1, 1, 3, 3]);
    assert_eq!(answered(&[("priority", "u=0")]), [3, 3, 1, 1]);
    assert_eq!(answered(&[("priority", "u=7")]), [1, 1, 3, 3]);
}
