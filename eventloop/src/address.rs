//! The ends of connections.

use std::net::SocketAddr;

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// An IP address and a port.
    Inet(SocketAddr),
    /// A Unix socket.
    Unix,
}
