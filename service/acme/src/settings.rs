//! RFC 8555 §7.1.1: which CA issues which certificates, and where they are stored.

use std::path::PathBuf;

use bolide_client::Trust;

use crate::limits::AcmeLimits;

/// How a name is validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Challenge {
    /// A TLS connection to port 443 (RFC 8737).
    #[default]
    TlsAlpn01,
    /// A request over cleartext to port 80 (RFC 8555 §8.3).
    Http01,
}

/// Settings for ordering certificates.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The URL of the CA's directory.
    pub directory: String,
    /// Contacts of the account for the CA: URLs, such as `mailto:admin@example.org`.
    pub contact: Vec<String>,
    /// The directory of account, keys and certificates. It is made if it is not there.
    pub storage: PathBuf,
    /// How names are validated.
    pub challenge: Challenge,
    /// Roots that are trusted for the CA's own servers. `None`: those that the operating system trusts.
    pub trust: Option<Trust>,
    /// The names, in lower case; each has a certificate of its own.
    pub names: Vec<String>,
    /// The limits.
    pub limits: AcmeLimits,
}

impl Challenge {
    /// Its name by RFC 8555 §9.7.8.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Http01 => "http-01",
        }
    }
}
