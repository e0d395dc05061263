//! The figures of a phase as shares, so that thresholds can be put on them.

use bolide_probe::report::{Bound, Latencies, PartPhase, PhaseReport, Verdict};

use super::IDLE;

/// Shares and sums that a verdict is made from.
#[derive(Debug)]
pub(super) struct Facts {
    /// Responses per second.
    pub(super) rate: f64,
    pub(super) failed_share: f64,
    /// How full the fullest part of the generator was: its busiest thread, or all its cores.
    pub(super) generator_fullness: f64,
    pub(super) generator_cores: f64,
    pub(super) server_fullness: Option<f64>,
    pub(super) server_cores: Option<f64>,
    /// The lifetimes of all answered requests, summed, in nanoseconds.
    pub(super) in_flight_ns: f64,
    /// The time of all connections, summed, in nanoseconds.
    pub(super) connections_ns: f64,
    /// A round trip; of parts with paths of their own, the mean over their responses.
    pub(super) round_trip_ns: u64,
    /// The mean time from when a request was sent to the first byte of its response.
    pub(super) first_byte_ns: u64,
    /// In the direction that carries more.
    pub(super) bytes_per_exchange: f64,
    pub(super) wire_bits_per_second: f64,
}

impl Facts {
    pub(super) fn of(report: &PhaseReport) -> Self {
        let elapsed_ns = report.elapsed_ns.max(1) as f64;
        let counts = &report.counts;
        let completed = counts.completed.max(1) as f64;
        let traffic = &report.traffic;
        let bytes = traffic.wire_received_bytes.max(traffic.wire_sent_bytes) as f64;
        let generator = &report.cpu.generator;
        let server = report.cpu.server.as_ref();
        Self {
            rate: counts.completed as f64 * 1e9 / elapsed_ns,
            failed_share: counts.failed as f64 / counts.due.max(counts.failed).max(1) as f64,
            generator_fullness: generator.busiest_thread.max(generator.utilisation),
            generator_cores: generator.cpu_ns as f64 / elapsed_ns,
            server_fullness: server.map(|cost| cost.busiest_thread.max(cost.utilisation)),
            server_cores: server.map(|cost| cost.cpu_ns as f64 / elapsed_ns),
            in_flight_ns: report.times.latency.mean_ns * completed,
            connections_ns: counts.connections.max(1) as f64 * elapsed_ns,
            round_trip_ns: round_trip(report),
            first_byte_ns: report.times.sent_to_first_byte_mean_ns as u64,
            bytes_per_exchange: bytes / completed,
            wire_bits_per_second: bytes * 8.0 * 1e9 / elapsed_ns,
        }
    }

    /// Returns what the generator's CPU says.
    pub(super) fn generator_said(&self) -> String {
        format!(
            "The generator's busiest part was {} busy.",
            percent(self.generator_fullness.min(1.0))
        )
    }

    /// Returns what the CPU of both sides says.
    pub(super) fn generator_said_and_server(&self) -> Vec<String> {
        let server = self.server_fullness.map(|fullness| {
            format!("The server's busiest part was {} busy.", percent(fullness.min(1.0)))
        });
        std::iter::once(self.generator_said()).chain(server).collect()
    }

    /// Neither side, as far as it is known, was busy.
    pub(super) fn nobody_is_busy(&self) -> bool {
        self.generator_fullness < IDLE && self.server_fullness.is_none_or(|full| full < IDLE)
    }

    /// A verdict, if there is any evidence for it; what both sides' CPU says is added.
    pub(super) fn confirmed(&self, bound: Bound, mut evidence: Vec<String>) -> Option<Verdict> {
        if evidence.is_empty() {
            return None;
        }
        evidence.extend(self.generator_said_and_server());
        Some(Verdict { bound, evidence })
    }
}

fn round_trip(report: &PhaseReport) -> u64 {
    let completed: u64 = report.course.parts.iter().map(|part| part.counts.completed).sum();
    if completed == 0 {
        // The median of connections also has the burst in it that opening all of them at once is.
        return report.quic.as_ref().map_or(&report.times.connect, |quic| &quic.rtt).min_ns;
    }
    let weighted =
        |part: &PartPhase| u128::from(part.round_trip_ns) * u128::from(part.counts.completed);
    (report.course.parts.iter().map(weighted).sum::<u128>() / u128::from(completed)) as u64
}

pub(super) fn median(latencies: &Latencies) -> u64 {
    latencies.percentiles_ns.get("p50").copied().unwrap_or(0)
}

pub(super) fn p99(latencies: &Latencies) -> u64 {
    latencies.percentiles_ns.get("p99").copied().unwrap_or(0)
}

/// `97.5 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `1.25 ms`.
pub(super) fn duration(ns: u64) -> String {
    bolide_units::figures::duration(ns)
}
