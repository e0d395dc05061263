//! RFC 3986 §5, RFC 9110 §4.2: where a request goes.

use bolide_semantics::{is_valid_authority, is_valid_target};

use super::error::{ClientError, ErrorKind};

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    /// Cleartext, HTTP/1.1 unless the client only speaks HTTP/2.
    Http,
    /// Cleartext, HTTP/2 by prior knowledge.
    H2c,
    /// TLS.
    Https,
}

impl Scheme {
    /// What `:scheme` says.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http | Self::H2c => "http",
            Self::Https => "https",
        }
    }
}

/// A URL, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) scheme: Scheme,
    /// Host and port as they were written.
    pub(crate) authority: String,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path and query.
    pub(crate) path: String,
}

impl Target {
    /// # Errors
    ///
    /// When `url` is none that can be asked for.
    pub(crate) fn parse(url: &str) -> Result<Self, ClientError> {
        let bad = |what: &str| {
            let what = format!("`{url}` is not a URL: {what}");
            ClientError::new(ErrorKind::Request, what)
        };
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| bad("write http://HOST/PATH, https://HOST/PATH or h2c://HOST/PATH"))?;
        let (scheme, port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (Scheme::Http, 80),
            "h2c" => (Scheme::H2c, 80),
            "https" => (Scheme::Https, 443),
            _ => return Err(bad("its scheme is not http, https or h2c")),
        };
        let rest = rest.split('#').next().unwrap_or(rest);
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if authority.contains('@') {
            return Err(bad("user names and passwords belong in `Authorization`"));
        }
        if authority.is_empty() || !is_valid_authority(authority.as_bytes()) {
            return Err(bad("its host is malformed"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, digits)) if !digits.ends_with(']') => {
                let port =
                    digits.parse().map_err(|_| bad("its port is not a number up to 65535"))?;
                (host, port)
            }
            _ => (authority, port),
        };
        if host.is_empty() {
            return Err(bad("its host is empty"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if !is_valid_target(path.as_bytes()) {
            return Err(bad("its path has characters that must be written as %XX"));
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { scheme, authority: authority.to_owned(), host, port, path })
    }

    /// Where `reference` leads from here (RFC 3986 §5.2).
    pub(crate) fn join(&self, reference: &str) -> Result<Self, ClientError> {
        let reference = reference.split('#').next().unwrap_or(reference);
        let scheme = if self.scheme == Scheme::H2c { "h2c" } else { self.scheme.name() };
        let has_scheme = reference.split_once(':').is_some_and(|(scheme, _)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
        if has_scheme {
            let target = Self::parse(reference)?;
            return Ok(Self { path: without_dots(&target.path), ..target });
        }
        if reference.starts_with("//") {
            let target = Self::parse(&format!("{scheme}:{reference}"))?;
            return Ok(Self { path: without_dots(&target.path), ..target });
        }
        let own = self.path.split('?').next().unwrap_or_default();
        let path = match reference.chars().next() {
            None => self.path.clone(),
            Some('/') => without_dots(reference),
            Some('?') => format!("{own}{reference}"),
            Some(_) => {
                let folder = own.rfind('/').map_or("/", |at| &own[..=at]);
                without_dots(&format!("{folder}{reference}"))
            }
        };
        Self::parse(&format!("{scheme}://{}{path}", self.authority))
    }

    /// Whether both are the same server and scheme (RFC 6454 §4).
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        (self.scheme, self.port) == (other.scheme, other.port)
            && self.host.eq_ignore_ascii_case(&other.host)
    }

    /// As it was written, for messages.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.scheme == Scheme::H2c { "h2c" } else { self.scheme.name() };
        format!("{scheme}://{}{}", self.authority, self.path)
    }
}

/// Removes the segments `.` and `..` (RFC 3986 §5.2.4).
fn without_dots(path: &str) -> String {
    let (path, query) = path.find('?').map_or((path, ""), |at| path.split_at(at));
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            _ => {
                kept.push(segment);
                continue;
            }
        }
        if is_last {
            kept.push("");
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, scheme, authority, host, port, path) in [
            ("http://a", Scheme::Http, "a", "a", 80, "/"),
            ("https://a?q#f", Scheme::Https, "a", "a", 443, "/?q"),
            ("HTTPS://a:1/b/../c", Scheme::Https, "a:1", "a", 1, "/b/../c"),
            ("h2c://[::1]:8/", Scheme::H2c, "[::1]:8", "::1", 8, "/"),
            ("http://[::1]/x", Scheme::Http, "[::1]", "::1", 80, "/x"),
        ] {
            let target = Target::parse(url).unwrap();
            let taken = (&*target.authority, &*target.host, target.port, &*target.path);
            assert_eq!(target.scheme, scheme, "{url}");
            assert_eq!(taken, (authority, host, port, path), "{url}");
        }
    }

    #[test]
    fn what_is_no_url_is_told_why() {
        for (url, why) in [
            ("a/b", "write http://HOST/PATH"),
            ("ftp://a/", "scheme"),
            ("http://", "host is malformed"),
            ("http://:80/", "host"),
            ("http://u:p@a/", "Authorization"),
            ("http://a:99999/", "host is malformed"),
            ("http://a/ b", "%XX"),
            ("http://a/\r\nx: y", "%XX"),
        ] {
            let error = Target::parse(url).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(url), "{error}");
        }
    }

    /// RFC 3986 §5.4.
    #[test]
    fn references_lead_where_rfc_3986_has_them_lead() {
        let base = Target::parse("http://a/b/c/d;p?q").unwrap();
        for (reference, url) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("https://b:1/./x", "https://b:1/x"),
        ] {
            assert_eq!(base.join(reference).unwrap().url(), url, "{reference}");
        }
        assert!(base.join("mailto:x").is_err());
        assert!(base.join("http://[").is_err());
    }
}
