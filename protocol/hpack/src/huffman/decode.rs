//! RFC 7541 §5.2: decoding, 11 bits a step.

use super::code::{BY_LENGTH, EOS, LONGEST, SORTED, WINDOW_BITS, WINDOWS, Window};
use crate::Error;

/// Room beyond the longest output, so that a step may always write two octets.
const SLACK_BYTES: usize = 2;

/// The room that decoding takes, in bytes: no code is shorter than five bits.
#[inline]
#[must_use]
pub fn room_for(input_bytes: usize) -> usize {
    input_bytes * 8 / 5 + SLACK_BYTES
}

/// The fewest bytes that so many can stand for: no code is longer than 30 bits.
#[must_use]
pub fn least_decoded(input_bytes: usize) -> usize {
    input_bytes * 8 / LONGEST
}

/// Decodes `input` into the front of `out`, which has [room for](room_for) it, and returns how many bytes that are.
/// What is above has no meaning.
///
/// # Errors
///
/// [`Error::InvalidHuffman`].
///
/// # Panics
///
/// When `out` is shorter than the room that decoding takes.
#[inline]
pub fn decode(input: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let out = &mut out[..room_for(input.len())];
    let mut pending = Pending { acc: 0, bits: 0 };
    let (mut at, mut end) = (0, 0);
    while let Some(chunk) = input.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        at += pending.refill(*chunk);
        end = pending.whole(out, end)?;
    }
    let mut rest = &input[at..];
    if let Some((four, others)) = rest.split_first_chunk::<4>() {
        pending.append(four);
        end = pending.whole(out, end)?;
        rest = others;
    }
    pending.append(rest);
    end = pending.whole(out, end)?;
    pending.last(out, end)
}

/// The next bits of the input.
struct Pending {
    /// On its left. Those beyond `bits` are zero or the input's own, so that adding them again changes nothing.
    acc: u64,
    /// How many are counted.
    bits: u32,
}

impl Pending {
    /// Takes as many of the next octets as there is room for, and returns how many those are.
    #[inline]
    fn refill(&mut self, next: [u8; 8]) -> usize {
        self.acc |= u64::from_be_bytes(next) >> self.bits;
        let octets = (63 - self.bits) / 8;
        self.bits += octets * 8;
        octets as usize
    }

    /// Takes at most four octets, for which there is room once no code is [whole](Self::whole).
    #[inline]
    fn append(&mut self, octets: &[u8]) {
        let mut last = [0; 8];
        last[..octets.len()].copy_from_slice(octets);
        self.acc |= u64::from_be_bytes(last) >> self.bits;
        self.bits += 8 * octets.len() as u32;
    }

    /// Decodes while any code would be whole.
    #[inline]
    fn whole(&mut self, out: &mut [u8], mut end: usize) -> Result<usize, Error> {
        let last = out.len().checked_sub(SLACK_BYTES).ok_or(Error::InvalidHuffman)?;
        // There is room for all that the input can hold: it is never found to be missing.
        while self.bits >= LONGEST as u32 && end <= last {
            let window = window(self.acc);
            if window.is_long() {
                let (symbol, length) = long(self.acc)?;
                out[end] = symbol;
                end += 1;
                self.skip(length);
            } else {
                out[end..end + SLACK_BYTES].copy_from_slice(&window.symbols());
                end += window.count();
                self.skip(window.bits());
            }
        }
        Ok(end)
    }

    /// Decodes the codes that are left, and checks the padding: at most seven bits, all ones.
    #[inline]
    fn last(mut self, out: &mut [u8], mut end: usize) -> Result<usize, Error> {
        loop {
            let window = window(self.acc);
            let (symbol, length) = match window.is_long() {
                true => long(self.acc)?,
                false if window.bits() <= self.bits => {
                    out[end..end + SLACK_BYTES].copy_from_slice(&window.symbols());
                    end += window.count();
                    self.skip(window.bits());
                    continue;
                }
                false => (window.symbols()[0], window.first_bits()),
            };
            if length > self.bits {
                break;
            }
            out[end] = symbol;
            end += 1;
            self.skip(length);
        }
        let is_padding =
            self.bits < 8 && (self.acc >> 57) as u32 == (0x7f << (7 - self.bits)) & 0x7f;
        if is_padding { Ok(end) } else { Err(Error::InvalidHuffman) }
    }

    #[inline]
    fn skip(&mut self, bits: u32) {
        self.acc <<= bits;
        self.bits -= bits;
    }
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
