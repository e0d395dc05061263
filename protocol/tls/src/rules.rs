//! RFC 8446 §4.1.3, RFC 7301 §3.2: what a server agrees to in handshakes.

use std::sync::Arc;

use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;
use rustls::version::{TLS12, TLS13};

use crate::provider::provider;
use crate::{Alpn, HandshakeRules, IdentityError, TlsVersion};

impl HandshakeRules {
    /// The names of all cipher suites.
    #[must_use]
    pub fn known_cipher_suites() -> Vec<String> {
        provider().cipher_suites.iter().map(|suite| name(suite.suite())).collect()
    }

    /// Checks whether they can be.
    ///
    /// # Errors
    ///
    /// A cipher suite is not known, there is none for a version, or the oldest version is newer than the newest.
    pub fn check(&self) -> Result<(), IdentityError> {
        let unusable = |what: String| Err(IdentityError::Unusable(what));
        if self.least > self.most {
            return unusable("the oldest version of TLS is newer than the newest".to_owned());
        }
        if self.alpn.contains(&Alpn::H3) {
            return unusable("h3 is spoken over QUIC alone, and needs no ALPN here".to_owned());
        }
        if self.early_data && !self.allow_quic() {
            return unusable(
                "early data needs HTTP/3, and that TLS 1.3 with its first suite".to_owned(),
            );
        }
        let known = Self::known_cipher_suites();
        if let Some(other) = self.cipher_suites.iter().find(|own| !known.contains(own)) {
            return unusable(format!(
                "`{other}` is not a cipher suite: known are {}",
                known.join(", ")
            ));
        }
        for (version, text) in [(&TLS12, "1.2"), (&TLS13, "1.3")] {
            let suites = self.provider();
            let is_of = |suite: &&rustls::SupportedCipherSuite| suite.version() == version;
            if self.versions().contains(&version)
                && !suites.cipher_suites.iter().any(|one| is_of(&one))
            {
                return unusable(format!(
                    "no cipher suite is for TLS {text}: add one, or leave that version out"
                ));
            }
        }
        Ok(())
    }

    /// Returns whether QUIC can be spoken, which begins with one of the cipher suites of TLS 1.3 (RFC 9001 §5.2).
    pub(crate) fn allow_quic(&self) -> bool {
        let first = "TLS_AES_128_GCM_SHA256";
        let has_first =
            self.cipher_suites.is_empty() || self.cipher_suites.iter().any(|own| own == first);
        self.most == TlsVersion::Tls13 && has_first
    }

    /// The versions.
    pub(crate) fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        let all = [(TlsVersion::Tls13, &TLS13), (TlsVersion::Tls12, &TLS12)];
        let is_one = |version: &TlsVersion| (self.least..=self.most).contains(version);
        all.into_iter().filter(|(version, _)| is_one(version)).map(|(_, version)| version).collect()
    }

    /// The provider with these cipher suites.
    pub(crate) fn provider(&self) -> Arc<CryptoProvider> {
        let all = provider();
        if self.cipher_suites.is_empty() {
            return all;
        }
        let mut some = CryptoProvider::clone(&all);
        some.cipher_suites.retain(|suite| self.cipher_suites.contains(&name(suite.suite())));
        Arc::new(some)
    }
}

/// The registered name of a cipher suite.
pub(crate) fn name(suite: rustls::CipherSuite) -> String {
    suite.as_str().unwrap_or("unknown").replacen("TLS13_", "TLS_", 1)
}
