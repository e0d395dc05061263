//! From what was counted to the report of a phase.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::histograms::latencies;
use super::tally::{QuicTally, Tally};
use super::thread_state::Task;
use crate::cost::CostSample;
use crate::plan::{Load, Phase};
use crate::report::Costs;
use crate::report::Course;
use crate::report::Handshakes;
use crate::report::Kinds;
use crate::report::Times;
use crate::report::{Counts, PartPhase, PhaseReport, ProcessCost, Sample, Verdict};

/// Cost of a phase: looks at both ends of the measurement, and the time between them.
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

/// Result of a phase in one engine, in a form that adds up exactly.
#[derive(Debug, Serialize, Deserialize)]
pub struct Counted {
    pub(super) tally: Tally,
    /// From the end of the warm-up to the end.
    pub(super) elapsed_ns: u64,
    pub(super) generator: ProcessCost,
    /// The cores that the generator's threads may use.
    pub(super) generator_cores: usize,
    pub(super) server: Option<ProcessCost>,
}

impl Counted {
    /// Returns what was counted of a phase whose measurement began at `measure_ns`.
    pub(super) fn new(tally: Tally, measure_ns: u64, cost: &Cost) -> Self {
        let requests = tally.counts.completed;
        Self {
            elapsed_ns: tally.ended_ns.saturating_sub(measure_ns),
            generator: cost.generator(requests),
            generator_cores: cost.generator_cores,
            server: cost.server(requests),
            tally,
        }
    }

    /// Requests and responses.
    pub fn counts(&self) -> Counts {
        self.tally.counts
    }

    /// Adds what another engine counted in the same time.
    pub fn add(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        let cores = self.generator_cores.saturating_add(other.generator_cores);
        let (one, more) = (&mut self.generator, &other.generator);
        let used = one.utilisation * self.generator_cores as f64
            + more.utilisation * other.generator_cores as f64;
        one.utilisation = used / cores.max(1) as f64;
        one.cpu_ns += more.cpu_ns;
        one.busiest_thread = one.busiest_thread.max(more.busiest_thread);
        one.peak_memory_bytes += more.peak_memory_bytes;
        self.generator_cores = cores;
        // There is one server, however many watch it.
        self.server = self.server.or(other.server);
        let requests = self.tally.counts.completed;
        for cost in std::iter::once(&mut self.generator).chain(&mut self.server) {
            cost.cpu_per_request_ns = (requests > 0).then(|| cost.cpu_ns as f64 / requests as f64);
        }
    }

    /// The same for one part of a run, as it is reported next to the sum.
    pub fn of_part(&self, part: usize) -> PartPhase {
        let connect = &self.tally.times.connect;
        let round_trip = self.tally.kinds.quic.as_ref().map_or(connect, |quic| quic.round_trip());
        PartPhase {
            part,
            elapsed_ns: self.elapsed_ns,
            counts: self.tally.counts,
            latency: latencies(self.tally.times.latency.clone()),
            lag: latencies(self.tally.times.lag.clone()),
            pacing: latencies(self.tally.times.pacing.clone()),
            round_trip_ns: latencies(round_trip.clone()).min_ns,
            generator: self.generator,
        }
    }
}

