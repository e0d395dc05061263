//! RFC 7541 §5.2: encoding.

use super::code::{CODES, LENGTHS};

/// The length of `text` when coded, in octets.
#[inline]
#[must_use]
pub fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|octet| usize::from(LENGTHS[usize::from(*octet)])).sum();
    bits.div_ceil(8)
}

/// Appends `text` in code.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let mut acc = 0_u64;
    let mut bits = 0;
    for octet in text {
        let symbol = usize::from(*octet);
        let length = u32::from(LENGTHS[symbol]);
        acc = acc << length | u64::from(CODES[symbol]);
        bits += length;
        // At most 31 + 30 bits are in the accumulator.
        if bits >= 32 {
            bits -= 32;
            out.extend_from_slice(&((acc >> bits) as u32).to_be_bytes());
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
}
