//! RFC 9110 §4.2, RFC 6455 §3: what is measured, by its URL.

use std::fmt;

use bolide_loadgen::options::target::Target as HttpTarget;

/// What the URL's scheme says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `http`: HTTP/1.1, or HTTP/2 by prior knowledge.
    Http,
    /// `https`.
    Https,
    /// `ws`: ndt7 over a WebSocket in cleartext.
    Ws,
    /// `wss`: the same over TLS.
    Wss,
    /// `raw`: TCP and nothing else.
    Raw,
}

impl Scheme {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Http, "http"),
        (Self::Https, "https"),
        (Self::Ws, "ws"),
        (Self::Wss, "wss"),
        (Self::Raw, "raw"),
    ];

    /// As in a URL.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Whether bytes are sealed by TLS.
    #[must_use]
    pub fn is_tls(self) -> bool {
        matches!(self, Self::Https | Self::Wss)
    }

    /// Whether it is a WebSocket's.
    #[must_use]
    pub fn is_websocket(self) -> bool {
        matches!(self, Self::Ws | Self::Wss)
    }

    /// The scheme of HTTP that it begins with.
    #[must_use]
    pub fn http(self) -> &'static str {
        if self.is_tls() { "https" } else { "http" }
    }
}

/// A URL to measure, in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What it begins with.
    pub scheme: Scheme,
    /// The rest, as of the `http` or `https` URL with the same host, port and path.
    pub http: HttpTarget,
}

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in a sentence.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{url}` is not a URL: {why}");
        let found = Scheme::ALL.iter().find_map(|(scheme, name)| {
            let (head, rest) = (url.get(..name.len())?, url.get(name.len()..)?);
            let rest = rest.strip_prefix("://")?;
            head.eq_ignore_ascii_case(name).then_some((*scheme, rest))
        });
        let (scheme, rest) = found.ok_or_else(|| {
            wrong("it must begin with http://, https://, ws://, wss:// or raw://")
        })?;
        let http = HttpTarget::parse(&format!("{}://{rest}", scheme.http()))
            .map_err(|why| wrong(why.split_once(": ").map_or(why.as_str(), |(_, why)| why)))?;
        if scheme == Scheme::Raw && (http.explicit_port.is_none() || http.path != "/") {
            return Err(wrong("it must be raw://host:port, without a path"));
        }
        Ok(Self { scheme, http })
    }

    /// The number of bytes that the path names, when it is one: `/SIZE`.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        let digits = self.http.path.strip_prefix('/')?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    }

    /// Whether the path says nothing.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.http.path == "/"
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.scheme == Scheme::Raw { "" } else { self.http.path.as_str() };
        write!(f, "{}://{}{path}", self.scheme.name(), self.http.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_is_told_apart() {
        for (url, scheme, shown) in [
            ("http://a:81/5", Scheme::Http, "http://a:81/5"),
            ("HTTPS://a", Scheme::Https, "https://a/"),
            ("ws://[::1]:80/ndt/v7/download", Scheme::Ws, "ws://[::1]/ndt/v7/download"),
            ("wss://a/ndt/v7/upload", Scheme::Wss, "wss://a/ndt/v7/upload"),
            ("raw://10.0.0.1:5001", Scheme::Raw, "raw://10.0.0.1:5001"),
        ] {
            let target = Target::parse(url).unwrap();
            assert_eq!((target.scheme, target.to_string().as_str()), (scheme, shown));
        }
    }

    #[test]
    fn a_size_is_a_path_of_digits() {
        let size = |url: &str| Target::parse(url).unwrap().size();
        assert_eq!(size("http://a/1048576"), Some(1_048_576));
        for url in ["http://a/", "http://a/1k", "http://a/+1", "http://a/1?x", "http://a/1/2"] {
            assert_eq!(size(url), None, "{url}");
        }
        assert_eq!(size("http://a/99999999999999999999"), None);
    }

    #[test]
    fn what_is_no_url_to_measure_is_told_why() {
        for (url, why) in [
            ("127.0.0.1:80", "begin with http://"),
            ("ftp://a", "begin with http://"),
            ("http:/a", "begin with http://"),
            ("ws://", "no host"),
            ("wss://a:0/", "port"),
            ("raw://a", "raw://host:port"),
            ("raw://a:1/x", "raw://host:port"),
            ("é", "begin with http://"),
        ] {
            let said = Target::parse(url).unwrap_err();
            assert!(said.contains(why) && said.contains(url), "{url}: {said}");
        }
    }
}
