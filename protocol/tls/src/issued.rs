//! RFC 8555 §8, RFC 8737: certificates by name that come while a server runs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::sign::CertifiedKey;

use crate::Identity;

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

    pub(crate) fn get(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.certificates.get(name).cloned()
    }

    pub(crate) fn challenge(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.challenges.get(name).cloned()
    }
}
