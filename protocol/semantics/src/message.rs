//! RFC 9110 §6.4, §8.6: which messages have content, and how much.

use http::{Method, StatusCode};

/// Returns whether a response with this status to this method never has content, whatever its fields say.
#[inline]
#[must_use]
pub fn has_no_body(request_method: &Method, status: StatusCode) -> bool {
    request_method == Method::HEAD
        || status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
        || (request_method == Method::CONNECT && status.is_success())
}

/// The value of a `Content-Length` field: digits only, at most 2^63 − 1. A list of equal numbers is
/// refused like any other list (RFC 9110 §8.6 allows that).
#[inline]
#[must_use]
pub fn parse_content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 {
        return None;
    }
    let mut total: u64 = 0;
    for byte in value {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        total = total * 10 + u64::from(digit);
    }
    (total <= i64::MAX as u64).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_lengths() {
        assert_eq!(parse_content_length(b"0"), Some(0));
        assert_eq!(parse_content_length(b"0042"), Some(42));
        assert_eq!(parse_content_length(b"9223372036854775807"), Some(i64::MAX as u64));
        for bad in [
            &b""[..],
            b"-1",
            b"+1",
            b"1,1",
            b"1 ",
            b"0x1",
            b"9223372036854775808",
            b"99999999999999999999",
        ] {
            assert_eq!(parse_content_length(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn messages_without_content() {
        assert!(has_no_body(&Method::HEAD, StatusCode::OK));
        assert!(has_no_body(&Method::GET, StatusCode::NO_CONTENT));
        assert!(has_no_body(&Method::GET, StatusCode::NOT_MODIFIED));
        assert!(has_no_body(&Method::CONNECT, StatusCode::OK));
        assert!(!has_no_body(&Method::CONNECT, StatusCode::BAD_GATEWAY));
        assert!(!has_no_body(&Method::GET, StatusCode::OK));
    }
}
