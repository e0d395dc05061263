//! Why a server can't start.

use std::io;

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
    #[error("can't listen on {}: {}", .0.address, advice(&.0.error))]
    Listen(bolide_eventloop::BindError),
    /// A thread, a poller or the signals can't be had.
    #[error("can't start: {0}")]
    System(#[from] io::Error),
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

/// What the system said, and what to do about it.
fn advice(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process listens there; stop it or choose another port (0: any that is free)"
        }
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a privilege; choose a higher one or grant CAP_NET_BIND_SERVICE"
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address",
        _ => return error.to_string(),
    };
    advice.to_owned()
}
