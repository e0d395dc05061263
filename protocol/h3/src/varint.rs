//! RFC 9000 §16: integers of one, two, four or eight bytes.

/// The largest integer.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Reads an integer and says how long it was; `None` when more bytes are needed.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let rest = bytes.get(1..length)?;
    let value = rest.iter().fold(u64::from(first & 0x3f), |sum, byte| sum << 8 | u64::from(*byte));
    Some((value, length))
}

/// Reads an integer that is all there is.
pub(crate) fn whole(bytes: &[u8]) -> Option<u64> {
    read(bytes).filter(|(_, length)| *length == bytes.len()).map(|(value, _)| value)
}

/// Appends an integer, which must not be above [`MAX`], in as few bytes as it takes.
#[inline]
pub(crate) fn write(value: u64, out: &mut Vec<u8>) {
    debug_assert!(value <= MAX, "an integer of 62 bits");
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_appendix_a1() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!((read(bytes), whole(bytes)), (Some((value, bytes.len())), Some(value)));
            let mut out = Vec::new();
            write(value, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(read(&[0x40, 0x25, 9]), Some((37, 2)));
        assert_eq!(whole(&[0x40, 0x25, 9]), None);
    }
}
