//! `bolide load` as several parts of one run: one schedule, one report, and what happens when a part fails.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use bolide_launcher::{Finished, find, finish, free_address, program, scratch};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A server that tells the target of each request, and which connection it came on.
fn telling_server() -> (String, Receiver<(usize, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let (sender, told) = channel();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let sender = sender.clone();
            thread::spawn(move || answer(number, &stream, &sender));
        }
    });
    (url, told)
}

fn answer(number: usize, mut stream: &TcpStream, told: &Sender<(usize, String)>) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if let Some(target) = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()) {
            let _ = told.send((number, target.to_owned()));
        }
        if line.is_empty()
            && stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err()
        {
            return;
        }
    }
}

fn part(number: usize, count: usize, at: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    let part = format!("{number}/{count}");
    command.args(["load", "--part", &part, "--rendezvous", at]);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts all parts with the same arguments.
fn parts(count: usize, arguments: &[&str]) -> Vec<Child> {
    let at = free_address().to_string();
    let start = |number| part(number, count, &at, arguments).spawn().expect("it can be started");
    (1..=count).map(start).collect()
}

/// The exit codes, and the first part's output.
fn ends(children: Vec<Child>) -> (Vec<Option<i32>>, Finished, String) {
    let mut finished: Vec<Finished> = children.into_iter().map(finish).collect();
    let codes = finished.iter().map(|one| one.status.code()).collect();
    let said = finished.iter().map(Finished::both).collect();
    (codes, finished.swap_remove(0), said)
}

fn report(finished: &Finished) -> Value {
    serde_json::from_str(&finished.text()).unwrap_or_else(|_| panic!("{}", finished.both()))
}

fn number(report: &Value, path: &str) -> f64 {
    let found = report.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no {path} in {report}"))
}

#[test]
fn parts_carry_out_one_schedule_and_report_its_sum() {
    for (count, poisson) in [(2, "--poisson"), (4, "--warm-up=0")] {
        let (url, told) = telling_server();
        let url = format!("{url}/{{connection}}");
        let arguments = ["-c", "10", "--rate", "500", "-D", "3", "--json", "-", poisson, &url];
        let (codes, first, said) = ends(parts(count, &arguments));
        assert!(codes.iter().all(|code| *code == Some(0)), "{codes:?} {said}");
        let report = report(&first);
        let due = number(&report, "/phases/0/counts/due");
        // Poisson arrivals are 1500 with a deviation of 39.
        let tolerance = if poisson == "--poisson" { 200.0 } else { 1.5 };
        assert!((due - 1500.0).abs() <= tolerance, "{due}");
        let shares = report["phases"][0]["parts"].as_array().expect("a list");
        let sum: f64 = shares.iter().map(|share| number(share, "/counts/due")).sum();
        assert_eq!((shares.len(), sum), (count, due));
        let latencies: f64 = shares.iter().map(|share| number(share, "/latency/count")).sum();
        assert_eq!(latencies, number(&report, "/phases/0/latency/count"));
        let parts = report["parts"]["parts"].as_array().expect("a list");
        let connections: f64 = parts.iter().map(|part| number(part, "/connections")).sum();
        assert_eq!((parts.len(), connections), (count, 10.0));
        assert!(number(&report, "/parts/clock_bound_ns") < 1e8);
        let mut by_number = BTreeMap::new();
        for (connection, target) in told.try_iter() {
            by_number.entry(target).or_insert_with(Vec::new).push(connection);
        }
        assert_eq!(by_number.len(), 10, "{:?}", by_number.keys());
        for (target, mut connections) in by_number {
            connections.dedup();
            assert_eq!(connections.len(), 1, "{target} is on {connections:?}");
        }
    }
}

#[test]
fn requests_are_dealt_so_that_none_is_lost() {
    let (url, told) = telling_server();
    let arguments = ["-c", "3", "-n", "1001", "--json", "-", &url];
    let (codes, first, said) = ends(parts(3, &arguments));
    assert_eq!(codes, [Some(0); 3], "{said}");
    assert_eq!(number(&report(&first), "/phases/0/counts/succeeded"), 1001.0);
    assert_eq!(told.try_iter().count(), 1001);
}

/// Kills, or interrupts, a part in the middle of the run.
fn disturbed(signal: Signal, more: &[&str]) -> (Vec<Option<i32>>, Finished, String) {
    let (url, told) = telling_server();
    let url = format!("{url}/{{connection}}");
    let mut arguments = vec!["-c", "3", "--rate", "200", "-D", "4", "--warm-up", "0", &url];
    arguments.extend(more);
    let children = parts(3, &arguments);
    // The third part has connection 2.
    while told.recv_timeout(Duration::from_secs(30)).expect("requests come").1 != "/2" {}
    let third = Pid::from_child(&children[2]);
    kill_process(third, signal).expect("it runs");
    ends(children)
}

#[test]
fn a_lost_part_ends_the_run_unless_it_is_allowed() {
    let (codes, first, said) = disturbed(Signal::KILL, &[]);
    assert_eq!(codes, [Some(4), Some(0), None], "{said}");
    let text = first.text();
    assert!(text.starts_with("INCOMPLETE: part 3 on "), "{text}");
    assert!(text.contains("part 2      ") && !text.contains("part 3      "), "{text}");
    let (codes, first, said) = disturbed(Signal::KILL, &["--missing-ok", "1", "--json", "-"]);
    assert_eq!(codes, [Some(0), Some(0), None], "{said}");
    let report = report(&first);
    assert_eq!(report["parts"]["parts"][2]["lost"], "the connection was closed");
    assert!((number(&report, "/phases/0/elapsed_ns") - 4e9).abs() < 1e6);
    assert_eq!(number(&report, "/phases/0/counts/due"), 534.0);
}

#[test]
fn a_part_that_did_not_run_is_named() {
    let (url, told) = telling_server();
    let url = format!("{url}/{{connection}}");
    let arguments = ["-c", "3", "--rate", "300", "-D", "3", "--warm-up", "0", "--json", "-", &url];
    let children = parts(3, &arguments);
    let third = Pid::from_child(&children[2]);
    let wait_for = |target: &str, count: usize| {
        for _ in 0..count {
            while told.recv_timeout(Duration::from_secs(30)).expect("requests come").1 != target {}
        }
    };
    wait_for("/2", 1);
    kill_process(third, Signal::STOP).expect("it runs");
    // Half a second of what the second part sends.
    wait_for("/1", 50);
    kill_process(third, Signal::CONT).expect("it is there");
    let (codes, first, said) = ends(children);
    assert_eq!(codes, [Some(0); 3], "{said}");
    let verdict = &report(&first)["phases"][0]["verdict"];
    assert_eq!(verdict["bound"], "client");
    let evidence = verdict["evidence"].to_string();
    assert!(evidence.contains("Part 3 was slow: its clock was late by "), "{evidence}");
}

#[test]
fn an_interrupt_of_any_part_ends_all() {
    let (codes, first, said) = disturbed(Signal::INT, &[]);
    assert_eq!(codes, [Some(0); 3], "{said}");
    assert!(first.text().contains("Interrupted"), "{said}");
}

#[test]
fn a_part_with_another_secret_does_not_take_part() {
    let at = free_address().to_string();
    let arguments = ["-n", "10", "http://127.0.0.1:9/"];
    let start = |number, secret: &str| {
        let mut command = part(number, 2, &at, &arguments);
        command.args(["--join-timeout", "3s"]).env("BOLIDE_SECRET", secret);
        command.spawn().expect("it can be started")
    };
    let (codes, first, said) = ends(vec![start(1, "one"), start(2, "two")]);
    assert_eq!(codes, [Some(4), Some(2)], "{said}");
    let told = first.both();
    assert!(told.contains("part 2 of 2 did not join within 3 s; 127.0.0.1:"), "{told}");
    assert_eq!(said.matches("it has another secret than part 1 (BOLIDE_SECRET)").count(), 2);
}

#[test]
fn parts_with_other_options_are_refused_by_both_sides() {
    let at = free_address().to_string();
    let start = |number, rate| {
        part(number, 2, &at, &["--rate", rate, "http://127.0.0.1:9/"]).spawn().expect("it starts")
    };
    let (codes, _, said) = ends(vec![start(1, "100"), start(2, "101")]);
    assert_eq!(codes, [Some(2), Some(2)], "{said}");
    let why = "it has other options than part 1: load (-n, -D, --rate, --seed …)";
    assert_eq!(said.matches(why).count(), 2, "{said}");
}

#[test]
fn what_can_not_work_is_said_before_anything_is_sent() {
    for (code, arguments, what) in [
        (2, &["--part", "3/2"][..], "must be K/N with K from 1 to N"),
        (2, &["--part", "1/2", "--rendezvous", "0.0.0.0:7199"], "set BOLIDE_SECRET to the same"),
        (2, &["--part", "2/2", "--rendezvous", "192.0.2.1"], "set BOLIDE_SECRET to the same"),
        (
            4,
            &["--part", "2/2", "--rendezvous", "127.0.0.1:9", "--join-timeout", "1ms"],
            "part 1 can't be reached at 127.0.0.1:9: connection refused",
        ),
    ] {
        let mut command = Command::new(program());
        command.arg("load").args(arguments).arg("http://127.0.0.1:9/").env_remove("BOLIDE_SECRET");
        let output = command.output().expect("it can be started");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(what), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(code), "{said}");
    }
}

