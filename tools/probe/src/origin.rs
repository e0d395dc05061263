//! Places of servers.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Place of the server, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Over TLS.
    pub is_https: bool,
    /// `host` or `host:port`, for Host and `:authority`.
    pub authority: String,
    /// Addresses to which connections are made; more than one are taken in turn. Resolved already.
    pub addresses: Vec<ServerAddress>,
}

/// Address that a socket is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// TCP over IPv4 or IPv6.
    Inet(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}
