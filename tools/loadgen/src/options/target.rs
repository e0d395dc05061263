//! URLs, and what stands behind their host names.

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use crate::plan::{Origin, ServerAddress};

/// How a URL begins, and whether it is over TLS, and of WebSocket.
type Scheme = (&'static str, bool, bool);

/// The schemes of HTTP (RFC 9110 §4.2).
const HTTP: [Scheme; 2] = [("http://", false, false), ("https://", true, false)];

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// `https` or `wss`, not `http` or `ws`.
    pub is_https: bool,
    /// `ws` or `wss`.
    pub is_websocket: bool,
    /// A name or an address, an IPv6 address without its brackets.
    pub host: String,
    /// The port, if it is written.
    pub explicit_port: Option<u16>,
    /// Path and query, beginning with `/`.
    pub path: String,
}

impl Target {
    /// Reads `http://host[:port][/path][?query]` or the same with `https`.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in a sentence.
    pub fn parse(url: &str) -> Result<Self, String> {
        Self::with_scheme(url, &HTTP)
    }

    /// The same, or with `ws` or `wss` (RFC 6455 §3).
    pub(super) fn parse_any(url: &str) -> Result<Self, String> {
        let [http, https] = HTTP;
        Self::with_scheme(url, &[http, https, ("ws://", false, true), ("wss://", true, true)])
    }

