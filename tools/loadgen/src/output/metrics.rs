//! What a load does while it runs, for Prometheus: `GET /metrics`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_server::{Exposition, Metric, Response, Router, Running, Server};
use http::HeaderValue;

use crate::progress::Progress;

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

/// The phase that runs, and the last look at it.
#[derive(Debug, Default)]
struct Seen {
    phase: String,
    progress: Progress,
}

/// A server of its own for the metrics of a load.
#[derive(Debug)]
pub struct MetricsEndpoint {
    seen: Arc<Mutex<Seen>>,
    /// Until it is dropped.
    running: Option<Running>,
}

impl MetricsEndpoint {
    /// Listens on an address, such as `127.0.0.1:9100`.
    ///
    /// # Errors
    ///
    /// Why it can't, in a sentence.
    pub fn start(address: &str) -> Result<Self, String> {
        let seen = Arc::<Mutex<Seen>>::default();
        let told = Arc::clone(&seen);
        let routes = move || {
            let told = Arc::clone(&told);
            Router::new().get("/metrics", move |_| {
                let seen = told.lock().unwrap_or_else(PoisonError::into_inner);
                let kind = HeaderValue::from_static(Exposition::CONTENT_TYPE);
                Response::with_type(kind, text(&seen))
            })
        };
        let running = Server::new().workers(1).http(address).start(routes);
        let running = running.map_err(|error| format!("--metrics {address}: {error}"))?;
        Ok(Self { seen, running: Some(running) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.as_ref()?.addresses().first().copied().flatten()
    }

    /// What it says from now on.
    pub fn observe(&self, phase: &str, progress: &Progress) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        phase.clone_into(&mut seen.phase);
        seen.progress = *progress;
    }
}

impl Drop for MetricsEndpoint {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down();
            // What its thread ended with is nothing that the load could mend.
            let _ = running.join();
        }
    }
}

/// The metrics in the text format of Prometheus.
fn text(seen: &Seen) -> String {
    let mut text = Exposition::new();
    let Seen { phase, progress } = seen;
    let phase = ("phase", phase.as_str());
    text.sample(&RESPONSES, &[phase], progress.completed);
    text.sample(&FAILURES, &[phase], progress.failed);
    text.sample(&RATE, &[phase], progress.rate);
    text.sample(&IN_FLIGHT, &[phase], progress.in_flight);
    for (quantile, ns) in [("0.5", progress.p50_ns), ("0.99", progress.p99_ns)] {
        text.sample(&LATENCY, &[phase, ("quantile", quantile)], ns as f64 / 1e9);
    }
    let sides = [("generator", Some(progress.generator_cores)), ("server", progress.server_cores)];
    for (side, cores) in sides {
        if let Some(cores) = cores {
            text.sample(&CORES, &[phase, ("side", side)], cores);
        }
    }
    text.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bolide_client::Client;

    #[test]
    fn what_was_observed_last_is_served() {
        let endpoint = MetricsEndpoint::start("127.0.0.1:0").unwrap();
        let progress = Progress {
            completed: 7,
            failed: 2,
            rate: 3.5,
            p99_ns: 1_500_000,
            server_cores: Some(0.5),
            ..Progress::default()
        };
        endpoint.observe("at \"50 %\"", &progress);
        let address = endpoint.address().unwrap();
        let url = format!("http://{address}/metrics");
        let mut response = Client::new().unwrap().get(&url).send().unwrap();
        assert_eq!(response.header("content-type"), Some(Exposition::CONTENT_TYPE));
        let text = response.text().unwrap();
        for line in [
            "# TYPE bolide_load_responses_total counter\n",
            "bolide_load_responses_total{phase=\"at \\\"50 %\\\"\"} 7\n",
            "bolide_load_failures_total{phase=\"at \\\"50 %\\\"\"} 2\n",
            "quantile=\"0.99\"} 0.0015\n",
            "side=\"server\"} 0.5\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let taken = MetricsEndpoint::start(&address.to_string()).unwrap_err();
        assert!(taken.starts_with("--metrics 127.0.0.1:"), "{taken}");
    }
}
