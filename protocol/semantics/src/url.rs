//! RFC 3986, RFC 9110 §4.2, RFC 6455 §3: URLs of servers, taken apart and resolved.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;

use crate::is_valid_authority;

/// The protocol that a URL names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`.
    Http,
    /// `https`.
    Https,
    /// `h2c`: HTTP/2 without TLS, by prior knowledge.
    H2c,
    /// `h3`: HTTP/3, without asking by another version first.
    H3,
    /// `ws`: a WebSocket over HTTP.
    Ws,
    /// `wss`: a WebSocket over HTTPS.
    Wss,
    /// `raw`: TCP and nothing else.
    Raw,
}

impl Scheme {
    /// The schemes of RFC 9110 §4.2.
    pub const HTTP: [Self; 2] = [Self::Http, Self::Https];

    /// As in a URL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::H2c => "h2c",
            Self::H3 => "h3",
            Self::Ws => "ws",
            Self::Wss => "wss",
            Self::Raw => "raw",
        }
    }

    /// Returns whether bytes are sealed by TLS.
    #[must_use]
    pub fn is_tls(self) -> bool {
        matches!(self, Self::Https | Self::H3 | Self::Wss)
    }

    /// Returns whether it is a WebSocket's.
    #[must_use]
    pub fn is_websocket(self) -> bool {
        matches!(self, Self::Ws | Self::Wss)
    }

    /// `http` or `https`, the scheme of the requests that it stands for.
    #[must_use]
    pub fn of_requests(self) -> Self {
        if self.is_tls() { Self::Https } else { Self::Http }
    }

    /// The port of a URL that has none.
    #[must_use]
    pub fn port(self) -> u16 {
        if self.is_tls() { 443 } else { 80 }
    }
}

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// The scheme.
    pub scheme: Scheme,
    /// A name or an address, an IPv6 address without its brackets.
    pub host: String,
    /// The port, if it is written.
    pub explicit_port: Option<u16>,
    /// Path and query, beginning with `/`.
    pub path: String,
}

/// Why a text is not a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlError {
    /// The text.
    pub text: String,
    /// Description of the error.
    pub why: String,
}

impl Url {
    /// Reads `SCHEME://HOST[:PORT][/PATH][?QUERY]`, of one of these schemes. A fragment is dropped.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str, schemes: &[Scheme]) -> Result<Self, UrlError> {
        let wrong = |why: &str| UrlError { text: text.to_owned(), why: why.to_owned() };
        let found = schemes.iter().find_map(|scheme| {
            let (head, rest) = text.split_once("://")?;
            head.eq_ignore_ascii_case(scheme.name()).then_some((*scheme, rest))
        });
        let Some((scheme, rest)) = found else {
            let names: Vec<String> =
                schemes.iter().map(|scheme| format!("{}://", scheme.name())).collect();
            return Err(wrong(&format!("it must begin with {}", listed(&names))));
        };
        let rest = rest.split('#').next().unwrap_or(rest);
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(wrong("user names and passwords belong in the `Authorization` field"));
        }
        let (host, explicit_port) = split_authority(authority).map_err(|why| wrong(&why))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        check_path(&path).map_err(|why| wrong(&why))?;
        Ok(Self { scheme, host, explicit_port, path })
    }

    /// Returns where `reference` leads from here (RFC 3986 §5.2), with one of these schemes.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn join(&self, reference: &str, schemes: &[Scheme]) -> Result<Self, UrlError> {
        let reference = reference.split('#').next().unwrap_or(reference);
        let has_scheme = reference.split_once(':').is_some_and(|(scheme, _)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
        let authority = self.authority();
        let own = self.path.split('?').next().unwrap_or_default();
        let text = match reference.chars().next() {
            _ if has_scheme => reference.to_owned(),
            _ if reference.starts_with("//") => format!("{}:{reference}", self.scheme.name()),
            None => return Ok(self.clone()),
            Some(first) => {
                let directory = match first {
                    '/' => "",
                    '?' => own,
                    _ => own.rfind('/').map_or("/", |at| &own[..=at]),
                };
                format!("{}://{authority}{directory}{reference}", self.scheme.name())
            }
        };
        let url = Self::parse(&text, schemes)?;
        let path = if reference.starts_with('?') { url.path } else { without_dots(&url.path) };
        Ok(Self { path, ..url })
    }

    /// The port that connections go to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.explicit_port.unwrap_or_else(|| self.scheme.port())
    }

    /// Host and port as in `Host` and `:authority`: without the port of the scheme.
    #[must_use]
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match self.explicit_port {
            Some(port) if port != self.scheme.port() => format!("{host}:{port}"),
            _ => host,
        }
    }

    /// Returns whether both are of the same scheme, host and port (RFC 6454 §4).
    #[must_use]
    pub fn is_same_origin(&self, other: &Self) -> bool {
        (self.scheme, self.port()) == (other.scheme, other.port())
            && self.host.eq_ignore_ascii_case(&other.host)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.scheme == Scheme::Raw { "" } else { self.path.as_str() };
        write!(f, "{}://{}{path}", self.scheme.name(), self.authority())
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a URL: {}", self.text, self.why)
    }
}

impl Error for UrlError {}

impl From<UrlError> for String {
    fn from(error: UrlError) -> Self {
        error.to_string()
    }
}

