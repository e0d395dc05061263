//! The certificates of the HTTPS listeners: from files, or made for this run.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use bolide::{Clients, Error, Identity, Tls};
use rcgen::{CertificateParams, DnType, KeyPair, SanType};

use crate::configuration::{Place, TlsFiles};

/// What one or several HTTPS listeners show and ask for.
#[derive(Debug, Clone)]
pub(crate) struct Material {
    identities: Vec<Identity>,
    clients: Clients,
    pub(crate) self_signed: bool,
}

impl Material {
    /// Reads what `files` names. Where they name no certificate, that of `before` is kept, or one is made for
    /// `addresses`. `place`: where a file asks for them.
    pub(crate) fn load(
        files: &TlsFiles,
        place: Option<&Place>,
        addresses: &[SocketAddr],
        before: Option<&Self>,
    ) -> Result<Self, String> {
        let at = |what: String| match place {
            Some(place) => place.mistake(what),
            None => format!("--{what}"),
        };
        let mut identities = Vec::new();
        for (cert, key) in &files.pairs {
            identities.push(from_files(cert, key).map_err(at)?);
        }
        let self_signed = identities.is_empty();
        match before.filter(|before| before.self_signed) {
            Some(before) if self_signed => identities.clone_from(&before.identities),
            _ if self_signed => identities.push(make(addresses)?),
            _ => {}
        }
        let clients = match &files.client_ca {
            None => Clients::Anybody,
            Some(path) => {
                let pem = read("client-ca", path).map_err(at)?;
                Identity::check_chain(&pem)
                    .map_err(|error| at(format!("client-ca {}: {error}", path.display())))?;
                if files.client_required { Clients::Required(pem) } else { Clients::Optional(pem) }
            }
        };
        Ok(Self { identities, clients, self_signed })
    }

    /// Settings of a server with them.
    pub(crate) fn tls(&self) -> Result<Tls, Error> {
        Tls::with(&self.identities, self.clients.clone())
    }

    /// Gives them to listeners that are open.
    pub(crate) fn replace(&self, tls: &Tls) -> Result<(), Error> {
        tls.replace(&self.identities, self.clients.clone())
    }

    /// SHA-256 of the DER form of each certificate, in hexadecimal, and the names that it is for.
    pub(crate) fn fingerprints(&self) -> impl Iterator<Item = (String, Vec<String>)> {
        self.identities.iter().map(|identity| (fingerprint(identity), identity.dns_names()))
    }
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{option} {}: can't be read: {error}", path.display()))
}

/// Reads a certificate chain and its key. What is wrong begins with the option's name.
fn from_files(chain: &Path, key: &Path) -> Result<Identity, String> {
    let chain_pem = read("cert", chain)?;
    let key_pem = read("key", key)?;
    Identity::check_chain(&chain_pem)
        .map_err(|error| format!("cert {}: {error}", chain.display()))?;
    Identity::from_pem(&chain_pem, &key_pem)
        .map_err(|error| format!("key {} with cert {}: {error}", key.display(), chain.display()))
}

/// Makes a certificate for this run: ECDSA P-256, for `localhost` and the addresses listened on.
fn make(addresses: &[SocketAddr]) -> Result<Identity, String> {
    let failed = |error: &dyn std::fmt::Display| format!("can't create a certificate: {error}");
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
    Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes())
        .map_err(|error| failed(&error))
}

fn fingerprint(identity: &Identity) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, identity.certificate_der());
    let pairs: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}
