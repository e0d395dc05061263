//! RFC 9113 §10.5: what a connection holds while it waits.

use std::time::Duration;

use bolide_buffers::{Chunk, Memory};
use bolide_h2::{Connection, Limits};
use bolide_semantics::{DeadlineReason, End};
use bytes::Bytes;

use crate::raw;
use crate::subject::{Subject, of_kind};

#[test]
fn an_idle_connection_is_small() {
    let mut server = Subject::server();
    for index in 0..10 {
        server.feed(&raw::get(1 + 2 * index));
        server.answer_with(1 + 2 * index, 200, &[("server", "x")], End::Yes).unwrap();
        server.turn();
        server.sent();
    }
    let busy = size_of::<Connection>() + server.connection.allocated_bytes();
    assert!(busy <= 2240, "{busy}");
    server.turn();
    assert_eq!(server.deadline.unwrap().reason, DeadlineReason::Idle);
    server.after(Duration::from_secs(1));
    let idle = size_of::<Connection>() + server.connection.allocated_bytes();
    assert!(idle <= 768, "{idle} ({})", size_of::<Connection>());
    let seen = server.feed(&raw::get(101));
    assert_eq!(seen.len(), 1);
}

#[test]
fn memory_is_given_back_once() {
    let mut server = Subject::server();
    server.feed(&raw::get(1));
    server.answer(1, 200, End::Yes).unwrap();
    server.turn();
    server.sent();
    server.turn();
    server.after(Duration::from_secs(1));
    let next = server.deadline.unwrap().at - server.now;
    assert_eq!(next, Duration::from_secs(59));
}

#[test]
fn a_hundred_streams_take_what_they_need() {
    let mut server = Subject::server();
    let requests: Vec<u8> = (0..100).flat_map(|index| raw::get(1 + 2 * index)).collect();
    assert_eq!(server.feed(&requests).len(), 100);
    let held = server.connection.allocated_bytes();
    assert!(held <= 32 * 1024, "{held}");
}

#[test]
fn a_piece_is_charged_as_a_whole_until_its_last_byte_leaves() {
    for (memory, waits) in [(Memory::Shared, 0), (Memory::Kept, 4096), (Memory::Lent, 96)] {
        let mut server = Subject::server_with(Limits::default(), &[(4, 4000)]);
        server.feed(&raw::get(1));
        server.answer(1, 200, End::No).unwrap();
        let before = server.connection.held_bytes();
        let chunk = Chunk { bytes: vec![b'x'; 4096].into(), memory };
        assert_eq!(server.give_chunk(1, chunk, End::No), Ok(false));
        server.sent();
        assert_eq!(server.connection.held_bytes() - before, waits, "{memory:?}");
        server.feed(&raw::window_update(1, 95));
        assert_eq!(server.connection.held_bytes() - before, waits, "{memory:?}");
        server.feed(&raw::window_update(1, 1));
        assert_eq!(server.connection.held_bytes(), before, "{memory:?}");
    }
}

#[test]
fn bodies_that_wait_for_a_window_are_shared_when_they_are_own() {
    for memory in [Memory::Shared, Memory::Kept, Memory::Lent] {
        let mut server = Subject::server_with(Limits::default(), &[(4, 1000)]);
        let body = Bytes::from(vec![b'x'; 4096]);
        for id in (1..200).step_by(2) {
            server.feed(&raw::get(id));
            server.answer(id, 200, End::No).unwrap();
            let chunk = Chunk { bytes: body.clone(), memory };
            assert_eq!(server.give_chunk(id, chunk, End::Yes), Ok(false));
        }
        server.sent();
        assert_eq!(body.is_unique(), memory == Memory::Lent, "what is lent was copied to wait");
        let updates = (1..200).step_by(2).flat_map(|id| raw::window_update(id, 4096));
        let updates: Vec<u8> = raw::window_update(0, 1 << 20).into_iter().chain(updates).collect();
        server.feed(&updates);
        let frames = server.sent();
        let data = of_kind(&frames, raw::DATA);
        assert!(data.iter().all(|frame| frame.payload.iter().all(|byte| *byte == b'x')));
        assert!(server.connection.is_idle());
        assert!(body.is_unique(), "nothing is kept of what was sent");
    }
}
