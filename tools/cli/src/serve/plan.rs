//! Plan of a run: the command line over the file over the defaults.

use std::net::SocketAddr;
use std::time::Duration;

use bolide::server::{Congestion, Ingress, Limits, ProxyProtocol};

use super::Arguments;
use crate::certificate::Material;
use crate::configuration::{
    ClientCertificate, Configuration, DRAIN, Listen, TlsFiles, fixed_limits,
};
use crate::observe;
use crate::place::Place;
use crate::routes::Routes;

/// Everything that `bolide serve` runs with.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) listen: Vec<Listen>,
    /// True if HTTPS listeners serve HTTP/3, too.
    pub(super) http3: bool,
    /// That of HTTP/3.
    pub(super) congestion: Congestion,
    pub(super) workers: Option<u16>,
    pub(super) drain: Duration,
    /// Whom to become once all listen.
    pub(super) user: Option<String>,
    pub(super) limits: Limits,
    /// Information that is taken from peers.
    pub(super) ingress: Ingress,
    /// The CA that certificates come from, with the names of all listeners.
    pub(super) acme: Option<bolide_acme::Settings>,
    pub(super) routes: Routes,
    pub(super) observe: observe::Settings,
}

/// Parts that several listeners share: the files of their TLS, and where they are asked for.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) files: TlsFiles,
    pub(super) place: Option<Place>,
}

impl Plan {
    /// Reads the file, if one is given, and opens what it and the flags name.
    pub(super) fn make(arguments: &Arguments) -> Result<Self, String> {
        let file = match &arguments.config {
            None => None,
            Some(path) => Some(Configuration::read(path, !arguments.routes.are_given())?),
        };
        let routes = match (arguments.routes.routes()?, &file) {
            (Some(routes), _) => routes,
            (None, Some(file)) => {
                arguments.routes.check_alone()?;
                file.routes.clone()
            }
            (None, None) => {
                arguments.routes.check_alone()?;
                Routes::builtin()
            }
        };
        let routes = match &file {
            Some(file) => routes.with_websocket(file.websocket.options()),
            None => routes,
        };
        let observe = file.as_ref().map(|file| file.observe.clone()).unwrap_or_default();
        let ndt7 = arguments.routes.ndt7()?;
        let in_file = file.as_ref().map_or(&[][..], |file| &file.listen);
        let listen = listen(arguments, in_file)?;
        Ok(Self {
            acme: file.as_ref().and_then(|file| acme(file.acme.as_ref()?, &listen)),
            listen,
            congestion: file.as_ref().map(|file| file.congestion).unwrap_or_default(),
            http3: !arguments.listen.no_http3 && file.as_ref().is_none_or(|file| file.http3),
            workers: arguments.workers.or_else(|| file.as_ref()?.workers),
            drain: arguments.drain.or_else(|| Some(file.as_ref()?.drain)).unwrap_or(DRAIN),
            user: arguments.user.clone().or_else(|| file.as_ref()?.user.clone()),
            ingress: file.as_ref().map(|file| file.ingress.clone()).unwrap_or_default(),
            limits: file.map(|file| file.limits).unwrap_or_default(),
            routes: if ndt7.archive.is_some() { routes.with_ndt7(ndt7) } else { routes },
            observe: arguments.observe.over(observe)?,
        })
    }

    /// The addresses of the HTTPS listeners, for a certificate that is made for them.
    pub(super) fn https_addresses(&self) -> Vec<SocketAddr> {
        let https = self.listen.iter().filter(|listen| listen.tls.is_some());
        https.filter_map(|listen| listen.address.parse().ok()).collect()
    }

    /// The TLS settings that differ, and which of them each listener has.
    pub(super) fn groups(&self) -> (Vec<Group>, Vec<Option<usize>>) {
        let mut groups: Vec<Group> = Vec::new();
        let mut of = Vec::new();
        for Listen { tls, place, .. } in &self.listen {
            of.push(tls.as_ref().map(|files| {
                groups.iter().position(|group| group.files == *files).unwrap_or_else(|| {
                    groups.push(Group { files: files.clone(), place: place.clone() });
                    groups.len() - 1
                })
            }));
        }
        (groups, of)
    }

    /// Reads every certificate. `is_trial`: nothing is left behind.
    pub(super) fn materials(&self, is_trial: bool) -> Result<Vec<Material>, String> {
        let addresses = self.https_addresses();
        let load = |group: &Group| {
            Material::load(&group.files, group.place.as_ref(), &addresses, None, is_trial)
        };
        self.groups().0.iter().map(load).collect()
    }

