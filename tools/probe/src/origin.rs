//! Where a server is.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the server is, and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Over TLS.
    pub is_https: bool,
    /// `host` or `host:port`, for Host and `:authority`.
    pub authority: String,
    /// Where connections are made to; more than one are taken in turn. Resolved already.
    pub addresses: Vec<ServerAddress>,
}

/// What a socket is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// TCP over IPv4 or IPv6.
    Inet(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}
