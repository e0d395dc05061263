//! RFC 7468, RFC 5280: a certificate chain and its key, from bytes.

use std::sync::Arc;

use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use webpki::EndEntityCert;

use crate::IdentityError;
use crate::provider::provider;

/// A certificate chain and the key that belongs to its first certificate.
#[derive(Debug, Clone)]
pub struct Identity {
    pub(crate) certified: Arc<CertifiedKey>,
}

impl Identity {
    /// Reads a chain, the end-entity certificate first, and its key, from PEM.
    ///
    /// # Errors
    ///
    /// [`IdentityError`] says which part is missing or wrong, or that the two don't belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let key = Self::key_from_pem(key)?;
        Self::from_der(Self::chain_from_pem(chain)?, key)
    }

    /// Reads only the chain: tells which of two files is wrong.
    ///
    /// # Errors
    ///
    /// When there is no certificate, or it is no PEM.
    pub fn check_chain(chain: &[u8]) -> Result<(), IdentityError> {
        Self::chain_from_pem(chain).map(drop)
    }

    fn chain_from_pem(chain: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
        let chain = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| IdentityError::NotPem(error.to_string()))?;
        if chain.is_empty() { Err(IdentityError::NoCertificate) } else { Ok(chain) }
    }

    fn key_from_pem(key: &[u8]) -> Result<PrivateKeyDer<'static>, IdentityError> {
        PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            PemError::NoItemsFound => IdentityError::NoKey,
            error => IdentityError::NotPem(error.to_string()),
        })
    }

    fn from_der(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, IdentityError> {
        let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| {
            if let Error::InconsistentKeys(InconsistentKeys::KeyMismatch) = error {
                IdentityError::Mismatch
            } else {
                IdentityError::Unusable(error.to_string())
            }
        })?;
        Ok(Self { certified: Arc::new(certified) })
    }

    /// The end-entity certificate, in DER.
    #[must_use]
    pub fn certificate_der(&self) -> &[u8] {
        self.certified.cert.first().map_or(&[], |certificate| certificate.as_ref())
    }

    /// The names that the certificate is for, in lower case; a wildcard as it is written in it.
    #[must_use]
    pub fn dns_names(&self) -> Vec<String> {
        let parsed = self.certified.cert.first().map(EndEntityCert::try_from);
        let Some(Ok(parsed)) = parsed else { return Vec::new() };
        parsed.valid_dns_names().map(str::to_ascii_lowercase).collect()
    }
}
