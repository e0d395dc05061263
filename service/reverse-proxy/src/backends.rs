//! The upstreams of one worker: their pools, their health, and whose turn it is.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_client::{ConnectionKey, Dial, Pool, PoolCensus, PoolLimits};
use bolide_server::{Destination, ProxyHeader, ProxyVersion};
use fastrand::Rng;
use slab::Slab;

use crate::affinity::{Leaning, hash, score};
use crate::ejection::Health;
use crate::shared_exchange::{ConnectionTasks, Shared};
use crate::upstream::Scheme;
use crate::watch::Watched;
use crate::{Balance, ProxySettings};

/// One upstream as a worker sees it, or what a worker has in addition for tunnels.
#[derive(Debug)]
pub(crate) struct Backend {
    /// Which upstream it is.
    pub(crate) upstream: usize,
    /// Backend of tunnels that it does not take itself: HTTP/1.1 to the same upstream.
    pub(crate) for_tunnels: Option<usize>,
    /// Its HTTP/2 takes no extended CONNECT, as the connection made last has it.
    pub(crate) refuses_tunnels: bool,
    pub(crate) pool: Pool<Rc<ConnectionTasks>, Shared>,
    pub(crate) dial: Dial,
    pub(crate) authority: String,
    pub(crate) is_https: bool,
    /// Requests that are open here, those that wait among them.
    pub(crate) outstanding: u32,
    pub(crate) health: Health,
    /// Backend that it is a copy of, for one client.
    pub(crate) copy_of: Option<usize>,
    /// Shared with its connections.
    pub(crate) lease: Rc<()>,
    /// Numbers of all copies of an upstream; for a copy, what of it is in that sum.
    pub(crate) of_clients: PoolCensus,
    multiplexes: Option<bool>,
    /// Addresses that connections go to.
    addresses: Addresses,
    /// The share of the requests that it gets.
    share: Share,
}

/// The share of the requests that it gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    weight: u32,
    /// The hash of its name.
    hash: u64,
    /// Credit of round-robin.
    credit: i64,
}

/// Addresses that connections go to.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    destinations: Vec<Destination>,
    next: usize,
    /// How many of them no connection could be made to, one after the other, since one could.
    unreachable: usize,
    /// Which addresses these are, of those that the watch has found.
    generation: u64,
}

impl Backend {
    /// Enters one more connection into the pool; where it goes.
    pub(crate) fn begin_dial(&mut self) -> (ConnectionKey, Rc<ConnectionTasks>, Destination) {
        let destination = self.addresses.destinations[self.addresses.next].clone();
        let tasks = ConnectionTasks::new(destination.clone(), Rc::clone(&self.lease));
        let tasks = Rc::new(tasks);
        let key = self.pool.dial(Rc::clone(&tasks));
        tasks.key.set(Some(key));
        (key, tasks, destination)
    }

    /// A copy without connections, for one client.
    pub(crate) fn for_client(&self, own: usize, preamble: Arc<[u8]>, limits: PoolLimits) -> Self {
        Self {
            pool: Pool::new(limits, self.multiplexes),
            dial: Dial { preamble: Some(preamble), ..self.dial.clone() },
            authority: self.authority.clone(),
            outstanding: 0,
            copy_of: Some(own),
            lease: Rc::default(),
            of_clients: PoolCensus::default(),
            addresses: Addresses { unreachable: 0, ..self.addresses.clone() },
            ..*self
        }
    }

    /// Takes the addresses over that the watch has found. Connections to others end when what they carry is
    /// complete.
    fn move_to(&mut self, watched: &Watched) {
        self.addresses.generation = watched.generation();
        self.addresses.destinations = watched.destinations();
        (self.addresses.next, self.addresses.unreachable) = (0, 0);
        let is_left =
            |tasks: &&Rc<ConnectionTasks>| !self.addresses.destinations.contains(&tasks.to);
        let left: Vec<Rc<ConnectionTasks>> =
            self.pool.connections().filter(is_left).map(Rc::clone).collect();
        for tasks in left {
            tasks.is_leaving.set(true);
            if let Some(key) = tasks.key.get() {
                self.pool.set_room(key, 0);
            }
        }
    }

    /// A connection is ready.
    pub(crate) fn dial_succeeded(&mut self) {
        self.addresses.unreachable = 0;
    }

