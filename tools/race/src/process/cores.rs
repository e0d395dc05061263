//! Which cores there are, and staying on them.

/// The cores that this process may use, in order.
#[cfg(target_os = "linux")]
pub(crate) fn available() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect(),
        Err(_) => counted(),
    }
}

/// The cores that this process may use, in order.
#[cfg(not(target_os = "linux"))]
pub(crate) fn available() -> Vec<usize> {
    counted()
}

fn counted() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get)).collect()
}

/// Keeps this thread, and what it starts from now on, on `cores`; does nothing if there are none, or
/// where the system can't.
#[cfg(target_os = "linux")]
pub(crate) fn pin_this_thread(cores: &[usize]) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
        set.set(*core);
    }
    if set.count() > 0 {
        // Without it the race is noisier, and preflight has said which cores there are.
        let _ = sched_setaffinity(None, &set);
    }
}

/// Keeps this thread on `cores`: not on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_this_thread(_: &[usize]) {}
