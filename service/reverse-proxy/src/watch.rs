//! Knowledge about upstreams that does not come from responses: whether they are well, and where they are. Workers
//! read it; the keeper writes it.

mod keeper;
mod probe;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use bolide_client::{Identity, ResolveError, Trust, resolve};
use bolide_server::{Destination, ProxyVersion};

use crate::ejection::Health;
use crate::health::{HealthCheck, Streak};
use crate::journal::Journal;
use crate::upstream::Upstream;

/// How names are looked up: host and port.
pub(crate) type Look = dyn Fn(&str, u16) -> Result<Vec<SocketAddr>, ResolveError> + Send + Sync;

/// How the addresses of upstreams are looked up.
#[derive(Clone)]
pub(crate) struct Resolver(pub(crate) Arc<Look>);

impl Default for Resolver {
    fn default() -> Self {
        Self(Arc::new(resolve))
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Resolver")
    }
}

/// Knowledge of all workers about one upstream.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) upstream: Upstream,
    pub(crate) journal: Journal,
    pub(crate) checks: AtomicU64,
    pub(crate) check_failures: AtomicU64,
    found: Arc<Found>,
}

/// Findings about an upstream, which outlives the proxy that found it out when another takes over.
#[derive(Debug)]
struct Found {
    is_down: AtomicBool,
    /// When checks that succeed brought it back.
    up_since: Mutex<Option<Instant>>,
    streak: Mutex<Streak>,
    /// Health by failures, as the worker that was told last has it.
    health: Mutex<Health>,
    /// Rises with each change of the addresses.
    generation: AtomicU64,
    destinations: Mutex<Vec<Destination>>,
}

impl Watched {
    fn new(upstream: &Upstream) -> Self {
        Self {
            upstream: upstream.clone(),
            journal: Journal::default(),
            checks: AtomicU64::new(0),
            check_failures: AtomicU64::new(0),
            found: Arc::new(Found {
                is_down: AtomicBool::new(false),
                up_since: Mutex::default(),
                streak: Mutex::default(),
                health: Mutex::default(),
                generation: AtomicU64::new(0),
                destinations: Mutex::new(upstream.destinations.clone()),
            }),
        }
    }

    /// The same upstream as before: what was found out about it stays. Where it is, was looked up just now.
    fn take_over(&mut self, before: &Self) {
        self.found = Arc::clone(&before.found);
        self.found.move_to(self.upstream.destinations.clone());
    }

    /// Returns what failures of requests say of it, when they begin or cease to say something.
    pub(crate) fn health(&self) -> Health {
        *self.found.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker has seen what failures say.
    #[cold]
    pub(crate) fn set_health(&self, health: Health) {
        *self.found.health.lock().unwrap_or_else(PoisonError::into_inner) = health;
    }

    pub(crate) fn name(&self) -> &str {
        self.upstream.name()
    }

    /// The checks have found it down.
    #[inline]
    pub(crate) fn is_down(&self) -> bool {
        self.found.is_down.load(Ordering::Relaxed)
    }

    /// When checks that succeed brought it back.
    pub(crate) fn up_since(&self) -> Option<Instant> {
        *self.found.up_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.found.generation.load(Ordering::Acquire)
    }

    pub(crate) fn destinations(&self) -> Vec<Destination> {
        self.found.destinations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A check has ended; when it failed, with what was wrong.
    fn checked(&self, result: Result<(), String>, check: &HealthCheck) {
        self.checks.fetch_add(1, Ordering::Relaxed);
        self.check_failures.fetch_add(u64::from(result.is_err()), Ordering::Relaxed);
        let mut streak = self.found.streak.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(is_down) = streak.add(result.is_ok(), check) else { return };
        let now = Instant::now();
        if !is_down {
            *self.found.up_since.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        }
        self.found.is_down.store(is_down, Ordering::Relaxed);
        match result {
            Ok(()) => {
                let what = "it is up: its health checks succeed";
                self.journal.noted(self.name(), &what, now);
            }
            Err(why) => {
                let what =
                    format_args!("it is down, for its health checks fail: {why}").to_string();
                self.journal.down(self.name(), &what, now);
            }
        }
    }

    /// Its name was looked up again.
    fn resolved(&self, found: Result<Vec<SocketAddr>, ResolveError>) {
        let now = Instant::now();
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let what = format!("its addresses stay as they were: {error}");
                return self.journal.failed(self.name(), "dns_error", &what, now);
            }
        };
        let addresses: Vec<_> = found.iter().map(ToString::to_string).collect();
        let scheme = self.upstream.scheme;
        if !self.found.move_to(found.into_iter().map(|address| scheme.to(address)).collect()) {
            return;
        }
        let what = format!("its addresses are {} now", addresses.join(", "));
        self.journal.noted(self.name(), &what, now);
    }
}