    /// A connection could not be made: the next goes to another address, if there is one. Returns those who wait
    /// in vain, once no address is left that was not tried.
    pub(crate) fn dial_failed(
        &mut self,
        key: ConnectionKey,
        to: &Destination,
        now: Instant,
    ) -> Vec<Shared> {
        // Others may have found out the same.
        if self.addresses.destinations[self.addresses.next] == *to {
            self.addresses.next = (self.addresses.next + 1) % self.addresses.destinations.len();
            self.addresses.unreachable += 1;
        }
        if self.may_dial() {
            self.pool.elsewhere(key, now);
            return Vec::new();
        }
        let in_vain = self.pool.closed(key);
        if self.pool.counts().0 == 0 {
            self.addresses.unreachable = 0;
        }
        in_vain
    }

    /// Returns whether an address is left that was not tried in vain just now.
    pub(crate) fn may_dial(&self) -> bool {
        self.addresses.unreachable < self.addresses.destinations.len()
    }
}

/// So many pools stay at least before those that are empty are dropped.
pub(crate) const KEPT_COUNT: usize = 16;

/// Which clients have pools of their own.
#[derive(Debug)]
pub(crate) struct ClientPools {
    /// How headers are written.
    pub(crate) version: ProxyVersion,
    /// The backend of a client, by what it is a copy of.
    pub(crate) places: HashMap<(usize, ProxyHeader), usize>,
    /// With so many, empty ones are dropped.
    pub(crate) sweep_at: usize,
    /// Place at which the search for an idle connection goes on.
    pub(crate) hand: usize,
}

impl ClientPools {
    fn new(version: ProxyVersion) -> Self {
        Self { version, places: HashMap::new(), sweep_at: KEPT_COUNT, hand: 0 }
    }
}

/// All upstreams of one worker.
#[derive(Debug)]
pub(crate) struct Backends {
    /// The upstreams, and behind them what there is in addition for tunnels.
    pub(crate) list: Slab<Backend>,
    /// Copies for clients, where connections begin with a PROXY header.
    pub(crate) clients: Option<ClientPools>,
    pub(crate) pool_limits: PoolLimits,
    upstreams: usize,
    watched: Arc<[Watched]>,
    balance: Balance,
    outstanding_count: u32,
    hash_load_percent: u32,
    slow_start: Duration,
    random: Rng,
    budget: RetryBudget,
}

impl std::ops::Index<usize> for Backends {
    type Output = Backend;

    fn index(&self, at: usize) -> &Backend {
        &self.list[at]
    }
}

impl std::ops::IndexMut<usize> for Backends {
    fn index_mut(&mut self, at: usize) -> &mut Backend {
        &mut self.list[at]
    }
}

impl Backends {
    pub(crate) fn new(settings: &ProxySettings) -> Self {
        let limits = &settings.limits;
        let pool_limits = PoolLimits {
            connections_count: limits.connections_count.max(1),
            waiting_count: limits.waiting_count,
            wait_timeout: limits.times.wait_timeout,
        };
        let backend = |at: usize, dial: Dial, multiplexes: Option<bool>| {
            let upstream = &settings.upstreams[at];
            Backend {
                upstream: at,
                for_tunnels: None,
                refuses_tunnels: false,
                pool: Pool::new(pool_limits, multiplexes),
                copy_of: None,
                lease: Rc::default(),
                of_clients: PoolCensus::default(),
                multiplexes,
                dial,
                authority: upstream.authority.clone(),
                is_https: upstream.scheme.is_secure(),
                outstanding: 0,
                health: settings.watch.list[at].health(),
                addresses: Addresses {
                    destinations: settings.watch.list[at].destinations(),
                    next: 0,
                    unreachable: 0,
                    generation: settings.watch.list[at].generation(),
                },
                share: Share {
                    weight: upstream.weight,
                    hash: hash(upstream.name().as_bytes()),
                    credit: 0,
                },
            }
        };
        let name = settings.security.server_name.as_deref();
        let mut list = Slab::new();
        for (at, upstream) in settings.upstreams.iter().enumerate() {
            let multiplexes = match upstream.scheme {
                Scheme::Http1 => Some(false),
                Scheme::Http2 | Scheme::Http3 => Some(true),
                Scheme::Tls => None,
            };
            let dial =
                upstream.dial(settings.security.tls.as_ref(), name, limits.times.connect_timeout);
            list.insert(backend(at, dial, multiplexes));
        }
        for (at, upstream) in settings.upstreams.iter().enumerate() {
            let tls = settings.security.tunnel_tls.as_ref();
            if let Some(dial) = upstream.tunnel_dial(tls, name, limits.times.connect_timeout) {
                list[at].for_tunnels = Some(list.insert(backend(at, dial, Some(false))));
            }
        }
        Self {
            list,
            clients: settings.proxy_protocol.map(ClientPools::new),
            pool_limits,
            upstreams: settings.upstreams.len(),
            watched: Arc::clone(&settings.watch.list),
            balance: settings.balance.clone(),
            outstanding_count: limits.outstanding_count,
            hash_load_percent: limits.choice.hash_load_percent,
            slow_start: limits.choice.slow_start,
            random: Rng::with_seed(1),
            budget: RetryBudget::new(limits.retry_budget_percent),
        }
    }

