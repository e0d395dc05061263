//! From what was counted to the report of a phase.

use std::time::Duration;

use super::histograms::latencies;
use super::tally::{QuicTally, Tally};
use super::thread_state::Task;
use crate::cost::CostSample;
use crate::plan::{Load, Phase};
use crate::report::{PhaseReport, ProcessCost, Sample, Verdict};

/// What a phase cost: looks at both ends of the measurement, and the time between them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    pub(super) before: CostSample,
    pub(super) after: CostSample,
    pub(super) between: Duration,
    /// The cores that the generator's threads may use.
    pub(super) generator_cores: usize,
    /// The cores that the server may use.
    pub(super) server_cores: usize,
}

impl Cost {
    fn of(
        &self,
        cpu: Duration,
        busiest: Duration,
        memory: u64,
        cores: usize,
        requests: u64,
    ) -> ProcessCost {
        let seconds = self.between.as_secs_f64();
        let share = |time: Duration| if seconds > 0.0 { time.as_secs_f64() / seconds } else { 0.0 };
        let cpu_ns = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
        ProcessCost {
            cpu_ns,
            cpu_per_request_ns: (requests > 0).then(|| cpu_ns as f64 / requests as f64),
            utilisation: share(cpu) / cores.max(1) as f64,
            busiest_thread: share(busiest),
            peak_memory_bytes: memory,
        }
    }

    fn generator(&self, requests: u64) -> ProcessCost {
        let (before, after) = (&self.before, &self.after);
        let cpu = after.generator_cpu.saturating_sub(before.generator_cpu);
        let busiest =
            after.generator_busiest_thread.saturating_sub(before.generator_busiest_thread);
        self.of(cpu, busiest, after.generator_memory_bytes, self.generator_cores, requests)
    }

    fn server(&self, requests: u64) -> Option<ProcessCost> {
        let (before, after) = self.before.server.zip(self.after.server)?;
        let (cpu, busiest) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
        Some(self.of(cpu, busiest, after.2, self.server_cores, requests))
    }
}

/// The report of a phase whose measurement began at `measure_ns`. The verdict is left open.
pub(super) fn report(
    phase: &Phase,
    tally: Tally,
    measure_ns: u64,
    series: Vec<Sample>,
    cost: &Cost,
    task: &Task,
) -> PhaseReport {
    let requests = tally.counts.completed;
    let (statuses, failures) = (tally.statuses(), tally.failures());
    let elapsed_ns = tally.ended_ns.saturating_sub(measure_ns);
    // Where each request has a connection of its own, there is nothing to compare.
    let stays = phase.load != Load::Connect;
    let connection_rates = stays.then(|| tally.rates(elapsed_ns as f64 / 1e9)).flatten();
    let presence = tally.presence as f64;
    let latency = latencies(tally.latency);
    let explained = latency.mean_ns * latency.count as f64;
    PhaseReport {
        phase: phase.clone(),
        elapsed_ns,
        counts: tally.counts,
        statuses,
        failures,
        first_loss: tally.first_loss.filter(|_| tally.counts.failed > 0).map(str::to_owned),
        traffic: tally.traffic,
        littles_law_residual: (presence > 0.0).then(|| (presence - explained) / presence),
        latency,
        first_byte: latencies(tally.first_byte),
        connect: latencies(tally.connect),
        handshake: latencies(tally.handshake),
        resumed_count: tally.resumed_count,
        lag: latencies(tally.lag),
        pacing: latencies(tally.pacing),
        events: task.events.map(|plan| tally.events.report(elapsed_ns, &plan)),
        websocket: task.websocket.as_ref().map(|of| of.report(tally.websocket)),
        requests: tally.by_request.report(&task.script),
        stalls: tally.stalls,
        quic: tally.quic.map(QuicTally::report),
        connection_rates,
        generator: cost.generator(requests),
        server: cost.server(requests),
        series,
        verdict: Verdict::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_differences_over_time_and_cores() {
        let sample = |cpu: u64, busiest: u64| CostSample {
            generator_cpu: Duration::from_millis(cpu),
            generator_busiest_thread: Duration::from_millis(busiest),
            generator_memory_bytes: 7,
            server: Some((Duration::from_millis(2 * cpu), Duration::from_millis(busiest), 9)),
        };
        let cost = Cost {
            before: sample(100, 50),
            after: sample(1100, 850),
            between: Duration::from_secs(1),
            generator_cores: 2,
            server_cores: 4,
        };
        let generator = cost.generator(1000);
        assert_eq!((generator.cpu_ns, generator.peak_memory_bytes), (1_000_000_000, 7));
        assert_eq!(generator.cpu_per_request_ns, Some(1e6));
        assert!((generator.utilisation - 0.5).abs() < 1e-9);
        assert!((generator.busiest_thread - 0.8).abs() < 1e-9);
        let server = cost.server(0).unwrap();
        assert_eq!((server.cpu_ns, server.cpu_per_request_ns), (2_000_000_000, None));
        assert!((server.utilisation - 0.5).abs() < 1e-9);
    }
}
