//! Logs, metrics and the operator's listener of the program, under load.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bolide_launcher::{Finished, Server, find, program, run, scratch};
use rustix::process::Signal;

const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a server with an operator's listener and these arguments.
fn start(arguments: &[&str]) -> Server {
    let both = ["--http", "127.0.0.1:0", "--workers", "2", "--admin", "127.0.0.1:0"];
    Server::start(&[both.as_slice(), arguments].concat())
}

/// Asks over HTTP/1.1; status and body.
fn get(url: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(Server::authority(url)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it responds");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

/// All samples that begin so, together.
fn metric(text: &str, begins: &str) -> u64 {
    let samples = text.lines().filter(|line| line.starts_with(begins));
    let value = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
    samples.filter_map(value).sum::<f64>() as u64
}

/// Loads `/ping` with this many requests.
fn load(server: &Server, requests: u32) -> Finished {
    let (count, url) = (requests.to_string(), format!("{}/ping", server.http()));
    let arguments =
        ["load", "--http2", "-c", "8", "-m", "16", "-n", &count, "--quiet", "--json", "-", &url];
    run(program(), arguments).well()
}

/// Returns what the load generator says succeeded.
fn succeeded(finished: &Finished) -> u64 {
    let report: serde_json::Value = serde_json::from_str(&finished.text()).expect("a report");
    report["phases"][0]["counts"]["succeeded"].as_u64().expect("a number")
}

/// Waits for something that a thread of the server does on its own.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[test]
fn scrapes_during_load_lose_no_request() {
    const REQUESTS: u32 = 200_000;
    let directory = scratch("scrapes_during_load_lose_no_request");
    let path = directory.join("access.log");
    let path_text = path.display().to_string();
    let server = start(&["--access-log", &path_text, "--access-log-format", "json"]);
    let (over, scrapes) = (AtomicBool::new(false), AtomicU32::new(0));
    let finished = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut before = 0;
            while !over.load(Ordering::Relaxed) {
                let (status, text) = get(server.admin(), "/metrics");
                assert_eq!(status, 200);
                let now = metric(&text, "bolide_requests_total{route=\"/ping\",status=\"2xx\"}");
                assert!(now >= before, "a counter went back from {before} to {now}");
                before = now;
                scrapes.fetch_add(1, Ordering::Relaxed);
            }
        });
        let finished = load(&server, REQUESTS);
        over.store(true, Ordering::Relaxed);
        finished
    });
    assert!(scrapes.load(Ordering::Relaxed) > 1);
    assert_eq!(succeeded(&finished), u64::from(REQUESTS));
    let (_, text) = get(server.admin(), "/metrics");
    assert_eq!(metric(&text, "bolide_requests_total{"), u64::from(REQUESTS));
    assert!(metric(&text, "bolide_connections_accepted_total") >= 8, "{text}");
    // How long requests took is counted when the turn of the loop is over.
    until("durations are missing", || {
        let (_, text) = get(server.admin(), "/metrics");
        metric(&text, "bolide_request_duration_seconds_count") == u64::from(REQUESTS)
    });
    // Each request is either in the file or among those that were dropped.
    let counted = |text: &str| {
        metric(text, "bolide_access_log_lines_total")
            + metric(text, "bolide_access_log_dropped_total")
    };
    until("lines are missing", || {
        counted(&get(server.admin(), "/metrics").1) == u64::from(REQUESTS)
    });
    let (_, text) = get(server.admin(), "/metrics");
    let text_of_log = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        text_of_log.lines().count() as u64,
        metric(&text, "bolide_access_log_lines_total"),
        "{text}"
    );
    for line in text_of_log.lines().take(1000) {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        assert_eq!(line["target"], "/ping");
        assert_eq!(line["version"], "HTTP/2.0");
        assert_eq!(line["status"], 200);
        assert_eq!(line["sent_bytes"], 4);
    }
    server.terminate();
    assert!(server.wait().success());
}

