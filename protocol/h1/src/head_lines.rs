//! RFC 9110 §6.3, RFC 9112 §5: field lines that many responses have in common, in their wire form.

use bolide_semantics::FieldRef;
use http::StatusCode;

use crate::encode::{self, Pass, Written};

/// What stands before the lines of most heads, and behind them.
const BEFORE: &[u8] = b"HTTP/1.1 200 OK\r\n";
const BEHIND: &[u8] = b"content-length: ";

/// Field lines of final responses, checked and written out once: between what stands around them in most heads, so
/// that these are one copy.
#[derive(Debug, Clone)]
pub struct HeadLines(Box<[u8]>);

impl HeadLines {
    /// These lines, in this order. `None` when one of them can't be sent, or says something of the connection or
    /// of the message's length, which is decided anew for each response.
    #[must_use]
    pub fn new<'a>(lines: impl Iterator<Item = FieldRef<'a>>) -> Option<Self> {
        let mut text = BEFORE.to_vec();
        let pass = Pass { length: true, upgrade: true, te: false };
        let written = encode::fields(&mut text, lines, pass).ok()?;
        let Written { length, close, upgrade, .. } = written;
        let is_plain = length.is_none() && !close && !upgrade;
        text.extend_from_slice(BEHIND);
        is_plain.then(|| Self(text.into_boxed_slice()))
    }

    /// The lines, each with its end.
    #[inline]
    pub(crate) fn text(&self) -> &[u8] {
        &self.0[BEFORE.len()..self.0.len() - BEHIND.len()]
    }
}

/// The head of a final response whose lines are written out already.
#[derive(Debug, Clone, Copy)]
pub struct WrittenHead<'a> {
    /// The status.
    pub status: StatusCode,
    /// The first lines.
    pub lines: &'a HeadLines,
    /// The value of `Content-Length`, in bytes, if it is known.
    pub length: Option<u64>,
    /// The value of `Date`, unless that is among the lines.
    pub date: Option<&'a [u8; 29]>,
}

impl WrittenHead<'_> {
    /// What the head may take, in bytes: enough memory for it, and seldom too much by a line.
    #[inline]
    pub(crate) fn bytes_max(&self) -> usize {
        self.lines.0.len() + encode::NUMBERS_AND_DATE_BYTES
    }

    /// Appends the head up to its last line, and says what else depends on it.
    #[inline]
    pub(crate) fn write(&self, tail: &mut Vec<u8>) -> Written {
        match self.length {
            Some(length) if self.status == StatusCode::OK => {
                tail.extend_from_slice(&self.lines.0);
                encode::number_line(tail, length);
            }
            length => {
                encode::status_line(tail, self.status);
                tail.extend_from_slice(self.lines.text());
                if let Some(length) = length
                    && self.status != StatusCode::NO_CONTENT
                {
                    tail.extend_from_slice(BEHIND);
                    encode::number_line(tail, length);
                }
            }
        }
        if let Some(date) = self.date {
            encode::date(tail, date);
        }
        Written { length: self.length, ..Written::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bolide_semantics::FieldName;

    fn lines(list: &[(&'static str, &'static [u8])]) -> Option<HeadLines> {
        HeadLines::new(list.iter().map(|(name, value)| FieldRef {
            known: FieldName::lookup(name.as_bytes()),
            name,
            value,
            sensitive: false,
        }))
    }

    #[test]
    fn what_is_written_once_is_what_is_written_each_time() {
        let lines = lines(&[("content-type", b"text/css"), ("x-own", b"a b")]).unwrap();
        let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
        let head = WrittenHead {
            status: StatusCode::OK,
            lines: &lines,
            length: Some(1234567890),
            date: Some(date),
        };
        let mut tail = Vec::new();
        assert_eq!(head.write(&mut tail).length, Some(1_234_567_890));
        let expected = "HTTP/1.1 200 OK\r\ncontent-type: text/css\r\nx-own: a b\r\n\
                        content-length: 1234567890\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        assert_eq!(String::from_utf8(tail).unwrap(), expected);
    }

    #[test]
    fn lines_that_each_response_decides_anew_are_not_written_ahead() {
        for (name, value) in [
            ("connection", &b"close"[..]),
            ("upgrade", b"websocket"),
            ("content-length", b"5"),
            ("x-a", b"b\r\nc: d"),
            ("x a", b"b"),
        ] {
            assert!(lines(&[("x-first", b"1"), (name, value)]).is_none(), "{name}");
        }
    }
}
