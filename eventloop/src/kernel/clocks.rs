//! The clocks that tell what a stretch of work cost.

use rustix::time::{ClockId, clock_gettime};

/// The two clocks that a [`Meter`](crate::Meter) reads, both in nanoseconds since whenever.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// The time that passes; cheap to read. Default: the monotonic clock, which Linux reads without a system
    /// call where the processor's counter can be trusted.
    pub passing: fn() -> u64,
    /// The CPU time of the calling thread. Default: the thread's own clock, by a system call.
    pub cpu: fn() -> u64,
}

impl Default for Clocks {
    fn default() -> Self {
        Self { passing: || read(ClockId::Monotonic), cpu: || read(ClockId::ThreadCPUTime) }
    }
}

#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_go_on_and_the_threads_own_not_faster_than_the_other() {
        let Clocks { passing, cpu } = Clocks::default();
        let (passed, used) = (passing(), cpu());
        while cpu() - used < 2_000_000 {}
        let (used, passed) = (cpu() - used, passing() - passed);
        assert!(used <= passed + 1_000_000, "{used} {passed}");
    }
}
