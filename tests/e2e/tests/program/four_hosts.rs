//! `bolide load` on four hosts, started by mpirun: each is a network namespace with a path of its own to one server. It
//! needs root, and a kernel with time namespaces.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bolide_launcher::{Server, decide, find, program, run, scratch, skip};
use serde_json::Value;

/// The round trips of the hosts' paths.
const PATHS_MS: [u64; 4] = [10, 20, 40, 80];

/// Time by which the clock of the third host is ahead of the others'.
const AHEAD_S: u64 = 3;

/// More than a process that has something to do needs to be held back.
const PATIENCE: Duration = Duration::from_secs(30);

const TEST: &str = "four_hosts_with_paths_of_their_own_make_one_run";

fn ip(arguments: &str) {
    run(Path::new("ip"), arguments.split_whitespace()).well();
}

/// Four labs around a namespace with the server. All of it goes with the value.
struct Hosts {
    name: String,
    server: Option<Server>,
}

impl Hosts {
    fn new() -> Self {
        let hosts = Self { name: format!("four-{}", std::process::id()), server: None };
        let hub = hosts.hub();
        ip(&format!("netns add {hub}"));
        ip(&format!("-n {hub} link set lo up"));
        ip(&format!("-n {hub} address add 10.63.0.1/32 dev lo"));
        forward(&hub);
        for (number, path_ms) in (1..).zip(PATHS_MS) {
            hosts.attach(number, path_ms);
        }
        hosts
    }

    fn hub(&self) -> String {
        format!("{}-hub", self.name)
    }

    fn host(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    /// A lab whose client reaches the hub, and the other clients, through its delay.
    fn attach(&self, number: usize, path_ms: u64) {
        let (hub, host) = (self.hub(), self.host(number));
        let (left, right) = (format!("10.61.{number}.0/24"), format!("10.62.{number}.0/24"));
        let rtt = format!("{path_ms}ms");
        let up = ["net", "up", "--name", &host, "--left", &left, "--right", &right, "--rtt", &rtt];
        run(program(), [&up[..], &["--no-verify"]].concat()).well();
        let server = format!("{host}-server");
        ip(&format!("link add hub netns {server} type veth peer name host{number} netns {hub}"));
        for (namespace, device, end) in [(&server, "hub", 1), (&hub, &*format!("host{number}"), 2)]
        {
            ip(&format!("-n {namespace} address add 10.63.{number}.{end}/24 dev {device}"));
            ip(&format!("-n {namespace} link set {device} up"));
        }
        forward(&server);
        ip(&format!("-n {hub} route add {left} via 10.63.{number}.1"));
        ip(&format!("-n {server} route add {left} via 10.62.{number}.1"));
        for network in ["10.61.0.0/16", "10.63.0.0/16"] {
            ip(&format!("-n {server} route add {network} via 10.63.{number}.2"));
            ip(&format!("-n {host}-router route add {network} via 10.62.{number}.2"));
        }
    }

    /// Starts the server, and gives the URL of a response of four bytes.
    fn serve(&mut self, log: &Path) -> String {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.hub()]).arg(program());
        let log = log.display().to_string();
        let options = ["--access-log", &log, "--access-log-format", "json"];
        let server =
            Server::start_by(command, &[&["--http", "10.63.0.1:0"], &options[..]].concat());
        let url = format!("{}/ping", server.http());
        self.server = Some(server);
        url
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.server = None;
        for number in 1..=PATHS_MS.len() {
            let down = ["net", "down", "--name", &self.host(number)];
            // What was not made can't be removed.
            let _ = Command::new(program()).args(down).output();
        }
        let _ = Command::new("ip").args(["netns", "delete", &self.hub()]).output();
    }
}

fn forward(namespace: &str) {
    let write = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    run(Path::new("ip"), ["netns", "exec", namespace, "sh", "-c", write]).well();
}

