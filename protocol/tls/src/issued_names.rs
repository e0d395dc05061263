//! RFC 8555 §8, RFC 8737: the names of a listener whose certificates come while a server runs.

#[cfg(feature = "rustls")]
use std::sync::Arc;

#[cfg(feature = "rustls")]
use rustls::server::ClientHello;
#[cfg(feature = "rustls")]
use rustls::sign::CertifiedKey;

use crate::Issued;
#[cfg(feature = "rustls")]
use crate::issued::VALIDATION;

/// The names of a listener whose certificates are in a table, or will be.
#[derive(Debug, Clone)]
pub struct IssuedNames {
    /// The certificates.
    pub table: Issued,
    /// The names, in lower case, without wildcards. The first that has a certificate has the default one, where there is no other.
    pub names: Vec<String>,
}

#[cfg(feature = "rustls")]
impl IssuedNames {
    /// Returns whether `name` has a certificate of the table or none.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    /// The certificate of one of the names.
    pub(crate) fn of(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.has(name).then(|| self.table.get(name))?
    }

    /// The certificate for clients that request none of the names.
    pub(crate) fn default(&self) -> Option<Arc<CertifiedKey>> {
        self.names.iter().find_map(|name| self.table.get(name))
    }

    /// The certificate for a connection that only validates a name; `None` as the outer option: it is another connection.
    pub(crate) fn validation(&self, hello: &ClientHello<'_>) -> Option<Option<Arc<CertifiedKey>>> {
        let mut protocols = hello.alpn()?;
        if protocols.next() != Some(VALIDATION) || protocols.next().is_some() {
            return None;
        }
        let name = hello.server_name().map(str::to_ascii_lowercase);
        Some(name.and_then(|name| self.table.challenge(&name)))
    }
}
