//! Settings of a reverse proxy.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use bolide_client::{
    Alpn, ClientOptions, ClientTls, Identity, ResolveError, Trust, WallClock, platform_trust,
};
use bolide_semantics::is_valid_target;
use bolide_server::{ConnectionLimits, ProxyVersion, Request};

use crate::affinity::{Leaning, Sticky};
use crate::counters::{Counters, UpstreamStats};
use crate::limits::Times;
use crate::pseudonym::Pseudonym;
use crate::upstream::Scheme;
use crate::watch::{Orders, Resolver, Watch, Watched};
use crate::{HashKey, HealthCheck, HealthKind, ProxyLimits, StickyCookie, Upstream, UpstreamError};

/// Which upstream a request goes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Balance {
    /// One after the other, by weight.
    #[default]
    RoundRobin,
    /// The one with the fewest open requests, by weight.
    LeastRequests,
    /// The less busy one of two that are drawn at random.
    PowerOfTwo,
    /// The same one for the same key, by weight, unless it has [more than its share](crate::limits::Choice::hash_load_percent) of the open
    /// requests of the worker. When an upstream comes or goes, only requests that are or were its own move.
    Hash(HashKey),
}

/// Treatment of the fields that tell upstreams the origin of a request: by `Forwarded` (RFC 7239) and by
/// `X-Forwarded-For`, `X-Forwarded-Host` and `X-Forwarded-Proto`. All other fields whose names begin with
/// `X-Forwarded-`, and `X-Real-IP`, only ever come from the client, and go the way of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// Only what the proxy knows itself; what clients say in these fields is dropped, for any client may say
    /// anything.
    #[default]
    Replace,
    /// Append what the proxy knows to what came: for a proxy behind proxies that are trusted.
    Append,
    /// Nothing; what came is dropped.
    Hide,
}

/// Treatment of a request whose path has a [dot segment](bolide_semantics::has_dot_segment), in any spelling: clients
/// resolve these before they send a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DotSegments {
    /// It is answered with 400: an upstream that resolves them would serve what no route leads to.
    #[default]
    Refuse,
    /// It goes on as it came: for upstreams that take such a path as it stands, and of which all may be asked for.
    Pass,
}

/// Settings of a reverse proxy: one value for all workers, from which each makes its
/// [`ReverseProxy`](crate::ReverseProxy).
#[derive(Debug, Clone)]
pub struct ProxySettings {
    pub(crate) upstreams: Vec<Upstream>,
    /// TLS of connections to upstreams.
    pub(crate) security: Security,
    health: Option<HealthCheck>,
    resolver: Resolver,
    pub(crate) balance: Balance,
    pub(crate) sticky: Option<Arc<Sticky>>,
    pub(crate) origin: Origin,
    pub(crate) rewrites_host: bool,
    pub(crate) dot_segments: DotSegments,
    pub(crate) pseudonym: Arc<Pseudonym>,
    pub(crate) proxy_protocol: Option<ProxyVersion>,
    pub(crate) limits: ProxyLimits,
    pub(crate) watch: Arc<Watch>,
    /// Counters of each worker.
    counters: Arc<Mutex<Vec<Arc<[Counters]>>>>,
}

/// TLS of connections to upstreams.
#[derive(Debug, Clone)]
pub(crate) struct Security {
    pub(crate) tls: Option<ClientTls>,
    /// For connections that carry tunnels only.
    pub(crate) tunnel_tls: Option<ClientTls>,
    identity: Option<Identity>,
    pub(crate) server_name: Option<String>,
    trust: Trust,
}

impl ProxySettings {
    /// A proxy to these upstreams. Those that speak TLS have to show a certificate that the operating system
    /// trusts.
    ///
    /// # Errors
    ///
    /// When there is no upstream, or one speaks TLS and the system trusts no authority.
    pub fn new(upstreams: Vec<Upstream>) -> Result<Self, UpstreamError> {
        let trust = match upstreams.iter().find(|upstream| upstream.scheme.is_secure()) {
            None => Trust::Any,
            Some(Upstream { given, .. }) => platform_trust()
                .map_err(|error| UpstreamError::Untrusted { given: given.clone(), error })?,
        };
        Self::trusting(upstreams, &trust)
    }

