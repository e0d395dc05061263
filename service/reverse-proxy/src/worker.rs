//! What all lines and passages of one worker share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bolide_client::{LineKey, Workbench};
use bolide_server::{After, Agenda, Outward};

use crate::backends::Backends;
use crate::counters::Counters;
use crate::crossing::Shared;
use crate::failure::Failure;
use crate::line::{Desk, Dialling};
use crate::{ProxyLimits, ProxySettings};

/// One worker's part of a reverse proxy.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) settings: ProxySettings,
    pub(crate) bench: RefCell<Workbench>,
    pub(crate) backends: RefCell<Backends>,
    pub(crate) counters: Arc<[Counters]>,
    /// The worker is to end: lines end when they have nothing left to do.
    pub(crate) draining: Cell<bool>,
}

impl Worker {
    pub(crate) fn new(settings: &ProxySettings) -> Self {
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

    /// Makes the connections that are wanted.
    pub(crate) fn dial(self: &Rc<Self>, upstream: usize, outward: &mut Outward<'_>) {
        let mut backends = self.backends.borrow_mut();
        let backend = &mut backends[upstream];
        for _ in 0..backend.pool.dials_wanted() {
            let desk = Rc::new(Desk::default());
            let (key, to) = backend.begin_dial(Rc::clone(&desk));
            let worker = Rc::clone(self);
            outward.connect(to, Box::new(Dialling { worker, upstream, key, desk }));
        }
    }

    /// A connection could not be made.
    pub(crate) fn dial_failed(
        &self,
        upstream: usize,
        key: LineKey,
        failure: Failure,
        agenda: &mut Agenda,
    ) {
        for crossing in self.dial_ended(upstream, key) {
            let mut crossing = crossing.borrow_mut();
            crossing.waits = false;
            crossing.fail(failure);
            crossing.wake(agenda);
        }
    }

    /// The same, for whoever tells those who wait in vain himself.
    pub(crate) fn dial_ended(&self, upstream: usize, key: LineKey) -> Vec<Shared> {
        self.counters[upstream].connect_failures.count();
        let mut backends = self.backends.borrow_mut();
        let backend = &mut backends[upstream];
        backend.dial_failed();
        backend.pool.closed(key)
    }

    /// Ends the requests that have waited for too long.
    pub(crate) fn end_overdue(&self, upstream: usize, agenda: &mut Agenda, now: Instant) {
        while let Some(crossing) = self.overdue(upstream, now) {
            let mut crossing = crossing.borrow_mut();
            crossing.waits = false;
            crossing.fail(Failure::WAITED);
            crossing.wake(agenda);
        }
    }

    fn overdue(&self, upstream: usize, now: Instant) -> Option<Shared> {
        self.backends.borrow_mut()[upstream].pool.overdue(now)
    }

    /// Each line also watches over those who wait for one.
    pub(crate) fn until_next_wait(&self, upstream: usize, after: After) -> After {
        let due = self.backends.borrow()[upstream].pool.next_due();
        match (after.deadline, due) {
            (Some(own), Some(due)) => after.by(Some(own.min(due))),
            (None, Some(due)) => after.by(Some(due)),
            (_, None) => after,
        }
    }

    /// An upstream answered.
    pub(crate) fn succeeded(&self, upstream: usize) {
        self.counters[upstream].answers.count();
        self.backends.borrow_mut()[upstream].health.succeeded();
    }

    /// A request failed at an upstream.
    pub(crate) fn failed(&self, upstream: usize, failure: &Failure, now: Instant) {
        let counters = &self.counters[upstream];
        counters.failures.count();
        if failure.status == http::StatusCode::GATEWAY_TIMEOUT {
            counters.timeouts.count();
        }
        let mut backends = self.backends.borrow_mut();
        if failure.counts && backends[upstream].health.failed(self.limits(), now) {
            counters.ejections.count();
        }
    }
}
