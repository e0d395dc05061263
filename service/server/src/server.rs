//! From settings to running workers.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bolide_connection::{Congestion, ServerTls, steering};
use bolide_eventloop::{
    Address, Around, Config, Handle, Listeners, Offloads, Service, Signal, Signals, Stats, Token,
};

use crate::changes::{Changes, Routes};
use crate::followed_datagrams::Datagrams;
use crate::observe::Observed;
use crate::quic::Lineage;
use crate::responder::MessageKind;
use crate::service::{HttpService, OfServer};
use crate::watchdog::{Beats, Watchdog};
use crate::{
    AccessLog, Error, Ingress, Limits, Message, Metrics, Profile, ProxyProtocol, Router,
    ServerState, Snapshot,
};
use http3::Sockets;

mod http3;
mod reload;
mod tls;

pub use tls::Tls;

/// A server before it runs.
///
/// ```no_run
/// use bolide_server::{Router, Server};
///
/// Server::new()
///     .http("127.0.0.1:8080")
///     .run(|| Router::new().get("/ping", |_| "pong"))?;
/// # Ok::<(), bolide_server::Error>(())
/// ```
#[derive(Debug)]
pub struct Server {
    listeners: Vec<(Listener, Option<ServerTls>)>,
    /// Of the listeners up to the last one that has any.
    proxy_protocols: Vec<ProxyProtocol>,
    ingress: Ingress,
    workers: usize,
    limits: Limits,
    drain: Duration,
    wall_clock: fn() -> SystemTime,
    observed: Observed,
    name: &'static str,
    around: Option<Around>,
    pub(crate) bound: Option<Bound>,
    error: Option<Error>,
    http3: bool,
    congestion: Congestion,
    pub(crate) lineage: Lineage,
}

/// Something to accept connections from.
#[derive(Debug)]
pub enum Listener {
    /// An address to bind; port 0 takes any that is free, also for UDP where HTTP/3 is served.
    Tcp(SocketAddr),
    /// A path to bind. A socket file without a listener is replaced, and the file is removed at
    /// the end.
    Unix(PathBuf),
    /// A TCP socket that listens already, such as one that a supervisor handed in.
    OpenTcp(TcpListener),
    /// A Unix socket that listens already.
    OpenUnix(UnixListener),
    /// The sockets of one listener of another process.
    Inherited {
        /// Those that listen; several share a port.
        sockets: Vec<OwnedFd>,
        /// The UDP sockets at the same port, if it served HTTP/3.
        datagrams: Vec<OwnedFd>,
        /// The path of a Unix socket, if it is to be removed at the end.
        path: Option<PathBuf>,
    },
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::OpenTcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::OpenUnix(listener)
    }
}

impl Listener {
    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Unix(path) => Some(path.clone()),
            Self::Inherited { path, .. } => path.clone(),
            _ => None,
        }
    }

    /// Opens it as the one with this index. If it `has_http3`, UDP sockets are opened at its port, and what the system does for
    /// them, or why there are none, is returned: TCP is served without them, too.
    fn open(
        self,
        listeners: &mut Listeners,
        index: usize,
        has_http3: bool,
    ) -> Result<Option<Result<Offloads, Error>>, Error> {
        let address = match self {
            Self::Tcp(address) if has_http3 => {
                let (_, datagrams) = listeners.bind_both(address).map_err(Error::Listen)?;
                return Ok(Some(datagrams.map_err(Error::Listen)));
            }
            Self::Tcp(address) => Address::Inet(listeners.bind(address).map_err(Error::Listen)?),
            Self::Unix(path) => {
                listeners.bind_unix(&path).map_err(Error::Listen)?;
                Address::Unix
            }
            Self::OpenTcp(listener) => listeners.hand_in(listener)?,
            Self::OpenUnix(listener) => listeners.hand_in(listener)?,
            Self::Inherited { sockets, datagrams, .. } => {
                let address = listeners.hand_in_all(sockets)?;
                if has_http3 && !datagrams.is_empty() {
                    let taken = listeners.hand_in_datagrams(index, datagrams);
                    return Ok(Some(taken.map_err(Error::from)));
                }
                address
            }
        };
        let has_port = matches!(address, Address::Inet(_));
        let open = || listeners.bind_datagrams(index).map_err(Error::Listen);
        Ok((has_http3 && has_port).then(open))
    }
}

/// Listeners that are open.
pub(crate) struct Bound {
    pub(crate) listeners: Listeners,
    tls: Vec<Option<ServerTls>>,
    paths: Vec<PathBuf>,
    http3: Sockets,
}