impl Found {
    /// Takes over where the upstream is. Whether that is elsewhere.
    fn move_to(&self, destinations: Vec<Destination>) -> bool {
        // Resolvers answer in another order each time.
        let sorted = |list: &[Destination]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list
        };
        let mut known = self.destinations.lock().unwrap_or_else(PoisonError::into_inner);
        if sorted(&destinations) == sorted(&known) {
            return false;
        }
        *known = destinations;
        drop(known);
        self.generation.fetch_add(1, Ordering::Release);
        true
    }
}

/// Knowledge about all upstreams of a proxy, and its source.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) list: Arc<[Watched]>,
    keeper: OnceLock<Option<keeper::Keeper>>,
    /// Handlers that respond by what is found out.
    handlers_count: AtomicUsize,
    /// Another proxy finds out the same from here on.
    is_replaced: AtomicBool,
}

/// Questions that are to be answered.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    pub(crate) check: Option<HealthCheck>,
    /// Whom the checks trust.
    pub(crate) trust: Trust,
    pub(crate) resolver: Resolver,
    /// Start of the connections of checks.
    pub(crate) proxy_protocol: Option<ProxyVersion>,
    /// The certificate that they show.
    pub(crate) identity: Option<Identity>,
    pub(crate) server_name: Option<String>,
    /// How often names are looked up again; zero: never.
    pub(crate) resolve_period: std::time::Duration,
}

impl Watch {
    pub(crate) fn new(upstreams: &[Upstream]) -> Self {
        Self::of(upstreams.iter().map(Watched::new).collect())
    }

    fn of(list: Arc<[Watched]>) -> Self {
        Self {
            list,
            keeper: OnceLock::new(),
            handlers_count: AtomicUsize::new(0),
            is_replaced: AtomicBool::new(false),
        }
    }

    /// One more handler begins, if there is anything to find out, and no other has begun before.
    pub(crate) fn begin(&self, orders: &Orders) {
        self.handlers_count.fetch_add(1, Ordering::AcqRel);
        self.keeper.get_or_init(|| keeper::Keeper::start(&self.list, orders));
    }

    /// A handler is over. When it was the last, and others answer in its place, nothing is found out any more.
    pub(crate) fn end(&self) {
        let is_last = self.handlers_count.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last
            && self.is_replaced.load(Ordering::Acquire)
            && let Some(Some(keeper)) = self.keeper.get()
        {
            keeper.stop();
        }
    }

    /// The same with what was found out about those that were there `before`.
    pub(crate) fn after<'a>(
        upstreams: &[Upstream],
        mut before: impl FnMut(&Upstream) -> Option<&'a Watched>,
    ) -> Self {
        let watched = |upstream: &Upstream| {
            let mut watched = Watched::new(upstream);
            if let Some(before) = before(upstream) {
                watched.take_over(before);
            }
            watched
        };
        Self::of(upstreams.iter().map(watched).collect())
    }

    /// Another proxy answers from here on, as soon as the handlers of this one are gone.
    pub(crate) fn replaced(&self) {
        self.is_replaced.store(true, Ordering::Release);
    }
}
