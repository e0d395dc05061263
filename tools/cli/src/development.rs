//! Certificates for development: issued by a CA of this user, which is kept between starts, so that it is trusted once.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bolide::tls::Identity;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

const DAY: Duration = Duration::from_secs(86_400);

/// How long the CA's certificate is valid.
const CA_TIME: Duration = DAY.saturating_mul(3650);

/// How long a certificate is valid that the CA issues: no longer than browsers take.
const CERTIFICATE_TIME: Duration = DAY.saturating_mul(397);

const CERTIFICATE: &str = "development-ca.pem";
const KEY: &str = "development-ca.key";

/// Maker of a certificate for development.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Made {
    /// No authority has signed it.
    SelfSigned,
    /// The CA whose certificate is in this file.
    By(PathBuf),
}

/// Makes a certificate for `localhost` and the addresses listened on, by the CA in the user's data directory. Where there can be none, it is
/// self-signed, and one sentence says why.
pub(crate) fn certificate(addresses: &[SocketAddr]) -> Result<(Identity, Made), String> {
    let by_ca = data_directory().and_then(|directory| {
        let authority = Authority::open(&directory)?;
        Ok((authority.issue(addresses).map_err(failed)?, Made::By(directory.join(CERTIFICATE))))
    });
    by_ca.or_else(|what| {
        eprintln!(
            "bolide: no CA for development, the certificate is self-signed for this run: {what}"
        );
        self_signed(addresses)
    })
}

/// A certificate that leaves nothing behind.
pub(crate) fn self_signed(addresses: &[SocketAddr]) -> Result<(Identity, Made), String> {
    let made = || {
        let key = KeyPair::generate()?;
        let certificate = parameters(addresses, "Bolide, self-signed")?.self_signed(&key)?;
        Ok::<_, rcgen::Error>((certificate.pem(), key.serialize_pem()))
    };
    let (chain, key) = made().map_err(failed)?;
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).map_err(failed)?;
    Ok((identity, Made::SelfSigned))
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("can't create a certificate: {error}")
}

/// The command that makes this machine trust the CA, where one is known.
pub(crate) fn trust_command(ca: &Path) -> Option<String> {
    let file = quoted(ca);
    if cfg!(target_os = "macos") {
        return Some(format!("security add-trusted-cert {file}"));
    }
    let anchors = [
        ("/usr/local/share/ca-certificates", "bolide-development.crt", "update-ca-certificates"),
        ("/etc/pki/ca-trust/source/anchors", "bolide-development.pem", "update-ca-trust"),
    ];
    let (directory, name, update) = anchors.iter().find(|(path, ..)| Path::new(path).is_dir())?;
    Some(format!("sudo cp {file} {directory}/{name} && sudo {update}"))
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if text.bytes().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Returns where this user's programs keep their data (XDG base directories).
fn data_directory() -> Result<PathBuf, String> {
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    let data = data.ok_or("neither XDG_DATA_HOME nor HOME names a directory")?;
    Ok(data.join("bolide"))
}

/// ECDSA P-256, for `localhost` and the addresses.
fn parameters(addresses: &[SocketAddr], name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(vec!["localhost".to_owned()])?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    let loopback = ["127.0.0.1", "::1"].iter().filter_map(|text| text.parse::<IpAddr>().ok());
    let listened = addresses.iter().map(SocketAddr::ip).filter(|ip| !ip.is_unspecified());
    let mut names: Vec<IpAddr> = loopback.chain(listened).collect();
    names.sort_unstable();
    names.dedup();
    parameters.subject_alt_names.extend(names.into_iter().map(SanType::IpAddress));
    Ok(parameters)
}

/// The CA.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The end of its validity.
    expiry: SystemTime,
}

impl Authority {
    /// Reads the CA of this directory, or makes one. A CA that a certificate would outlive is replaced.
    fn open(directory: &Path) -> Result<Self, String> {
        let said = |error: io::Error| format!("{}: {error}", directory.display());
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(said)?;
        // Of two processes that start together, the second finds the CA of the first.
        let lock = options(0o600).open(directory.join("development-ca.lock")).map_err(said)?;
        lock.lock().map_err(said)?;
        if let Some(authority) = Self::read(directory) {
            return Ok(authority);
        }
        let key = KeyPair::generate().map_err(failed)?;
        let parameters = authority_parameters(&key);
        let certificate = parameters.self_signed(&key).map_err(failed)?;
        write(&directory.join(KEY), key.serialize_pem().as_bytes(), 0o600).map_err(said)?;
        write(&directory.join(CERTIFICATE), certificate.pem().as_bytes(), 0o644).map_err(said)?;
        Self::read(directory).ok_or_else(|| failed("the new CA can't be read"))
    }