    /// Returns what can't change while it runs, in words that can be compared.
    pub(super) fn fixed(&self) -> Vec<(String, String)> {
        let fixed = |one: &Listen| {
            format!("{} {} {:?}", one.address, one.tls.is_some(), one.proxy_protocol)
        };
        let addresses: Vec<String> = self.listen.iter().map(fixed).collect();
        let mut fixed = vec![
            ("[[listen]]".to_owned(), format!("{addresses:?}")),
            ("http3".to_owned(), format!("{:?}", self.http3)),
            (
                "http3-congestion, http3-initial-packets".to_owned(),
                format!("{:?}", self.congestion),
            ),
            ("workers".to_owned(), format!("{:?}", self.workers)),
            ("user".to_owned(), format!("{:?}", self.user)),
        ];
        fixed.extend(fixed_limits(&self.limits));
        fixed
    }
}

/// The CA with the names of all listeners; `None`: no listener has one.
fn acme(settings: &bolide_acme::Settings, listen: &[Listen]) -> Option<bolide_acme::Settings> {
    let mut names: Vec<String> = Vec::new();
    for name in listen.iter().filter_map(|one| one.tls.as_ref()).flat_map(|files| &files.acme) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    (!names.is_empty()).then(|| bolide_acme::Settings { names, ..settings.clone() })
}

/// The listeners: the flags' if there are any, else the file's, else the defaults.
fn listen(arguments: &Arguments, in_file: &[Listen]) -> Result<Vec<Listen>, String> {
    let named = !arguments.listen.http.is_empty() || !arguments.listen.https.is_empty();
    let files = files(arguments)?;
    let plain = |address: &str| Listen {
        address: address.to_owned(),
        tls: None,
        proxy_protocol: ProxyProtocol::Off,
        place: None,
    };
    // Who moves a listener by a flag doesn't want another certificate.
    let first = in_file.iter().find_map(|listen| listen.tls.clone()).unwrap_or_default();
    let tls = |address: &str| Listen { tls: Some(first.clone()), ..plain(address) };
    let mut listen: Vec<Listen> = if named {
        let http = arguments.listen.http.iter().map(|address| plain(address));
        http.chain(arguments.listen.https.iter().map(|address| tls(address))).collect()
    } else if in_file.is_empty() {
        vec![plain("127.0.0.1:8080"), tls("127.0.0.1:8443")]
    } else {
        in_file.to_vec()
    };
    if arguments.listen.no_https {
        listen.retain(|listen| listen.tls.is_none());
        if listen.is_empty() {
            return Err("--no-https leaves no listener: add --http".to_owned());
        }
    }
    if let Some(twice) = twice(&listen) {
        return Err(format!("{twice} is listed twice"));
    }
    let given = [("--cert", !files.pairs.is_empty()), ("--client-ca", files.client_ca.is_some())];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given)
        && listen.iter().all(|listen| listen.tls.is_none())
    {
        return Err(format!("{option} needs an HTTPS listener: add --https"));
    }
    for listen in &mut listen {
        if let Some(own) = &mut listen.tls {
            if !files.pairs.is_empty() {
                own.pairs.clone_from(&files.pairs);
                own.acme.clear();
                listen.place = None;
            }
            if files.client_ca.is_some() {
                own.client_ca.clone_from(&files.client_ca);
                own.client_required = files.client_required;
            }
        }
    }
    Ok(listen)
}

/// An address that stands there twice, unless the system chooses a port for each.
fn twice(listen: &[Listen]) -> Option<&str> {
    let mut addresses: Vec<&str> = listen.iter().map(|listen| listen.address.as_str()).collect();
    addresses.retain(|address| address.starts_with("unix:") || !address.ends_with(":0"));
    addresses.sort_unstable();
    addresses.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Returns what the flags say of TLS.
fn files(arguments: &Arguments) -> Result<TlsFiles, String> {
    let pairs = TlsFiles::pair(arguments.listen.cert.clone(), arguments.listen.key.clone())
        .map_err(|what| format!("--cert and --key: {what}"))?;
    let client_required = arguments.listen.client_certificate != Some(ClientCertificate::Optional);
    let client_ca = arguments.listen.client_ca.clone();
    Ok(TlsFiles { pairs, client_ca, client_required, ..TlsFiles::default() })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn refused(line: &str) -> String {
        let words = std::iter::once("serve").chain(line.split_whitespace());
        listen(&Line::try_parse_from(words).unwrap().arguments, &[]).unwrap_err()
    }

    #[test]
    fn listeners_that_cannot_be_are_one_sentence() {
        for (line, why) in [
            ("--http 127.0.0.1:1 --http 127.0.0.1:1", "127.0.0.1:1 is listed twice"),
            ("--http unix:/a --https unix:/a", "unix:/a is listed twice"),
            ("--http 127.0.0.1:1 --cert a --key b", "--cert needs an HTTPS listener"),
            ("--no-https --client-ca a", "--client-ca needs an HTTPS listener"),
        ] {
            let told = refused(line);
            assert!(told.contains(why), "{line}: {told}");
        }
        let free = ["serve", "--http", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        assert_eq!(listen(&Line::parse_from(free).arguments, &[]).map(|all| all.len()), Ok(2));
    }
}
