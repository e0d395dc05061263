//! RFC 7541 §5.2: decoding, 11 bits a step.

use super::code::{BY_LENGTH, EOS, LONGEST, SORTED, WINDOW_BITS, WINDOWS, Window};
use crate::Error;

/// Room beyond the longest output, so that a step may always write two octets.
const SLACK_BYTES: usize = 2;

/// The room that decoding takes, in bytes: no code is shorter than five bits.
#[inline]
pub(crate) fn room_for(input_bytes: usize) -> usize {
    input_bytes * 8 / 5 + SLACK_BYTES
}

/// Decodes `input` into the front of `out`, which has [room for](room_for) it, and returns how many bytes that are.
/// What is above has no meaning.
#[inline]
pub(crate) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let out = &mut out[..room_for(input.len())];
    // `acc` has the next bits on its left, `bits` of them are counted; those beyond are either zero or the input's
    // own, so that reading them again changes nothing.
    let (mut acc, mut bits, mut at, mut end) = (0_u64, 0_u32, 0, 0);
    while let Some(chunk) = input.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        acc |= u64::from_be_bytes(*chunk) >> bits;
        let octets = (63 - bits) / 8;
        at += octets as usize;
        bits += octets * 8;
        // Any code fits into what is there.
        while bits >= LONGEST as u32 {
            let window = window(acc);
            if window.is_long() {
                let (symbol, length) = long(acc)?;
                out[end] = symbol;
                (end, acc, bits) = (end + 1, acc << length, bits - length);
            } else {
                out[end..end + 2].copy_from_slice(&window.symbols());
                end += window.count();
                (acc, bits) = (acc << window.bits(), bits - window.bits());
            }
        }
    }
    finish((acc, bits), &input[at..], out, end)
}

/// The last bits: those counted, and fewer than eight octets.
#[inline]
fn finish(
    (acc, bits): (u64, u32),
    rest: &[u8],
    out: &mut [u8],
    mut end: usize,
) -> Result<usize, Error> {
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut acc = u128::from(acc) << 64 | u128::from(u64::from_be_bytes(last)) << 64 >> bits;
    let mut left = bits + 8 * rest.len() as u32;
    loop {
        let next = (acc >> 64) as u64;
        let window = window(next);
        let length = if window.is_long() {
            let (symbol, length) = long(next)?;
            if length > left {
                break;
            }
            out[end] = symbol;
            end += 1;
            length
        } else if window.bits() <= left {
            out[end..end + 2].copy_from_slice(&window.symbols());
            end += window.count();
            window.bits()
        } else if window.first_bits() <= left {
            out[end] = window.symbols()[0];
            end += 1;
            window.first_bits()
        } else {
            break;
        };
        (acc, left) = (acc << length, left - length);
    }
    // At most seven bits, all ones.
    let is_padding = left < 8 && (acc >> 121) as u32 == (0x7f << (7 - left)) & 0x7f;
    if is_padding { Ok(end) } else { Err(Error::InvalidHuffman) }
}

#[inline]
fn window(acc: u64) -> Window {
    WINDOWS[(acc >> (64 - WINDOW_BITS)) as usize]
}

/// The symbol and the length in bits of a code that is longer than a window.
#[cold]
fn long(acc: u64) -> Result<(u8, u32), Error> {
    let next = (acc >> 32) as u32;
    for bits in WINDOW_BITS + 1..=LONGEST as u32 {
        let length = &BY_LENGTH[bits as usize];
        if u64::from(next) < length.limit {
            let nth = (next - length.first) >> (32 - bits);
            let symbol = SORTED[usize::from(length.offset) + nth as usize];
            if symbol == EOS {
                return Err(Error::InvalidHuffman);
            }
            return Ok((symbol as u8, bits));
        }
    }
    // The longest code's limit is 2^32: the code is complete.
    Err(Error::InvalidHuffman)
}
