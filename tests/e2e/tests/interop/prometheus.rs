//! `bolide load` sends metrics to Prometheus by remote write, and by OTLP to a program that reads it with OpenTelemetry's
//! own definitions.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bolide::client::Client;
use bolide_e2e::debian_13;
use bolide_launcher::{Server, free_address, program, root, run, scratch};
use serde_json::Value;

use crate::http3::python;

/// How long Prometheus may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// One that keeps nothing; it is killed when this goes out of scope.
struct Prometheus {
    child: Child,
    url: String,
}

impl Prometheus {
    /// `None`: it is not installed.
    fn start(test: &str) -> Option<Self> {
        let run = debian_13("prometheus", test)?;
        let (directory, address) = (scratch(test), free_address());
        let configuration = directory.join("prometheus.yml");
        std::fs::write(&configuration, "").unwrap();
        let child = Command::new(run)
            .arg("prometheus")
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--web.enable-remote-write-receiver")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let this = Self { child, url: format!("http://{address}") };
        let (client, begun) = (Client::new().unwrap(), Instant::now());
        let ready = format!("{}/-/ready", this.url);
        while !client.get(&ready).send().is_ok_and(|response| response.status() == 200) {
            assert!(begun.elapsed() < PATIENCE, "Prometheus does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(this)
    }

    /// The value of the only series that a query finds now.
    fn value(&self, query: &str) -> f64 {
        let client = Client::new().unwrap();
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let url = format!("{}/api/v1/query?query={query}", self.url);
        let text = client.get(&url).send().unwrap().text().unwrap();
        let found: Value = serde_json::from_str(&text).unwrap();
        let series = found["data"]["result"].as_array().unwrap();
        assert_eq!(series.len(), 1, "{query}: {text}");
        series[0]["value"][1].as_str().unwrap().parse().unwrap()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It has ended already where a test failed because of that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn prometheus_takes_what_a_load_sends() {
    let Some(prometheus) = Prometheus::start("prometheus_takes_what_a_load_sends") else { return };
    let server = Server::start(&["--http", "127.0.0.1:0"]);
    let target = format!("{}/ping", server.http());
    let write = format!("{}/api/v1/write", prometheus.url);
    let words = ["load", "-n", "1000", "-c", "2", "--quiet", "--remote-write", &write, &target];
    run(program(), words).well();
    let value = |metric: &str, label: &str| {
        let labels = format!("job=\"bolide-load\",target=\"{target}\"{label}");
        prometheus.value(&format!("{metric}{{{labels}}}"))
    };
    assert_eq!(value("bolide_load_responses_total", "").to_bits(), 1000f64.to_bits());
    assert_eq!(value("bolide_load_failures_total", "").to_bits(), 0f64.to_bits());
    assert!((0.0..10.0).contains(&value("bolide_load_latency_seconds", ",quantile=\"0.99\"")));
}

#[test]
fn opentelemetry_reads_what_a_load_sends() {
    let Some(python) = python("opentelemetry_reads_what_a_load_sends") else { return };
    let script = root().join("tests/e2e/servers/python/otlp.py");
    let mut child =
        Command::new(python).arg(script).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let port = lines.next().unwrap();
    let server = Server::start(&["--http", "127.0.0.1:0"]);
    let target = format!("{}/ping", server.http());
    let collector = format!("http://127.0.0.1:{}", port.strip_prefix("port: ").unwrap());
    let words = ["load", "-n", "1000", "-c", "2", "--quiet", "--otlp", &collector];
    run(program(), words.into_iter().chain(["--push-header", "x-scope: a", &target])).well();
    let got: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
    // The program ends after one request.
    assert!(child.wait().unwrap().success());
    assert_eq!((&got["path"], &got["x-scope"]), (&"/v1/metrics".into(), &"a".into()));
    let resource = &got["body"]["resourceMetrics"][0];
    let text = resource["resource"]["attributes"].to_string();
    assert!(text.contains("bolide-load") && text.contains(&target), "{text}");
    let metrics = resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let named = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
    let responses = &named("bolide.load.responses")["sum"];
    assert_eq!(responses["aggregationTemporality"], "AGGREGATION_TEMPORALITY_CUMULATIVE");
    assert_eq!(responses["isMonotonic"], true);
    assert_eq!(responses["dataPoints"][0]["asDouble"], 1000.0);
    let latency = named("bolide.load.latency");
    assert_eq!(latency["unit"], "s");
    assert_eq!(latency["gauge"]["dataPoints"].as_array().unwrap().len(), 2);
}

#[test]
fn a_collector_that_refuses_is_told_and_the_run_fails() {
    let server = Server::start(&["--http", "127.0.0.1:0"]);
    let target = format!("{}/ping", server.http());
    let collector = format!("{}/nowhere", server.http());
    let words = ["load", "-n", "10", "--quiet", "--remote-write", &collector, &target];
    let finished = run(program(), words);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.both());
    let said = format!("--remote-write {collector}: 1 of 1 looks were not taken: 404");
    assert!(finished.both().contains(&said), "{}", finished.both());
}
