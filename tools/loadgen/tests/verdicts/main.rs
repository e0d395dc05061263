//! Verdicts and a search on constructed cases: a server that is full, one that waits, a generator that is full, windows
//! that are small, a path that is full, a rate that is met; the knee of a server whose rate
//! is known; and latencies that an observer sees, too.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(clippy::print_stdout, reason = "it is its own test harness")]

mod observer;
mod servers;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_launcher::decide;
use bolide_loadgen::schedule::{Knee, Outcome, Schedule};
use bolide_loadgen::verdict::{PACING_LATE_NS, judge};
use bolide_probe::accounting::{ProcessAccounting, online_cores};
use bolide_probe::cost::{Accounting, CostSample};
use bolide_probe::engine::Engine;
use bolide_probe::plan::{
    Arrivals, Expectations, Http2Plan, Load, Origin, Phase, Plan, RequestKind, RequestPlan,
    ServerAddress, ServerProcesses, Timeouts, TlsPlan, Until, Version,
};
use bolide_probe::progress::Control;
use bolide_probe::report::{Bound, Verdict};
use http::Method;
use servers::Kind;

/// How likely a wrong program gives a case its verdict, or a server its knee, by chance.
const BY_CHANCE: f64 = 0.1;

/// A server in a process of its own, until it is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(kind: Kind) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([servers::FLAG, kind.name()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().parse().unwrap() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Result: right, or what is wrong in words.
type Test = Box<dyn Fn() -> Result<(), Vec<String>>>;

/// Costs nothing.
struct Free;

impl Accounting for Free {
    fn sample(&mut self) -> CostSample {
        CostSample::default()
    }
}

fn plan(server: &Server) -> Plan {
    Plan { server: ServerProcesses::Pid(server.child.id()), ..plan_for(server.address) }
}

/// GETs over HTTP/1.1 on four connections.
fn plan_for(address: SocketAddr) -> Plan {
    Plan {
        origin: Origin {
            is_https: false,
            authority: address.to_string(),
            addresses: vec![ServerAddress::Inet(address)],
        },
        version: Version::Http1,
        tls: TlsPlan::default(),
        http2: Http2Plan::default(),
        requests: vec![RequestPlan::new(Method::GET, "/".to_owned())],
        connections: 4,
        depth: 1,
        threads: 1,
        cores: Vec::new(),
        expect: Expectations::default(),
        kind: RequestKind::default(),
        scenario: None,
        recorded_share: None,
        seed: 1,
        server: ServerProcesses::Unwatched,
        timeouts: Timeouts {
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(10),
        },
    }
}

struct Case {
    name: &'static str,
    server: Kind,
    load: Load,
    change: fn(&mut Plan),
    expected: Bound,
}

const CASES: [Case; 6] = [
    Case {
        name: "a_server_that_computes_all_the_time_is_what_limits",
        server: Kind::Computes,
        load: Load::Closed,
        change: |_| {},
        expected: Bound::Server,
    },
    Case {
        name: "a_server_that_waits_for_something_else_is_what_limits",
        server: Kind::Waits,
        load: Load::Closed,
        change: |_| {},
        expected: Bound::Server,
    },
    Case {
        name: "a_generator_that_asks_more_than_it_can_is_what_limits",
        server: Kind::Canned,
        load: Load::Closed,
        change: |plan| plan.depth = 64,
        expected: Bound::Client,
    },
    Case {
        name: "windows_of_a_kibibyte_are_what_limits",
        server: Kind::SmallWindows,
        load: Load::Closed,
        change: |plan| {
            plan.version = Version::Http2;
            plan.requests[0].method = Method::POST;
            plan.requests[0].body = vec![b'x'; 16 * 1024].into();
        },
        expected: Bound::Window,
    },
    Case {
        name: "a_path_that_takes_bytes_slowly_is_what_limits",
        server: Kind::ReadsSlowly,
        load: Load::Closed,
        change: |plan| {
            plan.requests[0].method = Method::POST;
            plan.requests[0].body = vec![b'x'; 8 * 1024 * 1024].into();
        },
        expected: Bound::Network,
    },
    Case {
        name: "a_rate_that_is_met_is_what_limits",
        server: Kind::Answers,
        load: Load::Open { rate: 200.0, arrivals: Arrivals::Constant },
        change: |_| {},
        expected: Bound::Rate,
    },
];

/// Name of the search.
const KNEE: &str = "the_knee_of_a_server_is_its_service_rate";

/// How far the knee of a server may be from its service rate.
const KNEE_PRECISION: f64 = 0.05;

/// How many requests a server that [paces](Kind::Paces) itself answers in a second.
const SERVICE_RATE: f64 = 1000.0;

