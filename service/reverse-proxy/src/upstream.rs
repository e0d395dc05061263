//! A server behind the proxy, as its user names it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bolide_client::{Alpn, ClientTls, Dial, ResolveError, Speaks, TrustError, resolve};
use bolide_semantics::{Scheme as UrlScheme, Url};
use bolide_server::{Destination, IdentityError};
use thiserror::Error;

/// The schemes of upstreams.
const SCHEMES: [UrlScheme; 4] = [UrlScheme::Http, UrlScheme::H2c, UrlScheme::Https, UrlScheme::H3];

/// Why an upstream can't be.
#[derive(Debug, Error)]
pub enum UpstreamError {
    /// The text names none.
    #[error(
        "`{given}` is not an upstream: {what}; write http://HOST:PORT, h2c://HOST:PORT, https://HOST:PORT, \
         h3://HOST:PORT or unix:/PATH"
    )]
    Malformed {
        /// Text that was given.
        given: String,
        /// Description of the error.
        what: String,
    },
    /// Its host has no address.
    #[error("upstream `{given}`: {error}")]
    Unresolved {
        /// Text that was given.
        given: String,
        /// Error of the resolver.
        error: ResolveError,
    },
    /// Its certificate could not be verified.
    #[error("upstream `{given}`: {error}")]
    Untrusted {
        /// Text that was given.
        given: String,
        /// Why.
        error: TrustError,
    },
    /// The settings for TLS can't be.
    #[error("TLS to upstreams: {0}")]
    Tls(#[from] IdentityError),
    /// The health check can't be made.
    #[error(
        "the health check `{path}` is invalid: its path must begin with a slash and be written as in a URL, and \
         its times are longer than 0"
    )]
    HealthCheck {
        /// The path that was given.
        path: String,
    },
    /// The proxy can't have this name.
    #[error("`{given}` is not a valid name in Via: use letters, digits and hyphens")]
    Pseudonym {
        /// The name that was given.
        given: String,
    },
    /// The cookie that names upstreams can't be.
    #[error("the cookie that names upstreams can't have `{given}`: {what}")]
    Cookie {
        /// Description of the error.
        what: &'static str,
        /// Text that was given.
        given: String,
    },
    /// Something goes by TCP alone.
    #[error("upstream `{given}` speaks HTTP/3, which has no {what}")]
    Http3 {
        /// The upstream.
        given: String,
        /// Property that was asked for.
        what: &'static str,
    },
    /// There is none.
    #[error("a reverse proxy needs at least one upstream")]
    None,
}

/// Protocol with an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http1,
    Http2,
    Tls,
    Http3,
}

impl Scheme {
    /// Returns whether requests say `https`.
    pub(crate) fn is_secure(self) -> bool {
        matches!(self, Self::Tls | Self::Http3)
    }

    /// Returns where connections to an address go to.
    pub(crate) fn to(self, address: SocketAddr) -> Destination {
        match self {
            Self::Http3 => Destination::Datagrams(address),
            _ => Destination::Inet(address),
        }
    }
}

/// A server behind the proxy: where it is, what it speaks, and how much of the load it takes.
#[derive(Debug, Clone)]
pub struct Upstream {
    pub(crate) given: String,
    pub(crate) scheme: Scheme,
    /// Host and port, for `Host` and for TLS.
    pub(crate) authority: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) destinations: Vec<Destination>,
    pub(crate) weight: u32,
    /// HTTP/1.1 is spoken in addition to HTTP/2, for tunnels.
    pub(crate) http1_tunnels: bool,
}

