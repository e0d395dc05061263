//! Processes of a server besides its process tree: processes that left it, and where its threads may run.
//!
//! Every server is in a control group of its own where one can be made (as root, with cgroup v2), and has a mark in its
//! environment: a process that leaves the tree keeps the group, and the environment unless it takes care.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::cost::{Reading, tree};

/// The variable with the mark.
const VARIABLE: &str = "BOLIDE_RACE_MARK";

/// A process outside of the tree that uses more cores than this works for its server.
const OUTSIDE_CORES_MAX: f64 = 0.01;

/// By what the processes of one server are known.
#[derive(Debug)]
pub(super) struct Mark {
    text: String,
    /// The directory of the control group, if there is one.
    group: Option<PathBuf>,
}

impl Mark {
    /// A new one, with its control group.
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let text = format!("bolide-race-{}-{number}", std::process::id());
        let group = own_group().map(|own| own.join(&text));
        let group = group.filter(|group| fs::create_dir(group).is_ok());
        Self { text, group }
    }

    /// Returns what a server's environment has.
    pub(super) fn variable(&self) -> (&'static str, &str) {
        (VARIABLE, &self.text)
    }

    /// Puts a process that was just started into the group; its children are in it from then on.
    pub(super) fn take(&mut self, process: u32) {
        let Some(group) = &self.group else { return };
        let put = |id: u32| fs::write(group.join("cgroup.procs"), id.to_string());
        if put(process).is_err() {
            // The mark is what is left.
            let _ = fs::remove_dir(group);
            self.group = None;
            return;
        }
        for id in tree(process) {
            // What it started before is still outside of the group, or has ended.
            let _ = put(id);
        }
    }

    /// The directory of its control group.
    pub(super) fn group(&self) -> Option<&Path> {
        self.group.as_deref()
    }

    /// All processes that have the mark or are in the group.
    pub(super) fn members(&self) -> BTreeSet<u32> {
        let group = self
            .group
            .iter()
            .filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
        let mut members: BTreeSet<u32> = group
            .flat_map(|text| text.lines().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
            .collect();
        let wanted = format!("{VARIABLE}={}", self.text).into_bytes();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        members.extend(ids.filter(|id: &u32| {
            fs::read(format!("/proc/{id}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|word| word == wanted))
        }));
        members
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            // One that still has processes stays.
            let _ = fs::remove_dir(group);
        }
    }
}

/// Returns whether servers can have control groups here.
pub(crate) fn has_groups() -> bool {
    Mark::new().group.is_some()
}

/// The directory of this process's own group in the hierarchy of version 2.
fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (directory, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then_some(directory)
    })?;
    Some(PathBuf::from(mount).join(own.trim_start_matches('/')))
}

/// CPU time of the processes outside of the tree, before a run.
#[derive(Debug)]
pub(crate) struct Outside(Reading);

impl Outside {
    pub(super) fn of(root: u32, mark: &Mark) -> Self {
        Self(Reading::of(&outside(root, mark)))
    }

    /// The evidence that processes outside of the tree have worked since then.
    pub(super) fn complaint(&self, root: u32, mark: &Mark) -> Option<String> {
        outside(root, mark).into_iter().find_map(|id| {
            let cores = Reading::of(&[id]).cores_since(&self.0);
            (cores > OUTSIDE_CORES_MAX).then(|| {
                let name = name(id);
                format!("process {id} (`{name}`) left its process tree and used {cores:.2} cores")
            })
        })
    }
}

/// Processes of a server that are not in its tree.
fn outside(root: u32, mark: &Mark) -> Vec<u32> {
    let inside: BTreeSet<u32> = tree(root).into_iter().collect();
    mark.members().difference(&inside).copied().collect()
}

/// The evidence that a thread of these processes may run elsewhere than on `cores`; empty: anywhere.
pub(super) fn strayed(processes: &BTreeSet<u32>, cores: &[usize]) -> Option<String> {
    if cores.is_empty() {
        return None;
    }
    processes.iter().find_map(|id| {
        let tasks = fs::read_dir(format!("/proc/{id}/task")).ok()?;
        tasks.flatten().find_map(|task| {
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let allowed =
                status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            let other = listed(allowed.trim()).into_iter().find(|core| !cores.contains(core))?;
            let thread = task.file_name().to_string_lossy().into_owned();
            let name = name(*id);
            Some(format!(
                "its thread {thread} (`{name}`) may run on core {other}, which is not the server's"
            ))
        })
    })
}

fn name(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default().trim().to_owned()
}

/// `0,2-4` as numbers.
fn listed(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(listed("0,2-4"), [0, 2, 3, 4]);
        assert_eq!(listed("7"), [7]);
        assert_eq!(listed(""), [0; 0]);
    }
}