/// `a, b or c`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// Host and port of `HOST`, `HOST:PORT`, `[V6]` and `[V6]:PORT`.
///
/// # Errors
///
/// What is wrong with it.
pub fn split_authority(authority: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("its `[` has no `]`")?;
        if !matches!(host.parse(), Ok(IpAddr::V6(_))) {
            return Err(format!("`{host}` is not an IPv6 address"));
        }
        if !(rest.is_empty() || rest.starts_with(':')) {
            return Err(format!("`{rest}` follows its address"));
        }
        (host, rest.strip_prefix(':'))
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    if host.is_empty() {
        return Err("it has no host".into());
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._~:%".contains(c);
    if let Some(c) = host.chars().find(|c| !is_name(*c)) {
        return Err(format!("`{}` is not allowed in a host", c.escape_default()));
    }
    if host.contains('%') && !is_valid_authority(host.as_bytes()) {
        return Err(format!("`{host}` has a `%` without two hexadecimal digits"));
    }
    let port = port.map(|port| {
        port.parse::<u16>()
            .ok()
            .filter(|number| *number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| format!("its port `{port}` is not a number from 1 to 65535"))
    });
    Ok((host.to_owned(), port.transpose()?))
}

/// A path with its query can be sent as it is.
///
/// # Errors
///
/// What can't be sent.
pub fn check_path(path: &str) -> Result<(), String> {
    match path.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
        Some(c) => {
            Err(format!("`{}` is not allowed in a path: percent-encode it", c.escape_default()))
        }
        None => Ok(()),
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
    use proptest::prelude::*;

    const CLIENT: [Scheme; 3] = [Scheme::Http, Scheme::Https, Scheme::H2c];

    fn http(text: &str) -> Result<Url, UrlError> {
        Url::parse(text, &Scheme::HTTP)
    }

    #[test]
    fn urls_are_taken_apart() {
        for (text, scheme, authority, host, port, path) in [
            ("http://a", Scheme::Http, "a", "a", 80, "/"),
            ("https://a?q#f", Scheme::Https, "a", "a", 443, "/?q"),
            ("HTTPS://a:1/b/../c", Scheme::Https, "a:1", "a", 1, "/b/../c"),
            ("h2c://[::1]:8/", Scheme::H2c, "[::1]:8", "::1", 8, "/"),
            ("http://[::1]/x", Scheme::Http, "[::1]", "::1", 80, "/x"),
            ("http://a:80/echo?size=64#top", Scheme::Http, "a", "a", 80, "/echo?size=64"),
        ] {
            let url = Url::parse(text, &CLIENT).unwrap();
            assert_eq!((url.scheme, &*url.authority(), &*url.host), (scheme, authority, host));
            assert_eq!((url.port(), &*url.path), (port, path), "{text}");
        }
        assert_eq!(http("http://[::1]:81?q").unwrap().to_string(), "http://[::1]:81/?q");
        let raw = Url::parse("raw://10.0.0.1:5001", &[Scheme::Raw]).unwrap();
        assert_eq!(raw.to_string(), "raw://10.0.0.1:5001");
        assert!(http("http://A").unwrap().is_same_origin(&http("http://a:80/x").unwrap()));
        assert!(!http("http://a").unwrap().is_same_origin(&http("https://a").unwrap()));
    }

    #[test]
    fn a_wrong_url_is_told_why() {
        for (text, why) in [
            ("127.0.0.1:80", "it must begin with http:// or https://"),
            ("ftp://a", "begin with http://"),
            ("http:/a", "begin with http://"),
            ("é", "begin with http://"),
            ("http://", "no host"),
            ("http:///x", "no host"),
            ("http://:80/", "no host"),
            ("http://a:0/", "port"),
            ("http://a:+80/", "port"),
            ("http://a:99999/", "port"),
            ("http://[::1/", "no `]`"),
            ("http://[a]/", "IPv6"),
            ("http://[::1]x/", "follows"),
            ("http://u:p@a/", "Authorization"),
            ("http://a/b c", "percent-encode"),
            ("http://a/ö", "percent-encode"),
            ("http://a/\r\nx: y", "percent-encode"),
            ("http://a b/", "host"),
            ("http://a%zz/", "hexadecimal"),
        ] {
            let said = http(text).unwrap_err().to_string();
            assert!(said.contains(why) && said.contains(text), "{text}: {said}");
        }
        let said = Url::parse("a", &CLIENT).unwrap_err().to_string();
        assert!(said.contains("http://, https:// or h2c://"), "{said}");
    }

    /// RFC 3986 §5.4.
    #[test]
    fn references_lead_where_rfc_3986_has_them_lead() {
        let base = http("http://a/b/c/d;p?q").unwrap();
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
            assert_eq!(
                base.join(reference, &Scheme::HTTP).unwrap().to_string(),
                url,
                "{reference}"
            );
        }
        assert!(base.join("mailto:x", &Scheme::HTTP).is_err());
        assert!(base.join("http://[", &Scheme::HTTP).is_err());
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "(https?://)?.{0,30}", reference in ".{0,30}") {
            if let Ok(url) = http(&text) {
                prop_assert_eq!(http(&url.to_string()).unwrap().to_string(), url.to_string());
                prop_assert!(is_valid_authority(url.authority().as_bytes()));
                if let Ok(led) = url.join(&reference, &Scheme::HTTP) {
                    prop_assert!(led.path.starts_with('/') && check_path(&led.path).is_ok());
                    prop_assert_eq!(http(&led.to_string()).unwrap().to_string(), led.to_string());
                }
            }
        }
    }
}
