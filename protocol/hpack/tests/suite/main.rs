//! RFC 7541: both roles, by example, by property, and as foreign codecs have it; heads of RFC 9113.

mod appendix_c;
mod heads;
mod properties;
mod vectors;

/// The bytes that are written in hexadecimal digits, whatever is between these.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
