//! RFC 9112 §3: a request's line and fields.

use bolide_semantics::{FieldName, Head, HeadKind, TOKEN_LOWER};
use http::{Method, Version};
use memchr::memchr;

use crate::Limits;
use crate::body::Body;
use crate::error::{
    BAD_METHOD, BAD_TARGET, BAD_VERSION, BARE_LF, CONNECT_WITH_BODY, Failure, HEAD_TOO_LARGE,
    LINE_TOO_LONG, NO_VERSION, OTHER_VERSION, Stop,
};
use crate::exchanges::Kind;
use crate::field_lines;
use crate::framing::Noted;
use crate::scan::{fault, target_end};
use crate::target::{self, Host};

/// Facts about a request that the connection must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceivedRequest {
    pub(crate) kind: Kind,
    /// HTTP/1.0: no chunks, no interim responses.
    pub(crate) version_10: bool,
    pub(crate) persists: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
    pub(crate) body: Option<Body>,
    /// The length in bytes.
    pub(crate) length: usize,
}

/// Reads the head at the beginning of `unread` into `head`.
#[inline]
pub(crate) fn read(
    unread: &[u8],
    head: &mut Head,
    limits: &Limits,
) -> Result<ReceivedRequest, Stop> {
    let (line, line_cut) =
        cut(unread, limits.heads.request_line_bytes.min(limits.heads.head_bytes));
    let (at, version_10) = match request_line(line, head) {
        Ok(read) => read,
        Err(stop) => {
            head.clear(HeadKind::Request, Version::HTTP_11);
            return Err(too_long(stop, line_cut, &LINE_TOO_LONG));
        }
    };
    let mut noted = Noted::default();
    let mut host = Host::default();
    let note = |name, value: &[u8]| {
        match name {
            FieldName::Host => host.note(value)?,
            _ => noted.note(name, value)?,
        }
        Ok(true)
    };
    let (bytes, head_cut) = cut(unread, limits.heads.head_bytes);
    let length = field_lines::read(bytes, at, limits.heads.fields_count, head, note)
        .map_err(|stop| too_long(stop, head_cut, &HEAD_TOO_LARGE))?;
    host.settle(head, version_10)?;
    let body = noted.body(version_10)?.filter(|body| *body != Body::Length(0));
    let kind = Kind::of(head.method(), noted.upgrade && noted.upgrade_listed && !version_10);
    if kind == Kind::Connect && body.is_some() {
        return Err(Stop::Fault(&CONNECT_WITH_BODY));
    }
    Ok(ReceivedRequest {
        kind,
        version_10,
        persists: noted.persists(version_10),
        expects_continue: noted.expects_continue && !version_10 && body.is_some(),
        body,
        length,
    })
}

/// At most `limit` bytes of `unread`, and whether there are as many.
#[inline]
pub(crate) fn cut(unread: &[u8], limit: u32) -> (&[u8], bool) {
    let limit = limit as usize;
    if unread.len() < limit { (unread, false) } else { (&unread[..limit], true) }
}

/// Fails if something incomplete has used up its limit: it is too long.
#[cold]
pub(crate) fn too_long(stop: Stop, cut: bool, failure: &'static Failure) -> Stop {
    if cut && stop == Stop::Incomplete { Stop::Fault(failure) } else { stop }
}

/// Reads the request line and returns the place behind it, and whether it is HTTP/1.0.
#[inline]
fn request_line(bytes: &[u8], head: &mut Head) -> Result<(usize, bool), Stop> {
    let (method, start) =
        if bytes.starts_with(b"GET ") { (Method::GET, 4) } else { method(bytes)? };
    let end = target_end(bytes, start);
    if bytes.get(end) != Some(&b' ') || end == start {
        return Err(no_target(bytes, start, end));
    }
    let version_10 = match bytes.get(end + 1..).and_then(<[u8]>::first_chunk::<10>) {
        Some(b"HTTP/1.1\r\n") => false,
        Some(b"HTTP/1.0\r\n") => true,
        _ => other_version(bytes, end + 1)?,
    };
    let version = if version_10 { Version::HTTP_10 } else { Version::HTTP_11 };
    head.clear(HeadKind::Request, version);
    head.set_method(method);
    target::read(head, &bytes[start..end])?;
    Ok((end + 11, version_10))
}

/// Reads a method, and returns it with the place behind the space that follows.
fn method(bytes: &[u8]) -> Result<(Method, usize), Stop> {
    let token = |byte: &&u8| TOKEN_LOWER[usize::from(**byte)] != 0;
    let end = bytes.iter().take_while(token).count();
    match bytes.get(end) {
        None => return Err(Stop::Incomplete),
        Some(b' ') if end > 0 => {}
        // What can't be a request is not waited for: it may be another protocol.
        Some(_) if end == 0 => return Err(Stop::Fault(&BAD_METHOD)),
        Some(_) => return Err(fault(bytes, end, &BAD_METHOD)),
    }
    let method = Method::from_bytes(&bytes[..end]).map_err(|_| fault(bytes, end, &BAD_METHOD))?;
    Ok((method, end + 1))
}

/// Why no target and space stand at `start`; `end` is where the target, if any, ends.
#[cold]
fn no_target(bytes: &[u8], start: usize, end: usize) -> Stop {
    match bytes.get(end) {
        None => Stop::Incomplete,
        Some(b'\n') => Stop::Fault(&BARE_LF),
        Some(b'\r') if end > start => fault(bytes, end, &NO_VERSION),
        Some(_) => fault(bytes, end, &BAD_TARGET),
    }
}

/// Reads a version that is neither 1.1 nor 1.0: whether it counts as 1.0.
#[cold]
fn other_version(bytes: &[u8], at: usize) -> Result<bool, Stop> {
    let line = bytes.get(at..).unwrap_or_default();
    let line = &line[..memchr(b'\n', line).ok_or(Stop::Incomplete)?];
    match line {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor, b'\r']
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            if *major == b'1' {
                Ok(*minor == b'0')
            } else {
                Err(Stop::Fault(&OTHER_VERSION))
            }
        }
        [.., b'\r'] => Err(Stop::Fault(&BAD_VERSION)),
        _ => Err(Stop::Fault(&BARE_LF)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    #[test]
    fn a_head_at_its_limits_is_read_and_one_beyond_is_not() {
        let text = b"GET /abc HTTP/1.1\r\nHost: a\r\nX-A: b\r\n\r\n";
        let mut head = Head::default();
        let just = Limits {
            heads: limits::Heads {
                request_line_bytes: 19,
                head_bytes: text.len() as u32,
                fields_count: 2,
                ..limits::Heads::DEFAULT
            },
            ..Limits::default()
        };
        assert_eq!(read(text, &mut head, &just).unwrap().length, text.len());
        for less in [
            Limits {
                heads: limits::Heads { request_line_bytes: 18, ..limits::Heads::DEFAULT },
                ..just.clone()
            },
            Limits {
                heads: limits::Heads {
                    head_bytes: text.len() as u32 - 1,
                    ..limits::Heads::DEFAULT
                },
                ..just.clone()
            },
            Limits {
                heads: limits::Heads { fields_count: 1, ..limits::Heads::DEFAULT },
                ..just.clone()
            },
        ] {
            assert!(read(text, &mut Head::default(), &less).is_err());
        }
    }
}
