//! Why a server can't start.

use std::io;
use std::net::SocketAddr;

use bolide_connection::IdentityError;
use bolide_eventloop::BindError;

use crate::RouteError;

/// Why a server can't start. Nothing has been started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address can't be parsed.
    #[error(
        "can't listen on `{address}`: give an IP address and a port, such as 127.0.0.1:8080, or unix:/path"
    )]
    Address {
        /// Text that was given.
        address: String,
    },
    /// A listener can't be opened.
    #[error("can't listen on {}: {}", .0.address, advice(.0))]
    Listen(BindError),
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

/// Returns what the system said, and what to do about it.
fn advice(failed: &BindError) -> String {
    let is_path = failed.address.parse::<SocketAddr>().is_err();
    let advice = match (failed.error.kind(), is_path) {
        (io::ErrorKind::AddrInUse, true) => {
            "another process listens there, or it is not a socket; stop it, remove the file, or choose another path"
        }
        (io::ErrorKind::PermissionDenied, true) => {
            "this user can't create files there; choose another directory, or change its permissions"
        }
        (io::ErrorKind::NotFound, true) => {
            "the directory doesn't exist; create it, or choose another"
        }
        (io::ErrorKind::AddrInUse, false) => {
            "another process listens there; stop it or choose another port (0: any free port)"
        }
        (io::ErrorKind::PermissionDenied, false) => {
            "ports below 1024 need a privilege; choose a higher port or grant CAP_NET_BIND_SERVICE"
        }
        (io::ErrorKind::AddrNotAvailable, _) => "this machine doesn't have the address",
        _ => return failed.error.to_string(),
    };
    advice.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(address: &str, kind: io::ErrorKind) -> String {
        Error::Listen(BindError { address: address.to_owned(), error: kind.into() }).to_string()
    }

    #[test]
    fn a_path_is_not_taken_for_a_port() {
        for kind in [io::ErrorKind::AddrInUse, io::ErrorKind::PermissionDenied] {
            let port = sentence("127.0.0.1:80", kind);
            assert!(
                port.starts_with("can't listen on 127.0.0.1:80: ") && port.contains("port"),
                "{port}"
            );
            let path = sentence("/run/a", kind);
            assert!(
                path.starts_with("can't listen on /run/a: ") && !path.contains("port"),
                "{path}"
            );
        }
    }
}