#[test]
fn hosts_are_started_by_ssh_and_the_secret_is_in_no_argument() {
    let directory = scratch("hosts_are_started_by_ssh");
    let (log, ssh) = (directory.join("log"), directory.join("ssh"));
    let script = "#!/bin/sh\necho \"$@\" >> \"$SSH_LOG\"\n\
        while [ \"$1\" != -- ]; do shift; done\nshift 2\nexec sh -c \"$*\"\n";
    std::fs::write(&ssh, script).expect("the directory can be written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&ssh, executable).expect("it is ours");
    std::os::unix::fs::symlink(program(), directory.join("bolide")).expect("it is empty");
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").expect("there is one"));
    let (url, told) = telling_server();
    let at = free_address().to_string();
    let output = Command::new(program())
        .args(["load", "--on", "load1,load2", "--rendezvous", &at, "-c", "3", "-n", "300"])
        .args(["-H", "x: it's", "--json", "-", &url])
        .env("PATH", path)
        .env("SSH_LOG", &log)
        .env("BOLIDE_SECRET", "never-shown")
        .output()
        .expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(number(&report, "/phases/0/counts/succeeded"), 300.0);
    assert_eq!(told.try_iter().count(), 300);
    let log = std::fs::read_to_string(log).expect("ssh was called");
    assert!(log.contains("-- load1 ") && log.contains("'--part' '3/3'"), "{log}");
    assert!(!log.contains("never-shown") && !log.contains("--on"), "{log}");
}

#[test]
fn a_job_for_kubernetes_is_printed() {
    let arguments = ["load", "--hosts", "4", "--print-job", "-c", "8", "http://target/a b"];
    let output = Command::new(program()).args(arguments).output().expect("it can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for line in ["kind: Service", "kind: Job", "  completions: 4", "  completionMode: Indexed"] {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
    assert!(text.ends_with("- \"load\"\n            - \"-c\"\n            - \"8\"\n            - \"http://target/a b\"\n"), "{text}");
    let Some(validate) = find("kubernetes-validate", "a_job_for_kubernetes_is_printed") else {
        return;
    };
    let file = scratch("a_job_for_kubernetes").join("job.yaml");
    std::fs::write(&file, &text).expect("the directory can be written");
    let validated = Command::new(validate).arg("--strict").arg(&file).output();
    let validated = validated.expect("it can be started");
    let said = String::from_utf8_lossy(&[validated.stdout, validated.stderr].concat()).into_owned();
    assert!(validated.status.success() && said.matches(" passed ").count() == 2, "{said}");
}

#[test]
fn mpirun_starts_the_parts() {
    let Some(mpirun) = find("mpirun", "mpirun_starts_the_parts") else { return };
    let (url, _told) = telling_server();
    let at = free_address().to_string();
    let output = Command::new(mpirun)
        .args(["--allow-run-as-root", "--oversubscribe", "-n", "4"])
        .arg(program())
        .args(["load", "-c", "8", "--rate", "400", "-D", "3", "--json", "-", "--quiet"])
        .args(["--rendezvous", &at, &url])
        .output()
        .expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("part 1 alone reports");
    assert_eq!(report["phases"][0]["parts"].as_array().map(Vec::len), Some(4));
    assert!((number(&report, "/phases/0/counts/due") - 1200.0).abs() < 1.5);
}
