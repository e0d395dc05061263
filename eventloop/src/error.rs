//! Why workers can't start.

use std::io;

/// Why workers can't start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address can't be listened on.
    #[error("can't listen on {address}: {}", explain(.source))]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The poller, a thread or the signals can't be had.
    #[error("can't start {what}: {source}")]
    System {
        /// What was to be started.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// The system's word and what to do about it.
fn explain(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process listens there; stop it or choose another port (0: any that is free)"
        }
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a privilege; choose a higher one, or grant CAP_NET_BIND_SERVICE"
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address",
        _ => return error.to_string(),
    };
    advice.to_owned()
}
