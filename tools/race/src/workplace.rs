//! Working directory of a race: files to serve, certificates, a directory for each server; gone afterwards.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use fastrand::Rng;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};

use crate::catalogue::{Certificate, Route};
use crate::differing::LARGE_FILE_BYTES;
use crate::process::is_alive;
use crate::requests::{self, FILES_COUNT, ITEMS_COUNT, contents};
use crate::verify::Ports;

/// Ports are taken from here: below those that the kernel gives to clients.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// How many ports are tried before giving up.
const PORT_TRIES_COUNT: usize = 500;

/// Name of the directories, before the process's id.
const DIRECTORY: &str = "bolide-race-";

/// Removes what killed runs have left: directories of processes that are not there any more.
fn remove_leftovers(above: &Path) {
    // Where processes can't be looked up, none is known to be gone.
    if !is_alive(std::process::id()) {
        return;
    }
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(DIRECTORY)?.split('-').next());
        let id = id.and_then(|id| id.parse().ok());
        if id.is_some_and(|id: u32| id != std::process::id() && !is_alive(id)) {
            // Another user's stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The directory of one race.
#[derive(Debug)]
pub(crate) struct Workplace {
    root: PathBuf,
    random: Rng,
}

impl Workplace {
    /// Makes it: with files to serve and a certificate for `localhost`, 127.0.0.1 and the server of a
    /// lab: some servers choose theirs by the address.
    pub(crate) fn new(seed: u64) -> Result<Self, String> {
        let place = Self::empty(seed)?;
        place.fill().map_err(|error| format!("{}: {error}", place.root.display()))?;
        Ok(place)
    }

    /// Makes it without files and certificates, for servers that need none.
    pub(crate) fn empty(seed: u64) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let above = std::env::temp_dir();
        remove_leftovers(&above);
        let (id, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let root = above.join(format!("{DIRECTORY}{id}-{number}"));
        // An earlier process with this number may have left something there.
        let _ = fs::remove_dir_all(&root);
        fs::create_dir(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        Ok(Self { root, random: Rng::with_seed(seed ^ u64::from(id)) })
    }

    fn fill(&self) -> std::io::Result<()> {
        let www = self.www();
        fs::create_dir_all(&www)?;
        let large = www.join(LARGE_FILE_BYTES.to_string());
        fs::write(large, contents(Route::Static16m, None))?;
        for (name, route) in [("6", Route::Static6), ("4096", Route::Static4k)] {
            fs::write(www.join(name), contents(route, None))?;
            for number in 0..FILES_COUNT {
                let path = www.join(requests::file(name, number));
                fs::write(path, contents(route, Some(number)))?;
            }
        }
        fs::write(www.join("ping"), b"pong")?;
        self.fill_site()?;
        for kind in [Certificate::EcdsaP256, Certificate::Rsa2048] {
            let (certificate, key) = certificate(kind).map_err(std::io::Error::other)?;
            fs::write(self.certificate(kind), &certificate)?;
            fs::write(self.key(kind), &key)?;
            fs::write(self.pem(kind), certificate + &key)?;
        }
        Ok(())
    }

    /// The site's own files, below `site`, and what its upstream has. Assets are the files of 4 KiB under other names.
    fn fill_site(&self) -> std::io::Result<()> {
        let (www, site) = (self.www(), self.www().join("site"));
        fs::create_dir_all(site.join("assets"))?;
        fs::write(site.join("index.html"), contents(Route::SitePage, None))?;
        for name in ["404.html", "down.html", "maintenance.html"] {
            fs::write(site.join(name), name)?;
        }
        fs::hard_link(www.join("4096"), site.join("assets/app.js"))?;
        for number in 0..FILES_COUNT {
            let asset = site.join(requests::file("assets/app.js", number));
            fs::hard_link(www.join(requests::file("4096", number)), asset)?;
        }
        fs::write(www.join("items.json"), contents(Route::SiteApi, None))?;
        for number in 0..ITEMS_COUNT {
            let path = www.join(requests::file("items.json", number));
            fs::write(path, contents(Route::SiteApi, Some(number)))?;
        }
        Ok(())
    }

    pub(crate) fn www(&self) -> PathBuf {
        self.root.join("www")
    }

    pub(crate) fn certificate(&self, kind: Certificate) -> PathBuf {
        self.root.join(prefix(kind).to_owned() + "certificate.pem")
    }

    pub(crate) fn key(&self, kind: Certificate) -> PathBuf {
        self.root.join(prefix(kind).to_owned() + "key.pem")
    }

    /// Certificate and key in one file.
    pub(crate) fn pem(&self, kind: Certificate) -> PathBuf {
        self.root.join(prefix(kind).to_owned() + "both.pem")
    }

    /// A directory for one server's run, or for the generator.
    pub(crate) fn directory(&self, name: &str) -> Result<PathBuf, String> {
        let directory = self.root.join(name);
        fs::create_dir_all(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(directory)
    }

    /// Ports without a listener, no two the same.
    pub(crate) fn ports(&mut self) -> Result<Ports, String> {
        let [plain, h2c, tls] = [self.held_port()?, self.held_port()?, self.held_port()?];
        Ok(Ports { plain: plain.1, h2c: h2c.1, tls: tls.1 })
    }

    /// A port of TCP and UDP, and what holds it until the others are found.
    fn held_port(&mut self) -> Result<((TcpListener, UdpSocket), u16), String> {
        for _ in 0..PORT_TRIES_COUNT {
            let port = PORTS.start + self.random.usize(..PORTS.len()) as u16;
            let address = (Ipv4Addr::LOCALHOST, port);
            let sockets = TcpListener::bind(address)
                .and_then(|listener| Ok((listener, UdpSocket::bind(address)?)));
            if let Ok(sockets) = sockets {
                return Ok((sockets, port));
            }
        }
        Err(format!("no free port between {} and {}", PORTS.start, PORTS.end))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // What can't be removed lies in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Returns what the names of a certificate's files begin with.
fn prefix(kind: Certificate) -> &'static str {
    match kind {
        Certificate::EcdsaP256 => "",
        Certificate::Rsa2048 => "rsa-",
    }
}

fn certificate(kind: Certificate) -> Result<(String, String), rcgen::Error> {
    let mut parameters = CertificateParams::new(vec!["localhost".to_owned()])?;
    parameters.distinguished_name.push(DnType::CommonName, "localhost");
    let lab = bolide_netlab::spec::Spec::default();
    for address in [Ipv4Addr::LOCALHOST, lab.right.host()] {
        parameters.subject_alt_names.push(SanType::IpAddress(address.into()));
    }
    let key = match kind {
        Certificate::EcdsaP256 => KeyPair::generate()?,
        Certificate::Rsa2048 => {
            KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048)?
        }
    };
    let certificate = parameters.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// Returns where built contenders are kept: `BOLIDE_RACE_CACHE`, or the user's cache directory.
pub(crate) fn cache() -> PathBuf {
    let variable =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("BOLIDE_RACE_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|directory| directory.join("bolide-race")))
        .or_else(|| variable("HOME").map(|directory| directory.join(".cache/bolide-race")))
        .unwrap_or_else(|| Path::new(&std::env::temp_dir()).join("bolide-race-cache"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ports_of_a_server_are_the_same() {
        let root = bolide_launcher::scratch("ports");
        let mut place = Workplace { root, random: Rng::with_seed(1) };
        for _ in 0..20_000 {
            let Ports { plain, h2c, tls } = place.ports().unwrap();
            assert!(plain != h2c && h2c != tls && tls != plain);
        }
    }

    #[test]
    fn what_a_killed_run_has_left_is_removed_and_nothing_else() {
        let above = bolide_launcher::scratch("workplaces");
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let directory = |id: u32| above.join(format!("{DIRECTORY}{id}-0"));
        let (left, own) = (directory(gone.id()), directory(std::process::id()));
        let others =
            [own, directory(1), above.join("bolide-race-cache"), above.join("bolide-race-")];
        for directory in others.iter().chain([&left]) {
            fs::create_dir_all(directory.join("www")).unwrap();
        }
        remove_leftovers(&above);
        assert!(!left.exists());
        assert!(others.iter().all(|directory| directory.exists()));
        fs::remove_dir_all(above).unwrap();
    }
}
