//! Reports made up for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use bolide_probe::plan::{Arrivals, Load, Phase, Until};
use bolide_probe::report::{
    Costs, Counts, Course, Handshakes, Kinds, Latencies, PhaseReport, ProcessCost, Report, Sample,
    Stalls, Times, Traffic, Verdict,
};

pub(crate) const OPEN_1000: Load = Load::Open { rate: 1000.0, arrivals: Arrivals::Constant };

/// A phase of a second or more.
pub(crate) fn phase(name: &str, load: Load) -> Phase {
    let until = Until { requests: None, time: Some(Duration::from_secs(1)) };
    Phase { name: name.into(), load, warm_up: Duration::ZERO, until }
}

/// Latencies with exactly these values, in nanoseconds.
pub(crate) fn latencies(values: &[u64]) -> Latencies {
    let mut histogram = Histogram::<u64>::new_with_bounds(1_000, 600_000_000_000, 3).unwrap();
    for value in values {
        histogram.record(*value).unwrap();
    }
    let at = |quantile: f64| histogram.value_at_quantile(quantile);
    let names = [
        ("p50", 0.5),
        ("p75", 0.75),
        ("p90", 0.9),
        ("p95", 0.95),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
        ("p99.999", 0.99999),
    ];
    Latencies {
        count: histogram.len(),
        mean_ns: histogram.mean(),
        deviation_ns: histogram.stdev(),
        min_ns: values.iter().copied().min().unwrap_or(0),
        percentiles_ns: names
            .into_iter()
            .filter(|_| !values.is_empty())
            .map(|(name, quantile)| (name.to_owned(), at(quantile)))
            .collect(),
        max_ns: values.iter().copied().max().unwrap_or(0),
        hdr_v2: String::new(),
        histogram: Some(histogram),
    }
}

/// The latency of `count` responses, all alike.
pub(crate) fn flat(count: usize, ns: u64) -> Latencies {
    latencies(&vec![ns; count])
}

/// A second in which 1000 requests were answered in a millisecond each, and no core was busy.
pub(crate) fn quiet(load: Load) -> PhaseReport {
    let counts = Counts {
        due: 1000,
        started: 1000,
        completed: 1000,
        succeeded: 1000,
        failed: 0,
        compared: 10,
        connections: 10,
    };
    PhaseReport {
        phase: phase("measured", load),
        elapsed_ns: 1_000_000_000,
        counts,
        statuses: BTreeMap::from([(200, 1000)]),
        failures: BTreeMap::new(),
        first_loss: None,
        traffic: Traffic {
            wire_received_bytes: 150_000,
            wire_sent_bytes: 100_000,
            payload_received_bytes: 5_000,
            payload_sent_bytes: 0,
            head_wire_bytes: 48_000,
            head_decoded_bytes: 98_000,
            retransmits: 0,
        },
        stalls: Stalls::default(),
        quic: None,
        connection_rates: None,
        verdict: Verdict::default(),
        times: Times {
            latency: flat(1000, 1_000_000),
            first_byte: flat(1000, 900_000),
            sent_to_first_byte_mean_ns: 900_000.0,
            connect: flat(10, 50_000),
            handshake: Latencies::default(),
            lag: Latencies::default(),
            pacing: Latencies::default(),
        },
        handshakes: Handshakes { resumed_count: 0, early_count: 0 },
        kinds: Kinds { requests: Vec::new(), events: None, websocket: None, users: None },
        cpu: Costs { generator: cost(0.3, 0.3), server: Some(cost(0.4, 0.4)) },
        course: Course { littles_law_residual: Some(0.001), series: series(), parts: Vec::new() },
    }
}

fn series() -> Vec<Sample> {
    vec![
        Sample {
            at_ns: 100_000_000,
            rate: 990.0,
            p50_ns: 900_000,
            p99_ns: 1_100_000,
            failed: 0,
            in_flight: 10,
            generator_cores: 0.3,
            server_cores: Some(0.4),
        },
        Sample {
            at_ns: 200_000_000,
            rate: 1010.0,
            p50_ns: 950_000,
            p99_ns: 1_200_000,
            failed: 1,
            in_flight: 9,
            generator_cores: 0.3,
            server_cores: None,
        },
    ]
}

/// A process that used this much of a core, and of its busiest thread, in a second.
pub(crate) fn cost(cores: f64, busiest_thread: f64) -> ProcessCost {
    ProcessCost {
        cpu_ns: (cores * 1e9) as u64,
        cpu_per_request_ns: Some(cores * 1e9 / 1000.0),
        utilisation: cores / 2.0,
        busiest_thread,
        peak_memory_bytes: 10 << 20,
    }
}

/// A run of these phases.
pub(crate) fn report(phases: Vec<PhaseReport>) -> Report {
    Report {
        url: "http://127.0.0.1:8080/ping".into(),
        protocol: "http/1.1".into(),
        tls: None,
        connections: 10,
        depth: 1,
        threads: 2,
        phases,
        started_unix_s: 1_700_000_000.0,
        server_died_after_ns: None,
        interrupted: false,
        knee: None,
        parts: None,
    }
}
