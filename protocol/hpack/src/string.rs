//! RFC 7541 §5.2, RFC 9204 §4.1.2: strings, as they are or Huffman-coded.

use bolide_semantics::{TOKEN_LOWER, Text};

use crate::{Error, huffman, integer};

/// Appends the string at `block[*at]`, whose length has a prefix of `prefix` bits below the bit that says whether it is
/// coded, to the text, and moves `at` past it.
///
/// # Errors
///
/// Those of the length, [`Error::Truncated`] and [`Error::InvalidHuffman`].
#[inline]
pub fn read(block: &[u8], at: &mut usize, prefix: u32, text: &mut Text) -> Result<(), Error> {
    let coded = block.get(*at).ok_or(Error::Truncated)? & (1 << prefix) != 0;
    let length = integer::decode(block, at, prefix)?;
    let input = block.get(*at..).and_then(|rest| rest.get(..length)).ok_or(Error::Truncated)?;
    *at += length;
    if coded {
        return text.write(huffman::room_for(length), |room| huffman::decode(input, room));
    }
    text.push(input);
    Ok(())
}

/// Returns whether a name is a token without upper case.
#[must_use]
pub fn is_lower_token(name: &[u8]) -> bool {
    !name.is_empty()
        && name.iter().fold(true, |ok, byte| ok & (TOKEN_LOWER[usize::from(*byte)] == *byte))
        && !name.contains(&0)
}

/// Appends a string, Huffman-coded if it may be and that is shorter. Its length has a prefix of `prefix` bits below the
/// bit that says so; `pattern` has the bits above it.
pub fn write(text: &[u8], may_code: bool, prefix: u32, pattern: u8, out: &mut Vec<u8>) {
    let start = out.len();
    if may_code {
        // The length is known afterwards, and takes one byte nearly always.
        out.push(0);
        if huffman::encode(text, text.len(), out) {
            let (length, pattern) = (out.len() - start - 1, pattern | 1 << prefix);
            if length < (1 << prefix) - 1 {
                out[start] = pattern | length as u8;
                return;
            }
            out.remove(start);
            integer::encode(length, prefix, pattern, out);
            out[start..].rotate_left(length);
            return;
        }
        out.truncate(start);
    }
    integer::encode(text.len(), prefix, pattern, out);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_length_round_trip_with_every_prefix() {
        for prefix in [3, 5, 7] {
            for length in 0..300 {
                for (text, may_code) in [
                    (vec![b'a'; length], true),
                    (vec![b'a'; length], false),
                    (vec![1; length], true),
                ] {
                    let mut out = b"before".to_vec();
                    write(&text, may_code, prefix, 0, &mut out);
                    let (mut at, mut read_back) = (6, Text::default());
                    read(&out, &mut at, prefix, &mut read_back).unwrap();
                    assert_eq!((read_back.bytes(), at), (&text[..], out.len()));
                    assert!(out.len() <= 6 + 3 + length && out.starts_with(b"before"));
                }
            }
        }
    }
}
