//! RFC 9113 §10.5: resets by the client, and resets that it makes us send.

use std::time::Duration;

use bolide_h2::{Limits, limits};
use bolide_semantics::End;

use crate::raw::{self, CANCEL, ENHANCE_YOUR_CALM, GET, data, frame, headers, window_update};
use crate::subject::{Seen, Subject};

/// Repeats until the connection ends: how often it took, why it ended, and with which code.
fn until_closed(
    server: &mut Subject,
    times: u32,
    mut bytes: impl FnMut(u32) -> Vec<u8>,
) -> (u32, &'static str, u32) {
    for time in 0..times {
        let seen = server.feed(&bytes(1 + 2 * time));
        if let Some(Seen::Closed(name)) = seen.last() {
            return (time, name, server.sent().last().unwrap().u32_at(4));
        }
        server.sent();
    }
    panic!("still open after {times}");
}

#[test]
fn rapid_reset() {
    let mut server = Subject::server();
    let attack = |id| [raw::get(id), raw::rst_stream(id, CANCEL)].concat();
    let (times, name, code) = until_closed(&mut server, 1000, attack);
    assert_eq!((times, name, code), (100, "rapid-reset", ENHANCE_YOUR_CALM));
}

#[test]
fn rapid_reset_in_one_segment() {
    let mut server = Subject::server();
    let attack = |id| [raw::get(id), raw::rst_stream(id, CANCEL)].concat();
    let bytes: Vec<u8> = (0..5000).flat_map(|index| attack(1 + 2 * index)).collect();
    let heads = server.feed(&bytes).iter().filter(|one| matches!(one, Seen::Head(..))).count();
    assert_eq!(heads, 101);
}

#[test]
fn rapid_reset_patient() {
    let limits = Limits {
        budgets: limits::Budgets { client_resets_life_count: 500, ..limits::Budgets::DEFAULT },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits, &[]);
    for time in 0..500 {
        server.now += Duration::from_millis(31);
        let id = 1 + 2 * time;
        server.feed(&[raw::get(id), raw::rst_stream(id, CANCEL)].concat());
        server.sent();
    }
    server.now += Duration::from_secs(10);
    let last = [raw::get(2001), raw::rst_stream(2001, CANCEL)].concat();
    assert_eq!(server.dies_of(&last).0, "rapid-reset");
}

#[test]
fn resets_after_the_response_are_no_attack() {
    let mut server = Subject::server();
    for time in 0..2000 {
        let id = 1 + 2 * time;
        server.feed(&raw::get(id));
        server.answer(id, 200, End::Yes).unwrap();
        assert_eq!(server.feed(&raw::rst_stream(id, CANCEL)), []);
        server.sent();
    }
}

#[test]
fn myr_window_update_zero() {
    let mut server = Subject::server();
    let attack = |id| [raw::post(id), window_update(id, 0)].concat();
    let (times, name, code) = until_closed(&mut server, 1000, attack);
    assert_eq!((times, name, code), (100, "made-you-reset", ENHANCE_YOUR_CALM));
}

#[test]
fn myr_window_overflow() {
    let mut server = Subject::server();
    let attack = |id| [raw::post(id), window_update(id, 0x7fff_ffff)].concat();
    assert_eq!(until_closed(&mut server, 1000, attack).1, "made-you-reset");
}

#[test]
fn myr_data_after_end() {
    let mut server = Subject::server();
    let attack = |id| [raw::get(id), data(id, true, b"x")].concat();
    assert_eq!(until_closed(&mut server, 1000, attack).1, "made-you-reset");
}

#[test]
fn myr_headers_after_end() {
    let mut server = Subject::server();
    let attack = |id| [raw::get(id), raw::get(id)].concat();
    assert_eq!(until_closed(&mut server, 1000, attack).1, "made-you-reset");
}

#[test]
fn myr_content_length() {
    let mut server = Subject::server();
    let fields = [&GET[..], &[("content-length", "1")]].concat();
    let attack = |id| [headers(id, false, &fields), data(id, true, b"xx")].concat();
    assert_eq!(until_closed(&mut server, 1000, attack).1, "made-you-reset");
}

#[test]
fn myr_priority() {
    for length in [4, 5] {
        let mut server = Subject::server();
        let attack = |id: u32| {
            let payload = &[&id.to_be_bytes()[..], &[1]].concat()[..length];
            [raw::post(id), frame(raw::PRIORITY, 0, id, payload)].concat()
        };
        assert_eq!(until_closed(&mut server, 1000, attack).1, "made-you-reset");
    }
}

#[test]
fn myr_malformed_request() {
    let mut server = Subject::server();
    let attack = |id| headers(id, true, &[&GET[..], &[("connection", "x")]].concat());
    assert_eq!(until_closed(&mut server, 1000, attack).1, "made-you-reset");
}

#[test]
fn stream_limit_ignored() {
    let limits = Limits {
        budgets: limits::Budgets { glitches_burst_count: Some(200), ..limits::Budgets::DEFAULT },
        ..Limits::default()
    };
    let mut server = Subject::server_with(limits, &[]);
    let (times, name, _) = until_closed(&mut server, 1000, raw::get);
    assert_eq!((times, name), (300, "glitches"));
}

#[test]
fn early_responses_are_no_attack() {
    let mut server = Subject::server();
    for time in 0..2000 {
        let id = 1 + 2 * time;
        server.feed(&[raw::post(id), data(id, false, &[0; 100])].concat());
        server.answer(id, 404, End::Yes).unwrap();
        assert_eq!(server.feed(&data(id, true, &[0; 100])), []);
        server.sent();
    }
}