/// GoAccess reads both plain formats: each line, with the client's address as a host and the request's path.
#[test]
fn goaccess_reads_the_plain_formats() {
    let Some(goaccess) = find("goaccess", "goaccess_reads_the_plain_formats") else { return };
    let directory = scratch("goaccess_reads_the_plain_formats");
    for (format, theirs) in [("common", "COMMON"), ("combined", "COMBINED")] {
        let text = |name: &str| directory.join(format!("{format}.{name}")).display().to_string();
        let (path, report) = (text("log"), text("json"));
        let server = start(&["--access-log", &path, "--access-log-format", format]);
        for target in ["/ping", "/ping?q=a%20b", "/\u{e9}\"missing\""] {
            get(server.http(), target);
        }
        load(&server, 20);
        server.terminate();
        assert!(server.wait().success());
        let format = format!("--log-format={theirs}");
        run(&goaccess, [&path, &format, "-o", &report, "--no-progress"]).well();
        let report = std::fs::read_to_string(report).expect("it wrote a report");
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        let (counts, hosts) = (&report["general"], &report["hosts"]["data"]);
        assert_eq!(counts["valid_requests"], lines(Path::new(&path)), "{counts}");
        assert_eq!(counts["failed_requests"], 0, "{counts}");
        assert_eq!(hosts[0]["data"], "127.0.0.1", "{hosts}");
        assert_eq!(hosts.as_array().map(Vec::len), Some(1), "{hosts}");
    }
}

/// The thread that writes hangs in a pipe without a reader: its queue overflows.
#[test]
fn an_overflow_of_the_log_queue_is_counted_and_serving_goes_on() {
    const REQUESTS: u32 = 100_000;
    let directory = scratch("an_overflow_of_the_log_queue_is_counted");
    let pipe = directory.join("pipe");
    let made = run(Path::new("/usr/bin/mkfifo"), [pipe.display().to_string()]);
    made.well();
    // A writer opens a pipe only once it has a reader; this one never reads.
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let pipe = pipe.display().to_string();
    let server = start(&["--access-log", &pipe, "--access-log-format", "json"]);
    assert_eq!(succeeded(&load(&server, REQUESTS)), u64::from(REQUESTS));
    let (_, text) = get(server.admin(), "/metrics");
    let full = "bolide_access_log_dropped_total{reason=\"queue-full\"}";
    assert!(metric(&text, full) > 0, "{text}");
    assert_eq!(metric(&text, "bolide_requests_total{"), u64::from(REQUESTS));
    assert_eq!(get(server.http(), "/ping"), (200, "pong".to_owned()));
    drop(reader);
}

#[test]
fn a_full_disk_is_said_once_and_serving_goes_on() {
    let directory = scratch("a_full_disk_is_said_once");
    let events = std::fs::File::create(directory.join("events")).unwrap();
    let mut child = std::process::Command::new(program())
        .args(["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--access-log", "/dev/full", "--log-format", "json"])
        .stdout(std::process::Stdio::piped())
        .stderr(events)
        .spawn()
        .expect("the program can be run");
    let mut said = std::io::BufReader::new(child.stdout.take().expect("stdout is piped"));
    let (mut http, mut admin) = (String::new(), String::new());
    let mut line = String::new();
    while std::io::BufRead::read_line(&mut said, &mut line).is_ok_and(|count| count > 0) {
        if line.starts_with("http://") {
            http = line.split_whitespace().next().unwrap_or_default().to_owned();
        } else if let Some(rest) = line.strip_prefix("Admin: ") {
            admin = rest.split("/metrics").next().unwrap_or_default().to_owned();
        } else if line.starts_with("Ready") {
            break;
        }
        line.clear();
    }
    let failed = "bolide_access_log_dropped_total{reason=\"write-failed\"}";
    for round in 1..=3 {
        assert_eq!(get(&http, "/ping"), (200, "pong".to_owned()));
        until("the lost line is counted", || metric(&get(&admin, "/metrics").1, failed) == round);
    }
    child.kill().expect("it runs");
    child.wait().expect("it is ours");
    let events = std::fs::read_to_string(directory.join("events")).unwrap();
    let about: Vec<&str> = events.lines().filter(|line| line.contains("access_log")).collect();
    assert_eq!(about.len(), 1, "{events}");
    let event: serde_json::Value = serde_json::from_str(about[0]).expect("an event is JSON");
    assert_eq!(
        (&event["level"], &event["target"]),
        (&"ERROR".into(), &"bolide::access_log".into())
    );
}

