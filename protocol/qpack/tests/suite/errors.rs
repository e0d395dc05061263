//! RFC 9204 §2.2.3, §3.2, §4.4, §4.5.1, §6: what must be refused, by which error, and the limits by the names of attacks.

use bolide_hpack::{EachField, integer};
use bolide_qpack::{Decoded, Decoder, Encoder, Error, ErrorKind, limits};
use bolide_semantics::FieldRef;

use crate::Fields;

fn read(decoder: &mut Decoder, bytes: &[u8]) -> Result<Decoded, Error> {
    decoder.decode(0, bytes, &mut EachField::new(|_| true), &mut Vec::new())
}

/// A decoder with `count` entries `x: y`.
fn with_entries(count: usize) -> Decoder {
    let mut decoder = Decoder::default();
    // 4096 bytes, then the name and the value.
    decoder.read_instructions::<Fields>(&[0x3f, 0xe1, 0x1f]).expect("a capacity that is allowed");
    for _ in 0..count {
        decoder.read_instructions::<Fields>(&[0x41, b'x', 1, b'y']).expect("an entry that fits");
    }
    decoder
}

#[test]
fn sections_that_can_not_be_decoded() {
    for (bytes, what) in [
        (&[][..], "no prefix"),
        (&[0], "half a prefix"),
        (&[0, 0, 0xff], "an index that ends early"),
        (&[0, 0, 0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80], "an index without end"),
        (&[0, 0, 0xff, 36], "entry 99 of the static table"),
        (&[0, 0, 0x5f, 84], "name 99 of the static table"),
        (&[0, 0, 0x80], "an entry although none is required"),
        (&[0, 0, 0x10], "an entry after the base although none is required"),
        (&[0, 0, 0x40, 0], "the name of an entry although none is required"),
        (&[0, 0x80], "a base below zero"),
        (&[2, 0x81, 0x80], "a base two below one"),
        (&[2, 0, 0x81], "an entry before the first"),
        (&[2, 0, 0x10], "an entry from the required count on"),
        (&[2, 0, 0x08, 0], "the name of one"),
        (&[0xff, 2, 0, 0x80], "a required count above twice what the table can have"),
        (&[0, 0, 0x51, 3, b'/'], "a value that ends early"),
        (&[0, 0, 0x23, b'x'], "a name that ends early"),
        (&[0, 0, 0x51, 0x81, 0x00], "a value with wrong padding"),
    ] {
        let error = read(&mut with_entries(3), bytes).expect_err(what);
        assert_eq!(error.kind, ErrorKind::DecompressionFailed, "{what}");
        assert_eq!(error.kind.code(), 0x200);
    }
    assert_eq!(read(&mut with_entries(3), &[4, 0, 0x80, 0x82]), Ok(Decoded::Whole));
}

/// Entries that follow each other are copied together, as far as the section may refer to them.
#[test]
fn a_row_of_entries_ends_at_the_required_count() {
    // The first byte is the required count plus one; the second is what the base is above the count.
    for (bytes, expected) in [
        (&[4, 0, 0x82, 0x81, 0x80][..], 3),
        (&[3, 0, 0x81, 0x80], 2),
        (&[3, 1, 0x82, 0x81], 2),
        (&[4, 0, 0x82, 0x80, 0x81], 3),
        (&[4, 0, 0x80, 0xc1, 0xc0, 0x81, 0x80], 5),
    ] {
        let mut count = 0;
        let counts = |_: bolide_hpack::DecodedField<'_>| {
            count += 1;
            true
        };
        let mut acknowledgement = Vec::new();
        let decoded =
            with_entries(3).decode(0, bytes, &mut EachField::new(counts), &mut acknowledgement);
        assert_eq!(decoded, Ok(Decoded::Whole), "{bytes:?}");
        assert_eq!(count, expected, "{bytes:?}");
    }
    // The third entry is there, and not required.
    assert!(read(&mut with_entries(3), &[3, 1, 0x82, 0x81, 0x80]).is_err());
}

