//! RFC 7541 §5.2: Huffman-coded strings.

mod code;
mod decode;
mod encode;

pub(crate) use decode::{decode, room_for};
pub(crate) use encode::{encode, encoded_len};

#[cfg(test)]
mod tests;
