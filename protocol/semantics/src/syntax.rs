//! RFC 9110 §5.1, §5.5 and RFC 3986 §3: which bytes may stand where.

/// For each byte that may stand in a token (RFC 9110 §5.6.2) its lower case, else 0.
pub static TOKEN_LOWER: [u8; 256] = token_lower();

const fn token_lower() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let value = byte as u8;
        let punctuation = matches!(
            value,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        );
        if value.is_ascii_alphanumeric() || punctuation {
            table[byte] = value.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
}

/// Returns whether `bytes` is a token (RFC 9110 §5.6.2).
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| TOKEN_LOWER[usize::from(*byte)] != 0)
}

/// Returns whether `bytes` may be a field value (RFC 9110 §5.5): no control bytes but HTAB, and no space
/// or tab at either end.
#[inline]
#[must_use]
pub fn is_field_value(bytes: &[u8]) -> bool {
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return true };
    let blank = |byte: u8| byte == b' ' || byte == b'\t';
    !blank(*first) && !blank(*last) && !has_control(bytes)
}

/// Returns whether a byte is a control byte other than HTAB.
///
/// The plain form is the last line. Values are short and nearly always clean, so eight bytes at a
/// time are first looked at together, which takes a third of the instructions: only a value with
/// something below 0x20 or with 0x7f, or one shorter than four bytes, is looked at byte by byte.
#[inline]
fn has_control(bytes: &[u8]) -> bool {
    let (words, _) = bytes.as_chunks::<8>();
    let clean = match (bytes.last_chunk::<8>(), bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(end), _, _) => {
            let suspicious = |sum, word: &[u8; 8]| sum | suspicious(u64::from_ne_bytes(*word));
            words.iter().fold(suspicious(0, end), suspicious) == 0
        }
        (None, Some(start), Some(end)) => {
            let (start, end) = (u32::from_ne_bytes(*start), u32::from_ne_bytes(*end));
            suspicious(u64::from(start) << 32 | u64::from(end)) == 0
        }
        _ => false,
    };
    !clean && bytes.iter().any(|&byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f)
}

/// Not zero when one of eight bytes is below 0x20 or is 0x7f.
#[inline]
fn suspicious(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    let delete = word ^ (ONES * 0x7f);
    let low = word.wrapping_sub(ONES * 0x20) & !word;
    let is_delete = delete.wrapping_sub(ONES) & !delete;
    (low | is_delete) & (ONES * 0x80)
}

/// Returns whether `bytes` may be a request target in origin, absolute or asterisk form: the characters of RFC 3986, and, as
/// every deployed server allows, the rest of printable ASCII but `#`; never white space, controls or bytes above 0x7f.
#[inline]
#[must_use]
pub fn is_valid_target(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [b'/'; 8];
    last[..rest.len()].copy_from_slice(rest);
    let refused = |sum, word: &[u8; 8]| sum | refused_in_target(u64::from_ne_bytes(*word));
    !bytes.is_empty() && words.iter().fold(refused(0, &last), refused) == 0
}

/// Not zero when one of eight bytes may not stand in a target.
#[inline]
fn refused_in_target(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x21) | equal(0x7f) | equal(b'#') | word) & (ONES * 0x80)
}

/// Returns whether `bytes` is a scheme (RFC 3986 §3.1).
#[must_use]
#[inline]
pub fn is_valid_scheme(bytes: &[u8]) -> bool {
    bytes == b"http" || bytes == b"https" || is_uncommon_scheme(bytes)
}