    /// Reads a URL with one of these schemes.
    fn with_scheme(url: &str, schemes: &[Scheme]) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{url}` is not a URL: {why}");
        let found = schemes.iter().find_map(|(scheme, is_https, is_websocket)| {
            Some((*is_https, *is_websocket, strip_scheme(url, scheme)?))
        });
        let Some((is_https, is_websocket, rest)) = found else {
            let names: Vec<&str> = schemes.iter().map(|(scheme, ..)| *scheme).collect();
            return Err(wrong(&format!("it must begin with {}", names.join(" or "))));
        };
        let rest = rest.split('#').next().unwrap_or(rest);
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(wrong("user names and passwords belong in -H 'Authorization: …'"));
        }
        let (host, explicit_port) = split_authority(authority).map_err(|why| wrong(&why))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        check_path(&path).map_err(|why| wrong(&why))?;
        Ok(Self { is_https, is_websocket, host, explicit_port, path })
    }

    /// The port that connections go to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.explicit_port.unwrap_or(if self.is_https { 443 } else { 80 })
    }

    /// As in Host and `:authority`.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = bracketed(&self.host);
        match self.explicit_port {
            Some(port) if port != if self.is_https { 443 } else { 80 } => format!("{host}:{port}"),
            _ => host,
        }
    }

    /// Both name the same server.
    #[must_use]
    pub fn has_origin_of(&self, other: &Self) -> bool {
        let origin =
            |of: &Self| (of.is_https, of.is_websocket, of.host.to_ascii_lowercase(), of.port());
        origin(self) == origin(other)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.is_websocket, self.is_https) {
            (false, false) => "http",
            (false, true) => "https",
            (true, false) => "ws",
            (true, true) => "wss",
        };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn strip_scheme<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let head = url.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then(|| &url[scheme.len()..])
}

/// Host and port of `host`, `host:port`, `[v6]` and `[v6]:port`.
fn split_authority(authority: &str) -> Result<(String, Option<u16>), String> {
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
    let port = port.map(|port| {
        port.parse::<u16>()
            .ok()
            .filter(|number| *number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| format!("its port `{port}` is not a number from 1 to 65535"))
    });
    Ok((host.to_owned(), port.transpose()?))
}

/// A path can be sent as it is.
///
/// # Errors
///
/// What can't be sent.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    match path.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
        Some(c) => {
            Err(format!("`{}` is not allowed in a path: percent-encode it", c.escape_default()))
        }
        None => Ok(()),
    }
}

/// Which server `PLACE` or `NAME[:PORT]=PLACE` is for, and the place. Without a name it is for the first one.
///
/// # Errors
///
/// There is no such server.
pub(super) fn server_and_place<'a>(
    text: &'a str,
    servers: &[&Target],
) -> Result<(usize, &'a str), String> {
    let named = text.split_once('=').filter(|_| !text.starts_with("unix:"));
    let Some((name, place)) = named else { return Ok((0, text)) };
    let (host, port) = split_authority(name).map_err(|why| format!("`{name}`: {why}"))?;
    let is_named = |server: &&Target| {
        server.host.eq_ignore_ascii_case(&host) && port.is_none_or(|port| port == server.port())
    };
    let mut found = servers.iter().enumerate().filter(|(_, server)| is_named(server));
    match (found.next(), found.next()) {
        (Some((server, _)), None) => Ok((server, place)),
        (Some(_), Some(_)) => Err(format!("`{name}` is several servers: say the port, too")),
        (None, _) => Err(format!("no request goes to `{name}`")),
    }
}

/// Where connections go to instead of where the URL says.
///
/// # Errors
///
/// What would be right, in a sentence.
pub fn connect_to(text: &str, port: u16) -> Result<ConnectTo, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() {
            return Err("`unix:` needs the path of a socket".into());
        }
        return Ok(ConnectTo::Unix(path.into()));
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(ConnectTo::Host(address.to_string(), port));
    }
    let (host, explicit) = split_authority(text)
        .map_err(|why| format!("`{text}` is not HOST, HOST:PORT or unix:PATH: {why}"))?;
    Ok(ConnectTo::Host(host, explicit.unwrap_or(port)))
}

/// What is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectTo {
    /// A name or an address, and a port.
    Host(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Finds the addresses. Of a name with several, the first that accepts a connection is taken, so that
/// a server that listens on one of `::1` and `127.0.0.1` is found under `localhost`.
///
/// # Errors
///
/// Why there is no address, in a sentence.
pub fn resolve(
    target: &Target,
    elsewhere: &[ConnectTo],
    timeout: Duration,
) -> Result<Origin, String> {
    let here = [ConnectTo::Host(target.host.clone(), target.port())];
    let places = if elsewhere.is_empty() { &here[..] } else { elsewhere };
    let mut addresses = Vec::new();
    for place in places {
        addresses.push(match place {
            ConnectTo::Unix(path) => ServerAddress::Unix(path.clone()),
            ConnectTo::Host(host, port) => ServerAddress::Inet(lookup(host, *port, timeout)?),
        });
    }
    Ok(Origin { is_https: target.is_https, authority: target.authority(), addresses })
}

fn lookup(host: &str, port: u16, timeout: Duration) -> Result<SocketAddr, String> {
    let found: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("the host `{host}` can't be resolved: {error}"))?
        .collect();
    let (first, rest) =
        found.split_first().ok_or_else(|| format!("the host `{host}` has no address"))?;
    if rest.is_empty() {
        return Ok(*first);
    }
    let answers = |address: &&SocketAddr| TcpStream::connect_timeout(address, timeout).is_ok();
    Ok(*found.iter().find(answers).unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;

    #[test]
    fn a_url_comes_apart() {
        let target = Target::parse("http://127.0.0.1:8080/echo?size=64#top").unwrap();
        assert_eq!(target.authority(), "127.0.0.1:8080");
        assert_eq!((target.port(), target.path.as_str()), (8080, "/echo?size=64"));
        let plain = Target::parse("HTTPS://example.org").unwrap();
        assert!(plain.is_https);
        assert_eq!((plain.port(), plain.authority().as_str()), (443, "example.org"));
        assert_eq!(plain.path, "/");
        let six = Target::parse("http://[::1]:81?q").unwrap();
        assert_eq!((six.host.as_str(), six.authority().as_str()), ("::1", "[::1]:81"));
        assert_eq!(six.path, "/?q");
        assert_eq!(six.to_string(), "http://[::1]:81/?q");
        assert!(
            Target::parse("http://A")
                .unwrap()
                .has_origin_of(&Target::parse("http://a:80/x").unwrap())
        );
    }

    #[test]
    fn a_wrong_url_is_told_why() {
        for (url, why) in [
            ("127.0.0.1:80", "begin with http://"),
            ("ftp://a", "begin with http://"),
            ("http://", "no host"),
            ("http:///x", "no host"),
            ("http://a:0/", "port"),
            ("http://a:+80/", "port"),
            ("http://a:99999/", "port"),
            ("http://[::1/", "no `]`"),
            ("http://[a]/", "IPv6"),
            ("http://[::1]x/", "follows"),
            ("http://u:p@a/", "Authorization"),
            ("http://a/b c", "percent-encode"),
            ("http://a/ö", "percent-encode"),
            ("http://a b/", "host"),
        ] {
            let said = Target::parse(url).unwrap_err();
            assert!(said.contains(why), "{url}: {said}");
        }
    }

    #[test]
    fn a_connection_may_go_elsewhere() {
        assert_eq!(connect_to("10.0.0.1", 80), Ok(ConnectTo::Host("10.0.0.1".into(), 80)));
        assert_eq!(connect_to("::1", 80), Ok(ConnectTo::Host("::1".into(), 80)));
        assert_eq!(connect_to("[::1]:81", 80), Ok(ConnectTo::Host("::1".into(), 81)));
        assert_eq!(connect_to("a:81", 80), Ok(ConnectTo::Host("a".into(), 81)));
        assert_eq!(connect_to("unix:/x", 80), Ok(ConnectTo::Unix("/x".into())));
        assert!(connect_to("unix:", 80).is_err() && connect_to("a:b", 80).is_err());
    }

    #[test]
    fn of_several_addresses_the_one_that_answers_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = Target::parse(&format!("http://localhost:{port}/")).unwrap();
        let origin = resolve(&target, &[], Duration::from_secs(1)).unwrap();
        assert_eq!(origin.addresses, [ServerAddress::Inet(listener.local_addr().unwrap())]);
        assert_eq!(origin.authority, format!("localhost:{port}"));
    }

    #[test]
    fn a_host_that_is_nowhere_is_named() {
        let target = Target::parse("http://nowhere.invalid/").unwrap();
        let said = resolve(&target, &[], Duration::from_secs(1)).unwrap_err();
        assert!(said.contains("`nowhere.invalid` can't be resolved"), "{said}");
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "(https?://)?.{0,30}") {
            if let Ok(target) = Target::parse(&text) {
                prop_assert_eq!(Target::parse(&target.to_string()).unwrap().to_string(), target.to_string());
            }
            let _ = connect_to(&text, 80);
        }
    }
}
