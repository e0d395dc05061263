//! RFC 7541 §2.2: encoder and decoder stay in step, whatever they are given.

use bolide_hpack::{DecodedField, Decoder, EachField, Encoder, NameKind, Pseudo};
use bolide_semantics::{FieldName, FieldRef, TOKEN_LOWER, is_field_value};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Line {
    name: Vec<u8>,
    value: Vec<u8>,
    sensitive: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Block(Vec<Line>),
    TableBytes(u32),
    Forget,
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let known = (0..FieldName::ALL.len())
        .prop_map(|number| FieldName::ALL[number].as_str().as_bytes().to_vec());
    let pseudo =
        (0..Pseudo::ALL.len()).prop_map(|number| Pseudo::ALL[number].as_str().as_bytes().to_vec());
    let other = prop::sample::select(vec!["x-a", "x-b", "x-request-id", "grpc-status"])
        .prop_map(|name| name.as_bytes().to_vec());
    prop_oneof![3 => known, 2 => pseudo, 2 => other, 1 => "[a-z-]{1,40}".prop_map(String::into_bytes)]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let frequent = prop::sample::select(vec!["", "GET", "200", "/", "gzip, deflate", "a", "b"])
        .prop_map(|value| value.as_bytes().to_vec());
    prop_oneof![
        4 => frequent,
        2 => "[ -~]{0,60}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (0_usize..3000).prop_map(|length| vec![b'v'; length]),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    (name(), value(), prop::bool::weighted(0.1)).prop_map(|(name, value, sensitive)| Line {
        name,
        value,
        sensitive,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(line(), 0..12).prop_map(Step::Block),
        1 => prop_oneof![0_u32..200, 0_u32..10_000].prop_map(Step::TableBytes),
        1 => Just(Step::Forget),
    ]
}

fn encode(encoder: &mut Encoder, lines: &[Line]) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for line in lines {
        if let NameKind::Pseudo(pseudo) = NameKind::of(&line.name) {
            encoder.pseudo(pseudo, &line.value, &mut out);
        } else {
            let name = std::str::from_utf8(&line.name).expect("names are made of ASCII");
            let known = FieldName::lookup(&line.name);
            let field = FieldRef { known, name, value: &line.value, sensitive: line.sensitive };
            encoder.field(&field, &mut out);
        }
    }
    out
}

fn is_valid(name: &[u8], value: &[u8]) -> bool {
    let token = |byte: &u8| TOKEN_LOWER[usize::from(*byte)] == *byte && *byte != 0;
    let pseudo = matches!(NameKind::of(name), NameKind::Pseudo(_));
    (pseudo || !name.is_empty() && name.iter().all(token)) && is_field_value(value)
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(steps in prop::collection::vec(step(), 1..20)) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        let mut max = 4096;
        for step in steps {
            match step {
                Step::TableBytes(bytes) => {
                    encoder.set_peer_table_bytes(bytes);
                    decoder.set_table_bytes_max(bytes as usize);
                    max = bytes as usize;
                }
                Step::Forget => {
                    encoder.forget();
                    prop_assert_eq!(encoder.allocated_bytes(), 0);
                }
                Step::Block(lines) => {
                    let block = encode(&mut encoder, &lines);
                    let mut left = lines.iter();
                    decoder.decode(&block, &mut EachField::new(|field| {
                        let line = left.next().unwrap();
                        assert_eq!((field.name, field.value), (&line.name[..], &line.value[..]));
                        assert_eq!(field.kind, NameKind::of(&line.name));
                        assert_eq!(field.valid, is_valid(&line.name, &line.value));
                        let pseudo = matches!(field.kind, NameKind::Pseudo(_));
                        assert!(field.never_indexed || !line.sensitive || pseudo);
                        true
                    })).unwrap();
                    prop_assert!(left.next().is_none());
                    prop_assert!(decoder.table_bytes() <= max.min(4096));
                }
            }
        }
    }

    #[test]
    fn no_bytes_break_the_decoder(
        blocks in prop::collection::vec(prop::collection::vec(byte(), 0..80), 1..30),
        reduced in prop::option::of(0_usize..300),
    ) {
        let mut decoder = Decoder::new(4096);
        for block in blocks {
            if let Some(bytes) = reduced {
                decoder.set_table_bytes_max(bytes);
            }
            let mut total = 0;
            let result = decoder.decode(&block, &mut EachField::new(|field| {
                total += field.name.len() + field.value.len();
                assert_eq!(field.valid, is_valid(field.name, field.value));
                assert_eq!(field.kind, NameKind::of(field.name));
                true
            }));
            prop_assert!(total <= block.len() * 4096);
            prop_assert!(decoder.table_bytes() <= 4096);
            prop_assert!(decoder.allocated_bytes() <= 8192 + 128 * 12);
            if result.is_err() {
                break;
            }
        }
    }

    /// Checks that a caller that stops reading fields gets the same table as one that reads all.
    #[test]
    fn looking_away_keeps_the_table_in_step(
        blocks in prop::collection::vec(prop::collection::vec(byte(), 0..60), 1..10),
        looks in 0_usize..5,
    ) {
        let (mut one, mut other) = (Decoder::new(4096), Decoder::new(4096));
        for block in blocks {
            let (mut all, mut some) = (0, 0);
            let full = one.decode(&block, &mut EachField::new(|_: DecodedField<'_>| { all += 1; true }));
            let cut = other.decode(&block, &mut EachField::new(|_: DecodedField<'_>| { some += 1; some <= looks }));
            prop_assert_eq!(full, cut);
            prop_assert_eq!(some, all.min(looks + 1));
            prop_assert_eq!(one.table_bytes(), other.table_bytes());
            if full.is_err() {
                break;
            }
        }
    }
}

/// Bytes with which blocks are often right for a while.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        3 => prop::sample::select(vec![0x82, 0xbe, 0xbf, 0xc0, 0x40, 0x41, 0x7e, 0x7f, 0x00, 0x0f, 0x10]),
        3 => 0_u8..6,
        2 => any::<u8>(),
        1 => Just(0xff),
    ]
}
