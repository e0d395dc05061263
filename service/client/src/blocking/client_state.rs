//! State that the connections of a client's thread share: servers, their pools, and what waits for whom.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_eventloop::{Destination, Token};
use slab::Slab;

use super::error::{ClientError, ErrorKind};
use super::pending_request::{Job, Origin, PendingRequest};
use crate::{ConnectionKey, Dial, Pool, PoolLimits};

/// Tasks that are left for a connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTasks {
    pub(crate) token: Option<Token>,
    pub(crate) inbox: Vec<Arc<PendingRequest>>,
}

/// One server, as the client knows it.
#[derive(Debug)]
pub(crate) struct Host {
    origin: Origin,
    pub(crate) pool: Pool<usize, Arc<PendingRequest>>,
    pub(crate) dial: Dial,
    pub(crate) destinations: Vec<Destination>,
    pub(crate) next: usize,
    /// Connections in a row that could not be made.
    pub(crate) failures: usize,
}

/// State that all connections share.
#[derive(Debug)]
pub(crate) struct ClientState {
    pub(crate) hosts: Slab<Host>,
    by_origin: BTreeMap<Origin, usize>,
    pub(crate) tasks: Slab<ConnectionTasks>,
    pool_limits: PoolLimits,
}

/// A connection that was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialling {
    pub(crate) host: usize,
    pub(crate) key: ConnectionKey,
    pub(crate) tasks: usize,
}

/// Requests wait for as long as their callers do.
const UNTIL_GIVEN_UP: Duration = Duration::from_secs(366 * 24 * 3600);

impl ClientState {
    /// One without connections, with so many of them and so many requests that wait for each server.
    pub(crate) fn new(connections: usize, waiting: usize) -> Self {
        let pool_limits = PoolLimits {
            connections_count: connections.max(1),
            waiting_count: waiting,
            wait_timeout: UNTIL_GIVEN_UP,
        };
        Self { hosts: Slab::new(), by_origin: BTreeMap::new(), tasks: Slab::new(), pool_limits }
    }

    fn host(&mut self, job: &Job) -> usize {
        if let Some(host) = self.by_origin.get(&job.origin) {
            let known = &mut self.hosts[*host];
            if known.destinations != job.destinations {
                known.destinations.clone_from(&job.destinations);
                known.next = 0;
            }
            return *host;
        }
        let multiplexes = match (job.origin.is_tls, job.origin.is_prior) {
            _ if matches!(job.destinations[..], [Destination::Datagrams(_), ..]) => Some(true),
            (false, is_prior) => Some(is_prior),
            (true, _) => None,
        };
        let host = self.hosts.insert(Host {
            origin: job.origin.clone(),
            pool: Pool::new(self.pool_limits, multiplexes),
            dial: job.dial.clone(),
            destinations: job.destinations.clone(),
            next: 0,
            failures: 0,
        });
        self.by_origin.insert(job.origin.clone(), host);
        host
    }

    /// Takes a new request. Returns the connection that is to be called.
    pub(crate) fn begin(&mut self, job: Job) -> (usize, Option<Token>) {
        let host = self.host(&job);
        let pool = &mut self.hosts[host].pool;
        if let Some(tasks) = pool.take() {
            let tasks = *tasks;
            let mut state = job.pending.lock();
            state.connection = Some(tasks);
            state.listed = true;
            drop(state);
            let tasks = &mut self.tasks[tasks];
            tasks.inbox.push(job.pending);
            return (host, tasks.token);
        }
        match pool.wait(Arc::clone(&job.pending), Instant::now()) {
            Ok(key) => job.pending.lock().waits = Some((host, key)),
            Err(pending) => {
                let what = "as many requests wait for this server as may";
                pending.fail(ClientError::new(ErrorKind::Full, what));
            }
        }
        (host, None)
    }

    /// A caller has left something.
    pub(crate) fn look(&mut self, pending: Arc<PendingRequest>) -> Option<Token> {
        let mut state = pending.lock();
        let Some(connection) = state.connection else {
            state.listed = false;
            // Nothing waits for it any more.
            if state.abandoned
                && let Some((host, key)) = state.waits.take()
            {
                drop(state);
                self.hosts[host].pool.forget(key);
            }
            return None;
        };
        drop(state);
        let tasks = self.tasks.get_mut(connection)?;
        tasks.inbox.push(pending);
        tasks.token
    }

    /// A connection could not be made: another address is tried, or those who wait are told.
    pub(crate) fn dial_failed(&mut self, dialling: Dialling, error: &ClientError) {
        let host = &mut self.hosts[dialling.host];
        host.next = (host.next + 1) % host.destinations.len();
        host.failures += 1;
        let waiting = host.pool.closed(dialling.key);
        let tries_another = !host.failures.is_multiple_of(host.destinations.len());
        for pending in waiting {
            if !tries_another {
                pending.fail(error.clone());
                continue;
            }
            match host.pool.wait(Arc::clone(&pending), Instant::now()) {
                Ok(key) => pending.lock().waits = Some((dialling.host, key)),
                Err(pending) => pending.fail(error.clone()),
            }
        }
        self.tasks.remove(dialling.tasks);
    }

    /// Forgets servers that nothing is known of any more.
    pub(crate) fn tidy(&mut self, host: usize) {
        if self.hosts.get(host).is_some_and(|host| host.pool.counts() == (0, 0)) {
            let gone = self.hosts.remove(host);
            self.by_origin.remove(&gone.origin);
        }
    }
}
