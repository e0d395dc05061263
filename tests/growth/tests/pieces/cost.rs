//! Cost of some work: the time of this thread's processor, and memory.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Cost of some work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// Time of the processor that this thread had: that of others doesn't count.
    pub(crate) time: Duration,
    /// All bytes that were ever allocated.
    pub(crate) allocated_bytes: u64,
    /// The most bytes that were held at a time, beyond those that were held before.
    pub(crate) held_bytes: u64,
}

impl Cost {
    /// Measures `work`.
    pub(crate) fn of(work: impl FnOnce()) -> Self {
        let mut time = Duration::ZERO;
        let counted = allocation_counter::measure(|| {
            let before = processor_time();
            work();
            time = processor_time().saturating_sub(before);
        });
        Self { time, allocated_bytes: counted.bytes_total, held_bytes: counted.bytes_max }
    }
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}
