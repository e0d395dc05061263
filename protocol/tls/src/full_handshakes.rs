//! RFC 8446 §2.2: which handshakes were full ones. rustls does not tell it over QUIC; but each of them has a certificate, which the
//! server signs for and the client verifies, and one that resumes a session has none.

use std::cell::Cell;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::sign::{Signer, SigningKey};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, SignatureAlgorithm, SignatureScheme,
};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// How many full handshakes this thread has taken part in: it has verified or signed for a certificate in each.
#[must_use]
pub fn full_handshakes_count() -> u64 {
    COUNT.get()
}

fn count() {
    COUNT.set(COUNT.get() + 1);
}

/// Counts whom it verifies.
#[derive(Debug)]
pub(crate) struct CountedVerifier(pub(crate) Arc<dyn ServerCertVerifier>);

impl ServerCertVerifier for CountedVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        issuers: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        count();
        self.0.verify_server_cert(certificate, issuers, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.0.root_hint_subjects()
    }
}

/// A key that counts what it signs.
#[derive(Debug)]
pub(crate) struct CountedKey(pub(crate) Arc<dyn SigningKey>);

impl SigningKey for CountedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.0.choose_scheme(offered)?;
        Some(Box::new(CountedSigner(signer)))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.0.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

#[derive(Debug)]
struct CountedSigner(Box<dyn Signer>);

impl Signer for CountedSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        count();
        self.0.sign(message)
    }

    fn scheme(&self) -> SignatureScheme {
        self.0.scheme()
    }
}
