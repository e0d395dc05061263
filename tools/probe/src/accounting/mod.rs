//! Costs of both sides: CPU time and memory of this process and of the server's.
//!
//! On Linux everything is read from /proc. CPU time is known to the nanosecond where the kernel keeps
//! scheduler statistics, else to a clock tick (10 ms mostly). Elsewhere the generator's CPU time is
//! known and nothing about the server.

#[cfg(target_os = "linux")]
mod ledger;
#[cfg(target_os = "linux")]
mod processes;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::cost::{Accounting, CostSample};
use crate::plan::{Origin, ServerProcesses};

/// The costs of this process and of a server on this machine.
#[derive(Debug)]
pub struct ProcessAccounting {
    #[cfg(target_os = "linux")]
    own: ledger::Ledger,
    #[cfg(target_os = "linux")]
    server: linux::ServerTree,
}

impl ProcessAccounting {
    /// Looks for the server's processes at once. When none is there, or none may be looked at, or
    /// the server is this very process, samples have no server.
    pub fn new(server: ServerProcesses, origin: &Origin) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = (server, origin);
        Self {
            #[cfg(target_os = "linux")]
            own: ledger::Ledger::new(processes::tick_ns()),
            #[cfg(target_os = "linux")]
            server: linux::ServerTree::new(server, origin),
        }
    }

    /// How exact the CPU times of the server are.
    pub fn resolution(&self) -> Duration {
        #[cfg(target_os = "linux")]
        if !processes::has_exact_times() {
            return Duration::from_nanos(processes::tick_ns());
        }
        Duration::from_nanos(1)
    }

    /// The CPU time of this process, ended threads included.
    fn own_cpu() -> Duration {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

/// How many cores the machine has in use, whichever of them this process may run on. `None` where the
/// system doesn't say.
pub fn online_cores() -> Option<usize> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    count_of_list(list.trim())
}

