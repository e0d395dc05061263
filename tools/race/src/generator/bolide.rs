//! `bolide load`, for everything.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bolide_probe::exchanges::{Exchange, Exchanges};
use bolide_probe::report::{Latencies, PhaseReport, Report};

use super::{Figures, Job, Marks, watch_program};
use crate::catalogue::{Kind, Protocol, Route, serde_name};
use crate::interrupt::Interrupt;
use crate::process::busy_cores;

/// Returns whether this program can make load.
pub(super) fn is_there(program: &Path) -> bool {
    let asked = Command::new(program)
        .args(["load", "--help"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

pub(super) fn run(
    job: &Job<'_>,
    interrupt: &Interrupt,
    middle: &mut dyn FnMut(),
) -> Result<Figures, String> {
    let machine = busy_cores();
    let arguments = arguments(job, &exchanges(job)?);
    let seen = watch_program(job, &arguments, &Marks::Whole, interrupt, middle)?;
    let mut figures = parse(&seen.text, job.cell.load)?;
    if machine.is_some() {
        figures.foreign_cores = seen.foreign_cores;
    }
    figures.own_cores = seen.own_cores;
    if figures.cpu_us <= 0.0 && figures.rate > 0.0 {
        // The generator didn't see the server: the harness did.
        figures.server_cores = seen.server_cores;
        figures.cpu_us = seen.server_cores / figures.rate * 1e6;
    }
    Ok(figures)
}

/// Writes down what is sent and what has to come back.
fn exchanges(job: &Job<'_>) -> Result<PathBuf, String> {
    let list = job.directory.join(format!("exchanges-{}", job.cell.key()));
    let mut bytes = Vec::new();
    let mut put = |part: &[u8]| {
        let start = bytes.len();
        bytes.extend_from_slice(part);
        start..bytes.len()
    };
    let exchanges = job.exchanges.iter().map(|exchange| {
        let is_compared = job.cell.route != Route::SiteRedirect;
        let expected = is_compared.then(|| put(&exchange.expected));
        let body = match (&exchange.body, &expected) {
            (None, _) => 0..0,
            // What comes back is what was sent.
            (Some(body), Some(expected)) if *body == exchange.expected => expected.clone(),
            (Some(body), _) => put(body),
        };
        Exchange {
            weight: exchange.weight as u32,
            method: if exchange.body.is_some() { "POST" } else { "GET" }.to_owned(),
            target: exchange.path.clone(),
            body,
            expected,
            is_gzip: job.cell.route == Route::SiteApi,
            expected_fields: exchange.fields.clone(),
        }
    });
    let exchanges = exchanges.collect();
    let exchanges = Exchanges { bytes: list.with_extension("bytes"), exchanges };
    let text = serde_json::to_vec(&exchanges).map_err(|error| error.to_string())?;
    for (file, contents) in [(&exchanges.bytes, &bytes), (&list, &text)] {
        std::fs::write(file, contents).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(list)
}

/// The command, in the words of `bolide load --help`.
fn arguments(job: &Job<'_>, exchanges: &Path) -> Vec<String> {
    let cell = job.cell;
    let cores: Vec<String> = job.cores.iter().map(usize::to_string).collect();
    let mut arguments: Vec<String> = vec![job.program.display().to_string(), "load".to_owned()];
    let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
    add(&[match cell.protocol {
        Protocol::H1 | Protocol::H1s => "--http1",
        Protocol::H2c | Protocol::H2 => "--http2",
        Protocol::H3 => "--http3",
    }]);
    add(&["-c", &cell.connections.to_string()]);
    add(&["-m", &cell.depth.to_string()]);
    add(&["-t", &job.cores.len().clamp(1, cell.connections).to_string()]);
    add(&["-D", &format!("{}ms", job.duration.as_millis())]);
    add(&["--warm-up", &format!("{}ms", job.warm_up.as_millis())]);
    add(&["--seed", &job.seed.to_string()]);
    add(&["--expect-status", cell.route.status().as_str(), "--sample", "100%"]);
    if cell.route == Route::Grpc {
        add(&["--expect-trailer", "grpc-status: 0"]);
    }
    add(&["--exchanges", &exchanges.display().to_string()]);
    if !cores.is_empty() {
        add(&["--cores", &cores.join(",")]);
    }
    if let Some(server) = job.server.first() {
        add(&["--server-pid", &server.to_string()]);
    }
    if let Some(group) = &job.group {
        add(&["--server-group", &group.display().to_string()]);
    }
    if cell.protocol.is_tls() {
        add(&["--insecure"]);
    }
    if let Some(rate) = job.rate {
        add(&["--rate", &format!("{rate:.1}"), "--poisson"]);
    }
    match cell.load {
        Kind::Handshake => add(&["--new-connections"]),
        Kind::HandshakeResumed => add(&["--new-connections", "--resume"]),
        Kind::Closed | Kind::Idle | Kind::Latency | Kind::Rate => {}
    }
    if let Some(window) = cell.window {
        let bytes = ((1_u64 << window) - 1).to_string();
        add(&["--stream-window", &bytes, "--connection-window", &bytes]);
    }
    for (name, value) in cell.fields() {
        add(&["-H", &format!("{name}: {value}")]);
    }
    add(&["--quiet", "--json", "-"]);
    add(&[&job.url()]);
    arguments
}

/// Reads the report.
fn parse(text: &str, load: Kind) -> Result<Figures, String> {
    let start = text.find('{').ok_or_else(|| format!("no report: {}", text.trim()))?;
    let report: Report = serde_json::from_str(&text[start..])
        .map_err(|error| format!("the report of `bolide load` can't be read: {error}"))?;
    let phase = report.phases.last().ok_or("the report of `bolide load` has no phase")?;
    if phase.counts.completed == 0 {
        return Err(format!("`bolide load` counted no responses; failures: {:?}", phase.failures));
    }
    let (resumed, all) = (phase.handshakes.resumed_count, phase.times.handshake.count);
    if load == Kind::HandshakeResumed && resumed < all / 10 * 9 {
        return Err(format!("it resumed {resumed} of {all} sessions"));
    }
    Ok(figures(phase))
}

fn figures(phase: &PhaseReport) -> Figures {
    let seconds = phase.elapsed_ns as f64 / 1e9;
    let completed = phase.counts.completed;
    let server = phase.cpu.server.unwrap_or_default();
    let per_request = server.cpu_ns as f64 / completed.max(1) as f64;
    Figures {
        completed,
        failed: phase.counts.failed,
        failures: phase.failures.iter().map(|(kind, count)| (serde_name(kind), *count)).collect(),
        connections: phase.counts.connections,
        rate: completed as f64 / seconds.max(1e-9),
        cpu_us: server.cpu_per_request_ns.unwrap_or(per_request) / 1e3,
        server_cores: server.cpu_ns as f64 / phase.elapsed_ns.max(1) as f64,
        generator_cores: phase.cpu.generator.cpu_ns as f64 / phase.elapsed_ns.max(1) as f64,
        latencies_us: latencies(&phase.times.latency),
        content_bytes: phase.traffic.payload_received_bytes as f64 / completed.max(1) as f64,
        bound: phase.verdict.bound,
        ..Figures::default()
    }
}

fn latencies(latency: &Latencies) -> std::collections::BTreeMap<String, f64> {
    let mut found: std::collections::BTreeMap<String, f64> = latency
        .percentiles_ns
        .iter()
        .map(|(name, value)| (name.trim_start_matches('p').to_owned(), *value as f64 / 1e3))
        .collect();
    found.insert("mean".to_owned(), latency.mean_ns / 1e3);
    found.insert("max".to_owned(), latency.max_ns as f64 / 1e3);
    found
}

#[cfg(test)]
mod tests {
    use bolide_probe::plan::{Load, Phase, Until};
    use bolide_probe::report::{
        Bound, Costs, Counts, Course, Handshakes, Kinds, ProcessCost, Stalls, Times, Traffic,
        Verdict,
    };

    use super::*;
    use crate::catalogue::Cell;
    use bytes::Bytes;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn report() -> Report {
        let phase = PhaseReport {
            phase: Phase {
                name: "closed".to_owned(),
                load: Load::Closed,
                warm_up: Duration::ZERO,
                until: Until { requests: None, time: Some(Duration::from_secs(2)) },
            },
            elapsed_ns: 2_000_000_000,
            counts: Counts { completed: 1000, failed: 2, ..Counts::default() },
            statuses: BTreeMap::new(),
            failures: BTreeMap::new(),
            first_loss: None,
            quic: None,
            traffic: Traffic::default(),
            stalls: Stalls::default(),
            connection_rates: None,
            verdict: Verdict { bound: Bound::Server, evidence: vec!["full".to_owned()] },
            course: Course { parts: Vec::new(), littles_law_residual: None, series: Vec::new() },
            kinds: Kinds { requests: Vec::new(), events: None, websocket: None, users: None },
            times: Times {
                latency: Latencies {
                    mean_ns: 5000.0,
                    max_ns: 90_000,
                    percentiles_ns: BTreeMap::from([
                        ("p50".to_owned(), 4000),
                        ("p99.9".into(), 8000),
                    ]),
                    ..Latencies::default()
                },
                first_byte: Latencies::default(),
                sent_to_first_byte_mean_ns: 0.0,
                connect: Latencies::default(),
                handshake: Latencies::default(),
                lag: Latencies::default(),
                pacing: Latencies::default(),
            },
            handshakes: Handshakes { resumed_count: 0, early_count: 0 },
            cpu: Costs {
                generator: ProcessCost { cpu_ns: 1_000_000_000, ..ProcessCost::default() },
                server: Some(ProcessCost { cpu_ns: 1_900_000_000, ..ProcessCost::default() }),
            },
        };
        Report {
            url: String::new(),
            protocol: String::new(),
            tls: None,
            connections: 1,
            depth: 1,
            threads: 1,
            phases: vec![phase],
            started_unix_s: 0.0,
            server_died_after_ns: None,
            interrupted: false,
            knee: None,
            parts: None,
        }
    }

    fn job(cell: &Cell) -> Job<'_> {
        Job {
            cell,
            address: "127.0.0.1:8443".parse().unwrap(),
            path: "/echo".to_owned(),
            exchanges: Vec::new(),
            duration: Duration::from_millis(1500),
            warm_up: Duration::from_millis(300),
            rate: Some(1000.0),
            cores: vec![1],
            server: vec![42],
            group: Some("/g".into()),
            server_cores: 1,
            directory: PathBuf::new(),
            program: "bolide".into(),
            seed: 7,
        }
    }

    #[test]
    fn the_command_says_what_the_cell_is() {
        use crate::catalogue::{Certificate, Cores};
        use crate::differing::Requests;
        let cell = Cell {
            protocol: Protocol::H2,
            route: Route::Post,
            connections: 100,
            depth: 10,
            size: 4096,
            window: Some(16),
            load: Kind::Latency,
            cores: Cores::One,
            certificate: Certificate::default(),
            requests: Requests::default(),
        };
        let job = job(&cell);
        let expected = "bolide load --http2 -c 100 -m 10 -t 1 -D 1500ms --warm-up 300ms --seed 7 \
                        --expect-status 200 --sample 100% --exchanges e --cores 1 --server-pid 42 --server-group /g \
                        --insecure --rate 1000.0 --poisson --stream-window 65535 \
                        --connection-window 65535 -H content-type: application/octet-stream \
                        --quiet --json - https://127.0.0.1:8443/echo";
        assert_eq!(arguments(&job, Path::new("e")).join(" "), expected);
    }

    #[test]
    fn every_response_of_a_call_must_have_its_status_in_the_trailers() {
        let cell = Cell { route: Route::Grpc, ..crate::outcome::tests::outcome().cell };
        let words = arguments(&job(&cell), Path::new("e")).join(" ");
        assert!(words.contains(" --expect-trailer grpc-status: 0 "), "{words}");
    }

    #[derive(Debug, clap::Parser)]
    struct Program {
        #[command(flatten)]
        load: bolide_loadgen::options::Arguments,
    }

    #[test]
    fn the_command_is_one_that_the_generator_takes() {
        use clap::Parser;
        let directory = std::env::temp_dir().join(format!("bolide-job-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let cell = Cell { route: Route::Post, ..crate::outcome::tests::outcome().cell };
        let sent = Bytes::from_static(b"sent");
        let mut posted = crate::requests::Exchange::with_body("/echo".into(), sent, 2);
        posted.expected = Bytes::from_static(b"back");
        posted.fields.push(("content-type".to_owned(), "text/plain".to_owned()));
        let job = Job { directory: directory.clone(), exchanges: vec![posted], ..job(&cell) };
        let words = arguments(&job, &exchanges(&job).unwrap());
        let plan = Program::try_parse_from(&words[1..]).unwrap().load.job().unwrap().plan;
        assert_eq!(plan.requests.len(), 1);
        assert_eq!((&plan.requests[0].body[..], plan.expect.sampled_share), (&b"sent"[..], 1.0));
        assert_eq!(plan.requests[0].response_fields[0].1, "text/plain");
        assert_eq!((plan.requests[0].weight, plan.expect.length), (2, Some(4)));
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_load_decodes_what_must_be_coded_and_has_nothing_to_compare_in_a_redirect() {
        let directory = std::env::temp_dir().join(format!("bolide-coded-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let listed = |route| {
            let cell = Cell { route, ..crate::outcome::tests::outcome().cell };
            let one = crate::requests::Exchange::with_body("/a".into(), Bytes::from("text"), 1);
            let exchange = crate::requests::Exchange { body: None, ..one };
            let job = Job { directory: directory.clone(), exchanges: vec![exchange], ..job(&cell) };
            let text = std::fs::read(exchanges(&job).unwrap()).unwrap();
            let list: Exchanges = serde_json::from_slice(&text).unwrap();
            (list.exchanges[0].expected.clone(), list.exchanges[0].is_gzip)
        };
        assert_eq!(listed(Route::SiteApi), (Some(0..4), true));
        assert_eq!(listed(Route::SitePage), (Some(0..4), false));
        assert_eq!(listed(Route::SiteRedirect), (None, false));
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_report_becomes_figures() {
        let text = serde_json::to_string(&report()).unwrap();
        let figures = parse(&text, Kind::Closed).unwrap();
        assert_eq!((figures.completed, figures.failed, figures.rate), (1000, 2, 500.0));
        assert!((figures.cpu_us - 1900.0).abs() < 1e-9);
        assert!((figures.server_cores - 0.95).abs() < 1e-9);
        assert_eq!(figures.latencies_us["99.9"], 8.0);
        assert_eq!(figures.bound, Bound::Server);
    }

    #[test]
    fn a_report_without_responses_or_sessions_is_an_error() {
        let mut report = report();
        let wrong = |report: &Report, load| {
            parse(&serde_json::to_string(report).unwrap(), load).unwrap_err()
        };
        (report.phases[0].times.handshake.count, report.phases[0].handshakes.resumed_count) =
            (100, 80);
        let told = wrong(&report, Kind::HandshakeResumed);
        assert_eq!(told, "it resumed 80 of 100 sessions");
        report.phases[0].counts.completed = 0;
        assert!(wrong(&report, Kind::Closed).contains("no responses"));
        assert!(parse("bolide: no", Kind::Closed).unwrap_err().contains("bolide: no"));
        assert!(parse("{}", Kind::Closed).unwrap_err().contains("can't be read"));
    }
}
