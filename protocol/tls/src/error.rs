//! Errors of a certificate, a key or a peer.

use thiserror::Error;

/// Why a certificate and its key can't be used.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// No `CERTIFICATE` block.
    #[error(
        "there is no certificate in it (a PEM block that begins with -----BEGIN CERTIFICATE-----)"
    )]
    NoCertificate,
    /// No private key block.
    #[error("there is no private key in it (a PEM block such as -----BEGIN PRIVATE KEY-----)")]
    NoKey,
    /// A private key that a password protects.
    #[error(
        "the private key is encrypted: decrypt it into a file that only the server reads \
         (openssl pkey -in KEY -out DECRYPTED)"
    )]
    EncryptedKey,
    /// Broken PEM.
    #[error("it is not PEM: {0}")]
    NotPem(String),
    /// The key belongs to another certificate.
    #[error("the key does not belong to the certificate")]
    Mismatch,
    /// A certificate of X.509's first version.
    #[error(
        "it is a certificate of X.509's first version, which nothing trusts: make one of the third \
         (openssl req -x509, or openssl x509 -req with -extfile)"
    )]
    FirstVersion,
    /// Anything else that rustls refuses.
    #[error("{0}")]
    Unusable(String),
}

/// The handshake or a record failed: the connection is over. An alert for the peer is queued.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct TlsFailure {
    /// Description of the error.
    pub what: String,
    /// A short fixed name of it, for counters: `alert`, `incompatible`, `certificate`, `no-certificate`
    /// ([`TlsFailure::NO_CERTIFICATE`]), `not-tls`, `misbehaved` or `other`.
    pub kind: &'static str,
    /// True if it happened before the handshake was complete.
    pub in_handshake: bool,
}

impl TlsFailure {
    /// The kind of a handshake for which the server has no certificate.
    pub const NO_CERTIFICATE: &'static str = "no-certificate";
}
