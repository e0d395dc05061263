//! RFC 9113 §10.5: responses that are never read, and windows that are not kept.

use bolide_h2::Limits;
use bolide_semantics::{End, Misuse};

use crate::raw::{self, FLOW_CONTROL_ERROR, data, settings, window_update};
use crate::subject::{Subject, of_kind};

#[test]
fn internal_buffering() {
    // A hundred responses of a megabyte each behind a closed window: one chunk each is all that is held.
    let mut server = Subject::server_with(Limits::default(), &[(4, 0)]);
    for index in 0..100 {
        let id = 1 + 2 * index;
        server.feed(&raw::get(id));
        server.answer(id, 200, End::No).unwrap();
        assert_eq!(server.give(id, &[0; 1000], End::No), Ok(false));
        assert_eq!(server.give(id, &[0; 1000], End::No), Err(Misuse::Busy));
    }
    assert!(of_kind(&server.sent(), raw::DATA).is_empty());
}

#[test]
fn window_dribble() {
    // One byte at a time is sent one byte at a time, without anything piling up.
    let mut server = Subject::server_with(Limits::default(), &[(4, 0)]);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    server.give(1, &[0; 1000], End::Yes).unwrap();
    server.sent();
    for _ in 0..999 {
        server.feed(&window_update(1, 1));
        assert_eq!(server.sent_one().payload.len(), 1);
    }
}

#[test]
fn window_ignored() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    for _ in 0..4 {
        server.feed(&data(1, false, &[0; 16_384]));
    }
    assert_eq!(server.resets(&data(1, false, &[0; 16_384]), 1), FLOW_CONTROL_ERROR);
}

#[test]
fn settings_window_flapping() {
    let mut server = Subject::server_with(Limits::default(), &[(4, 1000)]);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    server.give(1, &[0; 5000], End::Yes).unwrap();
    server.sent();
    let mut sent = 1000;
    for _ in 0..20 {
        server.feed(&[settings(&[(4, 0)]), settings(&[(4, 1000)])].concat());
        let frames = server.sent();
        sent += of_kind(&frames, raw::DATA).iter().map(|f| f.payload.len()).sum::<usize>();
    }
    assert_eq!(sent, 1000);
}
