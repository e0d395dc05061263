//! RFC 7541 §5.2: decoding, 11 bits a step.

use super::code::{BY_LENGTH, EOS, LONGEST, SORTED, WINDOW_BITS, WINDOWS, Window};
use crate::Error;

/// Room beyond the longest output, so that a step may always write two octets.
const SLACK_BYTES: usize = 2;

/// Bits of the input: `acc` has the next ones on its left, `bits` of them are counted; those beyond
/// are either zero or the input's own, so that reading them again changes nothing.
struct Bits<'a> {
    input: &'a [u8],
    at: usize,
    acc: u64,
    bits: u32,
}

/// Decodes `input` into `out[start..end]` and returns `end`. `out` only ever grows: what is above
/// `end` has no meaning.
pub(crate) fn decode(input: &[u8], out: &mut Vec<u8>, start: usize) -> Result<usize, Error> {
    // No code is shorter than five bits.
    let needed = start + input.len() * 8 / 5 + SLACK_BYTES;
    if out.len() < needed {
        out.resize(needed, 0);
    }
    let mut bits = Bits { input, at: 0, acc: 0, bits: 0 };
    let mut end = start;
    while bits.refill() {
        // Any code fits into what is there.
        while bits.bits >= LONGEST as u32 {
            let window = bits.window();
            if window.is_long() {
                out[end] = bits.take_long()?.0;
                end += 1;
            } else {
                out[end..end + 2].copy_from_slice(&window.symbols());
                end += window.count();
                bits.consume(window.bits());
            }
        }
    }
    bits.refill_rest();
    loop {
        let window = bits.window();
        if window.is_long() {
            let Some(symbol) = bits.take_last_long()? else { break };
            out[end] = symbol;
            end += 1;
        } else if window.bits() <= bits.bits {
            out[end..end + 2].copy_from_slice(&window.symbols());
            end += window.count();
            bits.consume(window.bits());
        } else if window.first_bits() <= bits.bits {
            out[end] = window.symbols()[0];
            end += 1;
            bits.consume(window.first_bits());
        } else {
            break;
        }
        bits.refill_rest();
    }
    if bits.is_padding() { Ok(end) } else { Err(Error::InvalidHuffman) }
}

impl Bits<'_> {
    /// Fills up to at least 56 bits, if the input still has eight octets.
    #[inline]
    fn refill(&mut self) -> bool {
        let Some(chunk) = self.input[self.at..].first_chunk::<8>() else { return false };
        self.acc |= u64::from_be_bytes(*chunk) >> self.bits;
        let octets = (63 - self.bits) / 8;
        self.at += octets as usize;
        self.bits += octets * 8;
        true
    }

    /// Fills up octet by octet, at the end of the input.
    #[inline]
    fn refill_rest(&mut self) {
        while self.bits <= 56 && self.at < self.input.len() {
            self.acc |= u64::from(self.input[self.at]) << (56 - self.bits);
            self.at += 1;
            self.bits += 8;
        }
    }

    #[inline]
    fn window(&self) -> Window {
        WINDOWS[(self.acc >> (64 - WINDOW_BITS)) as usize]
    }

    #[inline]
    fn consume(&mut self, bits: u32) {
        self.acc <<= bits;
        self.bits -= bits;
    }

    /// Takes a code that is longer than a window: the symbol and its bits. The bits must be there.
    #[cold]
    fn take_long(&mut self) -> Result<(u8, u32), Error> {
        let (symbol, bits) = self.long()?;
        self.consume(bits);
        Ok((symbol, bits))
    }

    /// As [`Self::take_long`], or nothing if the input ends before.
    #[cold]
    fn take_last_long(&mut self) -> Result<Option<u8>, Error> {
        let (symbol, bits) = self.long()?;
        if bits > self.bits {
            return Ok(None);
        }
        self.consume(bits);
        Ok(Some(symbol))
    }

    fn long(&self) -> Result<(u8, u32), Error> {
        let next = (self.acc >> 32) as u32;
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

    /// Whether what is left is at most seven bits, all ones.
    #[inline]
    fn is_padding(&self) -> bool {
        self.bits < 8 && self.acc >> 57 == (0x7f << (7 - self.bits)) & 0x7f
    }
}