/// A run of all four, whose process numbers are in files of the directory; `told` reads its standard error while it runs.
fn load(
    hosts: &Hosts,
    directory: &Path,
    arguments: &[&str],
    told: impl FnOnce(&mut dyn BufRead),
) -> Value {
    let start = directory.join("start");
    // Each part in its namespace; the third with a clock of its own.
    let script = format!(
        "#!/bin/sh\npart=$((OMPI_COMM_WORLD_RANK + 1))\necho $$ > \"{}/$part\"\n\
         [ $part = 3 ] && set -- unshare --time --monotonic {AHEAD_S} --fork -- \"$@\"\n\
         exec ip netns exec \"{}-$part-client\" \"$@\"\n",
        directory.display(),
        hosts.name
    );
    fs::write(&start, script).expect("the directory can be written");
    fs::set_permissions(&start, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut child = Command::new(find("mpirun", TEST).expect("it was there"))
        .args(["--allow-run-as-root", "--oversubscribe", "-n", "4"])
        .arg(start)
        .arg(program())
        .args(["load", "--rendezvous", "10.61.1.2:7199", "--json", "-"])
        .args(arguments)
        .env("BOLIDE_SECRET", "a secret of this test, of no other")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut stdout = child.stdout.take().expect("it is piped");
    let text = thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    told(&mut stderr);
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("it is text");
    assert!(child.wait().expect("it was started").success(), "{said}");
    let text = text.join().expect("it doesn't panic").expect("it is text");
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text} {said}"))
}

fn number(report: &Value, path: &str) -> f64 {
    let found = report.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no {path} in {report}"))
}

/// A group of processes whose CPU can be held back.
struct Slowed {
    directory: PathBuf,
    /// File that limits it, what to write there to slow it down, and to let it go.
    limit: (&'static str, &'static str, &'static str),
}

impl Slowed {
    /// By version 1 of control groups, or by version 2.
    fn new() -> Option<Self> {
        let name = format!("bolide-four-{}", std::process::id());
        let candidates = [
            ("/sys/fs/cgroup/cpu", ("cpu.cfs_quota_us", "1000", "-1")),
            ("/sys/fs/cgroup", ("cpu.max", "1000 100000", "max 100000")),
        ];
        candidates.into_iter().find_map(|(parent, limit)| {
            let slowed = Self { directory: Path::new(parent).join(&name), limit };
            fs::create_dir(&slowed.directory).ok()?;
            slowed.directory.join(limit.0).exists().then_some(slowed)
        })
    }

    fn limit(&self, value: &str) {
        fs::write(self.directory.join(self.limit.0), value).expect("it is root's");
    }

    fn periods(&self) -> u64 {
        let text = fs::read_to_string(self.directory.join("cpu.stat")).expect("it is there");
        let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    }

