//! RFC 7541 §5.1, RFC 9204 §4.1.1: integers with a prefix.

use crate::Error;
use crate::limits::{INTEGER_BYTES_COUNT, LENGTH_CEILING_BYTES};

/// Reads an integer whose prefix is the low `prefix` bits of `block[*at]`, and moves `at` past it.
///
/// # Errors
///
/// [`Error::Truncated`], and [`Error::IntegerOverflow`] above [`LENGTH_CEILING_BYTES`].
#[inline]
pub fn decode(block: &[u8], at: &mut usize, prefix: u32) -> Result<usize, Error> {
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
    for place in 0..INTEGER_BYTES_COUNT {
        let byte = *block.get(*at).ok_or(Error::Truncated)?;
        *at += 1;
        value += u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            let fits = value <= u64::from(LENGTH_CEILING_BYTES);
            return if fits { Ok(value as usize) } else { Err(Error::IntegerOverflow) };
        }
    }
    Err(Error::IntegerOverflow)
}

/// Reads an integer of up to 62 bits, as the number of a stream is (RFC 9204 §4.1.1), whose prefix is the low `prefix`
/// bits of `block[*at]`, and moves `at` past it.
///
/// # Errors
///
/// [`Error::Truncated`], and [`Error::IntegerOverflow`] above 62 bits.
pub fn decode_wide(block: &[u8], at: &mut usize, prefix: u32) -> Result<u64, Error> {
    let mask = (1_u64 << prefix) - 1;
    let mut value = u64::from(*block.get(*at).ok_or(Error::Truncated)?) & mask;
    let mut next = *at + 1;
    if value == mask {
        for shift in (0..).step_by(7) {
            let byte = *block.get(next).ok_or(Error::Truncated)?;
            next += 1;
            let part = u64::from(byte & 0x7f);
            // Beyond 62 bits only zeros fit, and not without end.
            if shift > 63 || (part << shift.min(63)) >> shift.min(63) != part {
                return Err(Error::IntegerOverflow);
            }
            value = value.checked_add(part << shift).ok_or(Error::IntegerOverflow)?;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    if value >> 62 != 0 {
        return Err(Error::IntegerOverflow);
    }
    *at = next;
    Ok(value)
}

/// Appends `value` with a prefix of `prefix` bits; `pattern` has the bits above it.
#[inline]
pub fn encode(value: usize, prefix: u32, pattern: u8, out: &mut Vec<u8>) {
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
    fn wide_integers_have_sixty_two_bits() {
        for prefix in [3, 6, 7, 8] {
            for value in [0, 6, 254, 255, 300, 1 << 28, 1 << 40, (1 << 62) - 1] {
                let mut out = Vec::new();
                encode(value, prefix, 0, &mut out);
                let mut at = 0;
                assert_eq!(decode_wide(&out, &mut at, prefix), Ok(value as u64));
                assert_eq!(at, out.len());
                at = 0;
                assert_eq!(
                    decode_wide(&out[..out.len() - 1], &mut at, prefix),
                    Err(Error::Truncated)
                );
                assert_eq!(at, 0, "what is incomplete is read again");
            }
        }
        let mut above = Vec::new();
        encode(1 << 62, 7, 0, &mut above);
        let endless = [&[0x7f][..], &[0x80; 20]].concat();
        for bad in [above, endless, [&[0x7f][..], &[0xff; 9], &[0x7f]].concat()] {
            assert_eq!(decode_wide(&bad, &mut 0, 7), Err(Error::IntegerOverflow));
        }
    }

    #[test]
    fn integer_overflow_is_refused() {
        // One above the ceiling, six bytes, and zeros without end.
        let mut above = Vec::new();
        encode((1 << 28) + 1, 7, 0, &mut above);
        assert_eq!(read(&above, 7), Err(Error::IntegerOverflow));
        assert_eq!(read(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f], 7), Err(Error::IntegerOverflow));
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0], 7), Err(Error::IntegerOverflow));
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0], 7), Ok((127, 6)));
    }
}
