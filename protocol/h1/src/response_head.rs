//! RFC 9112 §4: a response's line and fields.

use bolide_semantics::{Head, HeadKind};
use http::{StatusCode, Version};

use crate::Limits;
use crate::body::Body;
use crate::error::{BAD_STATUS_LINE, HEAD_TOO_LARGE, Stop};
use crate::exchanges::Kind;
use crate::field_lines::{self, text_end};
use crate::framing::{Noted, response_has_no_body};
use crate::request_head::{cut, too_long};
use crate::scan::fault;

/// Facts about a response that the connection must know.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    pub(crate) persists: bool,
    /// It says `close`.
    pub(crate) closes: bool,
    pub(crate) body: Option<Body>,
    /// The length in bytes.
    pub(crate) length: usize,
}

/// Reads the head at the beginning of `unread`, which answers a request of this kind, into `head`.
#[inline]
pub(crate) fn read(
    unread: &[u8],
    head: &mut Head,
    kind: Kind,
    limits: &Limits,
) -> Result<ResponseHead, Stop> {
    let (bytes, bytes_cut) = cut(unread, limits.heads.head_bytes);
    let large = |stop| too_long(stop, bytes_cut, &HEAD_TOO_LARGE);
    let (at, status, version_10) = status_line(bytes).map_err(large)?;
    let version = if version_10 { Version::HTTP_10 } else { Version::HTTP_11 };
    head.clear(HeadKind::Response, version);
    head.set_status(status);
    let mut noted = Noted::default();
    let note = |name, value: &[u8]| noted.note(name, value).map(|()| true);
    let length =
        field_lines::read(bytes, at, limits.heads.fields_count, head, note).map_err(large)?;
    let framed = noted.body(version_10)?;
    let body = if response_has_no_body(kind, status) {
        None
    } else {
        // Neither coding nor length: the body ends with the connection (RFC 9112 §6.3).
        Some(framed.unwrap_or(Body::UntilClose)).filter(|body| *body != Body::Length(0))
    };
    let persists = noted.persists(version_10) && body != Some(Body::UntilClose);
    Ok(ResponseHead { status, persists, closes: noted.close, body, length })
}

/// Reads the status line and returns the place behind it, the status, and whether it is HTTP/1.0.
/// The space before an empty reason may be missing: many servers leave it out.
#[inline]
fn status_line(bytes: &[u8]) -> Result<(usize, StatusCode, bool), Stop> {
    let Some(start) = bytes.first_chunk::<12>() else {
        return Err(fault(bytes, 0, &BAD_STATUS_LINE));
    };
    let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor, b' ', digits @ ..] = start else {
        return Err(fault(bytes, 0, &BAD_STATUS_LINE));
    };
    let status = match StatusCode::from_bytes(digits) {
        Ok(status) if minor.is_ascii_digit() && status.as_u16() < 600 => status,
        _ => return Err(fault(bytes, 0, &BAD_STATUS_LINE)),
    };
    let end = match bytes.get(12) {
        Some(b' ') => text_end(bytes, 13)?,
        Some(b'\r') | None => text_end(bytes, 12)?,
        Some(_) => return Err(fault(bytes, 12, &BAD_STATUS_LINE)),
    };
    Ok((end + 2, status, *minor == b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines() {
        for (line, status, version_10) in [
            ("HTTP/1.1 200 OK\r\n", 200, false),
            ("HTTP/1.0 404 Not\tFound \u{e4}\r\n", 404, true),
            ("HTTP/1.1 599 \r\n", 599, false),
            ("HTTP/1.9 100\r\n", 100, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(
                status_line(line.as_bytes()),
                Ok((line.len(), status, version_10)),
                "{line}"
            );
            for length in 0..line.len() {
                assert_eq!(
                    status_line(&line.as_bytes()[..length]),
                    Err(Stop::Incomplete),
                    "{line}"
                );
            }
        }
        for bad in [
            "\n",
            "\r\n",
            "HTTP/2 200 OK\r\n",
            "HTTP/2.0 200 OK\r\n",
            "HTTP/1.x 200 OK\r\n",
            "HTTP/1.1  200 OK\r\n",
            "HTTP/1.1 20 OK\r\n",
            "HTTP/1.1 2000 OK\r\n",
            "HTTP/1.1 099 OK\r\n",
            "HTTP/1.1 600 OK\r\n",
            "HTTP/1.1 200 OK\n",
            "HTTP/1.1 200 O\rK\r\n",
            "HTTP/1.1 200 O\0K\r\n",
            "ICY 200 OK\r\n",
        ] {
            assert!(matches!(status_line(bad.as_bytes()), Err(Stop::Fault(_))), "{bad}");
        }
    }
}