/// Lines may wait for an hour here: only the signal and the end can have written them.
#[test]
fn a_log_that_was_moved_away_is_opened_again_by_a_signal() {
    let directory = scratch("a_log_that_was_moved_away");
    let (path, moved) = (directory.join("log"), directory.join("log.1"));
    let configuration = directory.join("bolide.toml");
    std::fs::write(&configuration, "[access-log]\nfile = \"log\"\ndelay = \"1h\"\n").unwrap();
    let configuration = configuration.display().to_string();
    let server = start(&["--config", &configuration, "--log-level", "info"]);
    get(server.http(), "/ping?first");
    std::fs::rename(&path, &moved).unwrap();
    server.signal(Signal::USR1);
    server.said("the access log was opened again");
    let read = |path: &Path| std::fs::read_to_string(path).expect("it is there");
    let first = read(&moved);
    assert!(first.contains("\"GET /ping?first HTTP/1.1\" 200 4"), "{first}");
    get(server.http(), "/ping?second");
    assert_eq!(read(&path), "", "it waits");
    server.terminate();
    assert!(server.wait().success());
    let second = read(&path);
    assert!(second.contains("\"GET /ping?second HTTP/1.1\" 200 4"), "{second}");
    assert_eq!((lines(&moved), lines(&path)), (1, 1));
}

#[test]
fn the_last_lines_are_written_at_the_end() {
    let directory = scratch("the_last_lines_are_written_at_the_end");
    let path = directory.join("log");
    let path_text = path.display().to_string();
    let server = start(&["--access-log", &path_text]);
    assert_eq!(succeeded(&load(&server, 1000)), 1000);
    server.terminate();
    assert!(server.wait().success());
    assert_eq!(lines(&path), 1000);
}

/// A load balancer that asks learns it, while what is open comes to its end.
#[test]
fn a_server_that_drains_is_not_ready() {
    let server = start(&[]);
    assert_eq!(get(server.admin(), "/readyz"), (200, "ready\n".to_owned()));
    let mut open = TcpStream::connect(Server::authority(server.http())).unwrap();
    open.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345";
    open.write_all(head.as_bytes()).unwrap();
    let mut response = [0; 4096];
    assert!(open.read(&mut response).unwrap() > 0, "the echo has begun");
    server.terminate();
    until("it is still ready", || get(server.admin(), "/readyz").0 == 503);
    assert_eq!(get(server.admin(), "/readyz").1, "draining\n");
    assert_eq!(get(server.admin(), "/healthz").0, 200);
    open.write_all(b"67890").unwrap();
    let mut rest = Vec::new();
    open.read_to_end(&mut rest).unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("67890"), "{rest:?}");
    assert!(server.wait().success());
}

#[test]
fn top_prints_a_table() {
    let server = start(&[]);
    load(&server, 100);
    let finished = run(program(), ["top", "--once", server.admin()]).well().text();
    for word in ["bolide", "ready", "workers 2", "route", "/ping", "99 % <"] {
        assert!(finished.contains(word), "{word} is missing: {finished}");
    }
}

#[test]
fn mistakes_are_one_sentence() {
    for (arguments, code, words) in [
        (vec!["serve", "--admin", "0.0.0.0:0"], 2, ["0.0.0.0:0", "--admin-public"]),
        (
            vec!["serve", "--access-log", "/no/such/directory/log"],
            2,
            ["/no/such/directory/log", "can't"],
        ),
        (vec!["serve", "--log-level", "loud"], 2, ["loud", "give levels"]),
        (vec!["top", "--once", "127.0.0.1:1"], 1, ["127.0.0.1:1", "--admin"]),
        (vec!["top"], 2, ["terminal", "--once"]),
    ] {
        let free = ["--http", "127.0.0.1:0"];
        let arguments =
            if arguments[0] == "serve" { [&arguments[..], &free].concat() } else { arguments };
        let finished = run(program(), &arguments);
        assert_eq!(finished.status.code(), Some(code), "{arguments:?}: {}", finished.both());
        let said = String::from_utf8_lossy(&finished.stderr);
        for word in words {
            assert!(said.contains(word), "{arguments:?} says nothing of {word}: {said}");
        }
    }
}

