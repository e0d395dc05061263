//! RFC 7541 §5.2: encoding.

use super::code::{CODES, LENGTHS};

/// Appends `text` in code, if that takes less than `below` bytes; else nothing. Whether it does.
pub fn encode(text: &[u8], below: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let limit = start.saturating_add(below);
    // A word may be written before it is seen that the code is too long, and the rest after it.
    out.reserve(text.len() + 2 * size_of::<u32>());
    let mut acc = 0_u64;
    let mut bits = 0;
    for byte in text {
        let symbol = usize::from(*byte);
        let length = u32::from(LENGTHS[symbol]);
        acc = acc << length | u64::from(CODES[symbol]);
        bits += length;
        // At most 31 + 30 bits are in the accumulator.
        if bits >= 32 {
            bits -= 32;
            out.extend_from_slice(&((acc >> bits) as u32).to_be_bytes());
            if out.len() >= limit {
                out.truncate(start);
                return false;
            }
        }
    }
    // The padding is the beginning of EOS: ones.
    let padding = bits.wrapping_neg() % 8;
    acc = acc << padding | ((1 << padding) - 1);
    bits += padding;
    while bits > 0 {
        bits -= 8;
        out.push((acc >> bits) as u8);
    }
    let fits = out.len() < limit;
    if !fits {
        out.truncate(start);
    }
    fits
}
