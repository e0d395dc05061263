//! Sums over a set of processes that come and go. Pure: what was seen goes in, sums that only grow
//! come out.

use std::collections::BTreeMap;
use std::time::Duration;

/// A process as it was seen once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its number.
    pub(super) pid: u32,
    /// When it was born, in clock ticks after the boot: tells a reused number from the old one.
    pub(super) born: u64,
    /// Its parent's number.
    pub(super) parent: u32,
    /// The CPU time of each living thread, in nanoseconds, by the thread's number.
    pub(super) threads: Vec<(u32, u64)>,
    /// For how long each living thread was ready and had no core, in nanoseconds, where that is known.
    pub(super) waits: BTreeMap<u32, u64>,
    /// The CPU time of all threads, ended ones included, as the kernel rounds it to clock ticks.
    pub(super) process_ns: u64,
    /// The CPU time of its children that ended and were waited for.
    pub(super) reaped_ns: u64,
    /// Resident memory now, in bytes.
    pub(super) resident_bytes: u64,
    /// The greatest that it ever was.
    pub(super) peak_bytes: u64,
}

/// Record of a process.
#[derive(Debug, Default)]
struct Account {
    threads: BTreeMap<u32, u64>,
    waits: BTreeMap<u32, u64>,
    ended_threads_ns: u64,
    threads_at_first_ns: u64,
    process_at_first_ns: u64,
    process_ns: u64,
    reaped_at_first_ns: u64,
    reaped_ns: u64,
    peak_at_first_bytes: u64,
    peak_bytes: u64,
    resident_peak_bytes: u64,
}

impl Account {
    /// CPU time since the first look. The threads are exact but for those that lived and died
    /// between two looks; the process counts those too, but only to a clock tick.
    fn own_ns(&self, tick_ns: u64) -> u64 {
        let threads = self.threads.values().sum::<u64>() + self.ended_threads_ns;
        let exact = threads.saturating_sub(self.threads_at_first_ns);
        let process = self.process_ns.saturating_sub(self.process_at_first_ns);
        exact.max(process.saturating_sub(tick_ns))
    }

    fn reaped_since_first_ns(&self) -> u64 {
        self.reaped_ns.saturating_sub(self.reaped_at_first_ns)
    }

    /// A peak from before the first look says nothing about the run.
    fn peak(&self) -> u64 {
        if self.peak_bytes > self.peak_at_first_bytes {
            self.peak_bytes
        } else {
            self.resident_peak_bytes
        }
    }
}

/// The sums.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    tick_ns: u64,
    accounts: BTreeMap<(u32, u64), Account>,
    has_looked: bool,
    ended_ns: u64,
    reaped_by_ended_ns: u64,
    busiest_ns: u64,
    cpu_ns: u64,
    peak_bytes: u64,
}

impl Ledger {
    /// Nothing seen yet; the kernel rounds the CPU time of processes to `tick_ns`.
    pub(super) fn new(tick_ns: u64) -> Self {
        Self { tick_ns, ..Self::default() }
    }

    /// Everything that is there now. What was there at the first look starts at zero; what comes
    /// later counts from its birth.
    pub(super) fn look(&mut self, seen: &[Seen]) {
        let mut busiest = 0;
        for process in seen {
            busiest = busiest.max(self.look_at(process));
        }
        let alive = |key: &(u32, u64)| seen.iter().any(|one| (one.pid, one.born) == *key);
        let gone: Vec<(u32, u64)> =
            self.accounts.keys().filter(|key| !alive(key)).copied().collect();
        for key in gone {
            if let Some(account) = self.accounts.remove(&key) {
                self.ended_ns += account.own_ns(self.tick_ns);
                self.reaped_by_ended_ns += account.reaped_since_first_ns();
            }
        }
        self.busiest_ns += busiest;
        self.has_looked = true;
        let own: u64 = self.accounts.values().map(|account| account.own_ns(self.tick_ns)).sum();
        let reaped: u64 = self.accounts.values().map(Account::reaped_since_first_ns).sum();
        // What ended in sight is in `ended_ns`; what ended and was waited for is in `reaped`. Most
        // is in both, so the greater of the two is nearer to the truth than the sum.
        let ended = self.ended_ns.max(reaped + self.reaped_by_ended_ns);
        self.cpu_ns = self.cpu_ns.max(own + ended);
        let peak = self.accounts.values().map(Account::peak).sum();
        self.peak_bytes = self.peak_bytes.max(peak);
    }

