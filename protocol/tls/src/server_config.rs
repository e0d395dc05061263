//! RFC 8446 §4, RFC 7301: what a server offers.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection};

use crate::provider::{WallClock, provider};
use crate::{Identity, IdentityError, TlsLayer};

/// The seam for several certificates: today one answers every name.
#[derive(Debug)]
struct OneCertificate(Arc<CertifiedKey>);

impl ResolvesServerCert for OneCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// A server's TLS settings, shared by all of its connections: TLS 1.3 and 1.2, ALPN `h2` and
/// `http/1.1`, one session ticket per handshake with keys that roll every six hours.
#[derive(Debug, Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Settings that answer with `identity`.
    ///
    /// # Errors
    ///
    /// When the ticket keys can't be made, for want of randomness.
    pub fn new(identity: &Identity, clock: WallClock) -> Result<Self, IdentityError> {
        let unusable = |error: rustls::Error| IdentityError::Unusable(error.to_string());
        let mut config = ServerConfig::builder_with_details(provider(), Arc::new(clock))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(unusable)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(OneCertificate(Arc::clone(&identity.certified))));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Tickets keep the state at the client: the default store is a lock shared by all cores.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = Ticketer::new().map_err(unusable)?;
        config.send_tls13_tickets = 1;
        Ok(Self { config: Arc::new(config) })
    }

    /// The TLS layer of a new connection.
    ///
    /// # Errors
    ///
    /// When rustls refuses the settings, which [`Self::new`] has ruled out.
    pub fn accept(&self) -> Result<TlsLayer, IdentityError> {
        ServerConnection::new(Arc::clone(&self.config))
            .map(|connection| TlsLayer::new(connection.into()))
            .map_err(|error| IdentityError::Unusable(error.to_string()))
    }
}
