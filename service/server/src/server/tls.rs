//! RFC 8446: what the listeners of a server show and ask for.

use std::time::SystemTime;

use bolide_connection::{Clients, ServerOptions, ServerTls, WallClock};

use crate::{Error, Identity};

/// TLS settings of a listener.
#[derive(Debug, Clone)]
pub struct Tls {
    pub(super) settings: ServerTls,
}

impl Tls {
    /// TLS 1.3 and 1.2 with this certificate; ALPN offers `h2` and `http/1.1`.
    ///
    /// # Errors
    ///
    /// When ticket keys can't be made.
    pub fn new(identity: &Identity) -> Result<Self, Error> {
        Ok(Self { settings: ServerTls::new(identity, WallClock(SystemTime::now))? })
    }

    /// The same with several certificates, of which each client gets that for the name that it asks for (else
    /// the first), and with what clients have to show.
    ///
    /// # Errors
    ///
    /// When there is no certificate, or what is trusted can't be read.
    pub fn with(identities: &[Identity], clients: Clients) -> Result<Self, Error> {
        Self::of(&ServerOptions { identities, clients, ..ServerOptions::default() })
    }

    /// The same with all options.
    ///
    /// # Errors
    ///
    /// As [`Self::with`].
    pub fn of(options: &ServerOptions<'_>) -> Result<Self, Error> {
        Ok(Self { settings: ServerTls::with(options, WallClock(SystemTime::now))? })
    }

    /// Replaces certificates, what clients have to show, and rules, on every listener that has these settings, while
    /// it runs. Connections that are open go on.
    ///
    /// # Errors
    ///
    /// As [`Self::with`]: what there was stays.
    pub fn replace(&self, identities: &[Identity], clients: Clients) -> Result<(), Error> {
        self.replace_by(&ServerOptions { identities, clients, ..ServerOptions::default() })
    }

    /// The same with all options.
    ///
    /// # Errors
    ///
    /// As [`Self::replace`].
    pub fn replace_by(&self, options: &ServerOptions<'_>) -> Result<(), Error> {
        Ok(self.settings.replace(options)?)
    }
}