    /// A proxy to these upstreams. Those that speak TLS have to show a certificate that `trust` covers.
    ///
    /// # Errors
    ///
    /// When there is no upstream, or what is trusted can't be read.
    pub fn trusting(upstreams: Vec<Upstream>, trust: &Trust) -> Result<Self, UpstreamError> {
        if upstreams.is_empty() {
            return Err(UpstreamError::None);
        }
        let settings = Self {
            watch: Arc::new(Watch::new(&upstreams)),
            upstreams,
            health: None,
            resolver: Resolver::default(),
            balance: Balance::default(),
            sticky: None,
            origin: Origin::default(),
            rewrites_host: false,
            dot_segments: DotSegments::default(),
            pseudonym: Arc::new(Pseudonym::random()),
            proxy_protocol: None,
            limits: ProxyLimits::default(),
            counters: Arc::default(),
            security: Security {
                tls: None,
                tunnel_tls: None,
                identity: None,
                server_name: None,
                trust: trust.clone(),
            },
        };
        settings.with_tls()
    }

    /// Returns whether an upstream speaks TLS.
    #[must_use]
    pub fn speaks_tls(&self) -> bool {
        self.upstreams.iter().any(|upstream| upstream.scheme.is_secure())
    }

    /// Makes what connections with TLS begin with.
    fn with_tls(mut self) -> Result<Self, UpstreamError> {
        if self.speaks_tls() {
            let (trust, identity) = (&self.security.trust, self.security.identity.as_ref());
            let offering = |alpn: &[Alpn]| {
                let options =
                    ClientOptions { trust, alpn, identity, resume: true, early_data: false };
                ClientTls::with(&options, WallClock(SystemTime::now))
            };
            let (tls, tunnel_tls) = (offering(&Upstream::ALPN)?, offering(&Upstream::TUNNEL_ALPN)?);
            (self.security.tls, self.security.tunnel_tls) = (Some(tls), Some(tunnel_tls));
        }
        // A host that can be in no certificate is found out here.
        let limits = self.connection_limits();
        for upstream in &self.upstreams {
            let (tls, name) = (self.security.tls.as_ref(), self.security.server_name.as_deref());
            upstream
                .dial(tls, name, Times::DEFAULT.connect_timeout)
                .check(&limits, Instant::now())?;
        }
        Ok(self)
    }

    /// The certificate that is shown to upstreams that request one. Default: none.
    ///
    /// # Errors
    ///
    /// When TLS can't be set up with it.
    pub fn identity(mut self, identity: Identity) -> Result<Self, UpstreamError> {
        self.security.identity = Some(identity);
        self.with_tls()
    }

    /// The name in SNI and in the certificates of all upstreams, a DNS name or an IP address. Default: the host of each.
    ///
    /// # Errors
    ///
    /// When the name is neither.
    pub fn server_name(mut self, name: &str) -> Result<Self, UpstreamError> {
        self.security.server_name = Some(name.to_owned());
        self.with_tls()
    }

    /// Which upstream a request goes to. Default: one after the other.
    #[must_use]
    pub fn balance(mut self, balance: Balance) -> Self {
        self.balance = balance;
        self
    }

    /// A cookie that keeps a client's requests at one upstream; [`Self::balance`] holds for those without it. Default: none.
    #[must_use]
    pub fn sticky(mut self, cookie: &StickyCookie) -> Self {
        self.sticky = Some(Arc::new(Sticky::new(cookie, &self.upstreams)));
        self
    }

    /// Sets what upstreams are told of the client. Default: what the proxy knows itself.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Sets whether `Host` names the upstream rather than what the client asked for. Default: no.
    #[must_use]
    pub fn rewrites_host(mut self, rewrites: bool) -> Self {
        self.rewrites_host = rewrites;
        self
    }

