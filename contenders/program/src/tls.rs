//! TLS: rustls on aws-lc-rs, with stateless tickets so that a session can be resumed on any worker.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::Ticketer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Makes TLS streams of sockets, with the certificate and key in these PEM files.
///
/// # Errors
///
/// A file that can't be read, or isn't PEM, or a key of another certificate.
pub fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, Box<dyn Error>> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = Ticketer::new()?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