#[test]
fn a_reference_to_an_entry_that_has_left() {
    // 34 bytes each: 120 fit.
    let mut decoder = with_entries(200);
    assert_eq!(decoder.table_bytes(), 120 * 34);
    let required = 200 + 1;
    assert_eq!(read(&mut decoder, &[required, 0, 0x80 | 63]).map_err(|_| ()), Err(()));
    let oldest = [required, 0, 0xbf, 119 - 63];
    assert_eq!(read(&mut decoder, &oldest), Ok(Decoded::Whole));
    assert!(read(&mut decoder, &[required, 0, 0xbf, 120 - 63]).is_err());
}

#[test]
fn a_required_insert_count_wraps() {
    // 128 entries at most: counts are sent modulo 256.
    let mut decoder = with_entries(0);
    for inserted in 1..=2000_u64 {
        decoder.read_instructions::<Fields>(&[0x41, b'x', 1, b'y']).unwrap();
        for required in inserted.saturating_sub(100).max(1)..=inserted + 100 {
            let mut section = Vec::new();
            integer::encode((required % 256 + 1) as usize, 8, 0, &mut section);
            section.push(0);
            let expected =
                if required > inserted { Decoded::Blocked(required) } else { Decoded::Whole };
            assert_eq!(read(&mut decoder, &section), Ok(expected), "{required} of {inserted}");
            if required > inserted {
                decoder.unblock();
            }
        }
    }
}

#[test]
fn instructions_of_an_encoder_that_are_wrong() {
    for (bytes, what) in [
        (&[0x3f, 0xe2, 0x1f][..], "a capacity above what was announced"),
        (&[0x83, 0], "the name of an entry that is not there"),
        (&[0x03], "a duplicate of an entry that is not there"),
        (&[0xff, 36, 0], "name 99 of the static table"),
        (&[0x41, b'x', 0x7f, 0x81, 0x20], "a value larger than the table"),
        (&[0x5f, 0xe1, 0x20], "a name larger than the table"),
        (&[0x20, 0x41, b'x', 0], "an entry for a table without room"),
        (&[0x41, b'x', 0x81, 0], "a value with wrong padding"),
        (&[0x3f, 0xff, 0xff, 0xff, 0xff, 0xff], "an integer without end"),
    ] {
        let mut decoder = with_entries(3);
        let error = decoder.read_instructions::<Fields>(bytes).expect_err(what);
        assert_eq!((error.kind, error.kind.code()), (ErrorKind::EncoderStream, 0x201), "{what}");
    }
    let mut closed = Decoder::new(0, 0);
    assert!(closed.read_instructions::<Fields>(&[0x41, b'x', 0]).is_err());
}

#[test]
fn instructions_of_a_decoder_that_are_wrong() {
    for (bytes, what) in [
        (&[0x80][..], "an acknowledgement of nothing"),
        (&[0], "an increment by nothing"),
        (&[1], "an increment beyond what was inserted"),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "a stream beyond 62 bits"),
        (&[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80], "no end"),
    ] {
        for pieces in [1, 3, bytes.len()] {
            let mut encoder = Encoder::new();
            encoder.set_peer_capacity(4096);
            let result: Result<(), Error> =
                bytes.chunks(pieces).try_for_each(|piece| encoder.read_feedback(piece));
            let error = result.expect_err(what);
            assert_eq!(
                (error.kind, error.kind.code()),
                (ErrorKind::DecoderStream, 0x202),
                "{what}"
            );
        }
    }
    let mut encoder = Encoder::new();
    assert_eq!(
        encoder.read_feedback(&[0x44, 0x7f, 0x80, 0x01]),
        Ok(()),
        "cancellations need no section"
    );
}

#[test]
fn a_qpack_bomb_is_counted_by_the_section() {
    let mut decoder = with_entries(0);
    let value = vec![b'v'; 4000];
    let mut entry = vec![0x41, b'x'];
    integer::encode(value.len(), 7, 0, &mut entry);
    entry.extend(&value);
    decoder.read_instructions::<Fields>(&entry).unwrap();
    // A byte stands for 4000: the section declines what is above its limit, and nothing is copied.
    let bomb = [&[2, 0][..], &[0x80; 16_384]].concat();
    let mut fields = 0;
    let mut section = EachField::new(|_| {
        fields += 1;
        fields < 8
    });
    assert_eq!(decoder.decode(0, &bomb, &mut section, &mut Vec::new()), Ok(Decoded::Whole));
    drop(section);
    assert_eq!(fields, 8);
    assert!(decoder.allocated_bytes() < 20_000);
}

