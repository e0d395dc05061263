//! Other processes: whether they are the ones that were meant, who lives in a namespace, and an end
//! for them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::limits::DOWN_TIMEOUT;

/// How often a process that ends is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// When a process started, in ticks since boot: together with its id this is no other process.
/// `None` if it is gone or only waits to be collected.
pub(crate) fn started(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name of the program stands in brackets and may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    // Field 22 of the file, the 20th behind the name.
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok()).flatten()
}

/// The processes whose network namespace is one of `inodes`, but for this one.
pub(crate) fn in_namespaces(inodes: &[u64]) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let inode = fs::metadata(entry.path().join("ns/net")).map(|link| link.ino());
        if id != std::process::id()
            && inode.is_ok_and(|inode| inodes.contains(&inode))
            && let Some(started) = started(id)
        {
            found.push((id, started));
        }
    }
    found
}

/// The process that started this one.
pub(crate) fn parent(id: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Ends a process at once.
pub(crate) fn kill(id: u32) {
    if let Some(pid) = Pid::from_raw(id.cast_signed()) {
        // What has ended meanwhile needs no signal.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Ends processes: by SIGTERM, and after [`DOWN_TIMEOUT`] by SIGKILL.
pub(crate) fn end(processes: &[(u32, u64)]) {
    let alive = || {
        let still = |(id, start): &&(u32, u64)| started(*id) == Some(*start);
        processes.iter().filter(still).map(|(id, _)| *id).collect::<Vec<_>>()
    };
    for signal in [Signal::TERM, Signal::KILL] {
        for pid in alive().into_iter().filter_map(|id| Pid::from_raw(id.cast_signed())) {
            // What has ended meanwhile needs no signal.
            let _ = kill_process(pid, signal);
        }
        let asked = Instant::now();
        while asked.elapsed() < DOWN_TIMEOUT && !alive().is_empty() {
            thread::sleep(LOOK_INTERVAL);
        }
    }
}
