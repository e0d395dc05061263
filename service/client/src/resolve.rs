//! RFC 9110 §4.3.2: from a host's name to addresses.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use thiserror::Error;

/// A host has no address.
#[derive(Debug, Error)]
pub enum ResolveError {
    /// The system's resolver failed.
    #[error("`{host}` has no address: {error}")]
    Failed {
        /// Name that was asked for.
        host: String,
        /// Error of the resolver.
        error: io::Error,
    },
    /// It answered with nothing.
    #[error("`{host}` has no address")]
    Nothing {
        /// Name that was asked for.
        host: String,
    },
}

/// The addresses of `host`, a name or an IP address (IPv6 with or without brackets), each once and in
/// the resolver's order. Waits for the system's resolver, so not on a worker's thread.
///
/// # Errors
///
/// When there is none.
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let found = (bare, port)
        .to_socket_addrs()
        .map_err(|error| ResolveError::Failed { host: host.to_owned(), error })?;
    let mut addresses = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(ResolveError::Nothing { host: host.to_owned() });
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_no_resolver() {
        let four = resolve("127.0.0.1", 80).unwrap();
        assert_eq!(four, ["127.0.0.1:80".parse().unwrap()]);
        for host in ["::1", "[::1]"] {
            assert_eq!(resolve(host, 443).unwrap(), ["[::1]:443".parse().unwrap()]);
        }
    }

    #[test]
    fn what_is_no_name_has_no_address() {
        let error = resolve("no such host", 80).unwrap_err().to_string();
        assert!(error.starts_with("`no such host` has no address"), "{error}");
    }
}
