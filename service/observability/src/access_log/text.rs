//! Values as they stand in a line: escaped, so that what a client sends can't forge one.

use std::time::Duration;

use bolide_semantics::is_terminal_order;
use http::Version;

use crate::limits::LOG_FIELD_BYTES;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Returns what of a value is logged: a longer one is cut.
#[inline]
pub fn cut(value: &[u8]) -> &[u8] {
    &value[..value.len().min(LOG_FIELD_BYTES)]
}

/// Returns whether a value needs no escape in either form: eight bytes are looked at in one word.
#[inline]
pub(super) fn is_plain(value: &[u8]) -> bool {
    let Some(last) = value.last_chunk::<8>() else { return odd(word_of_few(value)) == 0 };
    let mut found = odd(u64::from_le_bytes(*last));
    for eight in value.as_chunks::<8>().0 {
        found |= odd(u64::from_le_bytes(*eight));
    }
    found == 0
}

/// Fewer than eight bytes as a word: each stands in it, and some may twice.
#[inline]
fn word_of_few(value: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (value.first_chunk::<4>(), value.last_chunk::<4>()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    let [first, middle, last] = match value {
        [] => [b' '; 3],
        [one] => [*one; 3],
        [first, .., last] => [*first, value[1], *last],
    };
    u64::from_le_bytes([first, middle, last, b' ', b' ', b' ', b' ', b' '])
}

/// Not 0 if a byte of a word is no visible ASCII and no space, or is a quote or a backslash. (The lowest such byte is
/// marked; what is above it may be marked for a borrow.)
#[inline]
fn odd(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let is_control = word.wrapping_sub(ONES * 0x20) & !word;
    let is_above = word | word.wrapping_add(ONES);
    let is_special =
        is_zero(word ^ (ONES * u64::from(b'"'))) | is_zero(word ^ (ONES * u64::from(b'\\')));
    (is_control | is_above | is_special) & (ONES * 0x80)
}

/// The inside of a JSON string (RFC 8259 §7). Bytes that are not UTF-8 are taken for Latin-1.
#[inline]
pub(super) fn json(line: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) {
        line.extend_from_slice(value);
    } else {
        json_escaped(line, value);
    }
}

#[cold]
pub(super) fn json_escaped(line: &mut Vec<u8>, value: &[u8]) {
    match std::str::from_utf8(value) {
        Ok(text) => text.chars().for_each(|one| json_char(line, one)),
        Err(_) => value.iter().for_each(|byte| {
            if byte.is_ascii() {
                json_char(line, char::from(*byte));
            } else {
                code_unit(line, u16::from(*byte));
            }
        }),
    }
}

