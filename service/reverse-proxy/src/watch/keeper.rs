//! Timekeeper of checks and look-ups: one thread for each proxy. What may block is done by a pool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::probe::{probe, prober};
use super::{Orders, Watched};
use bolide_eventloop::{Offload, OffloadLimits};

/// Threads for checks and look-ups: those of so many upstreams go on at the same time.
const THREADS_COUNT: usize = 8;

/// The thread, which ends with this.
#[derive(Debug)]
pub(super) struct Keeper {
    stop: Arc<(Mutex<bool>, Condvar)>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Something to be done repeatedly.
struct Errand {
    due: Instant,
    period: Duration,
    /// It is under way: the next waits until it is over.
    busy: Arc<AtomicBool>,
    act: Arc<dyn Fn() + Send + Sync>,
}

impl Keeper {
    /// `None` when there is nothing to find out, or the system has no thread left.
    pub(super) fn start(list: &Arc<[Watched]>, orders: &Orders) -> Option<Self> {
        let errands = errands(list, orders);
        if errands.is_empty() {
            return None;
        }
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("bolide-watch".into())
            .spawn(move || keep_time(errands, &stopped));
        thread.is_ok().then_some(Self { stop })
    }

    /// Nothing is begun any more.
    pub(super) fn stop(&self) {
        let (stop, changed) = &*self.stop;
        *stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }
}

fn keep_time(mut errands: Vec<Errand>, stop: &(Mutex<bool>, Condvar)) {
    let limits = OffloadLimits { offload_threads_count: THREADS_COUNT, ..OffloadLimits::default() };
    let offload = Offload::new(limits);
    loop {
        let now = Instant::now();
        for errand in errands.iter_mut().filter(|errand| errand.due <= now) {
            errand.due = now + errand.period;
            if errand.busy.swap(true, Ordering::AcqRel) {
                continue;
            }
            let (act, busy) = (Arc::clone(&errand.act), Arc::clone(&errand.busy));
            let submitted = offload.submit(move || {
                act();
                busy.store(false, Ordering::Release);
            });
            if submitted.is_err() {
                errand.busy.store(false, Ordering::Release);
            }
        }
        let Some(next) = errands.iter().map(|errand| errand.due).min() else { return };
        let stopped = stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = next.saturating_duration_since(Instant::now());
        let waited = stop.1.wait_timeout_while(stopped, wait, |stopped| !*stopped);
        if *waited.unwrap_or_else(PoisonError::into_inner).0 {
            return;
        }
    }
}

fn errands(list: &Arc<[Watched]>, orders: &Orders) -> Vec<Errand> {
    let now = Instant::now();
    let mut errands = Vec::new();
    let mut add = |due, period, act: Arc<dyn Fn() + Send + Sync>| {
        errands.push(Errand { due, period, busy: Arc::default(), act });
    };
    if let Some(check) = &orders.check {
        let interval = check.limits.health_interval;
        match prober(check, orders) {
            Ok(client) => {
                for at in 0..list.len() {
                    let (list, client, check) = (Arc::clone(list), client.clone(), check.clone());
                    let act = move || {
                        let watched = &list[at];
                        watched.checked(probe(&client, watched, &check), &check);
                    };
                    add(now, interval, Arc::new(act));
                }
            }
            Err(error) => {
                let what = format!("no health checks are made: {error}");
                for watched in list.iter() {
                    watched.journal.failed(watched.name(), "health_check", &what, now);
                }
            }
        }
    }
    let period = orders.resolve_period;
    for (at, watched) in list.iter().enumerate() {
        let Some((host, port)) = watched.upstream.named_host() else { continue };
        if period.is_zero() {
            continue;
        }
        let (list, resolver) = (Arc::clone(list), orders.resolver.clone());
        let act = move || list[at].resolved((resolver.0)(&host, port));
        add(now + period, period, Arc::new(act));
    }
    errands
}