    /// Sets what becomes of paths with dot segments. Default: they are refused.
    #[must_use]
    pub fn dot_segments(mut self, dot_segments: DotSegments) -> Self {
        self.dot_segments = dot_segments;
        self
    }

    /// Sets what `Via` calls the proxy (RFC 9110 §7.6.3). A request that has this name in its `Via` is answered with 508: it went
    /// round. Default: a random name, another for each value that is made.
    ///
    /// # Errors
    ///
    /// When the name is not a token.
    pub fn pseudonym(mut self, name: &str) -> Result<Self, UpstreamError> {
        let pseudonym = Pseudonym::new(name);
        let refused = || UpstreamError::Pseudonym { given: name.to_owned() };
        self.pseudonym = Arc::new(pseudonym.ok_or_else(refused)?);
        Ok(self)
    }

    /// Connections begin with a PROXY header that names the client. Each belongs to one client then: its requests alone use it
    /// again, and an idle one ends when another client needs its place. Health checks say that they are the proxy's own.
    /// Default: none.
    ///
    /// # Errors
    ///
    /// When an upstream speaks HTTP/3.
    pub fn proxy_protocol(mut self, version: ProxyVersion) -> Result<Self, UpstreamError> {
        self.goes_by_tcp("PROXY header")?;
        self.proxy_protocol = Some(version);
        Ok(self)
    }

    /// Refuses upstreams over HTTP/3 where something is asked for that they don't have.
    fn goes_by_tcp(&self, what: &'static str) -> Result<(), UpstreamError> {
        match self.upstreams.iter().find(|upstream| upstream.scheme == Scheme::Http3) {
            None => Ok(()),
            Some(upstream) => Err(UpstreamError::Http3 { given: upstream.given.clone(), what }),
        }
    }

