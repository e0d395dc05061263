//! `[[listen]]`: where connections are accepted, and with which certificates.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bolide::server::ProxyProtocol;
use bolide::tls::HandshakeRules;
use bolide_probe::nearest::nearest;

use super::choice::choice;
use super::document::Section;
use super::handshake;
use crate::place::Place;

/// The longest name, and the longest part of one (RFC 1035 §2.3.4), in bytes.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// One listener.
#[derive(Debug, Clone)]
pub(crate) struct Listen {
    /// An address and a port, or `unix:/path`.
    pub(crate) address: String,
    /// None: cleartext.
    pub(crate) tls: Option<TlsFiles>,
    /// PROXY headers at the start of its connections.
    pub(crate) proxy_protocol: ProxyProtocol,
    /// Place in a file.
    pub(crate) place: Option<Place>,
}

/// Files of TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// Certificate chains, each with its key; none, and no names: a certificate for development.
    pub(crate) pairs: Vec<(PathBuf, PathBuf)>,
    /// The names whose certificates a CA issues while the server runs.
    pub(crate) acme: Vec<String>,
    /// CA whose certificates clients may show.
    pub(crate) client_ca: Option<PathBuf>,
    /// True if they have to.
    pub(crate) client_required: bool,
    /// Rules for handshakes.
    pub(crate) rules: HandshakeRules,
}

/// Duty of clients to show a certificate, where they are asked for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ClientCertificate {
    /// Clients without a certificate are accepted.
    Optional,
    /// Clients without a certificate are refused.
    Required,
}

impl TlsFiles {
    /// Pairs certificates with keys.
    pub(crate) fn pair(
        certs: Vec<PathBuf>,
        keys: Vec<PathBuf>,
    ) -> Result<Vec<(PathBuf, PathBuf)>, String> {
        if certs.len() != keys.len() {
            let (certs, keys) = (certs.len(), keys.len());
            return Err(format!("{certs} certificates and {keys} keys: give them in pairs"));
        }
        Ok(certs.into_iter().zip(keys).collect())
    }

    /// Every file.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let pairs = self.pairs.iter().flat_map(|(cert, key)| [cert, key]);
        pairs.chain(&self.client_ca)
    }
}

/// The address to listen on: `8080` and `localhost:8080` are ports of the loopback address, `:8080` is one of all
/// addresses.
pub(crate) fn check_address(given: &str) -> Result<String, String> {
    let is_path = given.strip_prefix("unix:").is_some_and(|path| !path.is_empty());
    if is_path || given.parse::<SocketAddr>().is_ok() {
        return Ok(given.to_owned());
    }
    let (host, port) = given.rsplit_once(':').unwrap_or(("localhost", given));
    let address = match host {
        "localhost" => "127.0.0.1",
        "" | "*" => "0.0.0.0",
        _ => "",
    };
    if address.is_empty()
        || !port.bytes().all(|byte| byte.is_ascii_digit())
        || port.parse::<u16>().is_err()
    {
        return Err("give an IP address and a port, such as 127.0.0.1:8080, a port, or unix:/path"
            .to_owned());
    }
    Ok(format!("{address}:{port}"))
}

