//! Costs of processes: CPU time by their clocks, memory by procfs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// In place of a process's id, which is never this: a whole control group.
const GROUP: u32 = 0;

/// CPU time of a set of processes at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    at: Instant,
    /// User and system time by process, or of the group.
    cpu: BTreeMap<u32, Duration>,
}

impl Reading {
    /// Reads the clocks of `processes`. Those that have ended are left out.
    pub(crate) fn of(processes: &[u32]) -> Self {
        let cpu = processes.iter().filter_map(|id| Some((*id, cpu_time(*id)?))).collect();
        Self { at: Instant::now(), cpu }
    }

    /// Returns what all processes have used that are or were in a control group, to the microsecond; `None` where it can't be read.
    pub(crate) fn of_group(group: &Path) -> Option<Self> {
        let stat = fs::read_to_string(group.join("cpu.stat")).ok()?;
        let used = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        let used = Duration::from_micros(used.trim().parse().ok()?);
        Some(Self { at: Instant::now(), cpu: BTreeMap::from([(GROUP, used)]) })
    }

    /// CPU time and wall time since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> (Duration, Duration) {
        let used = self
            .cpu
            .iter()
            .map(|(id, now)| now.saturating_sub(earlier.cpu.get(id).copied().unwrap_or_default()));
        (used.sum(), self.at.duration_since(earlier.at))
    }

    /// Cores in use since `earlier`: 1 is a full one.
    pub(crate) fn cores_since(&self, earlier: &Self) -> f64 {
        let (used, passed) = self.since(earlier);
        used.as_secs_f64() / passed.as_secs_f64().max(1e-9)
    }
}

/// User and system time of a process, all of its threads, to the nanosecond.
#[cfg(target_os = "linux")]
fn cpu_time(id: u32) -> Option<Duration> {
    use nix::time::{ClockId, clock_gettime};
    use nix::unistd::Pid;
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(id.cast_signed())).ok()?;
    clock_gettime(clock).ok().map(Duration::from)
}

/// User and system time of a process: unknown on this system.
#[cfg(not(target_os = "linux"))]
fn cpu_time(_: u32) -> Option<Duration> {
    None
}

/// A process with all of its descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent(id) {
            children.entry(parent).or_default().push(id);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(id) = found.get(next) {
        found.extend(children.remove(id).into_iter().flatten());
        next += 1;
    }
    found
}

fn parent(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name of the program stands in brackets and may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

/// The most memory that the processes have had, summed, in bytes.
pub(crate) fn peak_memory_bytes(processes: &[u32]) -> u64 {
    processes.iter().filter_map(|id| status(*id, "VmHWM:")).sum()
}

/// The memory that the processes have now, summed, in bytes.
pub(crate) fn resident_memory_bytes(processes: &[u32]) -> u64 {
    processes.iter().filter_map(|id| status(*id, "VmRSS:")).sum()
}

fn status(id: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The machine's CPU time spent on anything, by all cores, and stolen by its host; in seconds.
pub(crate) fn busy_cores() -> Option<(f64, f64)> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let numbers: Vec<u64> = stat
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .filter_map(|number| number.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal
    let [user, nice, system, _, _, irq, softirq, steal, ..] = numbers[..] else { return None };
    let busy = user + nice + system + irq + softirq;
    Some((busy as f64 / TICKS_PER_SECOND, steal as f64 / TICKS_PER_SECOND))
}