fn json_char(line: &mut Vec<u8>, one: char) {
    match one {
        '"' | '\\' => line.extend_from_slice(&[b'\\', one as u8]),
        ' '..='~' => line.push(one as u8),
        // Each of them has one code unit.
        _ if is_terminal_order(one) => code_unit(line, one as u16),
        _ => line.extend_from_slice(one.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn code_unit(line: &mut Vec<u8>, unit: u16) {
    let [high, low] = unit.to_be_bytes();
    line.extend_from_slice(b"\\u");
    line.extend_from_slice(&digits(high));
    line.extend_from_slice(&digits(low));
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

/// A value in one word: what ends words, or is no visible ASCII, is escaped.
pub(super) fn word(line: &mut Vec<u8>, value: &[u8]) {
    for byte in value {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\') {
            line.push(*byte);
        } else {
            line.extend_from_slice(b"\\x");
            line.extend_from_slice(&digits(*byte));
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

/// All numbers of two digits.
const PAIRS: &[u8; 200] = b"00010203040506070809101112131415161718192021222324252627282930313233343536373839\
                            40414243444546474849505152535455565758596061626364656667686970717273747576777879\
                            8081828384858687888990919293949596979899";

/// The longest text, in bytes: what is said of sizes, with three numbers of 20 digits in it.
const SHORT_BYTES: usize = 112;

/// As much of a short text is copied at once, in bytes.
const APPENDED_BYTES: usize = 64;

/// A short text of ours with numbers in it, put together without memory of its own.
#[derive(Debug)]
pub(super) struct Short {
    bytes: [u8; SHORT_BYTES],
    length: usize,
}

impl Short {
    #[inline]
    pub(super) fn new() -> Self {
        Self { bytes: [0; SHORT_BYTES], length: 0 }
    }

    #[inline]
    pub(super) fn put<const N: usize>(&mut self, text: &[u8; N]) {
        self.bytes[self.length..self.length + N].copy_from_slice(text);
        self.length += N;
    }

    #[inline]
    fn digit(&mut self, digit: u64) {
        self.put(&[b'0' + digit as u8]);
    }

    /// A number below 100, in two digits.
    #[inline]
    fn pair(&mut self, number: u64) {
        let at = 2 * number as usize;
        self.put(&[PAIRS[at], PAIRS[at + 1]]);
    }

    /// A number in decimal: most are small.
    #[inline]
    pub(super) fn number(&mut self, number: u64) {
        match number {
            0..=9 => self.digit(number),
            10..=99 => self.pair(number),
            100..=999 => {
                self.digit(number / 100);
                self.pair(number % 100);
            }
            1000..=9999 => {
                self.pair(number / 100);
                self.pair(number % 100);
            }
            _ => self.large(number),
        }
    }

    #[inline(never)]
    fn large(&mut self, number: u64) {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(number).as_bytes();
        self.bytes[self.length..self.length + text.len()].copy_from_slice(text);
        self.length += text.len();
    }

    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Appends it to a line. Most are so short that a copy of known length does, which is a few moves.
    #[inline]
    pub(super) fn append_to(&self, line: &mut Vec<u8>) {
        match self.bytes.first_chunk::<APPENDED_BYTES>() {
            Some(piece) if self.length <= APPENDED_BYTES => {
                let end = line.len() + self.length;
                line.extend_from_slice(piece);
                line.truncate(end);
            }
            _ => line.extend_from_slice(self.text()),
        }
    }
}

/// Some text of ours, then a value inside a JSON string.
#[inline]
pub(super) fn string(line: &mut Vec<u8>, before: &str, value: &[u8]) {
    line.extend_from_slice(before.as_bytes());
    json(line, value);
}

/// The version as a line says it.
pub(super) fn version_text(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

/// A time in microseconds, as a line says it.
#[inline]
pub(super) fn micros(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000).saturating_add(duration.subsec_micros().into())
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
    fn log_escapes_of_terminals_and_of_direction_are_escaped() {
        let odd = "a\u{9b}31m\u{202e}b\u{2066}c\u{200f}d\u{61c}e\u{2028}f\u{1f600}";
        let escaped = "a\\u009b31m\\u202eb\\u2066c\\u200fd\\u061ce\\u2028f\u{1f600}";
        assert_eq!(made(json, odd.as_bytes()), escaped);
    }

    #[test]
    fn a_short_text_has_room_for_the_largest_numbers() {
        let mut short = Short::new();
        let ours = ",\"received_bytes\":,\"sent_bytes\":}\n".len();
        short.length = ours;
        for _ in 0..3 {
            short.number(u64::MAX);
        }
        assert!(short.text().len() > ours + 50);
    }

    #[test]
    fn numbers_are_decimal() {
        for number in (0..10_100).chain([123_456, u64::MAX]) {
            let mut short = Short::new();
            short.number(number);
            assert_eq!(short.text(), number.to_string().as_bytes());
        }
    }

    #[test]
    fn what_needs_an_escape_is_found_at_every_place() {
        for length in 0..40 {
            assert!(is_plain(&vec![b'~'; length]) && is_plain(&vec![b' '; length]));
            for (at, byte) in (0..length).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
                let mut value = vec![b'a'; length];
                value[at] = byte;
                let is_odd = !(0x20..0x7f).contains(&byte) || byte == b'"' || byte == b'\\';
                assert_eq!(is_plain(&value), !is_odd, "{byte} at {at} of {length}");
            }
        }
    }

    #[test]
    fn quotes_are_escaped() {
        assert_eq!(made(quoted, b"a\"b\\c\r\nd"), "a\\\"b\\\\c\\x0d\\x0ad");
        assert_eq!(made(quoted, b"\xc3\xa9"), "\\xc3\\xa9");
    }

    #[test]
    fn every_byte_gives_json_that_reads_back() {
        for byte in 0..=255_u8 {
            let text = made(json, &[b'a', byte, b'z']);
            assert!(!text.contains('\n'), "{byte}");
            let escapes = text.matches('\\').count();
            assert!(escapes <= 2 && (byte.is_ascii_graphic() || byte == b' ' || escapes > 0));
        }
    }
}