    /// Takes one process in; returns for how long the thread that was busiest since the last look ran,
    /// or was ready to.
    fn look_at(&mut self, seen: &Seen) -> u64 {
        let is_first = !self.has_looked;
        let key = (seen.pid, seen.born);
        let is_known = self.accounts.contains_key(&key);
        let account = self.accounts.entry(key).or_default();
        if is_first && !is_known {
            account.threads_at_first_ns = seen.threads.iter().map(|(_, ns)| ns).sum();
            account.process_at_first_ns = seen.process_ns;
            account.reaped_at_first_ns = seen.reaped_ns;
        }
        if !is_known {
            account.peak_at_first_bytes = if is_first { seen.peak_bytes } else { 0 };
        }
        account.process_ns = account.process_ns.max(seen.process_ns);
        account.reaped_ns = account.reaped_ns.max(seen.reaped_ns);
        account.peak_bytes = account.peak_bytes.max(seen.peak_bytes);
        account.resident_peak_bytes = account.resident_peak_bytes.max(seen.resident_bytes);
        let waited_before = std::mem::replace(&mut account.waits, seen.waits.clone());
        let mut before = std::mem::take(&mut account.threads);
        let mut busiest = 0;
        for (tid, ns) in &seen.threads {
            let used = match before.get(tid) {
                // A number that is used again belongs to a new thread: the old one stays in
                // `before` and counts as ended.
                Some(then) if then <= ns => {
                    let used = ns - then;
                    before.remove(tid);
                    used
                }
                _ if is_first => 0,
                _ => *ns,
            };
            // Who is ready all the time is full, though others have the core.
            let waited = |waits: &BTreeMap<u32, u64>| waits.get(tid).copied();
            let waited = match (waited(&waited_before), waited(&account.waits)) {
                (Some(then), Some(now)) => now.saturating_sub(then),
                _ => 0,
            };
            busiest = busiest.max(used + waited);
            account.threads.insert(*tid, *ns);
        }
        account.ended_threads_ns += before.values().sum::<u64>();
        busiest
    }

