//! RFC 7541: any blocks, one after another, on one connection.
//!
//! The input is a sequence of 16-bit numbers, big-endian. One below 32 768 is the length of a block
//! that follows; of any other, the low 15 bits are the table size that we allow from then on.

#![no_main]

use bolide_hpack::{DecodedField, Decoder, EachField, NameKind};
use bolide_semantics::is_field_value;
use libfuzzer_sys::fuzz_target;

fn check(field: &DecodedField<'_>) {
    assert_eq!(field.kind, NameKind::of(field.name));
    if field.valid {
        assert!(is_field_value(field.value));
        assert!(!field.name.is_empty());
        assert!(!field.name.iter().any(u8::is_ascii_uppercase));
    }
    if let Some(text) = field.kind.text() {
        assert_eq!(field.name, text.as_bytes());
        assert_eq!(field.valid, is_field_value(field.value));
    }
}

fuzz_target!(|input: &[u8]| {
    let mut looking = Decoder::default();
    let mut looking_away = Decoder::default();
    let mut allowed = 4096;
    let mut rest = input;
    while let Some((number, after)) = rest.split_first_chunk::<2>() {
        let number = usize::from(u16::from_be_bytes(*number));
        rest = after;
        if number & 0x8000 != 0 {
            let bytes = number & 0x7fff;
            looking.set_table_bytes_max(bytes);
            looking_away.set_table_bytes_max(bytes);
            allowed = allowed.max(bytes);
            continue;
        }
        let (block, after) = rest.split_at(number.min(rest.len()));
        rest = after;
        let one = looking.decode(
            block,
            &mut EachField::new(|field| {
                check(&field);
                true
            }),
        );
        let other = looking_away.decode(block, &mut EachField::new(|_| false));
        assert_eq!(one, other);
        assert_eq!(looking.table_bytes(), looking_away.table_bytes());
        assert!(looking.table_bytes() <= allowed);
        assert!(looking.allocated_bytes() <= 2 * allowed.next_power_of_two() + allowed);
        if one.is_err() {
            return;
        }
    }
});