impl fmt::Debug for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.listeners.addresses()).finish()
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listeners: Vec::new(),
            proxy_protocols: Vec::new(),
            ingress: Ingress::default(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            limits: Limits::default(),
            drain: Duration::from_secs(30),
            wall_clock: SystemTime::now,
            observed: Observed::default(),
            name: "main",
            around: None,
            bound: None,
            error: None,
            http3: false,
            congestion: Congestion::default(),
            lineage: Lineage::default(),
        }
    }
}

impl Server {
    /// A server with one worker per core and the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens for cleartext HTTP/1.1 and h2c: on an address such as `127.0.0.1:8080` or `[::1]:0`,
    /// or on `unix:/path`.
    #[must_use]
    pub fn http(self, address: &str) -> Self {
        self.address(address, None)
    }

    /// Listens for TLS: HTTP/2 and HTTP/1.1 by ALPN.
    #[must_use]
    pub fn https(self, address: &str, tls: &Tls) -> Self {
        self.address(address, Some(tls.settings.clone()))
    }

    /// Takes a listener that is open already, such as one handed in by a supervisor; with TLS or
    /// without.
    #[must_use]
    pub fn listener(mut self, listener: impl Into<Listener>, tls: Option<&Tls>) -> Self {
        self.listeners.push((listener.into(), tls.map(|tls| tls.settings.clone())));
        self
    }

    fn address(mut self, address: &str, tls: Option<ServerTls>) -> Self {
        match parse_address(address) {
            Some(listener) => self.listeners.push((listener, tls)),
            None => {
                self.error.get_or_insert_with(|| Error::Address { address: address.to_owned() });
            }
        }
        self
    }

    /// Sets whether connections to the listener that was added last begin with a PROXY header. Default: no.
    #[must_use]
    pub fn proxy_protocol(mut self, proxy_protocol: ProxyProtocol) -> Self {
        self.proxy_protocols.resize(self.listeners.len(), ProxyProtocol::Off);
        if let Some(last) = self.proxy_protocols.last_mut() {
            *last = proxy_protocol;
        }
        self
    }

    /// Which peers are trusted, and with what. Default: none.
    #[must_use]
    pub fn ingress(mut self, ingress: Ingress) -> Self {
        self.ingress = ingress;
        self
    }

    /// Sets whether listeners with TLS serve HTTP/3 as well, at the same address and UDP port, and responses over TLS say so
    /// (`Alt-Svc`, RFC 7838). Where the port can't be had, a warning says why, and TLS goes on alone. Listeners whose connections
    /// begin with a PROXY header have none. Default: no.
    ///
    /// The release profile of an application needs `overflow-checks = true` for the package quinn-proto: SECURITY.md says why.
    #[must_use]
    pub fn http3(mut self, serves: bool) -> Self {
        self.http3 = serves;
        self
    }

    /// How HTTP/3 finds out how much may be on its way; TCP's way is the kernel's. Default: CUBIC, from 10 packets.
    #[must_use]
    pub fn congestion(mut self, congestion: Congestion) -> Self {
        self.congestion = congestion;
        self
    }

    /// How many workers: threads, each with an event loop. Default: one per core. At least 1.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How many workers there will be.
    #[must_use]
    pub fn worker_count(&self) -> usize {
        self.workers
    }

    /// The limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long open exchanges may go on after a shutdown was asked for. Default: 30 s.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Sets where the time of day for `Date` comes from. Default: the system.
    #[must_use]
    pub fn wall_clock(mut self, wall_clock: fn() -> SystemTime) -> Self {
        self.wall_clock = wall_clock;
        self
    }

