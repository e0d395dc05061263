//! RFC 7541 §5.2: decoding, 11 bits a step.

use super::code::{BY_LENGTH, EOS, LONGEST, SORTED, WINDOW_BITS, WINDOWS, Window};
use crate::Error;

/// Room beyond the longest output, so that a step may always write a block.
const SLACK_BYTES: usize = STEP_BYTES;

/// How many windows a step looks at: none of them needs bits that a refill has not brought.
const STEP_WINDOWS: usize = (FILLED_BITS / WINDOW_BITS) as usize;
/// Room for what they hold, with a bound that the compiler sees.
const STEP_BYTES: usize = 16;

/// The fewest bits that are pending after a refill while the input has more.
const FILLED_BITS: u32 = 56;

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
    loop {
        let (next, bytes) = bytes_at(input, at);
        at += pending.refill(next, bytes);
        if pending.bits < FILLED_BITS {
            return pending.last(out, end);
        }
        // There is room for all that the input can hold: it is never found to be missing.
        let room = out.get_mut(end..).and_then(<[u8]>::first_chunk_mut);
        end += pending.step(room.ok_or(Error::InvalidHuffman)?)?;
    }
}

/// The bytes of the input from `at` on, as many as there are of eight, and how many those are. The others are zero.
#[inline]
fn bytes_at(input: &[u8], at: usize) -> (u64, usize) {
    let rest = input.len() - at;
    if let Some(next) = input[at..].first_chunk() {
        (u64::from_be_bytes(*next), 8)
    } else if rest == 0 {
        (0, 0)
    } else if let Some(last) = input.last_chunk() {
        (u64::from_be_bytes(*last) << (8 * (8 - rest)), rest)
    } else {
        let mut all = [0; 8];
        all[..rest].copy_from_slice(&input[at..]);
        (u64::from_be_bytes(all), rest)
    }
}

/// The next bits of the input.
struct Pending {
    /// On its left. Those beyond `bits` are zero or the input's own, so that adding them again changes nothing.
    acc: u64,
    /// How many are counted.
    bits: u32,
}

impl Pending {
    /// Takes as many of the next bytes as there are and as there is room for, and returns how many those are.
    #[inline]
    fn refill(&mut self, next: u64, bytes: usize) -> usize {
        self.acc |= next >> self.bits;
        let bytes = bytes.min((63 - self.bits) as usize / 8);
        self.bits += bytes as u32 * 8;
        bytes
    }

    /// Decodes what a few windows hold, after a refill.
    #[inline]
    fn step(&mut self, room: &mut [u8; STEP_BYTES]) -> Result<usize, Error> {
        let mut end = 0;
        for _ in 0..STEP_WINDOWS {
            let window = window(self.acc);
            if window.is_long() {
                // A code that is not whole yet is after the next refill.
                if self.bits >= LONGEST as u32 {
                    let (symbol, length) = long(self.acc)?;
                    room[end] = symbol;
                    end += 1;
                    self.skip(length);
                }
                break;
            }
            room[end..end + 2].copy_from_slice(&window.symbols());
            end += window.count();
            self.skip(window.bits());
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
                    out[end..end + 2].copy_from_slice(&window.symbols());
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
