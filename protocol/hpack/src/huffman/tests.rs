//! RFC 7541 §5.2, Appendix B: the code both ways, and what must be refused.

use proptest::prelude::*;

use super::*;
use crate::Error;

fn coded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(encode(text, usize::MAX, &mut out));
    let length = out.len();
    assert!(!encode(text, length, &mut out), "it is not shorter than it is");
    assert_eq!(out.len(), length);
    out
}

fn decoded(input: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = vec![0xaa; room_for(input.len())];
    let end = decode(input, &mut out)?;
    Ok(out[..end].to_vec())
}

#[test]
fn the_strings_of_appendix_c4() {
    let host = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
    assert_eq!(coded(b"www.example.com"), host);
    assert_eq!(decoded(&host).unwrap(), b"www.example.com");
    assert_eq!(coded(b"no-cache"), [0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]);
}

#[test]
fn the_code_is_complete_and_ends_with_eos() {
    let kraft: u64 = code::LENGTHS.iter().map(|length| 1 << (30 - length)).sum();
    assert_eq!(kraft, 1 << 30);
    assert_eq!(code::CODES[256], 0x3fff_ffff);
    assert_eq!(code::CODES[usize::from(b'0')], 0);
    // Spot checks across the lengths of Appendix B.
    assert_eq!(code::CODES[usize::from(b'&')], 0xf8);
    assert_eq!(code::CODES[usize::from(b'\\')], 0x7fff0);
    assert_eq!(code::CODES[249], 0x0fff_fffe);
    assert_eq!(code::CODES[22], 0x3fff_fffe);
}

#[test]
fn every_byte_round_trips_at_every_alignment() {
    for byte in 0..=255 {
        for before in 0..12 {
            for after in 0..12 {
                let mut text = vec![b'0'; before];
                text.push(byte);
                text.extend(std::iter::repeat_n(b'0', after));
                assert_eq!(decoded(&coded(&text)).unwrap(), text);
            }
        }
    }
}

#[test]
fn an_empty_string_is_fine() {
    assert_eq!(decoded(b"").unwrap(), b"");
    assert_eq!(coded(b""), b"");
}

#[test]
fn wrong_padding_is_refused() {
    // "0" is 00000 and three ones.
    assert_eq!(decoded(&[0b0000_0111]).unwrap(), b"0");
    for bad in [
        &[0b0000_0110][..],
        &[0b0000_0011],
        // Eight and more bits of padding.
        &[0xff],
        &[0b0000_0111, 0xff],
        &[0xff, 0xff, 0xff],
        // The code of a byte cut short: '?' is 11111111 00.
        &[0b1111_1111, 0b0000_0000][..1],
    ] {
        assert_eq!(decoded(bad), Err(Error::InvalidHuffman), "{bad:x?}");
        let mut long = coded(b"00000000");
        assert_eq!(long.len(), 5);
        long.extend_from_slice(&coded(b"www.example.comx"));
        long.extend_from_slice(bad);
        assert_eq!(decoded(&long), Err(Error::InvalidHuffman), "{bad:x?}");
    }
}

#[test]
fn eos_is_refused() {
    assert_eq!(decoded(&[0xff; 4]), Err(Error::InvalidHuffman));
    assert_eq!(decoded(&[0xff; 40]), Err(Error::InvalidHuffman));
    // "0000" and "00000000" shift EOS by 20 and 40 bits.
    for zeros in [20, 40] {
        let mut bits = vec![false; zeros];
        bits.extend([true; 30]);
        bits.extend([false; 50]);
        let bytes: Vec<u8> = bits
            .chunks_exact(8)
            .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit)))
            .collect();
        assert_eq!(decoded(&bytes), Err(Error::InvalidHuffman));
    }
}

/// Bit by bit, straight from the table.
fn by_definition(input: &[u8]) -> Result<Vec<u8>, Error> {
    let (mut out, mut code, mut length) = (Vec::new(), 0_u32, 0_u8);
    for bit in input.iter().flat_map(|byte| (0..8).rev().map(move |shift| byte >> shift & 1)) {
        code = code << 1 | u32::from(bit);
        length += 1;
        let symbol = (0..257).find(|s| code::LENGTHS[*s] == length && code::CODES[*s] == code);
        match symbol {
            Some(256) => return Err(Error::InvalidHuffman),
            Some(symbol) => {
                out.push(symbol as u8);
                (code, length) = (0, 0);
            }
            None => {}
        }
    }
    let padded = length < 8 && code == (1 << length) - 1;
    if padded { Ok(out) } else { Err(Error::InvalidHuffman) }
}

proptest! {
    #[test]
    fn any_string_round_trips(text in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(decoded(&coded(&text)).unwrap(), text);
    }

    #[test]
    fn readable_strings_round_trip(text in "[ -~]{0,200}") {
        prop_assert_eq!(decoded(&coded(text.as_bytes())).unwrap(), text.as_bytes());
    }

    #[test]
    fn any_input_decodes_as_its_definition_says(input in prop::collection::vec(any::<u8>(), 0..24)) {
        prop_assert_eq!(decoded(&input), by_definition(&input));
    }

    #[test]
    fn input_full_of_ones_decodes_as_its_definition_says(
        input in prop::collection::vec(prop_oneof![Just(0xff), Just(0xfe), any::<u8>()], 0..24)
    ) {
        prop_assert_eq!(decoded(&input), by_definition(&input));
    }
}
