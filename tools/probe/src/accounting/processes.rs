//! Processes as Linux shows them under /proc.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, UdpSocket};

use procfs::net::TcpState;
use procfs::process::{FDTarget, Process, all_processes};

use super::ledger::Seen;
use crate::plan::{Origin, ServerAddress};

/// A clock tick, in nanoseconds: what CPU times of processes are rounded to.
pub(super) fn tick_ns() -> u64 {
    1_000_000_000 / procfs::ticks_per_second().max(1)
}

/// Looks at one process. `None` when it is gone or is not ours to look at.
pub(super) fn look_at(pid: u32) -> Option<Seen> {
    let process = Process::new(i32::try_from(pid).ok()?).ok()?;
    let stat = process.stat().ok()?;
    // A zombie has ended: its CPU time is about to appear in its parent.
    if stat.state == 'Z' {
        return None;
    }
    let tick = tick_ns();
    let status = process.status().ok()?;
    let mut waits = BTreeMap::new();
    let threads = process.tasks().ok()?.flatten().filter_map(|task| {
        let tid = u32::try_from(task.tid).ok()?;
        let times = task.schedstat().ok();
        if let Some(times) = &times {
            waits.insert(tid, times.run_delay);
        }
        let exact = times.map(|times| times.sum_exec_runtime);
        let ns = exact.or_else(|| task.stat().ok().map(|one| (one.utime + one.stime) * tick))?;
        Some((tid, ns))
    });
    let threads = threads.collect();
    Some(Seen {
        pid,
        born: stat.starttime,
        parent: u32::try_from(stat.ppid).unwrap_or(0),
        threads,
        waits,
        process_ns: (stat.utime + stat.stime) * tick,
        reaped_ns: u64::try_from(stat.cutime + stat.cstime).unwrap_or(0) * tick,
        resident_bytes: status.vmrss.unwrap_or(0) * 1024,
        peak_bytes: status.vmhwm.unwrap_or(0) * 1024,
    })
}

/// The times of threads are known to the nanosecond here, not to a clock tick.
pub(super) fn has_exact_times() -> bool {
    let main = Process::myself().and_then(|process| process.task_main_thread());
    main.and_then(|task| task.schedstat()).is_ok_and(|times| times.sum_exec_runtime > 0)
}

/// The given processes that live, and all that descend from them.
pub(super) fn with_descendants(roots: &BTreeSet<u32>) -> BTreeSet<u32> {
    let lists_children = Process::myself()
        .and_then(|process| process.task_main_thread())
        .and_then(|task| task.children())
        .is_ok();
    if !lists_children {
        return descend(roots, &all_parents());
    }
    let mut family = BTreeSet::new();
    let mut found: Vec<u32> = roots.iter().copied().collect();
    while let Some(pid) = found.pop() {
        let Some(process) = i32::try_from(pid).ok().and_then(|pid| Process::new(pid).ok()) else {
            continue;
        };
        if family.insert(pid) {
            let tasks = process.tasks().into_iter().flatten().flatten();
            found.extend(tasks.filter_map(|task| task.children().ok()).flatten());
        }
    }
    family
}

/// Every process of the machine with its parent: for kernels that keep no lists of children.
fn all_parents() -> BTreeMap<u32, u32> {
    all_processes()
        .into_iter()
        .flatten()
        .filter_map(|process| {
            let stat = process.ok()?.stat().ok()?;
            Some((u32::try_from(stat.pid).ok()?, u32::try_from(stat.ppid).ok()?))
        })
        .collect()
}

/// Those of `roots` that are keys of `parents`, and all below them.
fn descend(roots: &BTreeSet<u32>, parents: &BTreeMap<u32, u32>) -> BTreeSet<u32> {
    let mut family: BTreeSet<u32> =
        roots.iter().copied().filter(|pid| parents.contains_key(pid)).collect();
    loop {
        let children: Vec<u32> = parents
            .iter()
            .filter(|(pid, parent)| !family.contains(pid) && family.contains(parent))
            .map(|(pid, _)| *pid)
            .collect();
        if children.is_empty() {
            return family;
        }
        family.extend(children);
    }
}

/// The processes that listen where the origin's connections go to, if that is this machine. This
/// process is never one of them.
pub(super) fn listening_at(origin: &Origin) -> BTreeSet<u32> {
    let sockets = listening_sockets(origin);
    if sockets.is_empty() {
        return BTreeSet::new();
    }
    let holds = |process: &Process| {
        process.fd().is_ok_and(|descriptors| {
            descriptors.flatten().any(|descriptor| {
                matches!(descriptor.target, FDTarget::Socket(inode) if sockets.contains(&inode))
            })
        })
    };
    let own = std::process::id();
    all_processes()
        .into_iter()
        .flatten()
        .flatten()
        .filter(holds)
        .filter_map(|process| u32::try_from(process.pid()).ok())
        .filter(|pid| *pid != own)
        .collect()
}

