//! Values as they stand in a line: escaped, so that what a client sends can't forge one.

use crate::limits::LOG_FIELD_BYTES;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// What of a value is logged: a longer one is cut.
#[inline]
pub(super) fn cut(value: &[u8]) -> &[u8] {
    &value[..value.len().min(LOG_FIELD_BYTES)]
}

/// Whether a value needs no escape in either form.
#[inline]
fn is_plain(value: &[u8]) -> bool {
    // Without an early end, the compiler looks at many bytes at once.
    let is_odd = |byte: u8| (byte.wrapping_sub(0x20) >= 0x5f) | (byte == b'"') | (byte == b'\\');
    !value.iter().fold(false, |odd, byte| odd | is_odd(*byte))
}

/// The inside of a JSON string (RFC 8259 §7). Octets that are not UTF-8 are taken for Latin-1.
#[inline]
pub(super) fn json(line: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) {
        line.extend_from_slice(value);
    } else {
        json_escaped(line, value);
    }
}

#[cold]
fn json_escaped(line: &mut Vec<u8>, value: &[u8]) {
    let is_text = std::str::from_utf8(value).is_ok();
    for byte in value {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            0x20..=0x7e => line.push(*byte),
            0x80.. if is_text => line.push(*byte),
            _ => {
                line.extend_from_slice(b"\\u00");
                line.extend_from_slice(&digits(*byte));
            }
        }
    }
}

/// The inside of a quoted part of the common and combined formats: what is no visible ASCII, the quote and
/// the backslash are escaped.
pub(super) fn quoted(line: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) {
        return line.extend_from_slice(value);
    }
    for byte in value {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            0x20..=0x7e => line.push(*byte),
            _ => {
                line.extend_from_slice(b"\\x");
                line.extend_from_slice(&digits(*byte));
            }
        }
    }
}

fn digits(byte: u8) -> [u8; 2] {
    [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]
}

/// A number in decimal.
#[inline]
pub(super) fn number(line: &mut Vec<u8>, number: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A short text of ours with numbers in it, put together without memory of its own.
#[derive(Debug)]
pub(super) struct Short {
    bytes: [u8; 160],
    length: usize,
}

impl Short {
    #[inline]
    pub(super) fn new() -> Self {
        Self { bytes: [0; 160], length: 0 }
    }

    #[inline]
    pub(super) fn put<const N: usize>(&mut self, text: &[u8; N]) {
        self.bytes[self.length..self.length + N].copy_from_slice(text);
        self.length += N;
    }

    /// A number in decimal: most are small.
    #[inline]
    pub(super) fn number(&mut self, number: u64) {
        let digit = |unit: u64| b'0' + (number / unit % 10) as u8;
        match number {
            0..=9 => self.put(&[digit(1)]),
            10..=99 => self.put(&[digit(10), digit(1)]),
            100..=999 => self.put(&[digit(100), digit(10), digit(1)]),
            _ => {
                let mut buffer = itoa::Buffer::new();
                let text = buffer.format(number).as_bytes();
                self.bytes[self.length..self.length + text.len()].copy_from_slice(text);
                self.length += text.len();
            }
        }
    }

    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(write: fn(&mut Vec<u8>, &[u8]), value: &[u8]) -> String {
        let mut line = Vec::new();
        write(&mut line, value);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn json_is_escaped() {
        assert_eq!(made(json, b"/a?b=c d"), "/a?b=c d");
        assert_eq!(made(json, b"a\"b\\c\nd\x7f"), "a\\\"b\\\\c\\u000ad\\u007f");
        assert_eq!(made(json, "a\u{e9}\"".as_bytes()), "a\u{e9}\\\"");
        assert_eq!(made(json, b"a\xe9"), "a\\u00e9", "no UTF-8");
    }

    #[test]
    fn a_short_text_has_room_for_the_largest_numbers() {
        let mut short = Short::new();
        short.put(&[b'x'; 96]);
        for number in [0, 9, 10, 99, 100, 999, 1000, u64::MAX] {
            let before = short.text().len();
            short.number(number);
            assert_eq!(&short.text()[before..], number.to_string().as_bytes());
        }
        assert!(short.text().len() < 160);
    }

    #[test]
    fn quotes_are_escaped() {
        assert_eq!(made(quoted, b"a\"b\\c\r\nd"), "a\\\"b\\\\c\\x0d\\x0ad");
        assert_eq!(made(quoted, b"\xc3\xa9"), "\\xc3\\xa9");
    }

    #[test]
    fn every_octet_gives_json_that_reads_back() {
        for octet in 0..=255_u8 {
            let text = made(json, &[b'a', octet, b'z']);
            assert!(!text.contains('\n'), "{octet}");
            let escapes = text.matches('\\').count();
            assert!(escapes <= 2 && (octet.is_ascii_graphic() || octet == b' ' || escapes > 0));
        }
    }
}
