//! RFC 7541 §5.1: integers with a prefix of at most 7 bits.

use crate::Error;
use crate::limits::{INTEGER_OCTETS_COUNT, LENGTH_CEILING_BYTES};

/// Reads an integer whose prefix is the low `prefix` bits of `block[*at]`, and moves `at` past it.
#[inline]
pub(crate) fn decode(block: &[u8], at: &mut usize, prefix: u32) -> Result<usize, Error> {
    let mask = (1_u8 << prefix) - 1;
    let first = block.get(*at).ok_or(Error::Truncated)? & mask;
    *at += 1;
    if first < mask {
        return Ok(usize::from(first));
    }
    decode_rest(block, at, mask)
}

fn decode_rest(block: &[u8], at: &mut usize, mask: u8) -> Result<usize, Error> {
    let mut value = u64::from(mask);
    for octet in 0..INTEGER_OCTETS_COUNT {
        let byte = *block.get(*at).ok_or(Error::Truncated)?;
        *at += 1;
        value += u64::from(byte & 0x7f) << (7 * octet);
        if byte & 0x80 == 0 {
            let fits = value <= u64::from(LENGTH_CEILING_BYTES);
            return if fits { Ok(value as usize) } else { Err(Error::IntegerOverflow) };
        }
    }
    Err(Error::IntegerOverflow)
}

/// Appends `value` with a prefix of `prefix` bits; `pattern` has the bits above it.
#[inline]
pub(crate) fn encode(value: usize, prefix: u32, pattern: u8, out: &mut Vec<u8>) {
    let mask = (1_usize << prefix) - 1;
    if value < mask {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(0x80 | rest as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], prefix: u32) -> Result<(usize, usize), Error> {
        let mut at = 0;
        decode(bytes, &mut at, prefix).map(|value| (value, at))
    }

    #[test]
    fn the_examples_of_appendix_c1() {
        for (value, prefix, bytes) in
            [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 7, &[0x2a])]
        {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(read(bytes, prefix), Ok((value, bytes.len())));
        }
    }

    #[test]
    fn every_prefix_round_trips_at_its_edges() {
        for prefix in 4..=7 {
            let mask = (1 << prefix) - 1;
            for value in [0, 1, mask - 1, mask, mask + 1, mask + 127, mask + 128, 1 << 28] {
                let mut out = Vec::new();
                encode(value, prefix, 0x80, &mut out);
                assert_eq!(out[0] & 0x80, 0x80);
                assert_eq!(read(&out, prefix), Ok((value, out.len())));
                assert_eq!(read(&out[..out.len() - 1], prefix), Err(Error::Truncated));
            }
        }
    }

    #[test]
    fn integer_overflow_is_refused() {
        // One above the ceiling, six octets, and zeros without end.
        let mut above = Vec::new();
        encode((1 << 28) + 1, 7, 0, &mut above);
        assert_eq!(read(&above, 7), Err(Error::IntegerOverflow));
        assert_eq!(read(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f], 7), Err(Error::IntegerOverflow));
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0], 7), Err(Error::IntegerOverflow));
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0], 7), Ok((127, 6)));
    }
}