#[test]
fn a_blocked_stream_hold_is_bounded() {
    let mut decoder = with_entries(0);
    for _ in 0..limits::BLOCKED_STREAMS_COUNT {
        assert_eq!(read(&mut decoder, &[2, 0, 0x80]), Ok(Decoded::Blocked(1)));
    }
    assert_eq!(
        read(&mut decoder, &[2, 0, 0x80]).map_err(|error| error.kind),
        Err(ErrorKind::DecompressionFailed)
    );
    decoder.unblock();
    assert_eq!(read(&mut decoder, &[2, 0, 0x80]), Ok(Decoded::Blocked(1)));
}

#[test]
fn an_encoder_stream_flood_ends() {
    let mut decoder = with_entries(1);
    let most = limits::INSTRUCTIONS_COUNT as usize - 2;
    decoder.read_instructions::<Fields>(&vec![0; most]).unwrap();
    assert!(decoder.read_instructions::<Fields>(&[0]).is_err());
    // A section that uses the table makes room for as many again.
    let mut decoder = with_entries(1);
    for _ in 0..3 {
        decoder.read_instructions::<Fields>(&vec![0; most]).unwrap();
        let mut section = Vec::new();
        integer::encode((decoder.inserted() % 256 + 1) as usize, 8, 0, &mut section);
        section.extend([0, 0x80]);
        assert_eq!(read(&mut decoder, &section), Ok(Decoded::Whole));
    }
}

#[test]
fn an_instruction_in_single_bytes_is_kept_in_proportion() {
    let mut decoder = with_entries(0);
    let mut entry = vec![0x41, b'x'];
    integer::encode(4000, 7, 0, &mut entry);
    entry.resize(entry.len() + 4000, b'v');
    for byte in &entry {
        decoder.read_instructions::<Fields>(&[*byte]).unwrap();
        assert!(decoder.allocated_bytes() < 24_000);
    }
    assert_eq!(decoder.inserted(), 1);
    assert!(decoder.allocated_bytes() < 14_000, "what was incomplete is given back");
}

#[test]
fn with_every_acknowledgement_withheld_the_encoder_holds_little_and_never_blocks() {
    let mut encoder = Encoder::new();
    encoder.set_peer_capacity(1 << 20);
    let mut out = Vec::new();
    for stream in 0..10_000_u64 {
        let value = format!("value {}", stream % 200);
        for _ in 0..2 {
            out.clear();
            let mut section = encoder.begin(&mut out);
            section.field(&FieldRef::named("x-repeated", value.as_bytes()), &mut out);
            section.end(stream, &mut out);
            assert_eq!(out[..2], [0, 0], "no entry is referred to");
        }
    }
    assert!(encoder.allocated_bytes() < 24_000, "{}", encoder.allocated_bytes());
    // Insertions are acknowledged, sections never: their number is bounded, and so is what they pin.
    let mut encoder = Encoder::new();
    encoder.set_peer_capacity(4096);
    let mut referred = 0;
    for stream in 0..10_000_u64 {
        out.clear();
        let mut section = encoder.begin(&mut out);
        section.field(&FieldRef::named("x-repeated", b"value"), &mut out);
        section.end(stream, &mut out);
        referred += usize::from(out[0] != 0);
        if stream == 1 {
            encoder.read_feedback(&[1]).unwrap();
        }
    }
    assert_eq!(referred, limits::OUTSTANDING_SECTIONS_COUNT);
    assert!(encoder.allocated_bytes() < 24_000, "{}", encoder.allocated_bytes());
    // A cancellation sets one free, an acknowledgement another.
    encoder.read_feedback(&[0x42, 0x83]).unwrap();
}
