//! RFC 9112 §3.2, §3.3: the four forms of a request target, and the Host field.

use bolide_semantics::{Head, Span, is_valid_authority};
use http::Method;

use crate::error::{BAD_FORM, BAD_HOST, BAD_TARGET, Failure, NO_HOST, OTHER_HOST, REPEATED_HOST};

/// The Host lines of a request.
#[derive(Debug, Default)]
pub(crate) struct Host {
    seen: bool,
}

impl Host {
    /// Takes note of one line.
    #[inline]
    pub(crate) fn note(&mut self, value: &[u8]) -> Result<(), &'static Failure> {
        if self.seen {
            return Err(&REPEATED_HOST);
        }
        self.seen = true;
        if is_valid_authority(value) { Ok(()) } else { Err(&BAD_HOST) }
    }

    /// Checks whether the request's Host is what its version and its target ask for. Sets the authority.
    #[inline]
    pub(crate) fn settle(&self, head: &mut Head, version_10: bool) -> Result<(), &'static Failure> {
        if !self.seen {
            return if version_10 { Ok(()) } else { Err(&NO_HOST) };
        }
        if head.authority().is_none() {
            head.authority_from_host();
            return Ok(());
        }
        // RFC 9112 §3.2.2: what an absolute target names holds, whatever Host says. CONNECT has no
        // such rule, so there the two must agree (§3.2.3).
        let host = head.get(bolide_semantics::FieldName::Host).unwrap_or_default();
        let authority = head.authority().unwrap_or_default();
        let agrees = host.eq_ignore_ascii_case(authority.as_bytes());
        if agrees || *head.method() != Method::CONNECT { Ok(()) } else { Err(&OTHER_HOST) }
    }
}

/// Sets what a valid target names: path and query, authority, scheme.
#[inline]
pub(crate) fn read(head: &mut Head, target: &[u8]) -> Result<(), &'static Failure> {
    if target.first() == Some(&b'/') && *head.method() != Method::CONNECT {
        let path = head.push_text(target);
        head.set_path(path);
        return Ok(());
    }
    other_form(head, target)
}

#[cold]
fn other_form(head: &mut Head, target: &[u8]) -> Result<(), &'static Failure> {
    if *head.method() == Method::CONNECT {
        let has_port = target.last().is_some_and(u8::is_ascii_digit) && target.contains(&b':');
        let ends_in_address = target.first() == Some(&b'[') && target.last() == Some(&b']');
        if !is_valid_authority(target) || !has_port || ends_in_address {
            return Err(&BAD_FORM);
        }
        let authority = head.push_text(target);
        head.set_authority(authority);
        return Ok(());
    }
    if target == b"*" {
        if *head.method() != Method::OPTIONS {
            return Err(&BAD_FORM);
        }
        let path = head.push_text(target);
        head.set_path(path);
        return Ok(());
    }
    absolute_form(head, target)
}

fn absolute_form(head: &mut Head, target: &[u8]) -> Result<(), &'static Failure> {
    let after = |prefix: &[u8]| {
        let (scheme, rest) = target.split_at_checked(prefix.len())?;
        scheme.eq_ignore_ascii_case(prefix).then_some(rest)
    };
    let (scheme, rest) = if let Some(rest) = after(b"http://") {
        (&b"http"[..], rest)
    } else if let Some(rest) = after(b"https://") {
        (&b"https"[..], rest)
    } else {
        return Err(&BAD_TARGET);
    };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if !is_valid_authority(authority) {
        return Err(&BAD_TARGET);
    }
    let scheme = head.push_text(scheme);
    head.set_scheme(scheme);
    let authority = head.push_text(authority);
    head.set_authority(authority);
    let path = normal_path(head, path);
    head.set_path(path);
    Ok(())
}

/// An empty path is `/`, or `*` for OPTIONS (RFC 9112 §3.2.4).
fn normal_path(head: &mut Head, path: &[u8]) -> Span {
    match path.first() {
        Some(b'/') => head.push_text(path),
        Some(_) => {
            let start = head.text_mut().len();
            head.text_mut().push(b"/");
            head.text_mut().push(path);
            head.span_from(start)
        }
        None if *head.method() == Method::OPTIONS => head.push_text(b"*"),
        None => head.push_text(b"/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bolide_semantics::HeadKind;
    use http::Version;

    fn read_as(method: Method, target: &[u8]) -> Option<(Head, String)> {
        let mut head = Head::default();
        head.clear(HeadKind::Request, Version::HTTP_11);
        head.set_method(method);
        read(&mut head, target).ok()?;
        let seen = format!(
            "{} {} {}",
            head.scheme().unwrap_or("-"),
            head.authority().unwrap_or("-"),
            head.path_and_query(),
        );
        Some((head, seen))
    }

    #[test]
    fn forms_that_fit_their_method() {
        for (method, target, expected) in [
            (Method::GET, "/a?b", "- - /a?b"),
            (Method::GET, "//a", "- - //a"),
            (Method::OPTIONS, "*", "- - *"),
            (Method::GET, "http://a", "http a /"),
            (Method::GET, "HTTP://A:1/b", "http A:1 /b"),
            (Method::GET, "https://[::1]?q", "https [::1] /?q"),
            (Method::OPTIONS, "http://a:80", "http a:80 *"),
            (Method::CONNECT, "a:443", "- a:443 "),
            (Method::CONNECT, "[::1]:443", "- [::1]:443 "),
        ] {
            let (_, seen) = read_as(method, target.as_bytes()).unwrap();
            assert_eq!(seen, expected, "{target}");
        }
    }

    #[test]
    fn forms_that_do_not_fit() {
        for (method, target) in [
            (Method::GET, "*"),
            (Method::GET, "a:443"),
            (Method::GET, "a"),
            (Method::GET, "ftp://a/"),
            (Method::GET, "http:/a"),
            (Method::GET, "http:///a"),
            (Method::GET, "http://user@a/"),
            (Method::GET, "http://a:x/"),
            (Method::CONNECT, "/"),
            (Method::CONNECT, "a"),
            (Method::CONNECT, "a:"),
            (Method::CONNECT, "[::1]"),
            (Method::CONNECT, "http://a:443"),
            (Method::CONNECT, "*"),
        ] {
            assert!(read_as(method, target.as_bytes()).is_none(), "{target}");
        }
    }
}
