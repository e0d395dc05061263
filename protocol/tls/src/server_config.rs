//! RFC 8446 §4, RFC 7301: what a server offers, and what it asks of clients.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::server::danger::ClientCertVerifier;
use rustls::server::{
    NoServerSessionStorage, ProducesTickets, ServerSessionMemoryCache, StoresServerSessions,
    WebPkiClientVerifier,
};
use rustls::{ServerConfig, ServerConnection};

use crate::issued::VALIDATION;
use crate::limits::EARLY_SESSIONS_COUNT;
use crate::names::Certificates;
use crate::provider::provider;
use crate::tickets::{NoTickets, Tickets};
use crate::{Clients, Identity, IdentityError, ServerOptions, TlsLayer, Trust, WallClock};

impl Clients {
    fn verifier(&self) -> Result<Option<Arc<dyn ClientCertVerifier>>, IdentityError> {
        let (pem, optional) = match self {
            Self::Any => return Ok(None),
            Self::Optional(pem) => (pem, true),
            Self::Required(pem) => (pem, false),
        };
        // `Trust::Pem` always has roots, or says why not.
        let roots = Trust::Pem(pem.clone()).roots()?.unwrap_or_else(rustls::RootCertStore::empty);
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
        let builder = if optional { builder.allow_unauthenticated() } else { builder };
        let verifier =
            builder.build().map_err(|error| IdentityError::Unusable(error.to_string()))?;
        Ok(Some(verifier))
    }
}

/// A server's TLS settings, shared by all of its connections: what [`HandshakeRules`](crate::HandshakeRules) say, one session ticket per
/// handshake. Every six hours another key seals them, and the one before opens its own for
/// six hours more. Where clients are asked for a certificate there are no tickets: a session that is resumed is not
/// checked again, so each connection shows the certificate anew, which must be valid then.
#[derive(Debug, Clone)]
pub struct ServerTls {
    current: Arc<RwLock<Current>>,
    clock: WallClock,
    ticketer: Arc<dyn ProducesTickets>,
}

/// Configuration of new connections, and how often it was replaced.
#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    replaced_count: u64,
    allows_quic: bool,
    /// The sessions of clients that may send early data.
    early: Option<Arc<dyn StoresServerSessions>>,
}

impl Current {
    fn new(options: &ServerOptions<'_>, config: ServerConfig) -> Self {
        let early = options.rules.early_data;
        Self {
            config: Arc::new(config),
            replaced_count: 0,
            allows_quic: options.rules.allow_quic(),
            early: early.then(|| ServerSessionMemoryCache::new(EARLY_SESSIONS_COUNT) as _),
        }
    }
}

impl ServerTls {
    /// Settings of a server that shows `identity`, whatever name is asked for, and asks no client who it is.
    ///
    /// # Errors
    ///
    /// When the ticket keys can't be made, for want of randomness.
    pub fn new(identity: &Identity, clock: WallClock) -> Result<Self, IdentityError> {
        let identities = std::slice::from_ref(identity);
        Self::with(&ServerOptions { identities, ..ServerOptions::default() }, clock)
    }

    /// Settings with these options.
    ///
    /// # Errors
    ///
    /// When there is no certificate, what clients have to show can't be read, the rules can't be, or the ticket keys
    /// can't be made.
    pub fn with(options: &ServerOptions<'_>, clock: WallClock) -> Result<Self, IdentityError> {
        let ticketer = Tickets::ticketer(clock).map_err(unusable)?;
        let current = Current::new(options, config(options, clock, &ticketer)?);
        Ok(Self { current: Arc::new(RwLock::new(current)), clock, ticketer })
    }

    /// Replaces what new connections get, in every clone of these settings; those that are open go on as
    /// they began. Sessions can be resumed as before.
    ///
    /// # Errors
    ///
    /// As [`Self::with`]: the old settings stay.
    pub fn replace(&self, options: &ServerOptions<'_>) -> Result<(), IdentityError> {
        let new = Current::new(options, config(options, self.clock, &self.ticketer)?);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let early = match (new.early, current.early.take()) {
            (Some(_), Some(kept)) => Some(kept),
            (new, _) => new,
        };
        *current = Current { replaced_count: current.replaced_count + 1, early, ..new };
        Ok(())
    }

    /// The same settings for connections over QUIC (RFC 9001 §4): the protocol that is agreed on is another, and early data
    /// may be allowed. What is [replaced](Self::replace) later has no effect on them: [`Self::replaced_count`] tells.
    #[must_use]
    pub fn quic(&self, protocol: &[u8]) -> Arc<ServerConfig> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let mut config = ServerConfig::clone(&current.config);
        config.alpn_protocols = vec![protocol.to_vec()];
        if let Some(sessions) = &current.early {
            config.session_storage = Arc::clone(sessions);
            config.ticketer = Arc::new(NoTickets);
            // RFC 9001 §4.6.1: QUIC's own limits say how much.
            config.max_early_data_size = u32::MAX;
        }
        Arc::new(config)
    }

    /// Returns whether QUIC can be spoken with these settings, which takes TLS 1.3.
    #[must_use]
    pub fn allows_quic(&self) -> bool {
        self.current.read().unwrap_or_else(PoisonError::into_inner).allows_quic
    }

    /// How often the settings were [replaced](Self::replace).
    #[must_use]
    pub fn replaced_count(&self) -> u64 {
        self.current.read().unwrap_or_else(PoisonError::into_inner).replaced_count
    }

    /// The TLS layer of a new connection.
    ///
    /// # Errors
    ///
    /// When rustls refuses the settings, which [`Self::with`] has ruled out.
    pub fn accept(&self) -> Result<TlsLayer, IdentityError> {
        let config = {
            let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&current.config)
        };
        ServerConnection::new(config)
            .map(|connection| TlsLayer::new(connection.into()))
            .map_err(unusable)
    }
}

/// Returns what new connections get.
fn config(
    options: &ServerOptions<'_>,
    clock: WallClock,
    ticketer: &Arc<dyn ProducesTickets>,
) -> Result<ServerConfig, IdentityError> {
    if options.identities.is_empty() && options.issued.is_none() {
        return Err(IdentityError::NoCertificate);
    }
    options.rules.check()?;
    if options.rules.early_data && options.clients != Clients::Any {
        let what =
            "early data comes before a client has shown a certificate: ask for one, or allow it";
        return Err(IdentityError::Unusable(what.to_owned()));
    }
    let builder = ServerConfig::builder_with_details(options.rules.provider(), Arc::new(clock))
        .with_protocol_versions(&options.rules.versions())
        .map_err(unusable)?;
    let verifier = options.clients.verifier()?;
    let resumes = verifier.is_none();
    let builder = match verifier {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let certificates = Arc::new(Certificates::new(options.identities, options.issued.clone()));
    let mut config = builder.with_cert_resolver(certificates);
    config.alpn_protocols = options.rules.alpn.iter().map(|own| own.as_bytes().to_vec()).collect();
    if options.issued.is_some() {
        config.alpn_protocols.push(VALIDATION.to_vec());
    }
    // Tickets keep the state at the client: the default store is a lock shared by all cores.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = usize::from(resumes);
    // The default ticketer makes none.
    if resumes {
        config.ticketer = Arc::clone(ticketer);
    }
    Ok(config)
}

fn unusable(error: rustls::Error) -> IdentityError {
    IdentityError::Unusable(error.to_string())
}
