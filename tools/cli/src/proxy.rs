//! `bolide serve --proxy`: from arguments to a reverse proxy.

use std::fs;
use std::path::PathBuf;

use bolide::proxy::{Balance, HealthCheck, ProxySettings, Trust, Upstream};
use clap::ValueEnum;

/// The arguments about upstreams.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Proxy")]
#[group(skip)]
pub(crate) struct Arguments {
    /// Forward requests to this upstream: http://HOST:PORT, h2c://HOST:PORT (HTTP/2 without TLS),
    /// https://HOST:PORT, h3://HOST:PORT or unix:/PATH. May be repeated. The built-in routes are off unless --builtin is
    /// given.
    #[arg(long, value_name = "URL")]
    proxy: Vec<String>,

    /// Load balancing between several upstreams.
    #[arg(long, value_name = "HOW", value_enum, requires = "proxy")]
    proxy_balance: Option<How>,

    /// Check this path on each upstream every 5s; 3 failures in a row (no status from 200 to 299) take it
    /// out, 2 successes bring it back.
    #[arg(long, value_name = "PATH", requires = "proxy")]
    proxy_health: Option<String>,

    /// Send the upstream's name in Host instead of the client's.
    #[arg(long, requires = "proxy")]
    proxy_rewrite_host: bool,

    /// Trust only these CA certificates (PEM) of https:// upstreams.
    #[arg(long, value_name = "FILE", requires = "proxy")]
    proxy_ca: Option<PathBuf>,

    /// Accept any certificate of https:// upstreams.
    #[arg(long, requires = "proxy", conflicts_with = "proxy_ca")]
    proxy_insecure: bool,
}

/// Which upstream a request goes to.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum How {
    /// Each in its turn.
    RoundRobin,
    /// The one with the fewest open requests.
    LeastRequests,
    /// The less busy of two random ones.
    PowerOfTwo,
}

impl Arguments {
    /// Returns whether there is an upstream.
    pub(crate) fn are_given(&self) -> bool {
        !self.proxy.is_empty()
    }

    /// Looks up the upstreams, if any is given.
    pub(crate) fn settings(&self) -> Result<Option<ProxySettings>, String> {
        if self.proxy.is_empty() {
            return Ok(None);
        }
        let upstreams = self.proxy.iter().map(|url| Upstream::parse(url));
        let failed = |error: bolide::proxy::UpstreamError| format!("--proxy: {error}");
        let upstreams = upstreams.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let settings = match (&self.proxy_ca, self.proxy_insecure) {
            (_, true) => ProxySettings::trusting(upstreams, &Trust::Any).map_err(failed)?,
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
