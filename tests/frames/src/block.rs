//! RFC 7541 §6.2.2: header blocks.

/// A header block of literals that enter no table.
pub fn block<N: AsRef<[u8]>, V: AsRef<[u8]>>(fields: &[(N, V)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        string(&mut bytes, name.as_ref());
        string(&mut bytes, value.as_ref());
    }
    bytes
}

/// RFC 7541 §5.1 and §5.2: the length with a prefix of seven bits, and the text.
fn string(bytes: &mut Vec<u8>, text: &[u8]) {
    let mut length = text.len();
    if length < 127 {
        bytes.push(length as u8);
    } else {
        bytes.push(127);
        length -= 127;
        while length >= 128 {
            bytes.push((length % 128) as u8 | 128);
            length /= 128;
        }
        bytes.push(length as u8);
    }
    bytes.extend(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_beyond_the_prefix_follows_in_sevens() {
        assert_eq!(block(&[("a", "b")]), b"\0\x01a\x01b");
        let long = block(&[("a", "b".repeat(1337 + 96))]);
        // RFC 7541 appendix C.1.2 encodes 1337 with a prefix of five bits: the rest above 31 is the same.
        assert_eq!(long[3..6], [127, 0x9a, 0x0a]);
    }
}