/// The report of a phase. The verdict is left open.
pub(super) fn report(
    phase: &Phase,
    counted: Counted,
    series: Vec<Sample>,
    task: &Task,
) -> PhaseReport {
    let Counted { tally, elapsed_ns, generator, server, .. } = counted;
    let (statuses, failures) = (tally.statuses(), tally.failures());
    // Where each request has a connection of its own, there is nothing to compare.
    let stays = phase.load != Load::Connect;
    let connection_rates = stays.then(|| tally.rates(elapsed_ns as f64 / 1e9)).flatten();
    let presence = tally.presence as f64;
    let latency = latencies(tally.times.latency);
    let explained = latency.mean_ns * latency.count as f64;
    PhaseReport {
        phase: phase.clone(),
        elapsed_ns,
        counts: tally.counts,
        statuses,
        failures,
        first_loss: tally.first_loss.filter(|_| tally.counts.failed > 0).map(Cow::into_owned),
        traffic: tally.traffic,
        stalls: tally.stalls,
        quic: tally.kinds.quic.map(QuicTally::report),
        connection_rates,
        verdict: Verdict::default(),
        course: Course {
            littles_law_residual: (presence > 0.0).then(|| (presence - explained) / presence),
            series,
            parts: Vec::new(),
        },
        times: Times {
            latency,
            sent_to_first_byte_mean_ns: tally.times.handed_to_first_byte_ns as f64
                / tally.times.first_byte.len().max(1) as f64,
            first_byte: latencies(tally.times.first_byte),
            connect: latencies(tally.times.connect),
            handshake: latencies(tally.times.handshake),
            lag: latencies(tally.times.lag),
            pacing: latencies(tally.times.pacing),
        },
        handshakes: Handshakes {
            resumed_count: tally.resumed_count,
            early_count: tally.early_count,
        },
        kinds: Kinds {
            events: task.events.map(|plan| tally.kinds.events.report(elapsed_ns, &plan)),
            websocket: task.websocket.as_ref().map(|of| of.report(tally.kinds.websocket)),
            users: task.scenario.as_ref().map(|_| tally.kinds.users.unwrap_or_default().report()),
            requests: tally.by_request.report(&task.script),
        },
        cpu: Costs { generator, server },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Failure;
    use proptest::prelude::*;

    /// Returns what was counted of requests with these latencies in nanoseconds; the odd ones failed.
    fn counted(latencies_ns: &[u64]) -> Counted {
        let mut tally = Tally::new(2);
        for ns in latencies_ns {
            tally.times.latency.saturating_record(*ns);
            tally.counts.due += 1;
            tally.counts.completed += 1;
            tally.presence += u128::from(*ns);
            tally.traffic.wire_sent_bytes += ns % 1000;
            tally.by_request.answered((ns % 2) as u32, *ns, ns % 2 == 0);
            if ns % 2 == 1 {
                tally.failure(Failure::Status);
            }
            tally.status(200 + (ns % 5) as u16);
            tally.completed_on(Some((ns % 3) as u32));
            tally.first_loss.get_or_insert_with(|| "reset".into());
        }
        tally.ended_ns = 3_000_000_000;
        Counted::new(tally, 1_000_000_000, &Cost { generator_cores: 1, ..Cost::default() })
    }

    /// As it comes from another part.
    fn sent(counted: &Counted) -> Counted {
        serde_json::from_slice(&serde_json::to_vec(counted).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn shards_merged_are_one_run(
            shards in prop::collection::vec(
                prop::collection::vec(0..700_000_000_000_u64, 0..60), 1..6),
        ) {
            let one = counted(&shards.concat());
            let mut sum = sent(&counted(&shards[0]));
            for shard in &shards[1..] {
                sum.add(&sent(&counted(shard)));
            }
            prop_assert_eq!(&sum.tally.times.latency, &one.tally.times.latency);
            prop_assert_eq!(sum.tally.counts, one.tally.counts);
            prop_assert_eq!(sum.tally.traffic, one.tally.traffic);
            prop_assert_eq!(sum.tally.presence, one.tally.presence);
            prop_assert_eq!(sum.tally.statuses(), one.tally.statuses());
            prop_assert_eq!(sum.tally.failures(), one.tally.failures());
            prop_assert_eq!(sum.elapsed_ns, one.elapsed_ns);
            let all = shards.concat();
            prop_assert_eq!(sum.tally.first_loss.is_some(), !all.is_empty());
            let percentiles = |counted: &Counted| counted.of_part(1).latency.percentiles_ns;
            prop_assert_eq!(percentiles(&sum), percentiles(&one));
        }
    }

    #[test]
    fn a_histogram_of_other_bounds_is_not_read() {
        let text = serde_json::to_string(&counted(&[5_000])).unwrap();
        assert!(serde_json::from_str::<Counted>(&text).is_ok());
        // The digit count is in the 16th byte.
        let start = text.find("\"latency\":\"").unwrap() + 11;
        let mut broken = text.clone();
        broken.replace_range(start + 20..start + 22, "BQ");
        assert!(serde_json::from_str::<Counted>(&broken).is_err());
        broken.replace_range(start..start + 24, "!");
        assert!(serde_json::from_str::<Counted>(&broken).is_err());
    }

    #[test]
    fn costs_of_engines_add_up() {
        let mut one = counted(&[1_000, 2_000]);
        one.generator =
            ProcessCost { cpu_ns: 400, utilisation: 0.2, busiest_thread: 0.2, ..one.generator };
        let mut other = counted(&[4_000, 6_000]);
        other.generator_cores = 3;
        other.generator =
            ProcessCost { cpu_ns: 800, utilisation: 0.6, busiest_thread: 0.9, ..other.generator };
        one.add(&other);
        let generator = one.generator;
        assert_eq!((generator.cpu_ns, generator.cpu_per_request_ns), (1200, Some(300.0)));
        assert!((generator.utilisation - 0.5).abs() < 1e-9);
        assert_eq!((generator.busiest_thread, one.generator_cores), (0.9, 4));
    }

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
