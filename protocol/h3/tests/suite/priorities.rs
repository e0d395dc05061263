//! RFC 9218: in which order responses are sent.

use bolide_semantics::{Content, End, ExchangeId, FieldName, FieldRef, ResponseHead};
use http::StatusCode;

use crate::subject::{GET, Subject, frame, headers, varint};

/// Requests with these priorities, all of which have a body that waits.
fn waiting(priorities: &[&'static str]) -> Subject {
    let mut server = Subject::server();
    for (number, priority) in priorities.iter().enumerate() {
        let mut lines = GET.to_vec();
        lines.push(("priority", priority));
        server.feed_all(number as u64 * 4, &headers(&lines));
    }
    server.quic.room = 0;
    for number in 1..=priorities.len() as u32 {
        assert!(server.respond(number, 200, Content::Follows).is_ok());
        assert_eq!(server.give(number, &[7; 40_000], End::Yes), Ok(false));
    }
    server.poll();
    server
}

/// The order in which streams were served, turn by turn.
fn served(server: &Subject) -> Vec<u64> {
    let mut order: Vec<u64> = server.quic.order.iter().map(|(stream, _)| stream / 4 + 1).collect();
    order.dedup();
    order
}

/// The same where there is room for everything.
fn order(server: &mut Subject) -> Vec<u64> {
    server.quic.gives_room(usize::MAX);
    server.poll();
    served(server)
}

#[test]
fn the_urgent_come_first_each_to_its_end() {
    assert_eq!(order(&mut waiting(&["u=5", "u=1", "u=3"])), [2, 3, 1]);
}

#[test]
fn incremental_responses_share() {
    let order = order(&mut waiting(&["i", "i", "u=0"]));
    assert_eq!(order, [3, 1, 2, 1, 2, 1, 2]);
}

#[test]
fn incremental_responses_share_room_that_is_enough_for_one() {
    let mut server = waiting(&["i", "i", "i"]);
    for _ in 0..7 {
        server.quic.gives_room(1000);
        server.poll();
    }
    assert_eq!(served(&server), [1, 2, 3, 1, 2, 3, 1]);
}

#[test]
fn an_update_changes_the_order_also_before_its_request() {
    let mut server = waiting(&["u=5", "u=1", "u=3"]);
    server.feed(2, &frame(0xf_0700, &[&varint(0)[..], b"u=0"].concat()));
    assert_eq!(server.quic.urgencies[&0], 0);
    assert_eq!(order(&mut server), [1, 2, 3]);
    let mut server = Subject::server();
    server.feed(2, &frame(0xf_0700, &[&varint(4)[..], b"u=2"].concat()));
    let mut lines = GET.to_vec();
    lines.push(("priority", "u=6"));
    server.feed_all(4, &headers(&lines));
    assert_eq!(server.quic.urgencies[&4], 2, "the update is newer than the request");
}

#[test]
fn a_response_says_its_own_priority() {
    let mut server = Subject::server();
    server.feed_all(0, &headers(&GET));
    let own = [FieldRef::known(FieldName::Priority, b"u=1")];
    let head = ResponseHead::new(StatusCode::OK, &own);
    server
        .with(|connection, cx| connection.send_response(cx, ExchangeId(1), &head, Content::None))
        .unwrap();
    assert_eq!(server.quic.urgencies[&0], 1);
}
