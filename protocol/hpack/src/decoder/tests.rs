//! RFC 7541 §3, §4, §6: what a block may not do, and what it costs.

use bolide_semantics::FieldName;

use bolide_semantics::FieldRef;
use proptest::prelude::*;

use super::*;
use crate::{DecodedField, EachField, Encoder};

type Line = (String, String, bool);

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Line>, Error> {
    let mut lines = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    decoder.decode(
        block,
        &mut EachField::new(|field| {
            lines.push((text(field.name), text(field.value), field.valid));
            true
        }),
    )?;
    Ok(lines)
}

/// A literal with incremental indexing and a literal name.
fn insertion(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut block = vec![0x40];
    integer::encode(name.len(), 7, 0, &mut block);
    block.extend_from_slice(name);
    integer::encode(value.len(), 7, 0, &mut block);
    block.extend_from_slice(value);
    block
}

fn size_update(size: usize) -> Vec<u8> {
    let mut block = Vec::new();
    integer::encode(size, 5, 0x20, &mut block);
    block
}

#[test]
fn indices_that_no_table_has_are_refused() {
    let mut decoder = Decoder::default();
    assert_eq!(decode(&mut decoder, &[0x80]), Err(Error::InvalidIndex));
    assert_eq!(decode(&mut decoder, &[0xbe]), Err(Error::InvalidIndex));
    // As the name of each kind of literal.
    for first in [0x7e, 0x0f, 0x1f] {
        let block = [first, 0x2f, 0x00];
        assert_eq!(decode(&mut decoder, &block), Err(Error::InvalidIndex), "{first:x}");
    }
    decode(&mut decoder, &insertion(b"a", b"b")).unwrap();
    assert_eq!(decode(&mut decoder, &[0xbe]).unwrap(), [("a".into(), "b".into(), true)]);
    assert_eq!(decode(&mut decoder, &[0xbf]), Err(Error::InvalidIndex));
    let huge = [0xff, 0x80, 0xff, 0xff, 0x7f];
    assert_eq!(decode(&mut decoder, &huge), Err(Error::InvalidIndex));
}

#[test]
fn integer_overflow() {
    let mut decoder = Decoder::default();
    for block in [
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..],
        &[0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0x40, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0x40, 0x01, b'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ] {
        assert_eq!(decode(&mut decoder, block), Err(Error::IntegerOverflow), "{block:x?}");
    }
    // Lengths that the block can't have.
    let long = [0x40, 0x7f, 0x80, 0xff, 0xff, 0x7f];
    assert_eq!(decode(&mut decoder, &long), Err(Error::Truncated));
}

#[test]
fn a_block_cut_anywhere_inside_a_line_is_refused() {
    let mut block = insertion(b"x-long-name", &[b'v'; 200]);
    block.extend([0x0f, 0x0f, 0x81, 0x07, 0x1f, 0x08, 0x02, b'a', b'b']);
    let ends = [0, 215, 219, 224];
    assert_eq!(block.len(), ends[3]);
    for cut in 0..=block.len() {
        let result = decode(&mut Decoder::default(), &block[..cut]);
        if let Some(lines) = ends.iter().position(|end| *end == cut) {
            assert_eq!(result.unwrap().len(), lines);
        } else {
            assert_eq!(result, Err(Error::Truncated), "{cut}");
        }
    }
}

#[test]
fn a_size_update_stands_at_the_beginning_only() {
    let mut decoder = Decoder::default();
    let mut block = size_update(0);
    block.extend(size_update(4096));
    block.push(0x82);
    assert_eq!(decode(&mut decoder, &block).unwrap().len(), 1);
    block.extend(size_update(4096));
    assert_eq!(decode(&mut decoder, &block), Err(Error::MisplacedSizeUpdate));
}

#[test]
fn size_update_flood() {
    let mut decoder = Decoder::default();
    let two = [size_update(0), size_update(4096)].concat();
    assert_eq!(decode(&mut decoder, &two), Ok(vec![]));
    let three = [&two[..], &size_update(4096)].concat();
    assert_eq!(decode(&mut decoder, &three), Err(Error::TooManySizeUpdates));
}

#[test]
fn a_size_update_stays_within_what_was_allowed() {
    let mut decoder = Decoder::default();
    assert_eq!(decode(&mut decoder, &size_update(4097)), Err(Error::SizeUpdateTooLarge));
    decoder.set_table_bytes_max(8192);
    assert_eq!(decode(&mut decoder, &size_update(8192)), Ok(vec![]));
    assert_eq!(decode(&mut decoder, &size_update(8193)), Err(Error::SizeUpdateTooLarge));
    assert_eq!(Decoder::new(1 << 20).allowed, TABLE_CEILING_BYTES);
}

