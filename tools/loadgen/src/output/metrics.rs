//! Metrics of a load while it runs, for Prometheus: `GET /metrics`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_probe::progress::Progress;
use bolide_server::{Exposition, Response, Router, Running, Server};
use http::HeaderValue;

use super::samples::samples;

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

    /// Returns where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.as_ref()?.addresses().first().copied().flatten()
    }

    /// Sets what it says from now on.
    pub fn observe(&self, phase: &str, progress: &Progress) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        phase.clone_into(&mut seen.phase);
        seen.progress = progress.clone();
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
    for sample in samples(&seen.progress) {
        let phase = [("phase", seen.phase.as_str())];
        let labels: Vec<_> = phase.into_iter().chain(sample.label).collect();
        text.sample(sample.metric, &labels, sample.value);
    }
    text.into_text()
}

#[cfg(test)]
mod tests {
    use bolide_client::Client;

    use super::*;

    #[test]
    fn what_was_observed_last_is_served() {
        let endpoint = MetricsEndpoint::start("127.0.0.1:0").unwrap();
        let progress = Progress {
            completed: 7,
            failures: [(bolide_probe::report::Failure::Reset, 2)].into(),
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
