//! RFC 8737 §3, RFC 2986: the certificates and requests that are made here.

use bolide_connection::Identity;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};

/// A request for a certificate.
pub(crate) struct SigningRequest {
    /// In DER.
    pub(crate) der: Vec<u8>,
    /// Its key, in PEM.
    pub(crate) key: String,
}

/// A new key (ECDSA P-256), and the request for a certificate of `name` with it.
pub(crate) fn request(name: &str) -> Result<SigningRequest, rcgen::Error> {
    let mut parameters = CertificateParams::new(vec![name.to_owned()])?;
    parameters.distinguished_name = DistinguishedName::new();
    let key = KeyPair::generate()?;
    let request = parameters.serialize_request(&key)?;
    Ok(SigningRequest { der: request.der().to_vec(), key: key.serialize_pem() })
}

/// The certificate of a `tls-alpn-01` challenge. `digest`: SHA-256 of the key authorization.
pub(crate) fn of_challenge(name: &str, digest: &[u8; 32]) -> Result<Identity, String> {
    let made = || {
        let mut parameters = CertificateParams::new(vec![name.to_owned()])?;
        parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate()?;
        Ok::<_, rcgen::Error>((parameters.self_signed(&key)?.der().to_vec(), key.serialize_der()))
    };
    let (certificate, key) = made().map_err(|error| error.to_string())?;
    Identity::of_challenge(certificate, key).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_has_the_digest_in_a_critical_extension() {
        let identity = of_challenge("a.org", &[7; 32]).unwrap();
        let der = identity.certificate_der();
        // id-pe-acmeIdentifier, TRUE, and a byte string in a byte string.
        let mut extension = vec![6, 8, 0x2b, 6, 1, 5, 5, 7, 1, 0x1f, 1, 1, 0xff, 4, 34, 4, 32];
        extension.extend([7; 32]);
        assert!(der.windows(extension.len()).any(|window| window == extension), "{der:x?}");
        assert!(der.windows(5).any(|window| window == b"a.org"));
    }
}