/// Reads a `[[listen]]`.
pub(super) fn read(mut section: Section<'_>) -> Result<Listen, String> {
    let place = section.place();
    let http = section.placed::<String>("http")?;
    let https = section.placed::<String>("https")?;
    let is_tls = https.is_some();
    let (address, at) = match (http, https) {
        (Some(_), Some((_, at))) => {
            return Err(
                at.mistake("a listener is `http` or `https`, not both: write two [[listen]]")
            );
        }
        (Some(address), None) | (None, Some(address)) => address,
        (None, None) => {
            section.finish()?;
            return Err(place.mistake("a listener needs an address: write `http` or `https`"));
        }
    };
    let address = check_address(&address)
        .map_err(|what| at.mistake(format!("can't listen on `{address}`: {what}")))?;
    let mut files = |key: &str| -> Result<Vec<PathBuf>, String> {
        let texts = section.texts(key)?;
        Ok(texts.into_iter().map(|(text, _)| section.path(&text)).collect())
    };
    let (certs, keys) = (files("cert")?, files("key")?);
    let acme = names(&mut section)?;
    let client_ca = section.placed::<String>("client-ca")?;
    let client_certificate = section.placed::<String>("client-certificate")?;
    let required = match &client_certificate {
        None => true,
        Some((word, at)) => match word.as_str() {
            "required" => true,
            "optional" => false,
            other => {
                let near = nearest(other, ["required", "optional"]);
                let near = near.map_or(String::new(), |near| format!(" (`{near}`?)"));
                let what =
                    format!("`client-certificate` is `{other}`{near}: give optional or required");
                return Err(at.mistake(what));
            }
        },
    };
    if let (Some((_, at)), None) = (&client_certificate, &client_ca) {
        return Err(at.mistake("`client-certificate` needs `client-ca`"));
    }
    let has_files = !certs.is_empty() || !keys.is_empty() || client_ca.is_some();
    if !is_tls && (has_files || !acme.is_empty()) {
        return Err(place.mistake("certificates need `https`: this listener is `http`"));
    }
    let pairs = TlsFiles::pair(certs, keys).map_err(|what| place.mistake(what))?;
    let client_ca = client_ca.map(|(path, _)| section.path(&path));
    let rules = handshake::rules(&mut section, is_tls, client_ca.is_some())?;
    let proxy_protocol = proxy_protocol(&mut section)?;
    section.finish()?;
    let tls =
        is_tls.then_some(TlsFiles { pairs, acme, client_ca, client_required: required, rules });
    Ok(Listen { address, tls, proxy_protocol, place: Some(place) })
}

/// Reads `proxy-protocol` of a listener.
fn proxy_protocol(section: &mut Section<'_>) -> Result<ProxyProtocol, String> {
    let choices = [
        ("off", ProxyProtocol::Off),
        ("optional", ProxyProtocol::Optional),
        ("required", ProxyProtocol::Required),
    ];
    Ok(choice(section, "proxy-protocol", &choices)?.unwrap_or_default())
}

/// Reads `acme` of a listener: names, in lower case.
fn names(section: &mut Section<'_>) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    for (given, at) in section.texts("acme")? {
        let name = given.to_ascii_lowercase();
        let wrong = |what: &str| at.mistake(format!("`acme` has `{}`{what}", given.escape_debug()));
        if name.contains('*') {
            return Err(wrong(
                ": a wildcard is only validated by DNS records, which is not supported: list the names",
            ));
        }
        let bare = name.trim_matches(['[', ']']);
        if bare.parse::<IpAddr>().is_ok() {
            return Err(wrong(", an address: give the names of hosts"));
        }
        let is_label = |label: &str| {
            (1..=LABEL_BYTES_MAX).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
            return Err(wrong(": give the name of a host, such as www.example.org"));
        }
        if names.contains(&name) {
            return Err(wrong(" twice"));
        }
        names.push(name);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_the_loopback_address() {
        for (given, address) in [
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("[::1]:80", "[::1]:80"),
            ("unix:/run/a", "unix:/run/a"),
            ("8080", "127.0.0.1:8080"),
            ("localhost:8080", "127.0.0.1:8080"),
            (":8080", "0.0.0.0:8080"),
            ("*:80", "0.0.0.0:80"),
        ] {
            assert_eq!(check_address(given).as_deref(), Ok(address), "{given}");
        }
        for wrong in
            ["", ":", "80808", "-1", "+80", "example.org:80", "127.0.0.1", "::1", "unix:", "a"]
        {
            assert!(check_address(wrong).unwrap_err().contains("a port, or unix:/path"), "{wrong}");
        }
    }
}
