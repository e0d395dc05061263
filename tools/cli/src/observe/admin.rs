//! The operator's listener: metrics and health, apart from what clients reach.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use bolide::metrics::{MetricSource, Metrics, admin_routes};
use bolide::server::{Listener, Running};
use bolide::{Error, Server};

/// The arguments about the operator's listener.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Serve /metrics (Prometheus), /healthz and /readyz (503 while the server drains) on this address,
    /// by a separate thread. Other machines must not reach it, unless --admin-public is given.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) admin: Option<SocketAddr>,

    /// Allow --admin on addresses that other machines reach; it has no authentication.
    #[arg(long, requires = "admin")]
    pub(super) admin_public: bool,

    /// Serve requests to --admin that name this host. May be repeated. localhost, loopback addresses and the
    /// address to which they were sent are always served.
    #[arg(long, value_name = "HOST", requires = "admin")]
    pub(super) admin_name: Vec<String>,
}

/// Settings of the operator's listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdminSettings {
    pub(crate) address: SocketAddr,
    /// Other machines may reach it.
    pub(crate) public: bool,
    /// Names that requests may have besides its address.
    pub(crate) names: Vec<String>,
}

impl AdminSettings {
    /// Returns whether only those reach it who are meant to.
    pub(crate) fn may_be(&self) -> bool {
        self.public || self.address.ip().is_loopback()
    }
}

/// The operator's listener, while it runs.
#[derive(Debug)]
pub(crate) struct Admin {
    /// The address that was asked for.
    asked: SocketAddr,
    /// For a process that takes over.
    sockets: Vec<OwnedFd>,
    metrics: Metrics,
    running: Running,
}

impl Arguments {
    /// Returns what the flags ask for.
    pub(super) fn settings(&self) -> Result<Option<AdminSettings>, String> {
        let Some(address) = self.admin else { return Ok(None) };
        let settings =
            AdminSettings { address, public: self.admin_public, names: self.admin_name.clone() };
        if !settings.may_be() {
            return Err(format!(
                "--admin {address}: other machines could reach it, and it has no authentication: \
                 use 127.0.0.1:9090, or add --admin-public"
            ));
        }
        Ok(Some(settings))
    }
}

impl Admin {
    /// Starts it. It says 503 at /readyz until the server runs. `inherited`: the sockets to use in the place of
    /// its address.
    pub(super) fn start(
        settings: AdminSettings,
        sources: [MetricSource; 2],
        inherited: Option<Listener>,
    ) -> Result<Self, String> {
        let metrics = Metrics::new();
        let watched = metrics.clone();
        let failed = |error: Error| format!("the admin listener (--admin): {error}");
        let server = Server::new().name("admin").workers(1).drain(std::time::Duration::ZERO);
        let listener = inherited.unwrap_or(Listener::Tcp(settings.address));
        let server = server.listener(listener, None).bind().map_err(failed)?;
        let sockets = server.sockets().map_err(failed)?.into_iter();
        let sockets = sockets.flat_map(|own| own.listening).collect();
        let names = settings.names;
        let running =
            server.start(move || admin_routes(&watched, &sources, &names)).map_err(failed)?;
        Ok(Self { asked: settings.address, sockets, metrics, running })
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns where it listens: the port is the real one.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.running.addresses().into_iter().flatten().next()
    }

    /// The address that was asked for, and the sockets for a process that takes over, which are given away.
    pub(crate) fn take_sockets(&mut self) -> (SocketAddr, Vec<OwnedFd>) {
        (self.asked, std::mem::take(&mut self.sockets))
    }

    /// Ends it.
    pub(crate) fn stop(self) {
        self.running.shut_down();
        // There is no process left to tell.
        let _ = self.running.join();
    }
}
