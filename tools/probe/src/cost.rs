//! CPU and memory of a run on both sides, as sums that only grow.

use std::time::Duration;

/// Costs up to a moment. Differences of two samples are the cost of the time between them.
#[derive(Debug, Clone, Copy, Default)]
pub struct CostSample {
    /// User and system time of the generator's process, ended threads included.
    pub generator_cpu: Duration,
    /// Of each interval between two samples, for how long the thread that was busiest in it ran, or was
    /// ready and had no core; summed.
    pub generator_busiest_thread: Duration,
    /// Peak resident memory of the generator, in bytes.
    pub generator_memory_bytes: u64,
    /// The same three of the server's process tree, where it is local and was found: CPU, busiest
    /// thread, peak memory.
    pub server:
        Option<(Duration /*cpu*/, Duration /*busiest thread*/, u64 /*peak memory*/)>,
}

/// Looks at the costs.
pub trait Accounting {
    /// Returns what was used up to now.
    fn sample(&mut self) -> CostSample;
}
