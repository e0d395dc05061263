//! What can be wrong with a certificate, a key or a peer.

use rustls::InvalidMessage;
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
    /// Anything else that rustls refuses.
    #[error("{0}")]
    Unusable(String),
}

/// The handshake or a record failed: the connection is over. An alert for the peer is queued.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct TlsFailure {
    /// What happened.
    pub what: String,
    /// A short fixed name of it, for counters: `alert`, `incompatible`, `certificate`, `no-certificate`
    /// ([`TlsFailure::NO_CERTIFICATE`]), `not-tls`, `misbehaved` or `other`.
    pub kind: &'static str,
    /// Whether it happened before the handshake was complete.
    pub in_handshake: bool,
}

impl TlsFailure {
    /// The kind of a handshake for which the server has no certificate.
    pub const NO_CERTIFICATE: &'static str = "no-certificate";
}

/// Whether rustls has found no certificate to send: it has no variant for that.
fn is_without_certificate(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::General(what) if what == "no server certificate chain resolved")
}

/// The name under which an error is counted.
pub(crate) fn kind_of(error: &rustls::Error) -> &'static str {
    use rustls::Error;
    match error {
        Error::AlertReceived(_) => "alert",
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => "incompatible",
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => "certificate",
        Error::InvalidMessage(_) => "not-tls",
        Error::PeerMisbehaved(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::DecryptError
        | Error::PeerSentOversizedRecord => "misbehaved",
        _ if is_without_certificate(error) => TlsFailure::NO_CERTIFICATE,
        _ => "other",
    }
}

/// What is said of an error. `server_name`: what the client has requested.
pub(crate) fn text_of(error: &rustls::Error, server_name: Option<&str>) -> String {
    match error {
        _ if is_without_certificate(error) => match server_name {
            Some(name) => {
                format!("there is no certificate for `{name}`, which the client requested")
            }
            None => "there is no certificate, and the client requested no name".to_owned(),
        },
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the peer sent no TLS: it may speak cleartext HTTP on this port".to_owned()
        }
        _ => error.to_string(),
    }
}
