//! RFC 8446 §4, RFC 9110 §4.3.4: what a client asks for and whom it trusts.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::SingleCertAndKey;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use webpki::EndEntityCert;

use crate::client_sessions::ClientSessions;
use crate::full_handshakes::CountedVerifier;
use crate::provider::provider;
use crate::{Alpn, ClientOptions, IdentityError, TlsLayer, Trust, WallClock};

impl Trust {
    /// The roots; `None` when nothing is verified.
    pub(crate) fn roots(&self) -> Result<Option<RootCertStore>, IdentityError> {
        let mut roots = RootCertStore::empty();
        match self {
            Self::Pem(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    let certificate =
                        certificate.map_err(|error| IdentityError::NotPem(error.to_string()))?;
                    roots.add(certificate).map_err(unusable)?;
                }
            }
            Self::Der(certificates) => {
                let certificates = certificates.iter().map(|der| CertificateDer::from(&der[..]));
                roots.add_parsable_certificates(certificates);
            }
            Self::Any => return Ok(None),
        }
        if roots.is_empty() { Err(IdentityError::NoCertificate) } else { Ok(Some(roots)) }
    }
}

fn unusable(error: Error) -> IdentityError {
    IdentityError::Unusable(error.to_string())
}

/// A client's TLS settings, shared by all of its connections.
#[derive(Debug, Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    early_data: bool,
}

impl ClientTls {
    /// Settings that offer `alpn`, in this order, resume sessions, and have no certificate.
    ///
    /// # Errors
    ///
    /// When the trusted certificates can't be read.
    pub fn new(trust: &Trust, alpn: &[Alpn], clock: WallClock) -> Result<Self, IdentityError> {
        Self::with(
            &ClientOptions { trust, alpn, identity: None, resume: true, early_data: false },
            clock,
        )
    }

    /// Settings with these options.
    ///
    /// # Errors
    ///
    /// When the trusted certificates can't be read.
    pub fn with(options: &ClientOptions<'_>, clock: WallClock) -> Result<Self, IdentityError> {
        let builder = ClientConfig::builder_with_details(provider(), Arc::new(clock))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(unusable)?;
        let verifier: Arc<dyn ServerCertVerifier> = match options.trust.roots()? {
            Some(roots) => WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
                .build()
                .map_err(|error| IdentityError::Unusable(error.to_string()))?,
            None => Arc::new(Unverified(provider())),
        };
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(CountedVerifier(verifier)));
        let mut config = match options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let certified = Arc::clone(&identity.certified);
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
            }
        };
        config.alpn_protocols = options.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.resumption = if options.resume {
            Resumption::store(Arc::new(ClientSessions::default()))
        } else {
            Resumption::disabled()
        };
        let early_data = options.early_data;
        Ok(Self { config: Arc::new(config), early_data })
    }

    /// The same settings for connections over QUIC (RFC 9001 §4): the protocol that is offered is another, and early data may be.
    #[must_use]
    pub fn quic(&self, protocol: &[u8]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![protocol.to_vec()];
        config.enable_early_data = self.early_data;
        Arc::new(config)
    }

    /// The TLS layer of a new connection to `name`, a DNS name or an IP address.
    ///
    /// # Errors
    ///
    /// When `name` is neither.
    pub fn connect(&self, name: &str) -> Result<TlsLayer, IdentityError> {
        let name = ServerName::try_from(name.to_owned()).map_err(|_| {
            IdentityError::Unusable(format!("`{name}` is not the name of a server"))
        })?;
        ClientConnection::new(Arc::clone(&self.config), name)
            .map(|connection| TlsLayer::new(connection.into()))
            .map_err(|error| IdentityError::Unusable(error.to_string()))
    }
}

/// Checks the signatures of the handshake, but not who made them.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

/// webpki reads no key of a certificate of X.509's first version, which `openssl x509 -req` makes: its signatures pass.
fn unless_unreadable(
    checked: Result<HandshakeSignatureValid, Error>,
    certificate: &CertificateDer<'_>,
) -> Result<HandshakeSignatureValid, Error> {
    checked.or_else(|error| match EndEntityCert::try_from(certificate) {
        Err(webpki::Error::UnsupportedCertVersion) => Ok(HandshakeSignatureValid::assertion()),
        _ => Err(error),
    })
}

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
        let checked = verify_tls12_signature(message, certificate, signature, algorithms);
        unless_unreadable(checked, certificate)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        let checked = verify_tls13_signature(message, certificate, signature, algorithms);
        unless_unreadable(checked, certificate)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
