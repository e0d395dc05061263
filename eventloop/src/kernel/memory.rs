//! The memory of the machine: how much there is, and what was freed given back.

use std::path::Path;

/// Gives the pages of this thread's heap that hold nothing back to the operating system, if the program's allocator
/// is known (feature `mimalloc`). Without, that is left to the allocator.
pub(crate) fn give_back() {
    #[cfg(feature = "mimalloc")]
    mimalloc_collects();
}

#[cfg(feature = "mimalloc")]
#[allow(unsafe_code, reason = "no crate wraps mi_collect")]
fn mimalloc_collects() {
    // The function comes with this crate.
    use mimalloc as _;

    unsafe extern "C" {
        fn mi_collect(force: bool);
    }

    // SAFETY: it may be called at any time and by any thread, and touches only what is free.
    unsafe { mi_collect(true) };
}

/// Memory that is assumed where the system does not say how much there is, in bytes.
const UNKNOWN_BYTES: u64 = 4 << 30;

/// How much memory the process may use, in bytes: what the machine has, or less where its control group says so.
pub(crate) fn usable_bytes() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let group = Path::new("/sys/fs/cgroup").join(group);
    let bounds = group.ancestors().filter_map(|group| {
        std::fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()
    });
    bounds.chain(machine).min().unwrap_or(UNKNOWN_BYTES)
}

/// The machine's memory by `/proc/meminfo`, in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_machine_is_read() {
        assert_eq!(total("MemTotal:        8131896 kB\nMemFree: 1 kB\n"), Some(8_131_896 << 10));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert_eq!(total("MemTotal: x kB"), None);
        assert!(usable_bytes() > 0);
    }
}
