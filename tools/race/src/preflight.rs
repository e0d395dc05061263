//! Look at the machine before anything is measured, and at what would spoil it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::process::{busy_cores, has_groups};

/// How long the machine is watched for what others do on it.
const WATCH: Duration = Duration::from_millis(250);

/// So many cores used by others are worth a warning.
const FOREIGN_CORES_WARNED: f64 = 0.10;

/// Descriptors in addition to those of the connections.
const FILES_BESIDE: u64 = 200;

/// Findings of the look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Preflight {
    /// The race is not worth running.
    pub(crate) refusals: Vec<String>,
    /// The race is worth less.
    pub(crate) warnings: Vec<String>,
}

/// Properties of the machine.
#[derive(Debug, Clone, PartialEq)]
struct Machine {
    cores: usize,
    governors: Vec<String>,
    files: u64,
    ports: Option<(u32, u32)>,
    foreign_cores: f64,
    has_groups: bool,
}

/// Looks at this machine. `connections` is the most that any cell has.
pub(crate) fn preflight(cores: usize, connections: usize) -> Preflight {
    let machine = Machine {
        cores,
        governors: governors(),
        files: raise_files(connections as u64 * 2 + FILES_BESIDE),
        ports: fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok().and_then(|text| {
            let mut words = text.split_whitespace().map(str::parse);
            Some((words.next()?.ok()?, words.next()?.ok()?))
        }),
        foreign_cores: foreign_cores(),
        has_groups: has_groups(),
    };
    machine.judge(connections)
}

impl Machine {
    fn judge(&self, connections: usize) -> Preflight {
        let mut found = Preflight::default();
        if self.cores < 2 {
            found.refusals.push(
                "there is 1 core: a server and its load generator on the same core measure each \
                 other (--force runs it all the same)"
                    .to_owned(),
            );
        }
        let needed = connections as u64 + FILES_BESIDE;
        if self.files < needed {
            found.refusals.push(format!(
                "{} descriptors are allowed and {connections} connections need {needed}: `ulimit \
                 -n {needed}` allows them",
                self.files
            ));
        }
        if let Some((low, high)) = self.ports {
            let there = (high + 1).saturating_sub(low) as usize;
            if there < connections + 1000 {
                found.refusals.push(format!(
                    "{there} ports are there for clients and {connections} connections are to be \
                     made: widen net.ipv4.ip_local_port_range"
                ));
            }
        }
        if let Some(governor) = self.governors.iter().find(|name| *name != "performance") {
            found.warnings.push(format!(
                "the CPU governor is `{governor}`: the clock follows the load; `performance` is \
                 steadier"
            ));
        }
        if !self.has_groups {
            found.warnings.push(
                "no control groups can be made (root and cgroup v2 are needed): a process that leaves its server's \
                 tree is found only by its environment"
                    .to_owned(),
            );
        }
        if self.foreign_cores > FOREIGN_CORES_WARNED {
            found.warnings.push(format!(
                "others use {:.2} cores of this machine: intervals will be wider",
                self.foreign_cores
            ));
        }
        found
    }
}

fn governors() -> Vec<String> {
    let cores = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let mut names: Vec<String> = cores
        .filter_map(|core| fs::read_to_string(core.path().join("cpufreq/scaling_governor")).ok())
        .map(|name| name.trim().to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Allows as many descriptors as may be, for us and for what we start.
fn raise_files(wanted: u64) -> u64 {
    let now = getrlimit(Resource::Nofile);
    let hard = now.maximum.unwrap_or(u64::MAX);
    let target = wanted.max(65_536).min(hard);
    if now.current.is_some_and(|soft| soft < target) {
        let raised = Rlimit { current: Some(target), maximum: now.maximum };
        // What can't be raised is judged as it is.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Cores that are in use while we do nothing.
fn foreign_cores() -> f64 {
    let (Some(before), started) = (busy_cores(), Instant::now()) else { return 0.0 };
    thread::sleep(WATCH);
    let Some(after) = busy_cores() else { return 0.0 };
    ((after.0 - before.0) + (after.1 - before.1)) / started.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            cores: 2,
            governors: vec!["performance".to_owned()],
            files: 65_536,
            ports: Some((32_768, 60_999)),
            foreign_cores: 0.01,
            has_groups: true,
        }
    }

    #[test]
    fn a_quiet_machine_is_fit() {
        assert_eq!(machine().judge(500), Preflight::default());
    }

    #[test]
    fn what_would_spoil_the_figures_is_said_with_its_reason() {
        for (machine, connections, refused, part) in [
            (Machine { cores: 1, ..machine() }, 100, true, "1 core"),
            (Machine { files: 1024, ..machine() }, 10_000, true, "1024 descriptors"),
            (Machine { ports: Some((50_000, 50_999)), ..machine() }, 500, true, "1000 ports"),
            (Machine { governors: vec!["powersave".into()], ..machine() }, 1, false, "powersave"),
            (Machine { foreign_cores: 0.7, ..machine() }, 1, false, "0.70 cores"),
            (Machine { has_groups: false, ..machine() }, 1, false, "no control groups"),
        ] {
            let found = machine.judge(connections);
            let (said, quiet) = if refused {
                (&found.refusals, &found.warnings)
            } else {
                (&found.warnings, &found.refusals)
            };
            assert!(said.len() == 1 && said[0].contains(part) && quiet.is_empty(), "{found:?}");
        }
    }
}
