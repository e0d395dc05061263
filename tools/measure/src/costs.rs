//! Costs of both sides while something is transferred.

use std::time::{Duration, Instant};

use bolide_probe::accounting::ProcessAccounting;
use bolide_probe::cost::{Accounting, CostSample};
use bolide_probe::plan::{Origin, ServerProcesses};

use crate::report::Cost;

/// Bytes of a GiB.
const GIB: f64 = 1_073_741_824.0;

/// A look at both sides, and all that came since.
#[derive(Debug)]
pub(crate) struct Costs {
    accounting: ProcessAccounting,
    before: CostSample,
    began: Instant,
}

impl Costs {
    /// Looks for the server's processes.
    pub(crate) fn new(server: ServerProcesses, origin: &Origin) -> Self {
        let mut accounting = ProcessAccounting::new(server, origin);
        let before = accounting.sample();
        Self { accounting, before, began: Instant::now() }
    }

    /// Begins the count.
    pub(crate) fn begin(&mut self) {
        self.before = self.accounting.sample();
        self.began = Instant::now();
    }

    /// Looks which threads are busy, which must be done now and then.
    pub(crate) fn look(&mut self) {
        self.accounting.sample();
    }

    /// Returns what was spent since the beginning, on so many bytes of payload: here, and at the server.
    pub(crate) fn end(&mut self, bytes: u64) -> (Cost, Option<Cost>) {
        let after = self.accounting.sample();
        let seconds = self.began.elapsed().as_secs_f64();
        let before = &self.before;
        let client = cost(
            after.generator_cpu.saturating_sub(before.generator_cpu),
            after.generator_busiest_thread.saturating_sub(before.generator_busiest_thread),
            after.generator_memory_bytes,
            seconds,
            bytes,
        );
        let server = before.server.zip(after.server).map(|(before, after)| {
            let cpu = after.0.saturating_sub(before.0);
            cost(cpu, after.1.saturating_sub(before.1), after.2, seconds, bytes)
        });
        (client, server)
    }
}

fn cost(cpu: Duration, busiest: Duration, memory: u64, seconds: f64, bytes: u64) -> Cost {
    let cpu_seconds = cpu.as_secs_f64();
    Cost {
        cpu_seconds,
        cpu_seconds_per_gib: (bytes > 0).then(|| cpu_seconds / (bytes as f64 / GIB)),
        peak_memory_bytes: memory,
        busiest_thread: if seconds > 0.0 { busiest.as_secs_f64() / seconds } else { 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_per_time_and_per_gib() {
        let ms = Duration::from_millis;
        let found = cost(ms(1000), ms(1500), 7, 2.0, 2 << 30);
        assert_eq!((found.cpu_seconds, found.cpu_seconds_per_gib), (1.0, Some(0.5)));
        assert_eq!((found.peak_memory_bytes, found.busiest_thread), (7, 0.75));
        assert_eq!(cost(ms(1), ms(1), 0, 0.0, 0), Cost { cpu_seconds: 0.001, ..Cost::default() });
    }
}