/// The inodes of the listening sockets that an origin's connections end at.
fn listening_sockets(origin: &Origin) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for address in &origin.addresses {
        match address {
            ServerAddress::Inet(address) => {
                // Only an address of this machine can be bound; port 0 is any that is free.
                if UdpSocket::bind((address.ip(), 0)).is_err() {
                    continue;
                }
                let is_it = |local: SocketAddr| {
                    let is_here = local.ip().is_unspecified()
                        || local.ip().to_canonical() == address.ip().to_canonical();
                    local.port() == address.port() && is_here
                };
                let tables = procfs::net::tcp().into_iter().chain(procfs::net::tcp6());
                found.extend(tables.flatten().filter_map(|entry| {
                    let listens = entry.state == TcpState::Listen && is_it(entry.local_address);
                    listens.then_some(entry.inode)
                }));
                if !found.is_empty() || !origin.is_https {
                    continue;
                }
                // A server of HTTP/3 may have nothing else.
                let tables = procfs::net::udp().into_iter().chain(procfs::net::udp6());
                found.extend(tables.flatten().filter_map(|entry| {
                    let is_server = entry.remote_address.port() == 0 && is_it(entry.local_address);
                    is_server.then_some(entry.inode)
                }));
            }
            ServerAddress::Unix(path) => {
                let table = procfs::net::unix().into_iter().flatten();
                found.extend(table.filter_map(|entry| {
                    (entry.path.as_deref() == Some(path.as_path())).then_some(entry.inode)
                }));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use super::*;

    fn origin(address: ServerAddress) -> Origin {
        Origin { is_https: false, authority: "x".into(), addresses: vec![address] }
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let seen = look_at(std::process::id()).unwrap();
        assert!(seen.resident_bytes > 0 && seen.peak_bytes >= seen.resident_bytes);
        assert!(seen.threads.iter().any(|(_, ns)| *ns > 0));
        assert_eq!(look_at(u32::MAX), None);
    }

    #[test]
    fn a_listening_socket_is_found_and_a_connected_one_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(listening_sockets(&origin(ServerAddress::Inet(address))).len(), 1);
        // A process that another test starts has the socket until it runs its program.
        let give_up = Instant::now() + Duration::from_secs(10);
        while !listening_at(&origin(ServerAddress::Inet(address))).is_empty() {
            assert!(Instant::now() < give_up, "this process holds it, and is no server");
        }
        drop(listener);
        while !listening_sockets(&origin(ServerAddress::Inet(address))).is_empty() {
            assert!(Instant::now() < give_up, "a socket that is closed is found");
        }
    }

    #[test]
    fn a_server_that_has_udp_only_is_found_for_https() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = ServerAddress::Inet(socket.local_addr().unwrap());
        assert!(listening_sockets(&origin(address.clone())).is_empty());
        let origin = Origin { is_https: true, ..origin(address) };
        assert_eq!(listening_sockets(&origin).len(), 1);
        socket.connect("127.0.0.1:9").unwrap();
        assert!(listening_sockets(&origin).is_empty(), "that of a client");
    }

    #[test]
    fn an_address_of_another_machine_is_not_looked_for() {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let away = ServerAddress::Inet(([192, 0, 2, 1], port).into());
        assert!(listening_sockets(&origin(away)).is_empty());
        let here = ServerAddress::Inet(([127, 0, 0, 1], port).into());
        assert_eq!(listening_sockets(&origin(here)).len(), 1);
    }

    #[test]
    fn a_family_is_the_roots_that_live_and_all_below() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1)]);
        assert_eq!(descend(&BTreeSet::from([2, 9]), &parents), BTreeSet::from([2, 3, 4]));
    }

    #[test]
    fn both_ways_to_find_a_family_agree() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let parent = BTreeSet::from([std::process::id()]);
        let (listed, scanned) = (with_descendants(&parent), descend(&parent, &all_parents()));
        child.kill().unwrap();
        child.wait().unwrap();
        // Other tests have children too, which come and go.
        assert!(listed.contains(&child.id()) && scanned.contains(&child.id()));
        assert!(with_descendants(&BTreeSet::from([u32::MAX])).is_empty());
    }
}