    /// The CA of this directory, if it can be used.
    fn read(directory: &Path) -> Option<Self> {
        let pem = fs::read(directory.join(CERTIFICATE)).ok()?;
        let key = fs::read_to_string(directory.join(KEY)).ok()?;
        // They belong together.
        let facts = Identity::from_pem(&pem, key.as_bytes()).ok()?.renewal_facts()?;
        let expiry = facts.not_after;
        if expiry < SystemTime::now() + CERTIFICATE_TIME {
            return None;
        }
        let key = KeyPair::from_pem(&key).ok()?;
        Some(Self { issuer: Issuer::new(authority_parameters(&key), key), expiry })
    }

    fn issue(&self, addresses: &[SocketAddr]) -> Result<Identity, Box<dyn std::error::Error>> {
        let mut parameters = parameters(addresses, "localhost")?;
        let now = SystemTime::now();
        parameters.not_before = (now - DAY).into();
        parameters.not_after = (now + CERTIFICATE_TIME).min(self.expiry).into();
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?;
        Ok(Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes())?)
    }
}

/// The CA with this key. Its name is the same each time, and another than that of other users' CAs.
fn authority_parameters(key: &KeyPair) -> CertificateParams {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, key.public_key_raw());
    let tag: String = digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, format!("Bolide development CA {tag}"));
    // It issues certificates of servers, and no further CA.
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = SystemTime::now();
    parameters.not_before = (now - DAY).into();
    parameters.not_after = (now + CA_TIME).into();
    parameters
}

fn options(mode: u32) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(mode);
    options
}

/// Replaces a file whole.
fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let new = path.with_extension("new");
    // One that is left from before may have another mode.
    drop(fs::remove_file(&new));
    let mut file: File = options(mode).create_new(true).open(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path =
            env::temp_dir().join(format!("bolide-development-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        path
    }

    #[test]
    fn the_ca_is_kept_for_its_user_alone_and_issues_new_certificates() {
        let directory = scratch("kept").join("bolide");
        let addresses = ["192.0.2.7:443".parse().unwrap()];
        let first = Authority::open(&directory).unwrap().issue(&addresses).unwrap();
        let ca = fs::read(directory.join(CERTIFICATE)).unwrap();
        let second = Authority::open(&directory).unwrap().issue(&addresses).unwrap();
        assert_eq!(fs::read(directory.join(CERTIFICATE)).unwrap(), ca);
        assert_ne!(first.certificate_der(), second.certificate_der());
        assert_eq!(first.dns_names(), ["localhost"]);
        assert!(first.certificate_der().windows(4).any(|bytes| bytes == [192, 0, 2, 7]));
        let mode =
            |name: &str| fs::metadata(directory.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(KEY), mode(""), mode(CERTIFICATE)), (0o600, 0o700, 0o644));
        let key = fs::read(directory.join(KEY)).unwrap();
        let authority = Identity::from_pem(&ca, &key).unwrap().renewal_facts().unwrap();
        let facts = first.renewal_facts().unwrap();
        assert!(facts.authority_key.is_some() && facts.not_after < authority.not_after);
        let valid = facts.not_after.duration_since(facts.not_before).unwrap();
        assert!(valid <= DAY * 398, "as browsers have it: {valid:?}");
        // Halves that don't belong together, and garbage, are replaced.
        for (name, content) in
            [(KEY, KeyPair::generate().unwrap().serialize_pem()), (CERTIFICATE, "x".to_owned())]
        {
            let before = fs::read(directory.join(CERTIFICATE)).unwrap();
            fs::write(directory.join(name), content).unwrap();
            Authority::open(&directory).unwrap();
            assert_ne!(fs::read(directory.join(CERTIFICATE)).unwrap(), before);
        }
        fs::remove_dir_all(directory.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_directory_that_can_not_be_made_is_named() {
        let file = scratch("file");
        fs::write(&file, "no directory").unwrap();
        let said = Authority::open(&file.join("bolide")).err().unwrap();
        assert!(said.starts_with(&file.display().to_string()), "{said}");
        fs::remove_file(&file).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_command_that_trusts_the_ca_is_the_systems() {
        let command = trust_command(Path::new("/srv/a b/ca.pem"));
        let known = [
            (
                "/usr/local/share/ca-certificates",
                "bolide-development.crt && sudo update-ca-certificates",
            ),
            ("/etc/pki/ca-trust/source/anchors", "bolide-development.pem && sudo update-ca-trust"),
        ];
        let own = known.iter().find(|(directory, _)| Path::new(directory).is_dir());
        let expected =
            own.map(|(directory, rest)| format!("sudo cp '/srv/a b/ca.pem' {directory}/{rest}"));
        assert_eq!(command, expected);
    }

    #[test]
    fn a_path_is_quoted_for_a_shell() {
        assert_eq!(quoted(Path::new("/srv/a-b/.local/share/x.pem")), "/srv/a-b/.local/share/x.pem");
        assert_eq!(quoted(Path::new("/a b/c'd")), "'/a b/c'\\''d'");
    }
}
