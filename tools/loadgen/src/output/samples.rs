//! Samples of a load's metrics while it runs.

use bolide_server::Metric;

use bolide_probe::progress::Progress;

/// A metric with the phase's name.
const fn of_phase(name: &'static str, kind: &'static str, help: &'static str) -> Metric {
    Metric { name, kind, labels: "phase", help }
}

const RESPONSES: Metric =
    of_phase("bolide_load_responses_total", "counter", "Responses since the phase began");
const FAILURES: Metric =
    of_phase("bolide_load_failures_total", "counter", "Failures since the phase began");
const RATE: Metric =
    of_phase("bolide_load_rate", "gauge", "Responses per second in the last sample");
const IN_FLIGHT: Metric = of_phase("bolide_load_in_flight", "gauge", "Requests in flight");
const LATENCY: Metric = Metric {
    name: "bolide_load_latency_seconds",
    kind: "gauge",
    labels: "phase, quantile",
    help: "Latency in the last sample",
};
const CORES: Metric = Metric {
    name: "bolide_load_cores",
    kind: "gauge",
    labels: "phase, side",
    help: "Cores in use in the last sample, by the generator and by the server where it is watched",
};

/// One value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) metric: &'static Metric,
    /// In addition to the phase's.
    pub(super) label: Option<(&'static str, &'static str)>,
    pub(super) value: f64,
}

/// Returns what is known of a phase that runs.
pub(super) fn samples(progress: &Progress) -> Vec<Sample> {
    let plain = |metric, value| Sample { metric, label: None, value };
    let labelled =
        |metric, name, label, value| Sample { metric, label: Some((name, label)), value };
    let seconds = |ns: u64| ns as f64 / 1e9;
    let mut samples = vec![
        plain(&RESPONSES, progress.completed as f64),
        plain(&FAILURES, progress.failed() as f64),
        plain(&RATE, progress.rate),
        plain(&IN_FLIGHT, progress.in_flight as f64),
        labelled(&LATENCY, "quantile", "0.5", seconds(progress.p50_ns)),
        labelled(&LATENCY, "quantile", "0.99", seconds(progress.p99_ns)),
        labelled(&CORES, "side", "generator", progress.generator_cores),
    ];
    samples.extend(progress.server_cores.map(|cores| labelled(&CORES, "side", "server", cores)));
    samples
}
