//! RFC 9204: both roles, by example, by property, and against a foreign codec.

mod appendix_b;
mod errors;
mod foreign;
mod properties;
mod vectors;

use bolide_hpack::{DecodedField, EachField};

/// A reader of fields that looks at each of them.
type Fields = EachField<fn(DecodedField<'_>) -> bool>;

/// The bytes that are written in hexadecimal digits, whatever is between these.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
