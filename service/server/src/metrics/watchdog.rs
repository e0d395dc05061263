//! A thread that notices workers that are stuck in one turn, while they are.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Metrics, Shard};
use crate::limits::{LONG_TURN, WATCH_INTERVAL};

/// What is remembered of the workers between two looks: the turn of each that was reported.
#[derive(Debug, Default)]
struct Watch {
    reported: Vec<u64>,
}

impl Watch {
    /// Looks at every worker, `since` after the metrics were made. Returns those that have been in one turn
    /// for too long and were not reported for it: their numbers, and for how long.
    fn look(&mut self, shards: &[Arc<Shard>], since: Duration) -> Vec<(usize, Duration)> {
        self.reported.resize(shards.len(), 0);
        let mut stuck = Vec::new();
        for (worker, (shard, reported)) in shards.iter().zip(&mut self.reported).enumerate() {
            let began_ns = shard.turn_began_ns.load(Ordering::Relaxed);
            let lasts = since.saturating_sub(Duration::from_nanos(began_ns));
            if began_ns != 0 && began_ns != *reported && lasts > LONG_TURN {
                *reported = began_ns;
                stuck.push((worker, lasts));
            }
        }
        stuck
    }
}

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    pub(crate) fn start(metrics: &Metrics) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let metrics = metrics.clone();
        let thread = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            let mut watch = Watch::default();
            while stopped.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let since = Instant::now().saturating_duration_since(metrics.began());
                for (worker, lasts) in watch.look(&metrics.shards(), since) {
                    let seconds = lasts.as_secs_f64();
                    tracing::warn!(
                        target: "bolide::watchdog",
                        worker,
                        seconds,
                        "a worker is stuck in one turn of its loop: a handler takes its thread"
                    );
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
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
    fn a_long_turn_is_reported_once() {
        let shards = [Arc::new(Shard::default()), Arc::new(Shard::default())];
        let mut watch = Watch::default();
        let second = Duration::from_secs(1);
        shards[1].turn_begins(5);
        assert_eq!(watch.look(&shards, second), []);
        let stuck = watch.look(&shards, second * 3);
        assert_eq!(stuck.len(), 1);
        assert_eq!(stuck[0].0, 1);
        assert_eq!(watch.look(&shards, second * 4), [], "the same turn");
        shards[1].turn_begins(4_000_000_000);
        assert_eq!(watch.look(&shards, second * 6).len(), 1, "another one");
    }
}
