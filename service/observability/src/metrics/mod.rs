//! Counters of a server: a shard for each worker, written by it alone, summed on request.

mod counter;
mod exposition;
mod place;
mod shard;
mod snapshot;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use crate::access_log::AccessLog;
use crate::profile::Profile;

pub use counter::{Counter, Histogram, NameCounts};
pub use counter::{DURATION_BOUNDS_NS, HistogramSnapshot};
pub use exposition::{Exposition, METRICS, Metric};
pub use place::Place;
pub use place::{Protocol, Standing};
pub use shard::{Http2Counts, RouteCounts, Shard};
pub use snapshot::{
    ConnectionCount, EndCounts, Http2Snapshot, RouteSnapshot, ServerState, Snapshot, TlsSnapshot,
};

/// Counters of a server. One value for all of its workers, made before it starts and given to
/// it.
///
/// Each worker has a shard of its own, in cache lines that no other worker writes: counting a request is a few
/// plain stores, without a lock and without traffic between cores. [`Self::snapshot`] reads the shards while
/// the workers write, so a worker that is stuck doesn't hide that it is; the numbers of
/// one snapshot may be some requests apart.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Registry>);

#[derive(Debug)]
struct Registry {
    began: Instant,
    state: AtomicU8,
    shards: Mutex<Vec<Arc<Shard>>>,
    access_log: OnceLock<AccessLog>,
    profile: OnceLock<Profile>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            state: AtomicU8::new(0),
            shards: Mutex::default(),
            access_log: OnceLock::new(),
            profile: OnceLock::new(),
        }
    }
}

impl Metrics {
    /// Metrics of a server that is to be started.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the server takes requests.
    #[must_use]
    pub fn state(&self) -> ServerState {
        match self.0.state.load(Ordering::Relaxed) {
            0 => ServerState::Starting,
            1 => ServerState::Ready,
            _ => ServerState::Draining,
        }
    }

    /// The server has come to this state.
    pub fn set_state(&self, state: ServerState) {
        // A state never goes back: a server that was told to end while it started does not become ready.
        self.0.state.fetch_max(state as u8, Ordering::Relaxed);
    }

    /// Returns what has been counted so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let shards = self.shards();
        let mut sum = Snapshot {
            state: self.state(),
            uptime: self.0.began.elapsed(),
            workers: shards.len(),
            access_log: self.0.access_log.get().map(AccessLog::stats),
            profile: self.profile().map(Profile::snapshot),
            ..Snapshot::default()
        };
        for shard in shards {
            shard.add_to(&mut sum);
        }
        sum
    }

    /// One more worker's part.
    pub fn add_shard(&self) -> Arc<Shard> {
        let shard = Arc::<Shard>::default();
        self.0.shards.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&shard));
        shard
    }

    /// The parts of all workers.
    pub fn shards(&self) -> Vec<Arc<Shard>> {
        self.0.shards.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The log whose lines are counted, too.
    pub fn set_access_log(&self, log: &AccessLog) {
        // A second server with the same metrics has the same log.
        let _ = self.0.access_log.set(log.clone());
    }

    /// The profile that is shown, too.
    pub fn set_profile(&self, profile: &Profile) {
        // A second server with the same metrics has the same profile.
        let _ = self.0.profile.set(profile.clone());
    }

    /// The profile of the server that counts here, if it has one.
    pub fn profile(&self) -> Option<&Profile> {
        self.0.profile.get()
    }
}
