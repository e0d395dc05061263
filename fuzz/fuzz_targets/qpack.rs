//! RFC 9204: anything on the encoder stream, sections and the decoder stream, one piece after another, on one connection.
//!
//! The input is a sequence of 16-bit numbers, big-endian: the two highest bits say where the piece that follows goes,
//! the others how long it is. Two decoders read the same instructions, one of them byte by byte.

#![no_main]

use bolide_hpack::{DecodedField, EachField, NameKind};
use bolide_qpack::{Decoded, Decoder, Encoder, limits};
use bolide_semantics::{FieldRef, is_field_value};
use libfuzzer_sys::fuzz_target;

type Fields = EachField<fn(DecodedField<'_>) -> bool>;

fn check(field: &DecodedField<'_>) {
    assert_eq!(field.kind, NameKind::of(field.name));
    if field.valid {
        assert!(is_field_value(field.value));
        assert!(!field.name.is_empty());
        assert!(!field.name.iter().any(u8::is_ascii_uppercase));
    }
}

fuzz_target!(|input: &[u8]| {
    let (mut decoder, mut slow, mut encoder) =
        (Decoder::default(), Decoder::default(), Encoder::new());
    encoder.set_peer_capacity(4096);
    let (mut rest, mut stream, mut out) = (input, 0, Vec::new());
    while let Some((number, after)) = rest.split_first_chunk::<2>() {
        let number = u16::from_be_bytes(*number);
        let (piece, after) = after.split_at(usize::from(number & 0x3fff).min(after.len()));
        rest = after;
        out.clear();
        match number >> 14 {
            0 => {
                let one = decoder.read_instructions::<Fields>(piece);
                let other =
                    piece.chunks(1).try_for_each(|byte| slow.read_instructions::<Fields>(byte));
                assert_eq!(one, other);
                assert_eq!(decoder.inserted(), slow.inserted());
                assert!(decoder.table_bytes() <= limits::TABLE_BYTES as usize);
                if one.is_err() {
                    return;
                }
                decoder.increment(&mut out);
            }
            1 => {
                stream += 4;
                let section = &mut EachField::new(|field| {
                    check(&field);
                    true
                });
                match decoder.decode(stream, piece, section, &mut out) {
                    Ok(Decoded::Whole) => {}
                    Ok(Decoded::Blocked(required)) => assert!(!decoder.is_ready(required)),
                    Err(_) => return,
                }
            }
            2 => {
                stream += 4;
                let mut section = encoder.begin(&mut out);
                for value in piece.chunks(20).filter(|value| is_field_value(value)) {
                    section.field(&FieldRef::named("user-agent", value), &mut out);
                }
                section.end(stream, &mut out);
            }
            _ => {
                if encoder.read_feedback(piece).is_err() {
                    return;
                }
            }
        }
        assert!(decoder.allocated_bytes() < 64 * 1024);
        assert!(encoder.allocated_bytes() < 64 * 1024);
    }
});
