//! RFC 9113 §4.1: however the bytes arrive, the same is reported and sent.

use bolide_h2::Limits;
use bolide_semantics::{End, Role};
use proptest::prelude::*;

use crate::raw::{self, data, frame, headers};
use crate::subject::{Seen, Subject};

/// A conversation that touches every type of frame.
fn conversation() -> Vec<u8> {
    let block = raw::block(&raw::POST);
    [
        raw::client_preface(&[(4, 100_000), (3, 50)]),
        raw::settings_ack(),
        raw::get(1),
        frame(raw::HEADERS, 0, 3, &block[..7]),
        frame(raw::CONTINUATION, 0, 3, &block[7..9]),
        frame(raw::CONTINUATION, raw::END_HEADERS, 3, &block[9..]),
        data(3, false, &[7; 300]),
        raw::ping(*b"01234567"),
        frame(raw::DATA, raw::PADDED, 3, &[&[40][..], &[1; 100], &[0; 40]].concat()),
        raw::window_update(0, 5000),
        raw::priority_update(5, "u=1"),
        frame(0xf0, 9, 3, &[1; 70]),
        frame(raw::PRIORITY, 0, 3, &[0, 0, 0, 1, 1]),
        headers(3, true, &[("x-sum", "12")]),
        raw::post(5),
        frame(raw::DATA, raw::PADDED | raw::END_STREAM, 5, &[&[9][..], &[2; 10], &[0; 9]].concat()),
        headers(7, true, &[(":method", "GET")]),
        raw::post(9),
        raw::rst_stream(9, raw::CANCEL),
        raw::goaway(0, 0),
        raw::get(11),
    ]
    .concat()
}

/// Joins pieces of data, whose division is the one thing that may differ.
fn joined(seen: Vec<Seen>) -> Vec<Seen> {
    let mut joined: Vec<Seen> = Vec::new();
    for one in seen {
        match (joined.last_mut(), one) {
            (Some(Seen::Data(id, bytes, end @ End::No)), Seen::Data(next, more, last))
                if *id == next =>
            {
                bytes.extend(more);
                *end = last;
            }
            (_, one) => joined.push(one),
        }
    }
    joined
}

fn run(pieces: &[&[u8]]) -> (Vec<Seen>, Vec<u8>) {
    let mut server = Subject::new(Role::Server, Limits::default());
    let mut seen = Vec::new();
    for piece in pieces {
        seen.extend(server.feed(piece));
    }
    (joined(seen), server.sent_bytes())
}

#[test]
fn byte_by_byte() {
    let bytes = conversation();
    let whole = run(&[&bytes]);
    assert_eq!(whole.0.len(), 10, "{:?}", whole.0);
    let singly: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(run(&singly), whole);
}

#[test]
fn cut_once_anywhere() {
    let bytes = conversation();
    let whole = run(&[&bytes]);
    for cut in 0..bytes.len() {
        assert_eq!(run(&[&bytes[..cut], &bytes[cut..]]), whole, "{cut}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cut_anywhere(mut cuts in prop::collection::vec(0usize..1200, 0..20)) {
        let bytes = conversation();
        let whole = run(&[&bytes]);
        cuts.retain(|cut| *cut < bytes.len());
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut start = 0;
        let mut pieces = Vec::new();
        for cut in cuts {
            pieces.push(&bytes[start..cut]);
            start = cut;
        }
        prop_assert_eq!(run(&pieces), whole);
    }

    #[test]
    fn any_bytes_are_survived(
        frames in prop::collection::vec(
            (0u8..12, any::<u8>(), 0u32..8, prop::collection::vec(any::<u8>(), 0..40)),
            0..40,
        ),
        client in any::<bool>(),
        cut in 1usize..60,
    ) {
        let mut bytes = Vec::new();
        for (kind, flags, stream, payload) in &frames {
            bytes.extend(frame(*kind, *flags, *stream, payload));
        }
        let mut subject = if client { Subject::client() } else { Subject::server() };
        for piece in bytes.chunks(cut) {
            let seen = subject.feed(piece);
            if matches!(seen.last(), Some(Seen::Closed(_))) {
                break;
            }
        }
        raw::frames(&subject.sent_bytes());
    }
}
