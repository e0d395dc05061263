//! The server under test.

use bolide_launcher::Server;

use crate::Expected;

/// A server, by its address.
#[derive(Debug)]
pub struct Target {
    /// `host:port`, cleartext.
    pub address: String,
    /// True if only the outcomes for strict servers count.
    pub strict: bool,
    /// Its known deviations.
    pub expected: Expected,
    // Lives as long as it is a target.
    _server: Option<Server>,
}

impl Target {
    /// The server that `BOLIDE_CONFORMANCE_TARGET` names, with the deviations in the file that
    /// `BOLIDE_CONFORMANCE_EXPECTED` names; without them, a fresh `bolide serve`.
    pub fn from_environment() -> Self {
        match std::env::var("BOLIDE_CONFORMANCE_TARGET") {
            Ok(address) => {
                let server = std::env::var("BOLIDE_CONFORMANCE_EXPECTED").ok();
                Self::foreign(address, server.as_deref())
            }
            Err(_) => {
                let server = Server::start(&["--http", "127.0.0.1:0"]);
                let address = Server::authority(server.http()).to_owned();
                let expected = Expected::default();
                Self { address, strict: true, expected, _server: Some(server) }
            }
        }
    }

    /// The same for a server of files: one that `BOLIDE_CONFORMANCE_TARGET` names must say by
    /// `BOLIDE_CONFORMANCE_FILES` that it serves the directory of [`directory`](crate::directory), or there is none.
    pub fn of_files_from_environment(test: &str) -> Option<Self> {
        if std::env::var_os("BOLIDE_CONFORMANCE_TARGET").is_some() {
            let serves = std::env::var_os("BOLIDE_CONFORMANCE_FILES").is_some();
            return serves.then(Self::from_environment);
        }
        let directory = crate::directory(test).display().to_string();
        let server = Server::start(&["--http", "127.0.0.1:0", "--root", &directory]);
        let address = Server::authority(server.http()).to_owned();
        let expected = Expected::default();
        Some(Self { address, strict: true, expected, _server: Some(server) })
    }

    /// A server that runs already.
    pub fn foreign(address: String, expected: Option<&str>) -> Self {
        let expected = expected.map(Expected::of).unwrap_or_default();
        Self { address, strict: false, expected, _server: None }
    }
}
