//! RFC 8446 §4, RFC 9110 §4.3.4: what a client asks for and whom it trusts.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::provider::{WallClock, provider};
use crate::{Alpn, IdentityError, TlsLayer};

/// Whom a client trusts.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The certificates in this PEM text, and those that they signed.
    Pem(Vec<u8>),
    /// Anybody: for tests and measurements on one's own machine.
    Anybody,
}

/// A client's TLS settings, shared by all of its connections.
#[derive(Debug, Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
}

impl ClientTls {
    /// Settings that offer `alpn`, in this order.
    ///
    /// # Errors
    ///
    /// When the trusted certificates can't be read.
    pub fn new(trust: &Trust, alpn: &[Alpn], clock: WallClock) -> Result<Self, IdentityError> {
        let unusable = |error: Error| IdentityError::Unusable(error.to_string());
        let builder = ClientConfig::builder_with_details(provider(), Arc::new(clock))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(unusable)?;
        let mut config = match trust {
            Trust::Pem(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    let certificate =
                        certificate.map_err(|error| IdentityError::NotPem(error.to_string()))?;
                    roots.add(certificate).map_err(unusable)?;
                }
                if roots.is_empty() {
                    return Err(IdentityError::NoCertificate);
                }
                builder.with_root_certificates(roots).with_no_client_auth()
            }
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified(provider())))
                .with_no_client_auth(),
        };
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(Self { config: Arc::new(config) })
    }

    /// The TLS layer of a new connection to `name`, a DNS name or an IP address.
    ///
    /// # Errors
    ///
    /// When `name` is neither.
    pub fn connect(&self, name: &str) -> Result<TlsLayer, IdentityError> {
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| IdentityError::Unusable(format!("`{name}` is no name of a server")))?;
        ClientConnection::new(Arc::clone(&self.config), name)
            .map(|connection| TlsLayer::new(connection.into()))
            .map_err(|error| IdentityError::Unusable(error.to_string()))
    }
}

/// Checks the signatures of the handshake, but not who made them.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
