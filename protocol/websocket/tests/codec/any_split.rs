//! Whatever comes, however it is cut: the same is reported and answered, and nothing panics.

use bolide_semantics::Role;
use bolide_websocket::{Codec, Deflate, Limits, Settings};
use proptest::prelude::*;

use crate::wire::{Seen, feed, masked, output};

const AGREED: Deflate = Deflate {
    server_no_context_takeover: false,
    client_no_context_takeover: false,
    server_max_window_bits: 15,
    client_max_window_bits: 15,
};

fn account(pieces: &[&[u8]]) -> (Vec<Seen>, Vec<u8>) {
    let limits = Limits { message_bytes: 4096, fragments_count: 20, ..Limits::default() };
    let settings = Settings { limits, deflate: Some(AGREED), ..Settings::default() };
    let mut codec = Codec::new(Role::Server, settings);
    let seen = feed(&mut codec, pieces.iter().copied());
    (seen, output(&mut codec))
}

/// Frames, most of them right.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![
        8 => proptest::sample::select(vec![
            0x01_u8, 0x02, 0x00, 0x80, 0x81, 0x82, 0xc1, 0xc2, 0x41, 0x42, 0x88, 0x89, 0x8a
        ]),
        1 => any::<u8>(),
    ];
    let content = prop_oneof![
        4 => "\\PC{0,40}".prop_map(String::into_bytes),
        1 => Just(vec![0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]),
        1 => proptest::collection::vec(any::<u8>(), 0..300),
        1 => Just(Vec::new()),
    ];
    let frame = (first, content).prop_map(|(first, content)| masked(first, &content));
    proptest::collection::vec(frame, 0..12).prop_map(|frames| frames.concat())
}

/// Removes parts of messages: what a fragmented and failed message left is told only by when it failed.
fn settled(mut seen: Vec<Seen>) -> Vec<Seen> {
    seen.retain(|one| !matches!(one, Seen::Part(..)));
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_split_reports_the_same(
        bytes in frames(),
        cuts in proptest::collection::vec(0_usize..40, 0..80),
    ) {
        let (whole, sent) = account(&[&bytes]);
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        let (split, sent_split) = account(&pieces);
        prop_assert_eq!(settled(split), settled(whole));
        prop_assert_eq!(sent_split, sent);
    }
}