    /// Counts into `metrics`. Default: nothing is counted, and it costs nothing.
    #[must_use]
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.observed.metrics = Some(metrics.clone());
        self
    }

    /// Writes a line for each request to `log`. Default: none.
    #[must_use]
    pub fn access_log(mut self, log: &AccessLog) -> Self {
        self.observed.access_log = Some(log.clone());
        self
    }

    /// Measures where the CPU time goes, as `profile` says. Default: it is not measured, and costs nothing.
    #[must_use]
    pub fn profile(mut self, profile: &Profile) -> Self {
        self.observed.profile = Some(profile.clone());
        self
    }

    /// Sets whether responses tell their client what they took here, in a `Server-Timing` field (W3C Server Timing):
    /// `route` and `handler` where the handler answered at once, else `total`, in milliseconds. Default: no, for
    /// it tells everybody, and costs every request a few looks at the clock.
    #[must_use]
    pub fn server_timing(mut self, tells: bool) -> Self {
        self.observed.server_timing = tells;
        self
    }

    /// Sets what its events call it, in their field `server`: a process may have several. Default: `main`.
    #[must_use]
    pub fn name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Surrounds the life of each worker, on its thread, with a context that handlers find there. Default:
    /// nothing.
    #[must_use]
    pub fn around_workers(mut self, around: Around) -> Self {
        self.around = Some(around);
        self
    }

    /// Opens every listener, so that what is done before [`start`](Self::start), such as giving up a privilege, is
    /// done after it: connections arrive, and wait. The number of workers is settled then, and a listener that
    /// is added later is not opened.
    ///
    /// # Errors
    ///
    /// [`Error`] says what can't be opened; nothing is left open.
    pub fn bind(mut self) -> Result<Self, Error> {
        self.check()?;
        let listeners = std::mem::take(&mut self.listeners);
        let (sources, tls): (Vec<_>, Vec<_>) = listeners.into_iter().unzip();
        let wanted = self.wants_http3(&sources, &tls);
        let paths = sources.iter().filter_map(Listener::path).collect();
        let backlog = self.limits.event_loop.backlog_count;
        let listeners = Listeners::new(self.workers).backlog(backlog);
        let mut listeners = listeners.steer_datagrams(steering(self.workers));
        let mut http3 = Sockets::default();
        for (index, (source, has_http3)) in sources.into_iter().zip(wanted).enumerate() {
            http3.add(source.open(&mut listeners, index, has_http3)?);
        }
        self.bound = Some(Bound { listeners, tls, paths, http3 });
        Ok(self)
    }

    /// Checks whether what was asked for can be opened at all.
    fn check(&mut self) -> Result<(), Error> {
        match self.error.take() {
            Some(error) => Err(error),
            None if self.listeners.is_empty() => Err(Error::NoListener),
            None => Ok(()),
        }
    }

    /// Opens every listener, unless they [are](Self::bind), and starts the workers, each with a router that
    /// `routes` makes.
    ///
    /// # Errors
    ///
    /// [`Error`] says what can't be; nothing is left running.
    pub fn start(
        self,
        routes: impl Fn() -> Router + Send + Sync + 'static,
    ) -> Result<Running, Error> {
        self.start_with(Arc::new(routes))
    }

    /// Compiled once, with this crate's optimisation, and not in every program: the event loop is part of it.
    fn start_with(mut self, routes: Arc<Routes>) -> Result<Running, Error> {
        if self.bound.is_none() {
            self.check()?;
        }
        // A route that can't be is found before anything is opened.
        routes().check()?;
        if self.bound.is_none() {
            self = self.bind()?;
        }
        let Some(bound) = self.bound.take() else { return Err(Error::NoListener) };
        let Bound { listeners, tls, paths, http3 } = bound;
        let (addresses, of_server) = (listeners.addresses(), OfServer::default());
        let (limits, wall_clock) = (self.limits, self.wall_clock);
        let (ingress, proxy_protocols) = (self.ingress, self.proxy_protocols);
        let mut observed = self.observed;
        let metrics = observed.metrics.clone();
        observed.long_turn = limits.long_turn;
        if let (Some(metrics), Some(log)) = (&metrics, &observed.access_log) {
            metrics.set_access_log(log);
        }
        if let (Some(metrics), Some(profile)) = (&metrics, &observed.profile) {
            metrics.set_profile(profile);
        }
        // Without a subscriber for these events it costs nothing.
        if tracing::enabled!(target: "bolide::watchdog", tracing::Level::WARN) {
            observed.beats = Some(Beats::default());
        }
        let start = |beats: &Beats| Watchdog::start(beats.clone(), self.name, limits.long_turn);
        let watchdog = observed.beats.as_ref().map(start).transpose()?;
        let config = Config { around: self.around, limits: limits.event_loop, ..Config::default() };
        http3.tell(self.name);
        let (has_http3, lineage) = (http3.are_open(), self.lineage);
        let plan = http3.plan(&addresses, self.workers, lineage.clone(), self.congestion);
        let changes = of_server.changes.clone();
        let handle = bolide_eventloop::run(&config, listeners, move |worker, mailbox| {
            if let Some(log) = &observed.access_log {
                log.add_worker(move |done| {
                    let kind = MessageKind::HandOverLog(done.clone());
                    mailbox.send(Token::NOBODY, Message::to_worker(kind)).is_ok()
                });
            }
            let (endpoints, advertised) = plan.of_worker(worker, &tls, wall_clock);
            let (limits, tls, now) = (limits.clone(), tls.clone(), Instant::now());
            HttpService::observed(routes(), limits, tls, wall_clock, now, &observed)
                .behind(proxy_protocols.clone(), &ingress)
                .sharing(&of_server)
                .with_http3(endpoints, advertised)
        })?;
        if let Some(metrics) = &metrics {
            metrics.set_state(ServerState::Ready);
        }
        let (server, workers, drain) = (self.name, self.workers, self.drain);
        tracing::info!(target: "bolide::server", server, workers, "the server has started");
        let datagrams = Datagrams::start(has_http3, lineage, &handle)?;
        let name = server;
        let running = Running {
            handle,
            addresses,
            paths,
            drain,
            metrics,
            watchdog,
            name,
            datagrams,
            changes,
        };
        Ok(running)
    }

    /// Runs until SIGTERM or SIGINT, then drains.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn run(self, routes: impl Fn() -> Router + Send + Sync + 'static) -> Result<(), Error> {
        let mut signals = Signals::new(&[Signal::Terminate, Signal::Interrupt])?;
        let running = self.start(routes)?;
        signals.wait();
        running.shut_down();
        running.join()?;
        Ok(())
    }
}