#[test]
fn tls_is_counted_and_logged() {
    let directory = scratch("tls_is_counted_and_logged");
    let path = directory.join("log");
    let path_text = path.display().to_string();
    let log = ["--https", "127.0.0.1:0", "--access-log", &path_text, "--access-log-format", "json"];
    let server = start(&log);
    let url = format!("{}/ping", server.https());
    let common = ["load", "--insecure", "--new-connections", "-c", "1", "-n", "10", "--quiet"];
    run(program(), common.iter().chain(&["--http2", "--resume", &url])).well();
    // A client that speaks no TLS is told so by an alert, and counted.
    let mut stream = TcpStream::connect(Server::authority(server.https())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut alert = Vec::new();
    // It may end with a reset, for what was sent was not all read.
    let _ = stream.read_to_end(&mut alert);
    let failed = "bolide_tls_handshakes_failed_total{kind=\"not-tls\"}";
    until("the failure is counted", || metric(&get(server.admin(), "/metrics").1, failed) == 1);
    let (_, text) = get(server.admin(), "/metrics");
    // The load generator tries the server before it begins.
    let handshakes =
        |kind| metric(&text, &format!("bolide_tls_handshakes_total{{kind=\"{kind}\"}}"));
    assert!(handshakes("full") >= 1 && handshakes("resumed") >= 9, "{text}");
    assert!(handshakes("full") + handshakes("resumed") >= 10, "{text}");
    assert_eq!(metric(&text, "bolide_connections_closed_total{reason=\"tls-handshake\"}"), 1);
    server.terminate();
    assert!(server.wait().success());
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert!(lines.len() >= 10, "{text}");
    assert_eq!(lines[0]["tls"]["version"], "TLSv1.3", "{text}");
    assert_eq!(lines[0]["tls"]["alpn"], "h2", "{text}");
    assert!(lines.iter().any(|line| line["tls"]["resumed"] == true), "{text}");
}

#[test]
fn a_proxied_request_names_its_upstream_and_keeps_its_trace() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let directory = scratch("a_proxied_request_names_its_upstream");
    let logs = ["behind", "front"].map(|name| directory.join(name));
    let texts = logs.each_ref().map(|path| path.display().to_string());
    let behind = start(&["--access-log", &texts[0], "--access-log-format", "json"]);
    let upstream = behind.http().to_owned();
    let front =
        start(&["--proxy", &upstream, "--access-log", &texts[1], "--access-log-format", "json"]);
    let mut stream = TcpStream::connect(Server::authority(front.http())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
         traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("pong"), "{response}");
    let (_, text) = get(front.admin(), "/metrics");
    let sample = format!("bolide_upstream_requests_total{{upstream=\"{upstream}\"}}");
    assert_eq!(metric(&text, &sample), 1, "{text}");
    for (server, path) in [(behind, &logs[0]), (front, &logs[1])] {
        until("a line in each log", || lines(path) == 1);
        drop(server);
        let text = std::fs::read_to_string(path).unwrap();
        let line: serde_json::Value = serde_json::from_str(&text).expect("a line is JSON");
        assert_eq!(line["trace_id"], TRACE, "{text}");
        if path == &logs[1] {
            assert_eq!(
                (&line["upstream"], &line["route"]),
                (&upstream.as_str().into(), &"(fallback)".into())
            );
            assert!(line["response_us"].as_u64() <= line["duration_us"].as_u64(), "{text}");
        }
    }
}

#[test]
fn upstreams_are_counted_by_name_over_a_reload() {
    let path = scratch("upstreams_are_counted_by_name").join("bolide.toml");
    let (first, second) = (start(&[]), start(&[]));
    let (first_url, second_url) = (first.http(), second.http());
    let write = |catch_all: &str| {
        let text = format!(
            "[[listen]]\nhttp = \"127.0.0.1:0\"\n\
             [[upstream]]\nname = \"one\"\nservers = [\"{first_url}\"]\n\
             [[upstream]]\nname = \"rest\"\nservers = [\"{catch_all}\"]\n\
             [[route]]\npath = \"/ping\"\nproxy = \"one\"\n\
             [[route]]\npath = \"/\"\nproxy = \"rest\"\n"
        );
        std::fs::write(&path, text).expect("the file");
    };
    write(first_url);
    let front = Server::start(&["--config", &path.display().to_string(), "--admin", "127.0.0.1:0"]);
    let requests = |upstream: &str| {
        let (_, text) = get(front.admin(), "/metrics");
        let sample = format!("bolide_upstream_requests_total{{upstream=\"{upstream}\"}} ");
        let samples: Vec<&str> = text.lines().filter(|line| line.starts_with(&sample)).collect();
        assert!(samples.len() <= 1, "{text}");
        samples.first().map(|line| line[sample.len()..].parse().expect("a number"))
    };
    for path in ["/ping", "/echo"] {
        assert_eq!(get(front.http(), path).0, 200);
    }
    assert_eq!((requests(first_url), requests(second_url)), (Some(2), None));
    write(second_url);
    front.signal(Signal::HUP);
    until("the new upstream is asked", || {
        assert_eq!(get(front.http(), "/echo").0, 200);
        requests(second_url).is_some_and(|count: u64| count > 0)
    });
    assert_eq!(get(front.http(), "/ping").0, 200);
    assert!(requests(first_url) >= Some(3), "what was counted before is counted still");
}
