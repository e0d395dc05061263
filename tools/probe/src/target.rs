//! Addresses behind the host names of URLs.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use bolide_semantics::{Url, split_authority};

use crate::plan::{Origin, ServerAddress};

/// Which server `PLACE` or `NAME[:PORT]=PLACE` is for, and the place. Without a name it is for the first one.
///
/// # Errors
///
/// There is no such server.
pub fn server_and_place<'a>(text: &'a str, servers: &[&Url]) -> Result<(usize, &'a str), String> {
    let named = text.split_once('=').filter(|_| !text.starts_with("unix:"));
    let Some((name, place)) = named else { return Ok((0, text)) };
    let (host, port) = split_authority(name).map_err(|why| format!("`{name}`: {why}"))?;
    let is_named = |server: &&Url| {
        server.host.eq_ignore_ascii_case(&host) && port.is_none_or(|port| port == server.port())
    };
    let mut found = servers.iter().enumerate().filter(|(_, server)| is_named(server));
    match (found.next(), found.next()) {
        (Some((server, _)), None) => Ok((server, place)),
        (Some(_), Some(_)) => Err(format!("`{name}` is several servers: say the port, too")),
        (None, _) => Err(format!("no request goes to `{name}`")),
    }
}

/// Returns where connections go to instead of where the URL says.
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

/// Address that is connected to.
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
pub fn resolve(url: &Url, elsewhere: &[ConnectTo], timeout: Duration) -> Result<Origin, String> {
    let here = [ConnectTo::Host(url.host.clone(), url.port())];
    let places = if elsewhere.is_empty() { &here[..] } else { elsewhere };
    let mut addresses = Vec::new();
    for place in places {
        addresses.push(match place {
            ConnectTo::Unix(path) => ServerAddress::Unix(path.clone()),
            ConnectTo::Host(host, port) => ServerAddress::Inet(lookup(host, *port, timeout)?),
        });
    }
    Ok(Origin { is_https: url.scheme.is_tls(), authority: url.authority(), addresses })
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
    let responses = |address: &&SocketAddr| TcpStream::connect_timeout(address, timeout).is_ok();
    Ok(*found.iter().find(responses).unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use bolide_semantics::Scheme;

    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;

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
        let target = Url::parse(&format!("http://localhost:{port}/"), &Scheme::HTTP).unwrap();
        let origin = resolve(&target, &[], Duration::from_secs(1)).unwrap();
        assert_eq!(origin.addresses, [ServerAddress::Inet(listener.local_addr().unwrap())]);
        assert_eq!(origin.authority, format!("localhost:{port}"));
    }

    #[test]
    fn a_host_that_is_nowhere_is_named() {
        let target = Url::parse("http://nowhere.invalid/", &Scheme::HTTP).unwrap();
        let said = resolve(&target, &[], Duration::from_secs(1)).unwrap_err();
        assert!(said.contains("`nowhere.invalid` can't be resolved"), "{said}");
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in ".{0,30}") {
            let _ = connect_to(&text, 80);
        }
    }
}