    /// The limits.
    #[must_use]
    pub fn limits(mut self, limits: ProxyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Asks each upstream from time to time whether it is well. Default: no; what becomes of requests says
    /// it, too.
    ///
    /// # Errors
    ///
    /// When the path of the check can't be asked for, or it is for a WebSocket and an upstream speaks HTTP/3.
    pub fn health_check(mut self, check: HealthCheck) -> Result<Self, UpstreamError> {
        let path = check.kind.path();
        let mut is_right = path.starts_with('/') && is_valid_target(path.as_bytes());
        match &check.kind {
            HealthKind::Get(_) => {}
            HealthKind::Grpc(service) => is_right &= service.len() < 128 && service.is_ascii(),
            HealthKind::WebSocket(_) => self.goes_by_tcp("check of a WebSocket")?,
        }
        if !is_right
            || check.limits.health_interval.is_zero()
            || check.limits.health_timeout.is_zero()
        {
            return Err(UpstreamError::HealthCheck { path: path.to_owned() });
        }
        self.health = Some(check);
        Ok(self)
    }

    /// How the names of upstreams are looked up again, every [`resolve_period`](crate::limits::Times::resolve_period). It may wait: a
    /// thread of its own calls it. Default: the system's resolver.
    #[must_use]
    pub fn resolver(
        mut self,
        resolver: impl Fn(&str, u16) -> Result<Vec<SocketAddr>, ResolveError> + Send + Sync + 'static,
    ) -> Self {
        self.resolver = Resolver(Arc::new(resolver));
        self
    }

    /// Has proxies `all` that are to answer in the place of those `before` begin with what these have found out:
    /// which upstreams are down, or left alone for a while after failures. It holds for upstreams that are named,
    /// trusted and checked as before. Those before find out nothing more once the last of their handlers is gone.
    pub fn take_over(all: &mut [Self], before: &[Self]) {
        let mut left: Vec<(&Self, &Watched)> = Vec::new();
        for old in before {
            left.extend(old.watch.list.iter().map(|watched| (old, watched)));
        }
        for new in all {
            let watch = Watch::after(&new.upstreams, |upstream| {
                let at = left.iter().position(|(old, watched)| {
                    let is_same = watched.name() == upstream.name();
                    is_same && new.health == old.health && new.trusts_as(old)
                })?;
                Some(left.remove(at).1)
            });
            new.watch = Arc::new(watch);
        }
        for old in before {
            old.watch.replaced();
        }
    }

    fn trusts_as(&self, other: &Self) -> bool {
        let shown =
            |one: &Self| one.security.identity.as_ref().map(|own| own.certificate_der().to_vec());
        if self.security.server_name != other.security.server_name || shown(self) != shown(other) {
            return false;
        }
        match (&self.security.trust, &other.security.trust) {
            (Trust::Any, Trust::Any) => true,
            (Trust::Pem(own), Trust::Pem(other)) => own == other,
            (Trust::Der(own), Trust::Der(other)) => own == other,
            _ => false,
        }
    }

    /// Begins to find out what is to be found out concurrently with requests.
    pub(crate) fn begin_watch(&self) {
        self.watch.begin(&Orders {
            check: self.health.clone(),
            trust: self.security.trust.clone(),
            resolver: self.resolver.clone(),
            proxy_protocol: self.proxy_protocol,
            identity: self.security.identity.clone(),
            server_name: self.security.server_name.clone(),
            resolve_period: self.limits.times.resolve_period,
        });
    }

    /// Returns what all workers have counted, upstream by upstream, in the order in which they were given. It may be
    /// asked for from any thread, at any time, and costs the workers nothing.
    #[must_use]
    pub fn stats(&self) -> Vec<UpstreamStats> {
        let mut sums: Vec<UpstreamStats> =
            self.upstreams.iter().map(|upstream| UpstreamStats::new(upstream.name())).collect();
        for (sum, watched) in sums.iter_mut().zip(self.watch.list.iter()) {
            sum.is_down = watched.is_down();
            sum.health_checks = watched.checks.load(Ordering::Relaxed);
            sum.health_check_failures = watched.check_failures.load(Ordering::Relaxed);
        }
        let workers = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        for worker in &*workers {
            for (sum, counters) in sums.iter_mut().zip(worker.iter()) {
                counters.add_to(sum);
            }
        }
        sums
    }

    /// Returns what a request says of the upstream that it is to go to.
    #[inline]
    pub(crate) fn leaning(&self, request: &Request<'_>) -> Leaning {
        let key = match &self.balance {
            Balance::Hash(key) => Some(key),
            _ if self.sticky.is_none() => return Leaning::default(),
            _ => None,
        };
        Leaning::of(request, key, self.sticky.as_deref())
    }

    /// The counters of one more worker.
    pub(crate) fn count(&self) -> Arc<[Counters]> {
        let counters: Arc<[Counters]> =
            self.upstreams.iter().map(|_| Counters::default()).collect();
        let mut workers = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        workers.push(Arc::clone(&counters));
        counters
    }

    /// The limits of connections to upstreams.
    pub(crate) fn connection_limits(&self) -> ConnectionLimits {
        let ProxyLimits { response_window_bytes, connection_window_bytes, times, .. } =
            &self.limits;
        let mut limits = ConnectionLimits::default();
        limits.opening.handshake_timeout = times.connect_timeout;
        let h1 = Arc::make_mut(&mut limits.h1);
        h1.pipelined_count = 1;
        h1.times.idle_timeout = times.idle_timeout;
        h1.times.write_timeout = times.pause_timeout;
        let h2 = Arc::make_mut(&mut limits.h2);
        h2.times.idle_time = times.idle_timeout;
        let windows = &mut h2.windows;
        windows.stream_window_bytes = windows.stream_window_bytes.min(*response_window_bytes);
        windows.stream_window_bytes_max = *response_window_bytes;
        windows.connection_window_bytes = *connection_window_bytes;
        windows.connection_window_bytes_max = *connection_window_bytes;
        limits
    }
}