    /// Takes over what the watch has found out about an upstream that is about to be asked.
    pub(crate) fn refresh(&mut self, at: usize) {
        let watched = &self.watched[self.list[at].upstream];
        if self.list[at].addresses.generation != watched.generation() {
            self.list[at].move_to(watched);
        }
    }

    /// One more request is open.
    pub(crate) fn enter(&mut self, at: usize) {
        self.list[at].outstanding += 1;
        if let Some(shared) = self.list[at].copy_of {
            self.list[shared].outstanding += 1;
        }
    }

    /// A request is over.
    pub(crate) fn leave(&mut self, at: usize) {
        self.list[at].outstanding -= 1;
        if let Some(shared) = self.list[at].copy_of {
            self.list[shared].outstanding -= 1;
        }
    }

    /// The health that a backend's requests count for.
    pub(crate) fn health_of(&mut self, at: usize) -> &mut Health {
        let at = self.list[at].copy_of.unwrap_or(at);
        &mut self.list[at].health
    }

    /// The requests that are open at an upstream, and what its pools hold.
    pub(crate) fn census(&self, upstream: usize) -> (u32, PoolCensus) {
        let own = &self.list[upstream];
        let (mut open, mut census) = (own.outstanding, own.pool.census());
        let beside = own.for_tunnels.map(|at| &self.list[at]);
        open += beside.map_or(0, |beside| beside.outstanding);
        for other in [own.of_clients].into_iter().chain(beside.map(|beside| beside.pool.census())) {
            census.connecting += other.connecting;
            census.open += other.open;
            census.busy += other.busy;
            census.tunnels += other.tunnels;
            census.waiting += other.waiting;
        }
        (open, census)
    }

    /// All connections to all upstreams.
    pub(crate) fn connections(&self) -> impl Iterator<Item = &Rc<ConnectionTasks>> {
        self.list.iter().flat_map(|(_, backend)| backend.pool.connections())
    }

    /// Returns whose turn it is: one that is healthy and not full, and not `avoided` if there is another; among these, the one that the
    /// request's cookie names. When all are left alone or down, the one that will be asked again soonest: a request to
    /// one of them is never worse than none.
    pub(crate) fn pick(
        &mut self,
        leaning: Leaning,
        avoided: Option<usize>,
        now: Instant,
    ) -> Option<usize> {
        let most = self.outstanding_count;
        let has_room = |backend: &Backend| backend.outstanding < most;
        if self.upstreams == 1 {
            return has_room(&self.list[0]).then_some(0);
        }
        let usable = |at: &usize| {
            let (backend, watched) = (&self.list[*at], &self.watched[*at]);
            has_room(backend) && !watched.is_down() && !backend.health.is_left_alone(now)
        };
        let mut candidates: Vec<usize> = (0..self.upstreams).filter(usable).collect();
        if candidates.len() > 1 {
            candidates.retain(|at| Some(*at) != avoided);
        }
        if let Some(named) = leaning.named.filter(|named| candidates.contains(named)) {
            return Some(named);
        }
        if !self.slow_start.is_zero() {
            self.hold_back(&mut candidates, now);
        }
        match candidates[..] {
            [] => (0..self.upstreams).filter(|at| has_room(&self.list[*at])).min_by_key(|at| {
                (self.watched[*at].is_down(), self.list[*at].health.left_alone_until)
            }),
            [one] => Some(one),
            _ => Some(match self.balance {
                Balance::RoundRobin => self.next_in_turn(&candidates),
                Balance::LeastRequests => self.least_busy(&candidates),
                Balance::Hash(_) => self.by_hash(leaning.hash, &candidates),
                Balance::PowerOfTwo => {
                    let one = candidates.swap_remove(self.draw(candidates.len()));
                    let other = candidates[self.draw(candidates.len())];
                    self.least_busy(&[one, other])
                }
            }),
        }
    }