#[test]
fn a_reduction_that_was_acknowledged_requires_an_update() {
    let reduced = || {
        let mut decoder = Decoder::default();
        decode(&mut decoder, &insertion(b"a", b"b")).unwrap();
        decoder.set_table_bytes_max(20);
        decoder.set_table_bytes_max(100);
        decoder
    };
    assert_eq!(decode(&mut reduced(), &[0x82]), Err(Error::MissingSizeUpdate));
    assert_eq!(decode(&mut reduced(), &[]), Err(Error::MissingSizeUpdate));
    // The least one is to be told first (RFC 7541 §4.2).
    assert_eq!(decode(&mut reduced(), &size_update(100)), Err(Error::MissingSizeUpdate));
    let mut decoder = reduced();
    let block = [size_update(20), size_update(100), vec![0x82]].concat();
    assert_eq!(decode(&mut decoder, &block).unwrap().len(), 1);
    assert_eq!(decoder.table_bytes(), 0);
    assert_eq!(decode(&mut decoder, &[0x82]).unwrap().len(), 1);
    // What the peer's encoder uses is already within the new maximum.
    decoder.set_table_bytes_max(100);
    assert_eq!(decode(&mut decoder, &[0x82]).unwrap().len(), 1);
}

#[test]
fn a_line_larger_than_the_table_empties_it() {
    let mut decoder = Decoder::new(100);
    decode(&mut decoder, &insertion(b"a", b"b")).unwrap();
    assert_eq!(decoder.table_bytes(), 34);
    let lines = decode(&mut decoder, &insertion(b"a", &[b'b'; 68])).unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(decoder.table_bytes(), 0);
    decode(&mut decoder, &insertion(b"a", &[b'b'; 67])).unwrap();
    assert_eq!(decoder.table_bytes(), 100);
}

#[test]
fn a_name_may_refer_to_the_entry_that_its_line_pushes_out() {
    let mut decoder = Decoder::new(60);
    decode(&mut decoder, &insertion(b"x-name", b"old")).unwrap();
    let block = [&[0x7e, 0x03][..], b"new", &[0xbe]].concat();
    let line = ("x-name".to_owned(), "new".to_owned(), true);
    assert_eq!(decode(&mut decoder, &block).unwrap(), [line.clone(), line]);
}

#[test]
fn names_and_values_are_judged_once_and_the_judgement_is_kept() {
    for (name, value, valid) in [
        (&b"x-a"[..], &b"b c"[..], true),
        (b"host", b"", true),
        (b":path", b"/", true),
        (b"X-a", b"b", false),
        (b"Host", b"b", false),
        (b"", b"b", false),
        (b"x a", b"b", false),
        (b"x\0", b"b", false),
        (b"x\xe4", b"b", false),
        (b":other", b"b", false),
        (b":", b"b", false),
        (b"x-a", b" b", false),
        (b"x-a", b"b\r\n", false),
        (b"host", b"b\0", false),
    ] {
        let mut decoder = Decoder::default();
        let literal = decode(&mut decoder, &insertion(name, value)).unwrap();
        let indexed = decode(&mut decoder, &[0xbe]).unwrap();
        assert_eq!(literal, indexed);
        assert_eq!(literal[0].2, valid, "{name:?} {value:?}");
        // The name by index, with a valid value.
        let named = decode(&mut decoder, &[0x0f, 0x2f, 0x01, b'v']).unwrap();
        assert_eq!(named[0].2, valid || (name.starts_with(b"x-a") || name == b"host"));
    }
}

#[test]
fn kinds_are_found_for_literal_and_indexed_names() {
    let block = [
        &insertion(b":protocol", b"websocket")[..],
        &insertion(b"priority", b"u=1"),
        &insertion(b"x-a", b""),
        &[0xbe, 0xbf, 0xc0, 0x84],
        &[0x10, 0x01, b'p', 0x01, b'v'],
    ]
    .concat();
    let mut seen = Vec::new();
    let mut decoder = Decoder::default();
    let see = |field: DecodedField<'_>| {
        seen.push((field.kind, field.never_indexed));
        true
    };
    decoder.decode(&block, &mut EachField::new(see)).unwrap();
    let kinds = [
        NameKind::Pseudo(crate::Pseudo::Protocol),
        NameKind::Known(FieldName::Priority),
        NameKind::Other,
    ];
    let mut expected = kinds.to_vec();
    expected.extend(kinds.into_iter().rev());
    expected.push(NameKind::Pseudo(crate::Pseudo::Path));
    assert!(
        seen[..7].iter().eq(expected.iter().map(|kind| (*kind, false)).collect::<Vec<_>>().iter())
    );
    assert_eq!(seen[7], (NameKind::Other, true));
}

