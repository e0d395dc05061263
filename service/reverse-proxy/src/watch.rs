//! What is found out about upstreams beside requests: whether they are well, and where they are. Workers
//! read it; the keeper writes it.

mod keeper;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use bolide_client::{ResolveError, Trust, resolve};
use bolide_server::Destination;

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

/// What all workers know of one upstream.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) upstream: Upstream,
    pub(crate) journal: Journal,
    is_down: AtomicBool,
    pub(crate) checks: AtomicU64,
    pub(crate) check_failures: AtomicU64,
    streak: Mutex<Streak>,
    /// Rises with each change of the addresses.
    generation: AtomicU64,
    destinations: Mutex<Vec<Destination>>,
}

impl Watched {
    fn new(upstream: &Upstream) -> Self {
        Self {
            upstream: upstream.clone(),
            journal: Journal::default(),
            is_down: AtomicBool::new(false),
            checks: AtomicU64::new(0),
            check_failures: AtomicU64::new(0),
            streak: Mutex::default(),
            generation: AtomicU64::new(0),
            destinations: Mutex::new(upstream.destinations.clone()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.upstream.name()
    }

    /// The checks have found it down.
    #[inline]
    pub(crate) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn destinations(&self) -> Vec<Destination> {
        self.destinations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A check has ended; when it failed, with what was wrong.
    fn checked(&self, result: Result<(), String>, check: &HealthCheck) {
        self.checks.fetch_add(1, Ordering::Relaxed);
        self.check_failures.fetch_add(u64::from(result.is_err()), Ordering::Relaxed);
        let mut streak = self.streak.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(is_down) = streak.add(result.is_ok(), check) else { return };
        self.is_down.store(is_down, Ordering::Relaxed);
        let now = Instant::now();
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
        let mut found: Vec<_> = found.into_iter().map(Destination::Inet).collect();
        let mut known = self.destinations.lock().unwrap_or_else(PoisonError::into_inner);
        // Resolvers answer in another order each time.
        let sorted = |list: &[Destination]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list
        };
        if sorted(&found) == sorted(&known) {
            return;
        }
        std::mem::swap(&mut *known, &mut found);
        let addresses: Vec<_> = known.iter().filter_map(address).collect();
        drop(known);
        self.generation.fetch_add(1, Ordering::Release);
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let what = format!("its addresses are {} now", addresses.join(", "));
        self.journal.noted(self.name(), &what, now);
    }
}

fn address(destination: &Destination) -> Option<SocketAddr> {
    match destination {
        Destination::Inet(address) => Some(*address),
        Destination::Unix(_) => None,
    }
}

/// What is known of all upstreams of a proxy, and who finds it out.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) list: Arc<[Watched]>,
    keeper: OnceLock<Option<keeper::Keeper>>,
}

/// What is to be found out.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    pub(crate) check: Option<HealthCheck>,
    /// Whom the checks trust.
    pub(crate) trust: Trust,
    pub(crate) resolver: Resolver,
    /// How often names are looked up again; zero: never.
    pub(crate) resolve_period: std::time::Duration,
}

impl Watch {
    pub(crate) fn new(upstreams: &[Upstream]) -> Self {
        Self { list: upstreams.iter().map(Watched::new).collect(), keeper: OnceLock::new() }
    }

    /// Begins, if there is anything to find out, and somebody has not begun before.
    pub(crate) fn begin(&self, orders: &Orders) {
        self.keeper.get_or_init(|| keeper::Keeper::start(&self.list, orders));
    }
}