fn is_uncommon_scheme(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

/// Returns whether `bytes` is `uri-host [":" port]` (RFC 9110 §7.2): a registered name, an IPv4 address or
/// an IPv6 address in brackets, then at most five digits of port up to 65535. User information and an
/// empty host are refused.
#[must_use]
pub fn is_valid_authority(bytes: &[u8]) -> bool {
    let (host_ok, port) = if bytes.first() == Some(&b'[') {
        let Some(end) = bytes.iter().position(|byte| *byte == b']') else { return false };
        let address = std::str::from_utf8(&bytes[1..end]).ok();
        let rest = &bytes[end + 1..];
        let ok = address.is_some_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok());
        (ok && (rest.is_empty() || rest[0] == b':'), rest.get(1..))
    } else {
        let plain = bytes.iter().position(|byte| !HOST[usize::from(*byte)]).unwrap_or(bytes.len());
        match bytes.get(plain) {
            Some(b'%') => {
                let end = bytes.iter().position(|byte| *byte == b':').unwrap_or(bytes.len());
                (is_escaped_name(&bytes[..end]), bytes.get(end + 1..))
            }
            Some(b':') | None => (plain > 0, bytes.get(plain + 1..)),
            Some(_) => (false, None),
        }
    };
    host_ok && port.is_none_or(is_port)
}

/// For each byte whether it may stand unescaped in a registered name (RFC 3986 §3.2.2).
static HOST: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let value = byte as u8;
        let mark = matches!(
            value,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
        );
        table[byte] = value.is_ascii_alphanumeric() || mark;
        byte += 1;
    }
    table
};

/// Returns whether these are the digits of a port; none at all is allowed (RFC 3986 §3.2.3).
#[inline]
fn is_port(digits: &[u8]) -> bool {
    let mut number = 0;
    for byte in digits {
        let digit = u32::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return false;
        }
        number = number * 10 + digit;
        if number > 65_535 {
            return false;
        }
    }
    digits.len() <= 5
}

/// A registered name in which bytes may be escaped.
fn is_escaped_name(host: &[u8]) -> bool {
    let mut index = 0;
    while index < host.len() {
        if host[index] == b'%' {
            let escape = host.get(index + 1..index + 3);
            if !escape.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
                return false;
            }
            index += 2;
        } else if !HOST[usize::from(host[index])] {
            return false;
        }
        index += 1;
    }
    !host.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        for good in [
            "a",
            "localhost:8080",
            "127.0.0.1",
            "[::1]",
            "[::1]:443",
            "a.b-c_d",
            "a%20b",
            "a:",
            "a:65535",
            "a:00080",
        ] {
            assert!(is_valid_authority(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            ":80",
            "a:b",
            "a:1:2",
            "a:65536",
            "a:123456",
            "a:000080",
            "[::1",
            "[::1]x",
            "[:::]",
            "a b",
            "user@host",
            "a/b",
            "a%2",
            "a\u{e4}",
        ] {
            assert!(!is_valid_authority(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn field_values() {
        assert!(is_field_value(b""));
        assert!(is_field_value(b"a b\tc\xff"));
        for bad in [&b" a"[..], b"a ", b"\ta", b"a\r", b"a\nb", b"a\0b", b"\x7f"] {
            assert!(!is_field_value(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_control_byte_is_found_at_any_place() {
        for length in 1..40 {
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut value = vec![b'~'; length];
                    value[place] = byte;
                    let inside = place != 0 && place != length - 1;
                    let expected = match byte {
                        b'\t' | b' ' => inside,
                        0..0x20 | 0x7f => false,
                        _ => true,
                    };
                    assert_eq!(is_field_value(&value), expected, "{byte} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn targets() {
        assert!(is_valid_target(b"/a?b=c|\"<>"));
        for bad in [&b""[..], b"/a b", b"/a#b", b"/\x7f", b"/\xc3\xa4", b"/a\tb"] {
            assert!(!is_valid_target(bad), "{bad:?}");
        }
        for byte in 0..=u8::MAX {
            for (length, at) in [(1, 0), (7, 6), (8, 0), (8, 7), (13, 3), (13, 12)] {
                let mut bytes = vec![b'a'; length];
                bytes[at] = byte;
                let is_allowed = (0x21..0x7f).contains(&byte) && byte != b'#';
                assert_eq!(is_valid_target(&bytes), is_allowed, "{byte} at {at} of {length}");
            }
        }
    }

    #[test]
    fn tokens() {
        assert!(is_token(b"GET"));
        assert!(!is_token(b""));
        assert!(!is_token(b"a:b"));
        assert_eq!(TOKEN_LOWER[usize::from(b'A')], b'a');
    }
}
