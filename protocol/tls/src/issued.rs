//! RFC 8555 §8, RFC 8737: certificates by name that come while a server runs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::server::ClientHello;
use rustls::sign::CertifiedKey;

use crate::{Identity, IssuedNames};

/// The protocol of a connection by which a CA validates a name (RFC 8737 §6.2).
pub(crate) const VALIDATION: &[u8] = b"acme-tls/1";

/// Certificates by name that come while a server runs, for all listeners that share them. Clones are the same table.
#[derive(Debug, Clone, Default)]
pub struct Issued(Arc<RwLock<Table>>);

#[derive(Debug, Default)]
struct Table {
    certificates: BTreeMap<Box<str>, Arc<CertifiedKey>>,
    /// For connections that validate a name, and no others.
    challenges: BTreeMap<Box<str>, Arc<CertifiedKey>>,
}

impl Issued {
    /// From now on clients that ask for `name` (in lower case) get this certificate.
    pub fn set(&self, name: &str, identity: &Identity) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.certificates.insert(name.into(), Arc::clone(&identity.certified));
    }

    /// Connections that validate `name` get this certificate; `None`: they fail.
    pub fn set_challenge(&self, name: &str, identity: Option<&Identity>) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match identity {
            Some(identity) => {
                table.challenges.insert(name.into(), Arc::clone(&identity.certified));
            }
            None => {
                table.challenges.remove(name);
            }
        }
    }

    fn get(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.certificates.get(name).cloned()
    }

    fn challenge(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.challenges.get(name).cloned()
    }
}

impl IssuedNames {
    /// Whether `name` has a certificate of the table or none.
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
