//! Which core a thread runs on.

use std::io;

/// Pins the calling thread to one of the cores that the process may use, counted from 0 and around.
/// Returns the core, or `None` where the system has no such thing.
///
/// # Errors
///
/// Those of `sched_setaffinity`.
#[cfg(target_os = "linux")]
pub fn pin_to_core(index: usize) -> io::Result<Option<usize>> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let allowed = sched_getaffinity(None)?;
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    let Some(core) = cores.get(index % cores.len().max(1)).copied() else { return Ok(None) };
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only)?;
    Ok(Some(core))
}

/// There is no such thing on this system.
///
/// # Errors
///
/// None.
#[cfg(not(target_os = "linux"))]
pub fn pin_to_core(_index: usize) -> io::Result<Option<usize>> {
    Ok(None)
}
