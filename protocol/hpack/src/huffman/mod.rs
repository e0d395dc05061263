//! RFC 7541 §5.2, RFC 9204 §4.1.2: Huffman-coded strings.

mod code;
mod decode;
mod encode;

pub use decode::{decode, least_decoded, room_for};
pub use encode::encode;

#[cfg(test)]
mod tests;