/// One byte of the block stands for 4 KiB: the caller says when it is enough, and nothing grows.
#[test]
fn hpack_bomb() {
    let mut decoder = Decoder::default();
    decode(&mut decoder, &insertion(b"x", &[b'v'; 4000])).unwrap();
    let held = decoder.allocated_bytes();
    let (mut calls, mut total) = (0, 0);
    let mut block = vec![0xbe; 16_384];
    block.extend(insertion(b"after", b"it"));
    let enough = |field: DecodedField<'_>| {
        calls += 1;
        total += field.name.len() + field.value.len() + 32;
        total <= 32_768
    };
    let mut section = EachField::new(enough);
    decoder.decode(&block, &mut section).unwrap();
    assert!(section.text().allocated_bytes() <= 8192);
    assert_eq!(calls, 9);
    assert_eq!(decoder.allocated_bytes(), held);
    // The table is in step all the same.
    assert_eq!(decode(&mut decoder, &[0xbe]).unwrap(), [("after".into(), "it".into(), true)]);
}

#[test]
fn no_memory_before_the_first_entry_and_a_bound_after() {
    let mut decoder = Decoder::default();
    decode(&mut decoder, &[0x82, 0x86, 0x84, 0x01, 0x01, b'a']).unwrap();
    assert_eq!(decoder.allocated_bytes(), 0);
    for round in 0..1000_usize {
        let name = format!("x{round}");
        decode(&mut decoder, &insertion(name.as_bytes(), &vec![b'v'; round * 31 % 300])).unwrap();
        decode(&mut decoder, &insertion(b"", b"")).unwrap();
        assert!(decoder.table_bytes() <= 4096);
        assert!(decoder.allocated_bytes() <= 8192 + 128 * 12, "{}", decoder.allocated_bytes());
    }
    decode(&mut decoder, &size_update(0)).unwrap();
    assert_eq!(decoder.allocated_bytes(), 0);
}

proptest! {
    // Entries that follow each other are copied together: the same as one by one, on both sides of the index that takes two bytes.
    #[test]
    fn indices_that_follow_each_other_mean_what_each_means_alone(
        entries in 1_usize..100,
        runs in prop::collection::vec((1_usize..130, 1_usize..130), 1..8),
    ) {
        let mut decoder = Decoder::new(16_384);
        for entry in 0..entries {
            let (name, value) = (["x-a", "accept", "cookie"][entry % 3], vec![b'v'; entry % 40]);
            decode(&mut decoder, &insertion(name.as_bytes(), &value)).unwrap();
        }
        let mut block = Vec::new();
        let mut one_by_one = Ok(Vec::new());
        for (oldest, count) in runs {
            for index in (oldest.saturating_sub(count)..oldest).rev().map(|age| FIRST + age) {
                let at = block.len();
                integer::encode(index, 7, 0x80, &mut block);
                let alone = decode(&mut decoder, &block[at..]);
                one_by_one = one_by_one.and_then(|lines: Vec<_>| Ok([lines, alone?].concat()));
            }
        }
        prop_assert_eq!(decode(&mut decoder, &block), one_by_one);
    }

    // A counter that starts again must not make one table's entry pass for another's.
    #[test]
    fn tables_whose_counters_pass_their_end_hold_what_fresh_ones_do(
        blocks in prop::collection::vec(prop::collection::vec((0_u8..40, 0_u8..9, 0_usize..90), 1..12), 1..40),
    ) {
        let mut decoders = [Decoder::default(), Decoder::default()];
        let [_, worn] = &mut decoders;
        worn.table = std::mem::replace(&mut worn.table, Table::new(TABLE_BYTES)).worn();
        let mut encoders = [Encoder::new(), Encoder::worn()];
        for block in blocks {
            let lines: Vec<_> = block
                .iter()
                .map(|(name, value, length)| {
                    (format!("x-{name}"), format!("{value}").repeat(*length + 1))
                })
                .collect();
            let encoded = encoders.each_mut().map(|encoder| {
                let mut out = Vec::new();
                encoder.begin(&mut out);
                for (name, value) in &lines {
                    encoder.field(&FieldRef::named(name, value.as_bytes()), &mut out);
                }
                out
            });
            prop_assert_eq!(&encoded[0], &encoded[1]);
            let lines: Vec<_> = lines.into_iter().map(|(name, value)| (name, value, true)).collect();
            for decoder in &mut decoders {
                prop_assert_eq!(decode(decoder, &encoded[0]), Ok(lines.clone()));
            }
        }
        for decoder in &mut decoders {
            let fault = decode(decoder, &[0xff, 0x80, 0x01]);
            prop_assert_eq!(fault, Err(Error::InvalidIndex));
        }
    }
}
