//! RFC 9112 §3, §4, §5: heads and trailer sections, as they are sent.

use bolide_semantics::{FieldName, FieldRef, Misuse, TOKEN_LOWER, names_in, parse_content_length};
use http::StatusCode;

use crate::scan::value_end;

/// Which of the lines that concern framing or the connection are written as given. The others are
/// dropped: the connection writes its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass {
    pub(crate) length: bool,
    pub(crate) upgrade: bool,
    pub(crate) te: bool,
}

/// Facts about the given lines.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The given length of the content, written or dropped.
    pub(crate) length: Option<u64>,
    /// `Connection: close` was given: our caller wants the connection to end.
    pub(crate) close: bool,
    pub(crate) upgrade: bool,
    pub(crate) te: bool,
}

/// Appends fields. After an error the caller takes back what was appended.
#[inline]
pub(crate) fn fields(
    tail: &mut Vec<u8>,
    fields: &[FieldRef<'_>],
    pass: Pass,
) -> Result<Written, Misuse> {
    let mut written = Written::default();
    for one in fields {
        field(tail, one, pass, &mut written)?;
    }
    Ok(written)
}

/// Appends one field, unless it is one that the connection writes.
#[inline]
pub(crate) fn field(
    tail: &mut Vec<u8>,
    field: &FieldRef<'_>,
    pass: Pass,
    written: &mut Written,
) -> Result<(), Misuse> {
    // A name that was not interned by its owner may still be one that frames messages.
    let known = field.known.or_else(|| FieldName::lookup(field.name.as_bytes()));
    let name = match known {
        Some(
            FieldName::KeepAlive
            | FieldName::ProxyConnection
            | FieldName::TransferEncoding
            | FieldName::Host,
        ) => return Ok(()),
        Some(FieldName::Connection) => {
            let close = |name: &[u8]| name.eq_ignore_ascii_case(b"close");
            written.close |= names_in(field.value).any(close);
            return Ok(());
        }
        Some(FieldName::ContentLength) => {
            if written.length.is_some() {
                return Err(Misuse::InvalidHead);
            }
            let length = parse_content_length(field.value).ok_or(Misuse::InvalidHead)?;
            written.length = Some(length);
            if !pass.length {
                return Ok(());
            }
            Name::Known(FieldName::ContentLength)
        }
        Some(FieldName::Upgrade) => {
            if !pass.upgrade {
                return Ok(());
            }
            written.upgrade = true;
            Name::Known(FieldName::Upgrade)
        }
        Some(FieldName::Te) => {
            if !pass.te {
                return Ok(());
            }
            written.te = true;
            Name::Known(FieldName::Te)
        }
        Some(name) => Name::Known(name),
        None if is_lower_token(field.name.as_bytes()) => Name::Text(field.name),
        None => return Err(Misuse::InvalidHead),
    };
    if !is_valid_value(field.value) {
        return Err(Misuse::InvalidHead);
    }
    line(tail, name, field.value);
    Ok(())
}

/// Digits that a 64-bit number has at most, and the end of a line.
const NUMBER_LINE_BYTES: usize = 22;

/// Appends a number and the end of its line.
#[inline]
pub(crate) fn number_line(tail: &mut Vec<u8>, number: u64) {
    // Copies of constant length cost less than one of the exact length, and so does a cut.
    let mut line = [b' '; 2 * NUMBER_LINE_BYTES];
    let end = NUMBER_LINE_BYTES;
    line[end - 2..end].copy_from_slice(b"\r\n");
    let mut start = end - 2;
    let mut left = number;
    loop {
        start -= 1;
        line[start] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    let before = tail.len();
    if let Some(line) = line.get(start..).and_then(<[u8]>::first_chunk::<NUMBER_LINE_BYTES>) {
        tail.extend_from_slice(line);
    }
    tail.truncate(before + end - start);
}

/// Appends the `Date` line.
#[inline]
pub(crate) fn date(tail: &mut Vec<u8>, date: &[u8; 29]) {
    let mut line = *b"date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    line[6..35].copy_from_slice(date);
    tail.extend_from_slice(&line);
}

#[derive(Debug, Clone, Copy)]
enum Name<'a> {
    Known(FieldName),
    Text(&'a str),
}

/// Appends one field line.
#[inline]
fn line(tail: &mut Vec<u8>, name: Name<'_>, value: &[u8]) {
    match name {
        Name::Known(name) => {
            // A copy of constant length and a cut cost less than a copy of the exact length.
            let prefix = &PREFIXES[name as usize];
            let start = tail.len();
            tail.extend_from_slice(&prefix.text);
            tail.truncate(start + usize::from(prefix.length));
        }
        Name::Text(name) => {
            tail.extend_from_slice(name.as_bytes());
            tail.extend_from_slice(b": ");
        }
    }
    tail.extend_from_slice(value);
    tail.extend_from_slice(b"\r\n");
}

/// The longest interned name with its colon and space, and what it takes to copy it at once, in bytes.
const PREFIX_BYTES: usize = 32;

/// An interned name with its colon and space.
#[derive(Debug, Clone, Copy)]
struct Prefix {
    text: [u8; PREFIX_BYTES],
    length: u8,
}

static PREFIXES: [Prefix; FieldName::ALL.len()] = prefixes();

const fn prefixes() -> [Prefix; FieldName::ALL.len()] {
    let mut prefixes = [Prefix { text: [0; PREFIX_BYTES], length: 0 }; FieldName::ALL.len()];
    let mut number = 0;
    while number < FieldName::ALL.len() {
        let name = FieldName::ALL[number].as_str().as_bytes();
        let prefix = &mut prefixes[number];
        let mut at = 0;
        while at < name.len() {
            prefix.text[at] = name[at];
            at += 1;
        }
        prefix.text[at] = b':';
        prefix.text[at + 1] = b' ';
        prefix.length = at as u8 + 2;
        number += 1;
    }
    prefixes
}

/// Appends the `Connection` line with these options, if there is any.
#[inline]
pub(crate) fn connection(tail: &mut Vec<u8>, options: [Option<&'static str>; 3]) {
    let mut before = "connection: ";
    for option in options.into_iter().flatten() {
        tail.extend_from_slice(before.as_bytes());
        tail.extend_from_slice(option.as_bytes());
        before = ", ";
    }
    if before == ", " {
        tail.extend_from_slice(b"\r\n");
    }
}

/// RFC 9110 §5.5, as `is_field_value`, and quicker for short values.
#[inline]
fn is_valid_value(value: &[u8]) -> bool {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    value_end(value, 0) == value.len() && !blank(value.first()) && !blank(value.last())
}

fn is_lower_token(name: &[u8]) -> bool {
    // NUL stands in the table for what is in no token.
    let is_lower = |byte: &u8| *byte != 0 && TOKEN_LOWER[usize::from(*byte)] == *byte;
    !name.is_empty() && name.iter().all(is_lower)
}

macro_rules! status_lines {
    ($status:expr, $($code:literal $reason:literal),* $(,)?) => {
        match $status {
            $($code => concat!("HTTP/1.1 ", $code, " ", $reason, "\r\n"),)*
            _ => "",
        }
    };
}

/// Appends a status line.
#[inline]
pub(crate) fn status_line(tail: &mut Vec<u8>, status: StatusCode) {
    if status == StatusCode::OK {
        tail.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        other_status_line(tail, status);
    }
}

fn other_status_line(tail: &mut Vec<u8>, status: StatusCode) {
    let line = status_lines!(
        status.as_u16(),
        100 "Continue", 101 "Switching Protocols", 103 "Early Hints",
        201 "Created", 202 "Accepted", 204 "No Content", 206 "Partial Content",
        301 "Moved Permanently", 302 "Found", 303 "See Other", 304 "Not Modified",
        307 "Temporary Redirect", 308 "Permanent Redirect",
        400 "Bad Request", 401 "Unauthorized", 403 "Forbidden", 404 "Not Found",
        405 "Method Not Allowed", 408 "Request Timeout", 412 "Precondition Failed",
        413 "Content Too Large", 414 "URI Too Long", 416 "Range Not Satisfiable",
        417 "Expectation Failed", 429 "Too Many Requests", 431 "Request Header Fields Too Large",
        500 "Internal Server Error", 501 "Not Implemented", 502 "Bad Gateway",
        503 "Service Unavailable", 504 "Gateway Timeout", 505 "HTTP Version Not Supported",
    );
    if !line.is_empty() {
        return tail.extend_from_slice(line.as_bytes());
    }
    tail.extend_from_slice(b"HTTP/1.1 ");
    tail.extend_from_slice(status.as_str().as_bytes());
    tail.push(b' ');
    tail.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    tail.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASS: Pass = Pass { length: true, upgrade: false, te: false };

    fn encode(
        list: &[(&'static str, &'static [u8])],
        pass: Pass,
    ) -> Result<(String, Written), Misuse> {
        let mut tail = Vec::new();
        let given = |(name, value): &(&'static str, &'static [u8])| FieldRef {
            known: None,
            name,
            value,
            sensitive: false,
        };
        let given: Vec<_> = list.iter().map(given).collect();
        let written = fields(&mut tail, &given, pass)?;
        Ok((String::from_utf8(tail).unwrap(), written))
    }

    #[test]
    fn lines_that_are_not_ours_to_give_are_dropped() {
        let given: &[(&'static str, &'static [u8])] = &[
            ("x-a", b"1"),
            ("connection", b"upgrade, Close"),
            ("transfer-encoding", b"chunked"),
            ("keep-alive", b"1"),
            ("upgrade", b"h2c"),
            ("content-length", b"5"),
            ("host", b"a"),
            ("te", b"trailers"),
        ];
        let (text, written) = encode(given, PASS).unwrap();
        assert_eq!(text, "x-a: 1\r\ncontent-length: 5\r\n");
        assert_eq!(written.length, Some(5));
        assert!(written.close && !written.upgrade && !written.te);
        let (text, _) = encode(given, Pass { length: false, upgrade: true, te: true }).unwrap();
        assert_eq!(text, "x-a: 1\r\nupgrade: h2c\r\nte: trailers\r\n");
    }

    #[test]
    fn every_interned_name_is_written_in_full() {
        for name in FieldName::ALL {
            let mut tail = b"x".to_vec();
            line(&mut tail, Name::Known(*name), b"v");
            assert_eq!(tail, format!("x{}: v\r\n", name.as_str()).as_bytes());
        }
    }

    #[test]
    fn response_splitting() {
        for (name, value) in [
            ("x", &b"a\r\nset-cookie: b"[..]),
            ("x", b"a\nb"),
            ("x", b"a\rb"),
            ("x", b"a\0b"),
            ("x", b" a"),
            ("x-\r\na", b"b"),
            ("X-Upper", b"b"),
            ("x a", b"b"),
            ("x\0a", b"b"),
            ("", b"b"),
            ("content-length", b"+1"),
            ("content-length", b"1, 1"),
        ] {
            assert_eq!(encode(&[(name, value)], PASS).unwrap_err(), Misuse::InvalidHead, "{name}");
        }
        let twice: &[(&'static str, &'static [u8])] =
            &[("content-length", b"1"), ("content-length", b"1")];
        assert_eq!(encode(twice, PASS).unwrap_err(), Misuse::InvalidHead);
    }

    #[test]
    fn status_lines_name_their_reason() {
        for code in 100..600 {
            let status = StatusCode::from_u16(code).unwrap();
            let mut tail = Vec::new();
            status_line(&mut tail, status);
            let reason = status.canonical_reason().unwrap_or_default();
            let text = String::from_utf8(tail).unwrap();
            let expected = format!("HTTP/1.1 {code} {reason}\r\n");
            // RFC 9110 renamed this one.
            let expected = expected.replace("Payload Too Large", "Content Too Large");
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn connection_options_share_a_line() {
        let mut tail = Vec::new();
        connection(&mut tail, [None, None, None]);
        assert!(tail.is_empty());
        connection(&mut tail, [None, Some("upgrade"), Some("close")]);
        assert_eq!(tail, b"connection: upgrade, close\r\n");
    }
}
