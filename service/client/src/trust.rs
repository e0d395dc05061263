//! RFC 9110 §4.3.4: whom the operating system trusts.

use bolide_connection::Trust;
use thiserror::Error;

/// The system's store of certificates holds none that can be used.
#[derive(Debug, Error)]
#[error("the system has no trusted certificates{}: use a file of CA certificates", .0.as_ref().map(|why| format!(" ({why})")).unwrap_or_default())]
pub struct TrustError(Option<String>);

/// The certificates that the operating system trusts, or those that the environment's `SSL_CERT_FILE`
/// and `SSL_CERT_DIR` name. Reads files, so not on a worker's thread.
///
/// # Errors
///
/// When there is none.
pub fn platform_trust() -> Result<Trust, TrustError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(TrustError(found.errors.first().map(ToString::to_string)));
    }
    Ok(Trust::Der(found.certs.iter().map(|certificate| certificate.to_vec()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_store_is_said_in_one_sentence() {
        let error = TrustError(Some("no such directory".to_owned())).to_string();
        assert!(error.starts_with("the system has no trusted certificates (no such directory):"));
        assert!(TrustError(None).to_string().contains("certificates: use a file"));
    }
}