    /// CPU time since the first look.
    pub(super) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu_ns)
    }

    /// Of each interval between two looks, the time of the thread that was busiest in it; summed.
    pub(super) fn busiest_thread(&self) -> Duration {
        Duration::from_nanos(self.busiest_ns)
    }

    /// The greatest sum of resident memory. Pages that processes share count once for each.
    pub(super) fn peak_memory_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Nothing of what was seen is left.
    pub(super) fn is_extinct(&self) -> bool {
        self.accounts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 10_000_000;

    fn process(pid: u32, threads: &[(u32, u64)]) -> Seen {
        let process_ns = threads.iter().map(|(_, ns)| ns).sum::<u64>() / TICK * TICK;
        Seen { pid, born: 1, threads: threads.to_vec(), process_ns, ..Seen::default() }
    }

    fn cpu(ledger: &Ledger) -> u128 {
        ledger.cpu().as_nanos()
    }

    #[test]
    fn what_ran_before_the_first_look_does_not_count() {
        let mut ledger = Ledger::new(TICK);
        ledger.look(&[process(7, &[(7, 5_000), (8, 9_000)])]);
        assert_eq!(cpu(&ledger), 0);
        ledger.look(&[process(7, &[(7, 5_500), (8, 9_100)])]);
        assert_eq!(cpu(&ledger), 600);
        assert_eq!(ledger.busiest_thread().as_nanos(), 500);
    }

    #[test]
    fn a_thread_that_ended_still_counts() {
        let mut ledger = Ledger::new(TICK);
        ledger.look(&[process(7, &[(7, 0)])]);
        ledger.look(&[process(7, &[(7, 100), (8, 50)])]);
        ledger.look(&[process(7, &[(7, 200)])]);
        assert_eq!(cpu(&ledger), 250);
        assert_eq!(ledger.busiest_thread().as_nanos(), 200);
    }

    #[test]
    fn threads_that_came_and_went_unseen_count_by_the_clock_tick() {
        let mut ledger = Ledger::new(TICK);
        let mut server = process(7, &[(7, 0)]);
        ledger.look(&[server.clone()]);
        server.process_ns = 50 * TICK;
        ledger.look(&[server]);
        assert_eq!(u64::try_from(cpu(&ledger)).unwrap(), 49 * TICK);
    }

    #[test]
    fn a_child_born_later_counts_whole_and_stays_when_it_ends() {
        let mut ledger = Ledger::new(TICK);
        let mut parent = process(7, &[(7, 1_000)]);
        ledger.look(&[parent.clone()]);
        ledger.look(&[parent.clone(), process(9, &[(9, 40 * TICK)])]);
        assert_eq!(u64::try_from(cpu(&ledger)).unwrap(), 40 * TICK);
        // The parent waits for it: the same time appears there, and is not counted again.
        parent.reaped_ns = 40 * TICK;
        ledger.look(&[parent.clone()]);
        assert_eq!(u64::try_from(cpu(&ledger)).unwrap(), 40 * TICK);
        // A second one comes and goes between two looks.
        parent.reaped_ns = 70 * TICK;
        ledger.look(&[parent]);
        assert_eq!(u64::try_from(cpu(&ledger)).unwrap(), 70 * TICK);
    }

    #[test]
    fn a_reused_thread_number_starts_anew() {
        let mut ledger = Ledger::new(TICK);
        ledger.look(&[process(7, &[(7, 0), (8, 1_000)])]);
        ledger.look(&[process(7, &[(7, 0), (8, 300)])]);
        assert_eq!(cpu(&ledger), 300);
    }

    #[test]
    fn a_peak_from_before_is_not_the_runs() {
        let mut ledger = Ledger::new(TICK);
        let mut server = process(7, &[(7, 0)]);
        (server.peak_bytes, server.resident_bytes) = (900, 100);
        ledger.look(&[server.clone()]);
        server.resident_bytes = 300;
        ledger.look(&[server.clone()]);
        assert_eq!(ledger.peak_memory_bytes(), 300);
        server.peak_bytes = 950;
        ledger.look(&[server]);
        assert_eq!(ledger.peak_memory_bytes(), 950);
        ledger.look(&[]);
        assert!(ledger.is_extinct());
        assert_eq!(ledger.peak_memory_bytes(), 950);
    }

    #[test]
    fn a_thread_that_is_ready_and_has_no_core_is_full() {
        let mut ledger = Ledger::new(0);
        let seen = |ran: u64, waited: u64| Seen {
            pid: 1,
            threads: vec![(1, ran), (2, ran / 2)],
            waits: BTreeMap::from([(1, waited), (2, 0)]),
            ..Seen::default()
        };
        ledger.look(&[seen(100, 1000)]);
        ledger.look(&[seen(160, 1040)]);
        assert_eq!(ledger.busiest_thread().as_nanos(), 100);
        assert_eq!(ledger.cpu().as_nanos(), 90);
    }

    #[test]
    fn a_sum_never_shrinks() {
        let mut ledger = Ledger::new(TICK);
        ledger.look(&[process(7, &[(7, 0)])]);
        ledger.look(&[process(7, &[(7, 500)]), process(8, &[(8, 700)])]);
        let before = cpu(&ledger);
        ledger.look(&[]);
        assert!(cpu(&ledger) >= before);
    }
}
