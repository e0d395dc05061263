//! RFC 9110 §4.2, RFC 9113 §3: how a connection begins.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_connection::{Alpn, ClientTls, Connection, IdentityError, Limits};
use bolide_semantics::Role;

/// Protocols on connections to a server.
#[derive(Debug, Clone)]
pub enum Speaks {
    /// HTTP/1.1 in cleartext.
    Http1,
    /// HTTP/2 in cleartext, without asking (RFC 9113 §3.3).
    Http2,
    /// TLS with these settings; what its ALPN agrees on.
    Tls {
        /// The settings, with what ALPN offers.
        settings: ClientTls,
        /// The server's name for SNI and for its certificate: a DNS name or an IP address.
        server_name: String,
        /// Protocol that ALPN must agree on, if only one will do. HTTP/1.1 is also what a server
        /// speaks that knows no ALPN.
        required: Option<Alpn>,
    },
}

/// How each connection to a server begins.
#[derive(Debug, Clone)]
pub struct Dial {
    /// The protocols.
    pub speaks: Speaks,
    /// How long it may take until requests can be sent, with TLS.
    pub timeout: Duration,
    /// Bytes that are sent before everything else, also before TLS: a PROXY header.
    pub preamble: Option<Arc<[u8]>>,
}

impl Dial {
    /// The stack of a new connection, and what its ALPN must agree on.
    ///
    /// # Errors
    ///
    /// When the server's name is none.
    pub(crate) fn open(
        &self,
        limits: &Limits,
        now: Instant,
    ) -> Result<(Connection, Option<Alpn>), IdentityError> {
        Ok(match &self.speaks {
            Speaks::Http1 => (Connection::http1(limits, now), None),
            Speaks::Http2 => (Connection::with_prior_knowledge(limits, now), None),
            Speaks::Tls { settings, server_name, required } => {
                let layer = settings.connect(server_name)?;
                (Connection::new(Role::Client, Some(layer), now), *required)
            }
        })
    }

    /// Finds out whether connections can be begun at all.
    ///
    /// # Errors
    ///
    /// When the server's name is none.
    pub fn check(&self, limits: &Limits, now: Instant) -> Result<(), IdentityError> {
        self.open(limits, now).map(drop)
    }
}
