//! A thread that notices workers that are stuck in one turn of their loop, while they are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::limits::WATCH_INTERVAL;

/// The number of a worker's turn: odd while one is under way. The worker is its only writer, and never looks at a
/// clock for it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Beat(AtomicU64);

impl Beat {
    /// A turn begins.
    #[inline]
    pub(crate) fn begins(&self) {
        self.0.store((self.0.load(Ordering::Relaxed) + 2) | 1, Ordering::Relaxed);
    }

    /// The turn is over.
    #[inline]
    pub(crate) fn ends(&self) {
        self.0.store((self.0.load(Ordering::Relaxed) | 1) + 1, Ordering::Relaxed);
    }
}

/// The beats of a server's workers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beats(Arc<Mutex<Vec<Arc<Beat>>>>);

impl Beats {
    /// One more worker's.
    pub(crate) fn add(&self) -> Arc<Beat> {
        let beat = Arc::<Beat>::default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&beat));
        beat
    }

    fn numbers(&self) -> Vec<u64> {
        let beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        beats.iter().map(|beat| beat.0.load(Ordering::Relaxed)).collect()
    }
}

/// State of a worker between two looks.
#[derive(Debug, Clone, Copy)]
struct Seen {
    number: u64,
    since: Instant,
    is_reported: bool,
}

/// Finding of a look at a worker, by its number, and for how long it has been in the turn, as far as was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Stuck(usize, Duration),
    Back(usize, Duration),
}

/// State of the workers.
#[derive(Debug, Default)]
struct Watch(Vec<Seen>);

impl Watch {
    /// Looks at the numbers of all workers' turns.
    fn look(&mut self, numbers: &[u64], now: Instant, long_turn: Duration) -> Vec<Finding> {
        let mut found = Vec::new();
        for (worker, &number) in numbers.iter().enumerate() {
            let fresh = Seen { number, since: now, is_reported: false };
            let Some(seen) = self.0.get_mut(worker) else {
                self.0.push(fresh);
                continue;
            };
            let lasts = now.saturating_duration_since(seen.since);
            if number != seen.number {
                if seen.is_reported {
                    found.push(Finding::Back(worker, lasts));
                }
                *seen = fresh;
            } else if number % 2 == 1 && !seen.is_reported && lasts > long_turn {
                seen.is_reported = true;
                found.push(Finding::Stuck(worker, lasts));
            }
        }
        found
    }
}

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Watches the workers of the server of this name.
    pub(crate) fn start(
        beats: Beats,
        server: &'static str,
        long_turn: Duration,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let interval = WATCH_INTERVAL.min(long_turn);
        let thread = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            let mut watch = Watch::default();
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                for found in watch.look(&beats.numbers(), Instant::now(), long_turn) {
                    report(server, found);
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

fn report(server: &'static str, found: Finding) {
    match found {
        Finding::Stuck(worker, lasts) => {
            let seconds = lasts.as_secs_f64();
            tracing::warn!(
                target: "bolide::watchdog", server, worker, seconds,
                "a worker is stuck in one turn of its loop: a handler takes its thread"
            );
        }
        Finding::Back(worker, lasted) => {
            let seconds = lasted.as_secs_f64();
            tracing::warn!(
                target: "bolide::watchdog", server, worker, seconds,
                "a worker that was stuck in one turn of its loop continues"
            );
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It can't panic, and there is nothing to learn if it did.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_turn_is_reported_once_and_its_end_too() {
        let beats = Beats::default();
        let (first, second) = (beats.add(), beats.add());
        let (mut watch, began, limit) = (Watch::default(), Instant::now(), Duration::from_secs(1));
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let mut look = |seconds| watch.look(&beats.numbers(), at(seconds), limit);
        assert_eq!(look(0), [], "both wait");
        assert_eq!(look(9), [], "and may do so for ever");
        second.begins();
        assert_eq!(look(10), []);
        assert_eq!(look(12), [Finding::Stuck(1, Duration::from_secs(2))]);
        assert_eq!(look(13), [], "the same turn");
        second.ends();
        assert_eq!(look(14), [Finding::Back(1, Duration::from_secs(4))]);
        for seconds in 15..20 {
            first.begins();
            assert_eq!(look(seconds), [], "many short turns are none that is long");
            first.ends();
        }
        second.begins();
        assert_eq!(look(30), []);
        assert_eq!(look(32), [Finding::Stuck(1, Duration::from_secs(2))], "another turn");
    }
}