/// How many numbers are in a list such as `0-1,4`.
fn count_of_list(list: &str) -> Option<usize> {
    list.split(',').try_fold(0_usize, |sum, item| {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(target_os = "linux")]
impl Accounting for ProcessAccounting {
    fn sample(&mut self) -> CostSample {
        if let Some(seen) = processes::look_at(std::process::id()) {
            self.own.look(&[seen]);
        }
        CostSample {
            generator_cpu: Self::own_cpu(),
            generator_busiest_thread: self.own.busiest_thread(),
            generator_memory_bytes: self.own.peak_memory_bytes(),
            server: self.server.sample(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Accounting for ProcessAccounting {
    /// The busiest thread is not known: it is at most all of them.
    fn sample(&mut self) -> CostSample {
        let cpu = Self::own_cpu();
        CostSample { generator_cpu: cpu, generator_busiest_thread: cpu, ..CostSample::default() }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    //! The server's process tree.

    use std::collections::BTreeSet;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::ledger::Ledger;
    use super::processes;
    use crate::plan::{Origin, ServerProcesses};

    /// How often the tree is searched for new children. Between searches only the known ones are
    /// read. Where the kernel keeps no lists of children, a search reads every process of the machine.
    const SEARCH_EVERY: Duration = Duration::from_secs(1);

    #[derive(Debug)]
    pub(super) struct ServerTree {
        how: ServerProcesses,
        origin: Origin,
        members: BTreeSet<u32>,
        ledger: Option<Ledger>,
        searched: Option<Instant>,
        group: Option<Group>,
    }

    /// The CPU time of a control group.
    #[derive(Debug)]
    struct Group {
        first: Duration,
        now: Duration,
    }

    /// Returns what all processes have used that are or were in a control group.
    fn group_cpu(directory: &Path) -> Option<Duration> {
        let stat = std::fs::read_to_string(directory.join("cpu.stat")).ok()?;
        let used = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        used.trim().parse().ok().map(Duration::from_micros)
    }

    impl ServerTree {
        pub(super) fn new(how: ServerProcesses, origin: &Origin) -> Self {
            let mut tree = Self {
                how,
                origin: origin.clone(),
                members: BTreeSet::new(),
                ledger: None,
                searched: None,
                group: None,
            };
            if let ServerProcesses::Group(_, directory) = &tree.how {
                tree.group = group_cpu(directory).map(|first| Group { first, now: first });
            }
            tree.search();
            tree.sample();
            tree
        }

        /// CPU time, busiest thread, peak memory since the tree was found.
        pub(super) fn sample(&mut self) -> Option<(Duration, Duration, u64)> {
            if self.searched.is_none_or(|then| then.elapsed() >= SEARCH_EVERY) {
                self.search();
            }
            if self.ledger.is_none() && !self.members.is_empty() {
                self.ledger = Some(Ledger::new(processes::tick_ns()));
            }
            let ledger = self.ledger.as_mut()?;
            let seen: Vec<_> =
                self.members.iter().filter_map(|pid| processes::look_at(*pid)).collect();
            ledger.look(&seen);
            if ledger.is_extinct() {
                self.members.clear();
            }
            let (busiest, memory) = (ledger.busiest_thread(), ledger.peak_memory_bytes());
            let tree = ledger.cpu();
            Some((self.sample_group().unwrap_or(tree), busiest, memory))
        }

        /// Returns what the control group has used since the tree was found; the last that was known when it is gone.
        fn sample_group(&mut self) -> Option<Duration> {
            let ServerProcesses::Group(_, directory) = &self.how else { return None };
            let group = self.group.as_mut()?;
            group.now = group_cpu(directory).unwrap_or(group.now);
            Some(group.now.saturating_sub(group.first))
        }

        /// Finds the roots, unless they are known, and everything below them.
        fn search(&mut self) {
            if self.how == ServerProcesses::Unwatched {
                return;
            }
            self.searched = Some(Instant::now());
            let roots = match self.how {
                ServerProcesses::Pid(pid) | ServerProcesses::Group(pid, _)
                    if self.ledger.is_none() =>
                {
                    BTreeSet::from([pid])
                }
                ServerProcesses::ByPort if self.members.is_empty() => {
                    processes::listening_at(&self.origin)
                }
                _ => self.members.clone(),
            };
            if !roots.is_empty() {
                self.members = processes::with_descendants(&roots);
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::plan::ServerAddress;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};

    fn nowhere() -> Origin {
        Origin { is_https: false, authority: "x".into(), addresses: Vec::new() }
    }

    /// This thread works for so long: what others of the process do meanwhile may end with them, between two looks.
    fn burn(cpu: Duration) {
        let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time");
        let end = used() + cpu;
        while used() < end {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_list_of_cores_is_counted() {
        assert_eq!(count_of_list("0-1,4"), Some(3));
        assert_eq!(count_of_list("7"), Some(1));
        for list in ["", "a", "3-1", "0-18446744073709551615"] {
            assert_eq!(count_of_list(list), None, "{list}");
        }
        assert!(online_cores().is_none_or(|cores| cores > 0));
    }

    #[test]
    fn our_own_work_shows() {
        let mut accounting = ProcessAccounting::new(ServerProcesses::Unwatched, &nowhere());
        let before = accounting.sample();
        burn(Duration::from_millis(30));
        let after = accounting.sample();
        assert!(after.generator_cpu - before.generator_cpu >= Duration::from_millis(30));
        assert!(after.generator_busiest_thread > before.generator_busiest_thread);
        assert!(after.generator_memory_bytes > 0);
        assert!(after.server.is_none());
    }

    #[test]
    fn a_servers_grandchild_counts_for_it() {
        let work = "read go; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done; read x";
        let mut server = Command::new("sh")
            .args(["-c", &format!("sh -c 'echo ready; {work}'; :")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let mut accounting = ProcessAccounting::new(ServerProcesses::Pid(server.id()), &nowhere());
        server.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "done");
        let (cpu, busiest, memory) = accounting.sample().server.unwrap();
        assert!(cpu > Duration::from_millis(5), "{cpu:?}");
        assert!(busiest > Duration::from_millis(5) && memory > 0, "{busiest:?} {memory}");
        server.stdin.take();
        server.wait().unwrap();
        let (after, ..) = accounting.sample().server.expect("the sums outlive the server");
        assert!(after >= cpu);
    }

    #[test]
    fn a_server_is_found_by_the_port_that_it_listens_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = ServerAddress::Inet(listener.local_addr().unwrap());
        let origin = Origin { is_https: false, authority: "x".into(), addresses: vec![address] };
        // Another test's process has the socket, too, until it runs its program.
        let is_own = processes::listening_at(&origin).contains(&std::process::id());
        assert!(!is_own, "this process is no server");
        // Another process holds the listening socket, as its standard input.
        let mut holder = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .spawn()
            .unwrap();
        let found = ProcessAccounting::new(ServerProcesses::ByPort, &origin).sample();
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!(found.server.is_some_and(|(_, _, memory)| memory > 0));
    }

    #[test]
    fn the_cpu_time_of_a_control_group_is_the_servers() {
        let name = format!("bolide-group-{}", std::process::id());
        let group = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&group).unwrap();
        let used = |us: u32| {
            let text = format!("usage_usec {us}\nuser_usec 1\nsystem_usec 1\n");
            std::fs::write(group.join("cpu.stat"), text).unwrap();
        };
        used(5_000_000);
        let how = ServerProcesses::Group(std::process::id(), group.clone());
        let mut accounting = ProcessAccounting::new(how, &nowhere());
        used(5_070_000);
        let cpu = |accounting: &mut ProcessAccounting| accounting.sample().server.unwrap().0;
        assert_eq!(cpu(&mut accounting), Duration::from_millis(70));
        std::fs::remove_dir_all(&group).unwrap();
        assert_eq!(cpu(&mut accounting), Duration::from_millis(70));
        // Without a group that can be read, it is the tree's.
        let mut accounting =
            ProcessAccounting::new(ServerProcesses::Group(std::process::id(), group), &nowhere());
        burn(Duration::from_millis(20));
        assert!(cpu(&mut accounting) >= Duration::from_millis(10));
    }

    #[test]
    fn a_process_that_is_not_there_is_no_server() {
        let nobody = ServerProcesses::Pid(u32::MAX / 2);
        let mut accounting = ProcessAccounting::new(nobody, &nowhere());
        assert!(accounting.sample().server.is_none());
    }
}
