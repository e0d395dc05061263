//! The servers of a run, prepared once: how connections to each are made.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bolide_client::{Dial, Speaks, platform_trust};
use bolide_connection::{Alpn, ClientOptions, ClientTls, Identity, Limits, Trust, WallClock};
use bolide_eventloop::Destination;
use bolide_semantics::{Scheme, Url};

use super::mistake::Mistake;
use crate::plan::{Origin, Plan, ServerAddress, TlsTrust, Version};

/// A server that requests go to.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) is_https: bool,
    /// For Host and `:authority`.
    pub(super) authority: String,
    pub(super) dial: Dial,
    /// Taken in turn.
    pub(super) destinations: Vec<Destination>,
    /// URL with which users' redirects and cookies are compared.
    pub(super) url: Option<Url>,
}

impl Server {
    /// Every server of a plan; its own is the first.
    ///
    /// # Errors
    ///
    /// What can't be used.
    pub(super) fn all(plan: &Plan, limits: &Limits, epoch: Instant) -> Result<Vec<Self>, Mistake> {
        let others = plan.scenario.iter().flat_map(|scenario| &scenario.others);
        let server = |(index, origin): (usize, &Origin)| {
            let name = plan.tls.server_name.as_deref().filter(|_| index == 0);
            let speaks = match (origin.is_https, plan.version) {
                (true, version) => tls(plan, version, name.unwrap_or_else(|| host(origin)))?,
                (false, Version::Http2) => Speaks::Http2,
                (false, _) => Speaks::Http1,
            };
            let dial = Dial { speaks, timeout: plan.timeouts.connect_timeout, preamble: None };
            dial.check(limits, epoch).map_err(|error| {
                Mistake::new(format!("the server's name for TLS can't be used: {error}"))
            })?;
            let scheme = if origin.is_https { "https" } else { "http" };
            let url = plan.scenario.as_ref().map(|_| {
                Url::parse(&format!("{scheme}://{}/", origin.authority), &Scheme::HTTP)
                    .map_err(|error| Mistake::new(error.to_string()))
            });
            Ok(Self {
                is_https: origin.is_https,
                authority: origin.authority.clone(),
                dial,
                destinations: destinations(origin, plan.version),
                url: url.transpose()?,
            })
        };
        std::iter::once(&plan.origin).chain(others).enumerate().map(server).collect()
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.is_https { "https" } else { "http" }
    }

    /// Its host, and whether it is reached over TLS: what cookies depend on.
    #[inline]
    pub(super) fn for_cookies(&self) -> (&str, bool) {
        (self.url.as_ref().map_or("", |url| &url.host), self.is_https)
    }
}

fn destinations(origin: &Origin, version: Version) -> Vec<Destination> {
    let destination = |address: &ServerAddress| match address {
        ServerAddress::Inet(address) if version == Version::Http3 => {
            Destination::Datagrams(*address)
        }
        ServerAddress::Inet(address) => Destination::Inet(*address),
        ServerAddress::Unix(path) => Destination::Unix(Arc::from(path.as_path())),
    };
    origin.addresses.iter().map(destination).collect()
}

fn tls(plan: &Plan, version: Version, server_name: &str) -> Result<Speaks, Mistake> {
    let unusable = |what: &str, error: &dyn std::fmt::Display| {
        Mistake::new(format!("{what} can't be used: {error}"))
    };
    let trust = match &plan.tls.trust {
        TlsTrust::Platform => platform_trust().map_err(|error| Mistake::new(error.to_string()))?,
        TlsTrust::Roots(pem) => Trust::Pem(pem.to_vec()),
        TlsTrust::Any => Trust::Any,
    };
    let identity = match &plan.tls.identity {
        None => None,
        Some((chain, key)) => Some(
            Identity::from_pem(chain, key)
                .map_err(|error| unusable("the client's certificate", &error))?,
        ),
    };
    let (alpn, required): (&[Alpn], _) = match version {
        Version::Negotiated => (&[Alpn::H2, Alpn::Http11], None),
        Version::Http1 => (&[Alpn::Http11], Some(Alpn::Http11)),
        Version::Http2 => (&[Alpn::H2], Some(Alpn::H2)),
        Version::Http3 => (&[Alpn::H3], Some(Alpn::H3)),
    };
    let (resume, early_data) = (plan.tls.resume, plan.tls.early_data);
    let options =
        ClientOptions { trust: &trust, alpn, identity: identity.as_ref(), resume, early_data };
    let settings = ClientTls::with(&options, WallClock(SystemTime::now))
        .map_err(|error| unusable("the file of trusted certificates", &error))?;
    Ok(Speaks::Tls { settings, server_name: server_name.to_owned(), required })
}

/// The host of an authority: without port, and without the brackets of an IPv6 address.
fn host(origin: &Origin) -> &str {
    let authority = origin.authority.as_str();
    if let Some((host, _)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return host;
    }
    if authority.parse::<IpAddr>().is_ok() {
        return authority;
    }
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::plan_for;

    #[test]
    fn hosts_lose_port_and_brackets() {
        for (authority, expected) in [
            ("example.org", "example.org"),
            ("example.org:8443", "example.org"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("[::1]:443", "::1"),
            ("[::1]", "::1"),
        ] {
            let plan = plan_for("127.0.0.1:1".parse().unwrap());
            let origin = Origin { authority: authority.to_owned(), ..plan.origin };
            assert_eq!(host(&origin), expected);
        }
    }
}
