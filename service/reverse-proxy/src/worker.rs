//! State that all connections and forwarded requests of one worker share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use bolide_client::{ConnectionKey, Workbench};
use bolide_server::{After, Agenda, Destination};

use crate::backends::Backends;
use crate::counters::Counters;
use crate::failure::Failure;
use crate::shared_exchange::Shared;
use crate::watch::Watched;
use crate::{ProxyLimits, ProxySettings};

/// A connection that could not be made.
pub(crate) struct Dial<'a> {
    pub(crate) upstream: usize,
    pub(crate) key: ConnectionKey,
    pub(crate) to: &'a Destination,
    pub(crate) failure: &'a Failure,
    pub(crate) now: Instant,
}

/// One worker's part of a reverse proxy.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) settings: ProxySettings,
    pub(crate) bench: RefCell<Workbench>,
    pub(crate) backends: RefCell<Backends>,
    pub(crate) counters: Arc<[Counters]>,
    /// The worker is to end: connections end when they have nothing left to do.
    pub(crate) draining: Cell<bool>,
}

impl Worker {
    pub(crate) fn new(settings: &ProxySettings) -> Self {
        settings.begin_watch();
        Self {
            settings: settings.clone(),
            bench: RefCell::new(Workbench::new(settings.connection_limits())),
            backends: RefCell::new(Backends::new(settings)),
            counters: settings.count(),
            draining: Cell::new(false),
        }
    }

    pub(crate) fn limits(&self) -> &ProxyLimits {
        &self.settings.limits
    }

    /// Returns what is counted of the upstream that a backend belongs to.
    pub(crate) fn counters(&self, backend: usize) -> &Counters {
        &self.counters[self.backends.borrow()[backend].upstream]
    }

    fn watched(&self, backend: usize) -> &Watched {
        &self.settings.watch.list[self.backends.borrow()[backend].upstream]
    }

    /// Shows the state of the pools in the counters.
    pub(crate) fn show(&self, backend: usize) {
        let mut backends = self.backends.borrow_mut();
        let upstream = backends[backend].upstream;
        backends.sum_up(backend);
        let (open, census) = backends.census(upstream);
        self.counters[upstream].show(open, census);
    }

    /// A connection could not be made.
    pub(crate) fn dial_failed(&self, dial: &Dial<'_>, error: &io::Error, agenda: &mut Agenda) {
        for state in self.dial_ended(dial, &error) {
            state.borrow_mut().wake(agenda);
        }
    }

    /// The same, for a caller that itself wakes the exchanges concerned: those that wait in vain, or the one that can have
    /// the next connection made. `detail` says more than the failure does.
    pub(crate) fn dial_ended(&self, dial: &Dial<'_>, detail: &dyn fmt::Display) -> Vec<Shared> {
        let Dial { upstream, key, to, failure, now } = *dial;
        self.counters(upstream).connect_failures.count();
        let watched = self.watched(upstream);
        let what = format_args!("no connection: {} ({detail})", failure.what).to_string();
        watched.journal.failed(watched.name(), failure.error, &what, now);
        let mut backends = self.backends.borrow_mut();
        let backend = &mut backends[upstream];
        let in_vain = backend.dial_failed(key, to, now);
        for state in &in_vain {
            let mut state = state.borrow_mut();
            state.waits = None;
            state.fail(*failure);
        }
        let next = backend.pool.first_waiting().filter(|_| backend.may_dial());
        next.map(Rc::clone).into_iter().chain(in_vain).collect()
    }

    /// The handler is gone: connections end as soon as they carry nothing.
    pub(crate) fn retire(&self) {
        self.settings.watch.end();
        self.draining.set(true);
        self.backends.borrow().connections().for_each(|tasks| tasks.wake());
    }

    /// Ends the requests that have waited for too long.
    pub(crate) fn end_overdue(&self, upstream: usize, agenda: &mut Agenda, now: Instant) {
        while let Some(state) = self.overdue(upstream, now) {
            let mut state = state.borrow_mut();
            state.waits = None;
            state.fail(Failure::WAITED);
            state.wake(agenda);
        }
    }

    fn overdue(&self, upstream: usize, now: Instant) -> Option<Shared> {
        self.backends.borrow_mut()[upstream].pool.overdue(now)
    }

    /// Each connection also watches over those who wait for one.
    pub(crate) fn until_next_wait(&self, upstream: usize, after: After) -> After {
        let due = self.backends.borrow()[upstream].pool.next_due();
        match (after.deadline, due) {
            (Some(own), Some(due)) => after.by(Some(own.min(due))),
            (None, Some(due)) => after.by(Some(due)),
            (_, None) => after,
        }
    }

    /// An upstream answered, so long after it was asked.
    pub(crate) fn succeeded(&self, upstream: usize, took: Duration) {
        let counters = self.counters(upstream);
        counters.responses.count();
        counters.latency.count(took);
        if self.backends.borrow_mut().health_of(upstream).succeeded() {
            self.tell_health(upstream);
        }
    }

    /// Leaves what failures say of an upstream to the successor.
    #[cold]
    fn tell_health(&self, at: usize) {
        let backends = self.backends.borrow();
        let at = backends[at].copy_of.unwrap_or(at);
        let backend = &backends[at];
        // What there is in addition for tunnels does not speak for it.
        if backend.upstream == at {
            self.settings.watch.list[at].set_health(backend.health);
        }
    }

    /// A request came back from an upstream.
    #[cold]
    pub(crate) fn looped(&self, now: Instant) {
        let watched = &self.settings.watch.list[0];
        let Failure { error, what, .. } = Failure::LOOP;
        watched.journal.failed(watched.name(), error, &what, now);
    }

    /// A request failed at an upstream.
    pub(crate) fn failed(&self, upstream: usize, failure: &Failure, now: Instant) {
        failure.count(self.counters(upstream));
        let watched = self.watched(upstream);
        if failure.counts && !failure.is_of_connecting() {
            let what = format!("{}: {}", failure.summary(), failure.what);
            watched.journal.failed(watched.name(), failure.error, &what, now);
        } else if failure.status == http::StatusCode::SERVICE_UNAVAILABLE {
            watched.journal.failed(watched.name(), failure.error, &failure.what, now);
        }
        if !failure.counts {
            return;
        }
        let pause = self.backends.borrow_mut().health_of(upstream).failed(self.limits(), now);
        if let Some(pause) = pause {
            self.tell_health(upstream);
            self.counters(upstream).ejections.count();
            let failures = self.limits().choice.failures_count;
            let what = format!(
                "ejected for {pause:?} after {failures} consecutive failures or more (last: {})",
                failure.what
            );
            watched.journal.down(watched.name(), &what, now);
        }
    }
}