/// Shuts a [`Running`] server down; from any thread.
pub struct Stopper {
    stopper: bolide_eventloop::Stopper<Message>,
    drain: Duration,
    metrics: Option<Metrics>,
    name: &'static str,
}

impl fmt::Debug for Stopper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stopper").field("drain", &self.drain).finish_non_exhaustive()
    }
}

impl Stopper {
    /// As [`Running::shut_down`].
    pub fn shut_down(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.set_state(ServerState::Draining);
        }
        let (server, patience) = (self.name, self.drain.as_secs_f64());
        tracing::info!(target: "bolide::server", server, patience, "shutting down, waiting for open exchanges");
        self.stopper.shut_down(self.drain);
    }
}

/// The workers of a server that runs.
pub struct Running {
    pub(crate) handle: Handle<Message>,
    addresses: Vec<Address>,
    /// The files of Unix sockets, which are removed at the end.
    pub(crate) paths: Vec<PathBuf>,
    drain: Duration,
    metrics: Option<Metrics>,
    watchdog: Option<Watchdog>,
    name: &'static str,
    pub(crate) datagrams: Datagrams,
    changes: Changes,
}

impl fmt::Debug for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addresses, .. } = self;
        formatter.debug_struct("Running").field("addresses", addresses).finish_non_exhaustive()
    }
}

impl Running {
    /// The addresses in the order in which they were given; the port is the real one where it was
    /// given as 0. None for a Unix socket.
    #[must_use]
    pub fn addresses(&self) -> Vec<Option<SocketAddr>> {
        let inet = |address: &Address| match address {
            Address::Inet(address) => Some(*address),
            Address::Unix => None,
        };
        self.addresses.iter().map(inet).collect()
    }

    /// Which listeners serve HTTP/3 as well, in the same order.
    #[must_use]
    pub fn http3(&self) -> &[bool] {
        self.datagrams.are_open()
    }

    /// Accepts nothing more, completes what is open, and ends after the drain time at the latest.
    pub fn shut_down(&self) {
        self.stopper().shut_down();
    }

    /// Returns what was counted so far, when the server was given [`Metrics`].
    #[must_use]
    pub fn metrics(&self) -> Option<Snapshot> {
        self.metrics.as_ref().map(Metrics::snapshot)
    }

    /// How long open exchanges may go on after a shutdown is asked for, from here on.
    pub fn set_drain(&mut self, drain: Duration) {
        self.drain = drain;
    }

    /// Something that shuts down while another thread [joins](Self::join).
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        let metrics = self.metrics.clone();
        Stopper { stopper: self.handle.stopper(), drain: self.drain, metrics, name: self.name }
    }

    /// Waits until every worker has ended, and sums up what they counted.
    ///
    /// # Errors
    ///
    /// When a worker's poller failed.
    pub fn join(self) -> io::Result<Stats> {
        let workers = self.handle.join();
        drop(self.watchdog);
        tracing::info!(target: "bolide::server", server = self.name, "the server has ended");
        for path in self.paths {
            // Another process may have removed it.
            let _ = std::fs::remove_file(path);
        }
        let mut sum = Stats::default();
        for stats in workers? {
            sum += stats;
        }
        Ok(sum)
    }
}

/// Returns what one worker of a server runs, for an event loop of the caller's own, such as a simulated one. Its
/// connections are cleartext.
pub fn worker_service(
    router: Router,
    limits: Limits,
    wall_clock: fn() -> SystemTime,
    now: Instant,
) -> impl Service<Message = Message> {
    HttpService::new(router, limits, Vec::new(), wall_clock, now)
}

fn parse_address(address: &str) -> Option<Listener> {
    if let Some(path) = address.strip_prefix("unix:") {
        return (!path.is_empty()).then(|| Listener::Unix(path.into()));
    }
    address.parse::<SocketAddr>().ok().map(Listener::Tcp)
}

#[cfg(test)]
mod tests;
