//! RFC 7468, RFC 5280: a certificate chain and its key, from bytes.

use std::sync::Arc;

use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use webpki::EndEntityCert;

use crate::full_handshakes::CountedKey;
use crate::provider::provider;
use crate::{IdentityError, RenewalFacts};

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

    /// The certificate of a challenge (RFC 8737 §3) and its key (PKCS #8), in DER. Unlike with other certificates, it is not checked
    /// that they belong together: a critical extension makes it unreadable for all but CAs.
    ///
    /// # Errors
    ///
    /// When the key can't be used.
    pub fn of_challenge(certificate: Vec<u8>, key: Vec<u8>) -> Result<Self, IdentityError> {
        let key = provider()
            .key_provider
            .load_private_key(PrivateKeyDer::Pkcs8(key.into()))
            .map_err(|error| IdentityError::Unusable(error.to_string()))?;
        let certified = CertifiedKey::new(vec![certificate.into()], Arc::new(CountedKey(key)));
        Ok(Self { certified: Arc::new(certified) })
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
        let first = chain.first().ok_or(IdentityError::NoCertificate)?;
        match EndEntityCert::try_from(first) {
            Err(webpki::Error::UnsupportedCertVersion) => Err(IdentityError::FirstVersion),
            _ => Ok(chain),
        }
    }

    fn key_from_pem(key: &[u8]) -> Result<PrivateKeyDer<'static>, IdentityError> {
        if is_encrypted(key) {
            return Err(IdentityError::EncryptedKey);
        }
        PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            PemError::NoItemsFound => IdentityError::NoKey,
            error => IdentityError::NotPem(error.to_string()),
        })
    }

    fn from_der(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, IdentityError> {
        let mut certified = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| {
            if let Error::InconsistentKeys(InconsistentKeys::KeyMismatch) = error {
                IdentityError::Mismatch
            } else {
                IdentityError::Unusable(error.to_string())
            }
        })?;
        certified.key = Arc::new(CountedKey(certified.key));
        Ok(Self { certified: Arc::new(certified) })
    }

    /// The end-entity certificate, in DER.
    #[must_use]
    pub fn certificate_der(&self) -> &[u8] {
        self.certified.cert.first().map_or(&[], |certificate| certificate.as_ref())
    }

    /// How long the certificate is valid, and how its CA identifies it; `None` for one that can't be read.
    #[must_use]
    pub fn renewal_facts(&self) -> Option<RenewalFacts> {
        RenewalFacts::of_der(self.certificate_der())
    }

    /// The names that the certificate is for, in lower case; a wildcard as it is written in it.
    #[must_use]
    pub fn dns_names(&self) -> Vec<String> {
        let parsed = self.certified.cert.first().map(EndEntityCert::try_from);
        let Some(Ok(parsed)) = parsed else { return Vec::new() };
        parsed.valid_dns_names().map(str::to_ascii_lowercase).collect()
    }
}

/// Returns whether the first private key is one that a password protects: by RFC 7468 §11, or by the header of RFC 1421
/// §4.6.1.1 that OpenSSL writes in older formats.
fn is_encrypted(pem: &[u8]) -> bool {
    let text = String::from_utf8_lossy(pem);
    let mut lines = text.lines().map(str::trim);
    let Some(begin) =
        lines.find(|line| line.starts_with("-----BEGIN ") && line.contains("PRIVATE KEY"))
    else {
        return false;
    };
    begin == "-----BEGIN ENCRYPTED PRIVATE KEY-----"
        || lines
            .next()
            .is_some_and(|line| line.starts_with("Proc-Type:") && line.ends_with("ENCRYPTED"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_key_is_called_so() {
        let made = rcgen::generate_simple_self_signed(vec!["a.org".to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0A\n\n\
                   AAAA\n-----END RSA PRIVATE KEY-----\n";
        for encrypted in [key.replace(" PRIVATE", " ENCRYPTED PRIVATE"), old.to_owned()] {
            let error = Identity::from_pem(chain.as_bytes(), encrypted.as_bytes()).unwrap_err();
            assert!(matches!(error, IdentityError::EncryptedKey), "{error}");
            assert!(error.to_string().contains("openssl pkey"), "{error}");
        }
        Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    }
}
