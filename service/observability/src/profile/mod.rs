//! Profile of a request's CPU time: each worker measures sampled turns of its loop, stage by stage.

mod shard;
mod show;
mod snapshot;
mod stage;

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_eventloop::{Clocks, Meter, Sampling};

pub use shard::ProfileShard;
pub(crate) use shard::Shares;
pub use snapshot::{ProfileSnapshot, STAGE_BOUNDS_NS, StageSnapshot};
pub use stage::Stage;
pub use stage::{ENCODE, HANDLER, LOOP, PARSE, ROUTE, TLS_OPEN, TLS_SEAL};

/// Which turns are measured when nothing else is said: one in so many.
pub const PROFILE_ONE_IN: u32 = 64;

/// Tells what stage of a server takes how much CPU time. One value for all of its workers, made before it
/// starts and given to it.
///
/// One turn of a worker's loop in so many is measured: it reads a clock between its stages, and divides what
/// they took by the requests that began in the turn. The other turns pay a branch for each connection. How many
/// are measured may change while the server runs.
///
/// ```
/// use bolide_observability::Profile;
///
/// let profile = Profile::new(64);
/// profile.set_one_in(0);
/// assert_eq!(profile.snapshot().requests, 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Profile(Arc<Registry>);

#[derive(Debug, Default)]
struct Registry {
    sampling: Sampling,
    clocks: Clocks,
    shards: Mutex<Vec<Arc<ProfileShard>>>,
}

impl Profile {
    /// Measures one turn in `one_in`; 0: none, until [`Self::set_one_in`] says otherwise.
    #[must_use]
    pub fn new(one_in: u32) -> Self {
        Self::with_clocks(one_in, Clocks::default())
    }

    /// The same by these clocks.
    pub fn with_clocks(one_in: u32, clocks: Clocks) -> Self {
        let sampling = Sampling::new(one_in);
        Self(Arc::new(Registry { sampling, clocks, shards: Mutex::default() }))
    }

    /// From here on, measures one turn in `one_in`; 0: none. What was measured before stays counted.
    pub fn set_one_in(&self, one_in: u32) {
        self.0.sampling.set(one_in);
    }

    /// One turn in how many is measured; 0: none.
    #[must_use]
    pub fn one_in(&self) -> u32 {
        self.0.sampling.one_in()
    }

    /// Returns what has been measured so far, of all workers together.
    #[must_use]
    pub fn snapshot(&self) -> ProfileSnapshot {
        let mut sum = ProfileSnapshot { one_in: self.one_in(), ..ProfileSnapshot::default() };
        for shard in &*self.shards() {
            shard.add_to(&mut sum);
        }
        sum
    }

    /// Returns what one more worker measures by, and where it puts it.
    pub fn add_worker(&self) -> (Rc<Meter>, Arc<ProfileShard>) {
        let shard = Arc::<ProfileShard>::default();
        self.shards().push(Arc::clone(&shard));
        (Rc::new(Meter::new(self.0.sampling.clone(), self.0.clocks)), shard)
    }

    fn shards(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ProfileShard>>> {
        self.0.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