impl Upstream {
    /// The upstream that `text` names: `http://HOST:PORT` (HTTP/1.1), `h2c://HOST:PORT` (HTTP/2 without TLS),
    /// `https://HOST:PORT` (TLS, then HTTP/2 or HTTP/1.1 as ALPN agrees), `h3://HOST:PORT` (HTTP/3) or `unix:/PATH`
    /// (HTTP/1.1 on a Unix socket). The port may be left out where the scheme has one. Waits for the system's resolver when the
    /// host is a name.
    ///
    /// # Errors
    ///
    /// When it names none, or its host has no address.
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        let malformed =
            |what: &str| UpstreamError::Malformed { given: text.to_owned(), what: what.to_owned() };
        if let Some(path) = text.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return Err(malformed("the path of a Unix socket begins with a slash"));
            }
            return Ok(Self {
                given: text.to_owned(),
                scheme: Scheme::Http1,
                authority: "localhost".to_owned(),
                host: "localhost".to_owned(),
                port: 0,
                destinations: vec![Destination::Unix(Path::new(path).into())],
                weight: 1,
                http1_tunnels: false,
            });
        }
        let Some((name, _)) = text.split_once("://") else {
            return Err(malformed("it has no scheme"));
        };
        let known = SCHEMES.iter().find(|scheme| scheme.name().eq_ignore_ascii_case(name));
        let known = known.ok_or_else(|| malformed("its scheme is not known"))?;
        let url = Url::parse(text, &[*known]).map_err(|error| malformed(&error.why))?;
        let scheme = match url.scheme {
            UrlScheme::H2c => Scheme::Http2,
            UrlScheme::Https => Scheme::Tls,
            UrlScheme::H3 => Scheme::Http3,
            _ => Scheme::Http1,
        };
        if url.path != "/" {
            return Err(malformed("only a host and a port may follow the scheme"));
        }
        let (authority, port) = (url.authority(), url.port());
        let addresses = resolve(&url.host, port)
            .map_err(|error| UpstreamError::Unresolved { given: text.to_owned(), error })?;
        Ok(Self {
            given: text.to_owned(),
            scheme,
            authority,
            host: url.host,
            port,
            destinations: addresses.into_iter().map(|address| scheme.to(address)).collect(),
            weight: 1,
            http1_tunnels: scheme == Scheme::Tls,
        })
    }

    /// The same, with so many times the share of an upstream whose weight is 1, from 1 to 1000.
    #[must_use]
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight.clamp(1, 1000);
        self
    }

    /// Sets whether WebSockets and other tunnels go by HTTP/1.1, on connections of their own, when the upstream
    /// speaks HTTP/2 without extended CONNECT (RFC 8441). Default: yes with `https`, where ALPN says what is
    /// spoken; no with `h2c`, where a server may understand nothing else, and the response is 502. Never with `h3`.
    #[must_use]
    pub fn http1_tunnels(mut self, allowed: bool) -> Self {
        self.http1_tunnels = allowed && matches!(self.scheme, Scheme::Http2 | Scheme::Tls);
        self
    }

    /// Host and port, where the host is a name that may get other addresses.
    pub(crate) fn named_host(&self) -> Option<(String, u16)> {
        let is_unix = matches!(self.destinations.first(), Some(Destination::Unix(_)));
        let is_name = !is_unix && self.host.parse::<std::net::IpAddr>().is_err();
        is_name.then(|| (self.host.clone(), self.port))
    }

    /// As it was named.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.given
    }

    /// How its connections begin; `tls`: the settings where it speaks TLS; `name`: in place of its host.
    pub(crate) fn dial(
        &self,
        tls: Option<&ClientTls>,
        name: Option<&str>,
        timeout: Duration,
    ) -> Dial {
        let speaks = match (self.scheme, tls) {
            (Scheme::Tls | Scheme::Http3, Some(tls)) => Speaks::Tls {
                settings: tls.clone(),
                server_name: name.unwrap_or(&self.host).to_owned(),
                required: None,
            },
            (Scheme::Http2, _) => Speaks::Http2,
            (Scheme::Http1 | Scheme::Tls | Scheme::Http3, _) => Speaks::Http1,
        };
        Dial { speaks, timeout, preamble: None }
    }

    /// How connections for tunnels begin, where these have their own; `tls` offers nothing but HTTP/1.1.
    pub(crate) fn tunnel_dial(
        &self,
        tls: Option<&ClientTls>,
        name: Option<&str>,
        timeout: Duration,
    ) -> Option<Dial> {
        if !self.http1_tunnels {
            return None;
        }
        let speaks = match (self.scheme, tls) {
            (Scheme::Tls, Some(tls)) => Speaks::Tls {
                settings: tls.clone(),
                server_name: name.unwrap_or(&self.host).to_owned(),
                required: Some(Alpn::Http11),
            },
            _ => Speaks::Http1,
        };
        Some(Dial { speaks, timeout, preamble: None })
    }

    /// Protocols that are offered to those that speak TLS.
    pub(crate) const ALPN: [Alpn; 2] = [Alpn::H2, Alpn::Http11];

    /// Protocols that are offered on connections for tunnels.
    pub(crate) const TUNNEL_ALPN: [Alpn; 1] = [Alpn::Http11];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_are_named_by_url() {
        for (text, scheme, authority, to) in [
            ("http://127.0.0.1:9000", Scheme::Http1, "127.0.0.1:9000", "127.0.0.1:9000"),
            ("http://127.0.0.1/", Scheme::Http1, "127.0.0.1", "127.0.0.1:80"),
            ("h2c://[::1]:81", Scheme::Http2, "[::1]:81", "[::1]:81"),
            ("https://[::1]", Scheme::Tls, "[::1]", "[::1]:443"),
            ("h3://[::1]:82", Scheme::Http3, "[::1]:82", "[::1]:82"),
        ] {
            let upstream = Upstream::parse(text).unwrap();
            assert_eq!((upstream.scheme, &*upstream.authority), (scheme, authority), "{text}");
            assert_eq!(upstream.destinations, [scheme.to(to.parse().unwrap())], "{text}");
        }
        let unix = Upstream::parse("unix:/run/a").unwrap();
        assert_eq!(unix.destinations, [Destination::Unix(Path::new("/run/a").into())]);
    }

    #[test]
    fn what_names_none_is_told_why() {
        for (text, why) in [
            ("127.0.0.1:9000", "no scheme"),
            ("ftp://127.0.0.1", "scheme is not known"),
            ("http://127.0.0.1:99999", "is not a number from 1 to 65535"),
            ("http://[::1]:", "its port `` is not a number"),
            ("http://127.0.0.1/path", "only a host"),
            ("http://user@127.0.0.1", "user names"),
            ("http://", "no host"),
            ("http://a b", "not allowed in a host"),
            ("unix:run/a", "begins with a slash"),
        ] {
            let error = Upstream::parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
    }
}