/// Searches for the knee of a server that answers one request a millisecond: whether it is its rate, and the knee.
fn knee() -> (bool, String) {
    let server = Server::start(Kind::Paces);
    let mut plan = plan(&server);
    plan.connections = 200;
    let accounting = Box::new(ProcessAccounting::new(plan.server.clone(), &plan.origin));
    let mut engine = Engine::prepare(&plan, accounting).unwrap();
    let mut run = |phase: &Phase| engine.run(phase, &mut |_| Control::Continue);
    let search = Schedule::FindKnee(Knee {
        limit: Duration::from_millis(60),
        each: Duration::from_millis(800),
        warm_up: Duration::from_millis(200),
        arrivals: Arrivals::Constant,
        start: Some(SERVICE_RATE / 2.0),
    });
    let Outcome::Knee { rate: Some(rate), .. } = search.carry_out(|phase| Some(run(phase))) else {
        return (false, "no knee was found".to_owned());
    };
    let is_near = (rate - SERVICE_RATE).abs() <= KNEE_PRECISION * SERVICE_RATE;
    (is_near, format!("knee {rate:.0}, service rate {SERVICE_RATE:.0}"))
}

/// Samples how late this machine wakes a thread that sleeps, for as long as a phase runs.
struct Sleeper {
    ends: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<Duration>>,
}

impl Sleeper {
    fn start() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let nap = Duration::from_millis(2);
            let mut late = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let start = Instant::now();
                std::thread::sleep(nap);
                late.push(start.elapsed().saturating_sub(nap));
            }
            late
        });
        Self { ends, thread }
    }

    /// The 99th percentile of the delays.
    fn p99(self) -> Duration {
        self.ends.store(true, Ordering::Relaxed);
        let mut late = self.thread.join().unwrap();
        late.sort_unstable();
        late.get(late.len().saturating_sub(1 + late.len() / 100)).copied().unwrap_or_default()
    }
}

/// The verdict on a case, with its evidence.
fn verdict(case: &Case) -> (Bound, Vec<String>) {
    let server = Server::start(case.server);
    let mut plan = plan(&server);
    (case.change)(&mut plan);
    let accounting = Box::new(ProcessAccounting::new(plan.server.clone(), &plan.origin));
    let mut engine = Engine::prepare(&plan, accounting).unwrap();
    let phase = Phase {
        name: case.name.to_owned(),
        load: case.load,
        warm_up: Duration::from_millis(100),
        until: Until { requests: None, time: Some(Duration::from_millis(700)) },
    };
    let sleeper = Sleeper::start();
    let report = engine.run(&phase, &mut |_| Control::Continue);
    let wakes_late = sleeper.p99();
    let Verdict { bound, mut evidence } = judge(&report, online_cores());
    evidence.push(format!("Meanwhile, a sleeping thread woke {wakes_late:?} late (p99)."));
    // Where threads don't wake up in time no generator is full: others have its core. To say so is right.
    let is_late = wakes_late > Duration::from_nanos(PACING_LATE_NS / 2);
    let is_the_machines = matches!((case.expected, bound), (Bound::Client, Bound::Unclear));
    (if is_late && is_the_machines { case.expected } else { bound }, evidence)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, kind] = &arguments[..]
        && flag == servers::FLAG
    {
        return servers::serve(Kind::of(kind));
    }
    let is_chosen = |name: &str| {
        let mut names = arguments.iter().filter(|name| !name.starts_with('-')).peekable();
        names.peek().is_none() || names.any(|part| name.contains(part.as_str()))
    };
    let mut tests: Vec<(&str, Test)> = Vec::new();
    for case in &CASES {
        tests.push((
            case.name,
            Box::new(move || {
                decide(BY_CHANCE, || match verdict(case) {
                    (bound, _) if bound == case.expected => Ok(()),
                    said => Err(format!("expected {:?}, and it said {said:#?}", case.expected)),
                })
            }),
        ));
    }
    for seen in &observer::KINDS {
        tests.push((
            seen.name,
            Box::new(move || decide(observer::BY_CHANCE, || observer::compare(seen))),
        ));
    }
    tests.push((
        KNEE,
        Box::new(|| {
            decide(BY_CHANCE, || match knee() {
                (true, _) => Ok(()),
                (false, what) => Err(what),
            })
        }),
    ));
    tests.retain(|(name, _)| is_chosen(name));
    println!("\nrunning {} tests", tests.len());
    let mut failed = 0;
    for (name, test) in &tests {
        let decided = test();
        println!("test {name} ... {}", if decided.is_ok() { "ok" } else { "FAILED" });
        if let Err(said) = decided {
            failed += 1;
            println!("{}", said.join("\n"));
        }
    }
    let passed = tests.len() - failed;
    let result = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {result}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out\n"
    );
    std::process::exit(i32::from(failed > 0));
}