    /// Holds a process back for eight periods of a tenth of a second in which it wanted more than a hundredth.
    fn slow_down(&self, process: &str) {
        self.limit(self.limit.1);
        fs::write(self.directory.join("cgroup.procs"), process).expect("the process runs");
        let (before, begun) = (self.periods(), Instant::now());
        while self.periods() < before + 8 {
            assert!(begun.elapsed() < PATIENCE, "it never wanted so much");
            thread::yield_now();
        }
        self.limit(self.limit.2);
    }
}

impl Drop for Slowed {
    fn drop(&mut self) {
        // A process that is still in it keeps the directory.
        let _ = fs::remove_dir(&self.directory);
    }
}

fn is_possible() -> bool {
    if !rustix::process::geteuid().is_root() {
        skip("the labs of four hosts need root");
        return false;
    }
    let clock = Command::new("unshare").args(["--time", "--monotonic", "1", "--", "true"]).output();
    if !clock.is_ok_and(|output| output.status.success()) {
        skip("this kernel has no time namespaces: a host with another clock was not tried");
        return false;
    }
    find("ip", TEST).is_some() && find("mpirun", TEST).is_some()
}

/// One schedule over paths of different length, merged; a clock that is wrong by seconds; a part without CPU.
#[test]
fn four_hosts_with_paths_of_their_own_make_one_run() {
    if !is_possible() {
        return;
    }
    let mut hosts = Hosts::new();
    let directory = scratch("four_hosts");
    let log = directory.join("access.log");
    let url = hosts.serve(&log);
    let plan = ["-c", "80", "--rate", "400", "-D", "4", "--warm-up", "0", &url];
    let whole = || fs::read_to_string(&log).expect("the server writes it");
    let one_run = || {
        let before = whole().len();
        let report = load(&hosts, &directory, &plan, |_| ());
        (report, whole().split_off(before))
    };
    let (report, lines) = one_run();
    let phase = &report["phases"][0];
    let parts = phase["parts"].as_array().expect("a list");
    let due: Vec<f64> = parts.iter().map(|part| number(part, "/counts/due")).collect();
    assert_eq!(due.iter().sum::<f64>(), number(phase, "/counts/due"));
    assert!((number(phase, "/counts/due") - 1600.0).abs() <= 1.6, "{due:?}");
    assert!(due.iter().all(|due| (due - 400.0).abs() <= 1.0), "{due:?}");
    for (part, path_ms) in parts.iter().zip(PATHS_MS) {
        assert!(number(part, "/round_trip_ns") >= path_ms as f64 * 1e6, "{part}");
    }
    // Half of the longest path, and what the kernel adds.
    assert!((40e6..60e6).contains(&number(&report, "/parts/clock_bound_ns")), "{report}");

    let mut first = Some((report, lines));
    let agrees = decide(AVERAGED_AGREES, || {
        let (report, lines) = first.take().unwrap_or_else(one_run);
        all_began_together(&lines)?;
        each_has_its_path(&report["phases"][0]["parts"])?;
        alone_agrees(&hosts, &url, number(&report["phases"][0], "/latency/percentiles_ns/p99"))
    });
    assert_eq!(agrees, Ok(()));
    a_part_without_cpu_is_named(&hosts, &directory, &url);
}

/// How likely percentiles of the parts that were averaged would agree: those of four paths, the longest of which is twice the next, are far
/// from its own.
const AVERAGED_AGREES: f64 = 0.02;

/// Each part has some of the first second's requests, of which one that began three seconds late has none.
fn all_began_together(log: &str) -> Result<(), String> {
    // By their times, with which they begin: each worker of the server writes its own.
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    for number in 1..=PATHS_MS.len() {
        let peer = format!("\"peer\":\"10.61.{number}.2:");
        let count = lines.iter().take(400).filter(|line| line.contains(&peer)).count();
        if count < 40 {
            return Err(format!("part {number} has {count} of the first 400"));
        }
    }
    Ok(())
}

/// The median of each part is that of its path, which is twice as long as the next shorter one.
fn each_has_its_path(parts: &Value) -> Result<(), String> {
    let parts = parts.as_array().expect("a list");
    assert_eq!(parts.len(), PATHS_MS.len());
    for (part, path_ms) in parts.iter().zip(PATHS_MS) {
        let (path, median) = (path_ms as f64 * 1e6, number(part, "/latency/percentiles_ns/p50"));
        if !(path..2.0 * path).contains(&median) {
            return Err(format!("{path_ms} ms: {part}"));
        }
    }
    Ok(())
}

/// The slowest hundredth of all is of the longest path: a run there alone has it between its 90th and 99.9th
/// percentiles.
fn alone_agrees(hosts: &Hosts, url: &str, p99_ns: f64) -> Result<(), String> {
    let namespace = format!("{}-client", hosts.host(4));
    let alone = Command::new("ip")
        .args(["netns", "exec", &namespace])
        .arg(program())
        .args(["load", "-c", "20", "--rate", "100", "-D", "4", "--warm-up", "0"])
        .args(["--json", "-", "--quiet", url])
        .output()
        .expect("it can be started");
    let alone: Value = serde_json::from_slice(&alone.stdout).expect("a report");
    let of = |percentile: &str| {
        number(&alone, &format!("/phases/0/latency/percentiles_ns/{percentile}"))
    };
    let (low, high) = (0.95 * of("p90"), 1.05 * of("p99.9"));
    let agrees = (low..high).contains(&p99_ns);
    agrees.then_some(()).ok_or_else(|| format!("{p99_ns} is not in {low}..{high}"))
}

fn a_part_without_cpu_is_named(hosts: &Hosts, directory: &Path, url: &str) {
    let Some(slowed) = Slowed::new() else {
        skip("control groups for CPU can't be made here: a part without CPU was not tried");
        return;
    };
    // A part wants more than a hundredth of a core for 400 requests per second.
    let plan = ["-c", "160", "--rate", "1600", "-D", "4", "--warm-up", "0", url];
    let report = load(hosts, directory, &plan, |told| {
        let mut line = String::new();
        while !line.contains(" 1 s: ") {
            line.clear();
            assert_ne!(told.read_line(&mut line).expect("it is text"), 0, "it ended");
        }
        let second = fs::read_to_string(directory.join("2")).expect("the part has begun");
        slowed.slow_down(second.trim());
    });
    let verdict = &report["phases"][0]["verdict"];
    assert_eq!(verdict["bound"], "client", "{verdict}");
    let evidence = verdict["evidence"].to_string();
    assert!(evidence.contains("Part 2 was slow: its clock was late by "), "{evidence}");
}