    /// Leaves out those that have just come back, less and less often, as long as there are others.
    fn hold_back(&mut self, candidates: &mut Vec<usize>, now: Instant) {
        let mut ready = Vec::with_capacity(candidates.len());
        for at in candidates.iter().copied() {
            let since = self.list[at].health.back_since(now).max(self.watched[at].up_since());
            let back_for =
                since.map_or(self.slow_start, |since| now.saturating_duration_since(since));
            let drawn = self.draw(1 << 16) as f64 / f64::from(1 << 16);
            if back_for >= self.slow_start.mul_f64(drawn) {
                ready.push(at);
            }
        }
        if !ready.is_empty() {
            *candidates = ready;
        }
    }

    /// The one whose score is highest among those that have not more than their share of the open requests.
    fn by_hash(&self, request: u64, candidates: &[usize]) -> usize {
        let sum = |of: fn(&Backend) -> u32| -> u64 {
            candidates.iter().map(|at| u64::from(of(&self.list[*at]))).sum()
        };
        let (open, weights) = (sum(|one| one.outstanding) + 1, sum(|one| one.share.weight));
        let share = u64::from(self.hash_load_percent.max(101)) * open;
        let has_room = |backend: &Backend| {
            u64::from(backend.outstanding) * weights * 100 < share * u64::from(backend.share.weight)
        };
        let mut best = (f64::NEG_INFINITY, candidates[0]);
        for at in candidates {
            let backend = &self.list[*at];
            let score = score(request, backend.share.hash, backend.share.weight);
            if score > best.0 && has_room(backend) {
                best = (score, *at);
            }
        }
        best.1
    }

    /// Each gets its weight, and the one that is owed the most is next: turns are spread evenly.
    fn next_in_turn(&mut self, candidates: &[usize]) -> usize {
        let mut total = 0;
        let mut next = candidates[0];
        for at in candidates {
            let backend = &mut self.list[*at];
            backend.share.credit += i64::from(backend.share.weight);
            total += i64::from(backend.share.weight);
            if self.list[*at].share.credit > self.list[next].share.credit {
                next = *at;
            }
        }
        self.list[next].share.credit -= total;
        next
    }

    fn least_busy(&mut self, candidates: &[usize]) -> usize {
        let start = self.draw(candidates.len());
        let (before, from) = candidates.split_at(start);
        // Among equals, any.
        let mut least = from[0];
        for at in from.iter().chain(before) {
            let load = |at: usize, other: usize| {
                u64::from(self.list[at].outstanding) * u64::from(self.list[other].share.weight)
            };
            if load(*at, least) < load(least, *at) {
                least = *at;
            }
        }
        least
    }

    /// A number below `below`.
    fn draw(&mut self, below: usize) -> usize {
        self.random.usize(..below)
    }

    /// Bytes that are no secret.
    pub(crate) fn bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        bytes
    }

    /// One more request came: it adds to what may be repeated.
    pub(crate) fn requested(&mut self) {
        self.budget.requested();
    }

    /// Returns whether one more request may be repeated.
    pub(crate) fn may_repeat(&mut self) -> bool {
        self.budget.spend()
    }
}

/// How much may be repeated: a share of what is asked.
#[derive(Debug)]
struct RetryBudget {
    /// Share that each request adds, in hundredths of a repetition.
    share: u32,
    /// In hundredths.
    saved: u32,
}

impl RetryBudget {
    /// Ten repetitions, in hundredths: what a quiet proxy may repeat at once.
    const SAVED_FIRST: u32 = 1000;
    /// A hundred: what a busy one may, as when an upstream ends with that many open requests.
    const SAVED_MAX: u32 = 10_000;

    fn new(percent: u32) -> Self {
        Self { share: percent, saved: Self::SAVED_FIRST }
    }

    fn requested(&mut self) {
        self.saved = self.saved.saturating_add(self.share).min(Self::SAVED_MAX);
    }

    fn spend(&mut self) -> bool {
        let left = self.saved.checked_sub(100);
        self.saved = left.unwrap_or(self.saved);
        left.is_some()
    }
}

#[cfg(test)]
mod tests;
