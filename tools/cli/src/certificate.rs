//! The certificates of the HTTPS listeners: from files, issued while the server runs, or for development.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use bolide::Error;
use bolide::tls::{Clients, HandshakeRules, Identity, Issued, IssuedNames, ServerOptions, Tls};

use crate::configuration::TlsFiles;
use crate::development::{self, Made};
use crate::place::Place;

/// Certificates and keys of one or several HTTPS listeners, and what they ask for.
#[derive(Debug, Clone)]
pub(crate) struct Material {
    identities: Vec<Identity>,
    /// Names whose certificates are issued while the server runs.
    acme: Vec<String>,
    clients: Clients,
    rules: HandshakeRules,
    /// Maker of the only certificate, if it is for development.
    pub(crate) made: Option<Made>,
}

impl Material {
    /// Reads what `files` names. Where they name no certificate, that of `before` is kept, or one is made for
    /// `addresses`. `place`: where a file asks for them; `is_trial`: nothing is left behind.
    pub(crate) fn load(
        files: &TlsFiles,
        place: Option<&Place>,
        addresses: &[SocketAddr],
        before: Option<&Self>,
        is_trial: bool,
    ) -> Result<Self, String> {
        let at = |what: String| match place {
            Some(place) => place.mistake(what),
            None => format!("--{what}"),
        };
        let mut identities = Vec::new();
        for (cert, key) in &files.pairs {
            identities.push(from_files(cert, key).map_err(at)?);
        }
        let mut made = None;
        if identities.is_empty() && files.acme.is_empty() {
            if let Some(before) = before.filter(|before| before.made.is_some()) {
                (identities, made) = (before.identities.clone(), before.made.clone());
            } else {
                let make =
                    if is_trial { development::self_signed } else { development::certificate };
                let (identity, by) = make(addresses)?;
                (identities, made) = (vec![identity], Some(by));
            }
        }
        let clients = match &files.client_ca {
            None => Clients::Any,
            Some(path) => {
                let pem = read("client-ca", path).map_err(at)?;
                Identity::check_chain(&pem)
                    .map_err(|error| at(format!("client-ca {}: {error}", path.display())))?;
                if files.client_required { Clients::Required(pem) } else { Clients::Optional(pem) }
            }
        };
        let acme = files.acme.clone();
        Ok(Self { identities, acme, clients, rules: files.rules.clone(), made })
    }

    /// Settings of a server with them. `issued`: what is issued while it runs.
    pub(crate) fn tls(&self, issued: &Issued) -> Result<Tls, Error> {
        Tls::of(&self.options(issued))
    }

    /// Gives them to listeners that are open.
    pub(crate) fn replace(&self, tls: &Tls, issued: &Issued) -> Result<(), Error> {
        tls.replace_by(&self.options(issued))
    }

    fn options(&self, issued: &Issued) -> ServerOptions<'_> {
        let names = IssuedNames { table: issued.clone(), names: self.acme.clone() };
        ServerOptions {
            identities: &self.identities,
            issued: (!self.acme.is_empty()).then_some(names),
            clients: self.clients.clone(),
            rules: self.rules.clone(),
        }
    }

    /// The names whose certificates are issued while the server runs.
    pub(crate) fn acme(&self) -> &[String] {
        &self.acme
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

fn fingerprint(identity: &Identity) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, identity.certificate_der());
    let pairs: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}
