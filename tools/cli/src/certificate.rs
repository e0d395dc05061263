//! The certificate of the HTTPS listeners: from files, or made for this run.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use bolide::Identity;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};

/// A certificate and how to recognise it.
pub(crate) struct Certificate {
    pub(crate) identity: Identity,
    /// SHA-256 of the DER form, in hexadecimal.
    pub(crate) fingerprint: String,
    pub(crate) self_signed: bool,
}

/// Reads a certificate chain and its key.
pub(crate) fn from_files(chain: &Path, key: &Path) -> Result<Certificate, String> {
    let read = |option: &str, path: &Path| {
        fs::read(path)
            .map_err(|error| format!("{option} {}: can't be read: {error}", path.display()))
    };
    let chain_pem = read("--cert", chain)?;
    let key_pem = read("--key", key)?;
    Identity::check_chain(&chain_pem)
        .map_err(|error| format!("--cert {}: {error}", chain.display()))?;
    let identity = Identity::from_pem(&chain_pem, &key_pem).map_err(|error| {
        format!("--key {} with --cert {}: {error}", key.display(), chain.display())
    })?;
    Ok(describe(identity, false))
}

/// Makes a certificate for this run: ECDSA P-256, for `localhost` and the addresses listened on.
pub(crate) fn self_signed(addresses: &[SocketAddr]) -> Result<Certificate, String> {
    let failed = |error: &dyn std::fmt::Display| format!("no certificate can be made: {error}");
    let mut parameters =
        CertificateParams::new(vec!["localhost".to_owned()]).map_err(|error| failed(&error))?;
    parameters.distinguished_name.push(DnType::CommonName, "Bolide, self-signed");
    let loopback = ["127.0.0.1", "::1"].iter().filter_map(|text| text.parse::<IpAddr>().ok());
    let listened = addresses.iter().map(SocketAddr::ip).filter(|ip| !ip.is_unspecified());
    let mut names: Vec<IpAddr> = loopback.chain(listened).collect();
    names.sort_unstable();
    names.dedup();
    parameters.subject_alt_names.extend(names.into_iter().map(SanType::IpAddress));
    let key = KeyPair::generate().map_err(|error| failed(&error))?;
    let certificate = parameters.self_signed(&key).map_err(|error| failed(&error))?;
    let identity = Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes())
        .map_err(|error| failed(&error))?;
    Ok(describe(identity, true))
}

fn describe(identity: Identity, self_signed: bool) -> Certificate {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, identity.certificate_der());
    let pairs: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    Certificate { identity, fingerprint: pairs.join(":"), self_signed }
}
