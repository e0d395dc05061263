//! `bolide serve --proxy`: from arguments to a reverse proxy.

use std::fs;
use std::path::PathBuf;

use bolide::{Balance, HealthCheck, ProxySettings, Trust, Upstream};
use clap::ValueEnum;

/// The arguments about upstreams.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Proxy")]
#[group(skip)]
pub(crate) struct Arguments {
    /// Answer with what this server says: http://HOST:PORT, h2c://HOST:PORT (HTTP/2 without TLS),
    /// https://HOST:PORT or unix:/PATH. May be repeated. The built-in routes are off unless --builtin is
    /// given.
    #[arg(long, value_name = "URL")]
    proxy: Vec<String>,

    /// Which of several upstreams a request goes to.
    #[arg(long, value_name = "HOW", value_enum, requires = "proxy")]
    proxy_balance: Option<How>,

    /// Ask each upstream for this path every 5 s, and pass nothing to one that is down: that failed three
    /// times in a row to answer with a status from 200 to 299, and did not succeed twice since.
    #[arg(long, value_name = "PATH", requires = "proxy")]
    proxy_health: Option<String>,

    /// Name the upstream in Host, rather than what the client asked for.
    #[arg(long, requires = "proxy")]
    proxy_rewrite_host: bool,

    /// Trust the certificates in this file (PEM) with https:// upstreams, and not those of the system.
    #[arg(long, value_name = "FILE", requires = "proxy")]
    proxy_ca: Option<PathBuf>,

    /// Take any certificate from https:// upstreams.
    #[arg(long, requires = "proxy", conflicts_with = "proxy_ca")]
    proxy_insecure: bool,
}

/// Which upstream a request goes to.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum How {
    /// One after the other.
    RoundRobin,
    /// The one with the fewest open requests.
    LeastRequests,
    /// The less busy one of two that are drawn at random.
    PowerOfTwo,
}

impl Arguments {
    /// Whether there is an upstream.
    pub(crate) fn are_given(&self) -> bool {
        !self.proxy.is_empty()
    }

    /// Looks up the upstreams, if any is given.
    pub(crate) fn settings(&self) -> Result<Option<ProxySettings>, String> {
        if self.proxy.is_empty() {
            return Ok(None);
        }
        let upstreams = self.proxy.iter().map(|url| Upstream::parse(url));
        let failed = |error: bolide::UpstreamError| format!("--proxy: {error}");
        let upstreams = upstreams.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let settings = match (&self.proxy_ca, self.proxy_insecure) {
            (_, true) => ProxySettings::trusting(upstreams, &Trust::Anybody).map_err(failed)?,
            (Some(path), _) => {
                let unread =
                    |what: &dyn std::fmt::Display| format!("--proxy-ca {}: {what}", path.display());
                let pem =
                    fs::read(path).map_err(|error| unread(&format!("can't be read: {error}")))?;
                ProxySettings::trusting(upstreams, &Trust::Pem(pem))
                    .map_err(|error| unread(&error))?
            }
            (None, false) => ProxySettings::new(upstreams).map_err(failed)?,
        };
        let balance = match self.proxy_balance {
            None | Some(How::RoundRobin) => Balance::RoundRobin,
            Some(How::LeastRequests) => Balance::LeastRequests,
            Some(How::PowerOfTwo) => Balance::PowerOfTwo,
        };
        let mut settings = settings.balance(balance).rewrites_host(self.proxy_rewrite_host);
        if let Some(path) = &self.proxy_health {
            let check = HealthCheck::new(path);
            settings =
                settings.health_check(check).map_err(|error| format!("--proxy-health: {error}"))?;
        }
        Ok(Some(settings))
    }
}
