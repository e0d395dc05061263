//! RFC 9204 §2.1, §4: any sections survive the way through both ends, whatever the order and the pieces in which
//! streams arrive; and no foreign bytes do harm.

use bolide_hpack::EachField;
use bolide_qpack::{Decoded, Decoder, Encoder};
use bolide_semantics::{FieldName, FieldRef, NameKind};
use proptest::prelude::*;

use crate::Fields;

type Lines = Vec<(String, Vec<u8>, bool)>;

fn encode(encoder: &mut Encoder, stream: u64, lines: &Lines) -> Vec<u8> {
    let mut out = b"before".to_vec();
    let mut section = encoder.begin(&mut out);
    for (name, value, sensitive) in lines {
        if let NameKind::Pseudo(pseudo) = NameKind::of(name.as_bytes()) {
            section.pseudo(pseudo, value, &mut out);
        } else {
            let known = FieldName::lookup(name.as_bytes());
            let field = FieldRef { known, name, value, sensitive: *sensitive };
            section.field(&field, &mut out);
        }
    }
    section.end(stream, &mut out);
    out.split_off(6)
}

fn decode(decoder: &mut Decoder, stream: u64, section: &[u8], out: &mut Vec<u8>) -> Lines {
    let mut lines = Vec::new();
    let decoded = decoder.decode(
        stream,
        section,
        &mut EachField::new(|field| {
            let name = String::from_utf8_lossy(field.name).into_owned();
            lines.push((name, field.value.to_vec(), field.never_indexed));
            true
        }),
        out,
    );
    assert_eq!(decoded, Ok(Decoded::Whole), "nothing of ours blocks");
    lines
}

fn any_line() -> impl Strategy<Value = (String, Vec<u8>, bool)> {
    let name = prop::sample::select(vec![
        ":path",
        ":method",
        ":authority",
        "user-agent",
        "x-frame-options",
        "x-a",
        "x-b",
        "content-type",
        "accept",
        "cookie",
        "authorization",
        "date",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "",
            "/",
            "GET",
            "deny",
            "text/css",
            "a value that comes again",
            "*/*"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(b' '..=b'~', 0..60),
        (0..12_u8).prop_map(|kind| vec![b'a' + kind; 300]),
    ];
    (name.prop_map(str::to_owned), value, prop::bool::weighted(0.05))
}

/// Returns what happens between two sections: how many instruction bytes and feedback bytes arrive.
fn any_step() -> impl Strategy<Value = (Lines, usize, usize)> {
    (prop::collection::vec(any_line(), 0..8), 0_usize..400, 0_usize..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn sections_survive_in_any_order_of_streams(
        steps in prop::collection::vec(any_step(), 1..60),
        capacity in prop::sample::select(vec![0_u32, 63, 100, 300, 4096, 65_535]),
        late in 0_usize..5,
    ) {
        let mut encoder = Encoder::new();
        encoder.set_peer_capacity(u64::from(capacity));
        let mut decoder = Decoder::new(capacity, 0);
        let (mut instructions, mut feedback) = (Vec::new(), Vec::new());
        let mut waiting = std::collections::VecDeque::new();
        for (stream, (lines, forth, back)) in steps.iter().enumerate() {
            let stream = stream as u64 * 4;
            waiting.push_back((stream, lines, encode(&mut encoder, stream, lines)));
            if let Some(more) = encoder.instructions() {
                instructions.append(more);
            }
            // Sections arrive late and in another order than they were sent; instructions in pieces.
            let arrived: Vec<u8> = instructions.drain(..(*forth).min(instructions.len())).collect();
            decoder.read_instructions::<Fields>(&arrived).unwrap();
            decoder.increment(&mut feedback);
            if waiting.len() > late {
                let at = forth % waiting.len();
                let (stream, lines, section) = waiting.remove(at).unwrap();
                if back % 5 == 4 {
                    decoder.cancel(stream, &mut feedback);
                } else {
                    let expected: Lines = lines.iter().map(|(name, value, sensitive)| {
                        let short_cookie = name == "cookie" && value.len() < 20;
                        let never = name == "authorization" || short_cookie;
                        let pseudo = name.starts_with(':');
                        (name.clone(), value.clone(), !pseudo && (*sensitive || never))
                    }).collect();
                    prop_assert_eq!(decode(&mut decoder, stream, &section, &mut feedback), expected);
                }
            }
            let told: Vec<u8> = feedback.drain(..(*back).min(feedback.len())).collect();
            encoder.read_feedback(&told).unwrap();
            prop_assert!(decoder.table_bytes() <= 4096.min(capacity as usize));
            prop_assert!(encoder.allocated_bytes() < 32_000);
        }
    }

    #[test]
    fn any_bytes_in_any_pieces_are_one_and_the_same(
        instructions in prop::collection::vec(any::<u8>(), 0..600),
        entries in prop::collection::vec((0_u8..3, prop::collection::vec(b'a'..=b'z', 0..40)), 0..20),
        section in prop::collection::vec(any::<u8>(), 0..300),
        cuts in prop::collection::vec(1_usize..50, 1..10),
    ) {
        // Entries that are right, then anything.
        let mut bytes = vec![0x3f, 0xe1, 0x1f];
        for (kind, value) in &entries {
            bytes.extend(match kind { 0 => &[0xc1][..], 1 => &[0x42, b'x', b'y'], _ => &[0xff, 0] });
            bytes.push(value.len() as u8);
            bytes.extend(value);
        }
        bytes.extend(&instructions);
        let mut whole = Decoder::default();
        let at_once = whole.read_instructions::<Fields>(&bytes);
        let mut pieces = Decoder::default();
        let (mut rest, mut result) = (&bytes[..], Ok(()));
        for cut in cuts.iter().cycle() {
            if rest.is_empty() || result.is_err() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            rest = after;
            result = pieces.read_instructions::<Fields>(piece);
        }
        prop_assert_eq!(at_once, result);
        prop_assert_eq!(whole.inserted(), pieces.inserted());
        prop_assert_eq!(whole.table_bytes(), pieces.table_bytes());
        prop_assert!(pieces.allocated_bytes() < 40_000);
        if at_once.is_ok() {
            let mut out = Vec::new();
            let _ = whole.decode(0, &section, &mut EachField::new(|_| true), &mut out);
        }
        let _ = Encoder::new().read_feedback(&section);
    }
}

#[test]
fn a_repeated_request_costs_two_bytes_and_a_byte_for_each_line() {
    let mut encoder = Encoder::new();
    let mut decoder = Decoder::default();
    encoder.set_peer_capacity(4096);
    let lines: Lines = [
        (":method", "GET"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("user-agent", "a browser with a very long name"),
        ("accept-language", "en-GB,en;q=0.7"),
    ]
    .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec(), false))
    .to_vec();
    let mut sizes = Vec::new();
    for stream in 0..4 {
        let section = encode(&mut encoder, stream, &lines);
        sizes.push(section.len());
        let mut feedback = Vec::new();
        let instructions = std::mem::take(encoder.instructions().unwrap());
        decoder.read_instructions::<Fields>(&instructions).unwrap();
        decoder.increment(&mut feedback);
        assert_eq!(decode(&mut decoder, stream, &section, &mut feedback), lines);
        encoder.read_feedback(&feedback).unwrap();
    }
    // The second time the lines enter the table, from the third on they are referred to.
    assert!(sizes[0] == sizes[1] && sizes[0] > 40, "{sizes:?}");
    assert_eq!(sizes[2..], [7, 7]);
}
