//! Why a server can't start.

use bolide_connection::IdentityError;

use crate::RouteError;

/// Why a server can't start. Nothing has been started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address can't be parsed.
    #[error(
        "`{address}` is no address to listen on: give an IP address and a port, such as 127.0.0.1:8080, or unix:/path"
    )]
    Address {
        /// What was given.
        address: String,
    },
    /// A listener can't be opened.
    #[error("{0}")]
    Listen(#[from] bolide_eventloop::Error),
    /// A certificate or key can't be used.
    #[error("the certificate and key can't be used: {0}")]
    Identity(#[from] IdentityError),
    /// A route can't be.
    #[error("{0}")]
    Route(#[from] RouteError),
    /// There is nothing to listen on.
    #[error("nothing to listen on: name an address with `http` or `https`")]
    NoListener,
}
