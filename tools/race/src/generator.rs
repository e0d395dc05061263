//! Load: made by `bolide load`, by h2load or by wrk. Whatever makes it, the same figures come back.

mod bolide;
mod h2load;
#[cfg(test)]
mod in_process;
mod wrk;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use bolide_probe::report::Bound;
use serde::{Deserialize, Serialize};

use crate::catalogue::{Cell, Kind, Protocol};
use crate::differing::Requests;
use crate::interrupt::Interrupt;
use crate::process::{Reading, are_alike, find_program, last_lines, spawn_on, tree};
use crate::requests::Exchange;

/// How much longer than planned a generator may run before it is ended.
const GRACE: Duration = Duration::from_secs(30);

/// How often a run looks for Ctrl-C and for what is due.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A core that is used more than this is full.
const FULL: f64 = 0.95;

/// Below this, a server waits for its clients.
const WAITING: f64 = 0.90;

/// Program that makes the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generator {
    /// `bolide load`, for everything.
    Bolide,
    /// wrk for HTTP/1.1, h2load for HTTP/2.
    #[serde(rename = "h2load+wrk")]
    H2loadAndWrk,
    /// A few requests from this process, for tests of what is around the load.
    #[cfg(test)]
    InProcess,
}

impl Generator {
    /// The names that the command line knows.
    pub const NAMES: [&'static str; 2] = ["bolide", "h2load+wrk"];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bolide => Self::NAMES[0],
            Self::H2loadAndWrk => Self::NAMES[1],
            #[cfg(test)]
            Self::InProcess => "in-process",
        }
    }

    /// The one to use when none is asked for: `bolide load` if this program has it.
    ///
    /// # Errors
    ///
    /// When there is none on this machine.
    pub fn choose(program: &Path) -> Result<Self, String> {
        if bolide::is_there(program) {
            return Ok(Self::Bolide);
        }
        Self::H2loadAndWrk.check(program).map(|()| Self::H2loadAndWrk)
    }

    /// Checks whether it can be used here.
    ///
    /// # Errors
    ///
    /// What is missing, and the command that installs it.
    pub fn check(self, program: &Path) -> Result<(), String> {
        match self {
            Self::Bolide if bolide::is_there(program) => Ok(()),
            Self::Bolide => Err("this program has no `bolide load`".to_owned()),
            Self::H2loadAndWrk => {
                for (tool, package) in [("wrk", "wrk"), ("h2load", "nghttp2-client")] {
                    if find_program(tool).is_none() {
                        return Err(format!(
                            "`{tool}` is not in PATH; `apt-get install -y {package}` brings it"
                        ));
                    }
                }
                Ok(())
            }
            #[cfg(test)]
            Self::InProcess => Ok(()),
        }
    }

    /// Returns whether it can do what the cell asks for.
    pub fn can(self, cell: &Cell) -> bool {
        let is_plain = cell.requests == Requests::Same && cell.protocol != Protocol::H3;
        if !is_plain && self == Self::H2loadAndWrk {
            return false;
        }
        match cell.load {
            Kind::Closed | Kind::Idle => true,
            Kind::Handshake => self == Self::Bolide || cell.protocol.is_tls(),
            Kind::HandshakeResumed | Kind::Latency => self == Self::Bolide,
            Kind::Rate => self != Self::H2loadAndWrk,
        }
    }

    /// Versions of the programs, for the manifest.
    pub fn versions(self) -> Vec<String> {
        match self {
            Self::Bolide => vec![format!("bolide {}", env!("CARGO_PKG_VERSION"))],
            Self::H2loadAndWrk => vec![
                crate::process::first_line(&["h2load", "--version"]),
                crate::process::first_line(&["wrk", "-v"]),
            ],
            #[cfg(test)]
            Self::InProcess => Vec::new(),
        }
    }

    /// Returns whether it compares every body.
    pub fn is_checking(self) -> bool {
        self != Self::H2loadAndWrk
    }

    /// Makes the load of `job`. `watch` is called once, about the middle of the run.
    ///
    /// # Errors
    ///
    /// One sentence and what the generator said; or the interruption.
    pub(crate) fn run(
        self,
        job: &Job<'_>,
        interrupt: &Interrupt,
        watch: &mut dyn FnMut(),
    ) -> Result<Figures, String> {
        let ran = match self {
            Self::Bolide => bolide::run(job, interrupt, watch),
            Self::H2loadAndWrk if job.cell.protocol.is_http2() || job.is_handshake() => {
                h2load::run(job, interrupt, watch)
            }
            Self::H2loadAndWrk => wrk::run(job, interrupt, watch),
            #[cfg(test)]
            Self::InProcess => in_process::run(job, interrupt, watch),
        };
        let cpu_of = if job.group.is_some() { CpuOf::Group } else { CpuOf::Tree };
        ran.map(|figures| Figures { cpu_of, ..figures })
    }
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct Job<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) address: SocketAddr,
    /// The path that the cell is named after.
    pub(crate) path: String,
    /// Requests, and the responses that have to come back.
    pub(crate) exchanges: Vec<Exchange>,
    /// Time that is counted.
    pub(crate) duration: Duration,
    /// Time before that is not counted.
    pub(crate) warm_up: Duration,
    /// Requests per second by the clock; `None`: as fast as the responses come.
    pub(crate) rate: Option<f64>,
    /// The generator's cores.
    pub(crate) cores: Vec<usize>,
    /// The server's processes.
    pub(crate) server: Vec<u32>,
    /// The control group that the server has for itself.
    pub(crate) group: Option<PathBuf>,
    /// The server's cores.
    pub(crate) server_cores: usize,
    /// Directory in which files may be made.
    pub(crate) directory: PathBuf,
    /// This program.
    pub(crate) program: PathBuf,
    pub(crate) seed: u64,
}

impl Job<'_> {
    fn url(&self) -> String {
        let scheme = if self.cell.protocol.is_tls() { "https" } else { "http" };
        format!("{scheme}://{}{}", self.address, self.path)
    }

    /// Returns what the server has used: its control group, or its processes that are there now.
    fn server_reading(&self) -> Reading {
        let group = self.group.as_deref().and_then(Reading::of_group);
        group.unwrap_or_else(|| Reading::of(&self.server))
    }

    fn is_handshake(&self) -> bool {
        matches!(self.cell.load, Kind::Handshake | Kind::HandshakeResumed)
    }

    /// The file with what is posted, if anything is, for generators that repeat one body.
    fn posted(&self) -> Result<Option<PathBuf>, String> {
        let Some(body) = self.exchanges.first().and_then(|first| first.body.as_ref()) else {
            return Ok(None);
        };
        let file = self.directory.join(format!("body-{}", self.cell.key()));
        std::fs::write(&file, body).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Some(file))
    }
}

/// Source of a server's CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuOf {
    /// Its process tree: work of processes that began and ended within a run may be missing.
    #[default]
    Tree,
    /// Its control group: every process that was in it counts, ended ones included.
    Group,
}

/// Result of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Responses that were counted.
    pub completed: u64,
    /// Responses that were wrong, or never came.
    pub failed: u64,
    /// Failures by kind, as the generator names them.
    #[serde(default)]
    pub failures: std::collections::BTreeMap<String, u64>,
    /// Connections that were made; 0 where the generator doesn't say it.
    #[serde(default)]
    pub connections: u64,
    /// Responses per second.
    pub rate: f64,
    /// The server's user and system time per response, in µs, over the steady part.
    pub cpu_us: f64,
    /// Source of that time.
    #[serde(default)]
    pub cpu_of: CpuOf,
    /// Cores that the server used in the steady part.
    pub server_cores: f64,
    /// Cores that the generator used in the steady part.
    pub generator_cores: f64,
    /// Latencies in µs by percentile (`50`, `99` …), and `mean` and `max`; as far as they are told.
    #[serde(default)]
    pub latencies_us: std::collections::BTreeMap<String, f64>,
    /// Bytes of content in each response, as it was sent; 0 where the generator doesn't say it.
    #[serde(default)]
    pub content_bytes: f64,
    /// The bottleneck.
    pub bound: Bound,
    /// Time that others, and the host, took from the machine meanwhile, in cores.
    pub foreign_cores: f64,
    /// Time that the race itself took meanwhile, in cores.
    #[serde(default)]
    pub own_cores: f64,
    /// How long a cache line took from the server's core to the generator's and back, in ns, before
    /// the run and after it; `None` where that was not found out.
    #[serde(default)]
    pub distance_ns: Option<[f64; 2]>,
}

impl Figures {
    /// Returns whether this run and `other` found server and generator equally far apart, all the time; true
    /// where it was not looked at.
    pub(crate) fn is_as_far_as(&self, other: &Self) -> bool {
        are_alike([self.distance_ns, other.distance_ns])
    }
}

/// Observations of a child process that makes load.
struct Watched {
    text: String,
    /// CPU of server and generator between the marks, in cores.
    server_cores: f64,
    generator_cores: f64,
    foreign_cores: f64,
    own_cores: f64,
}

impl Watched {
    /// Writes down who used the machine.
    fn note(&self, figures: &mut Figures) {
        figures.server_cores = self.server_cores;
        figures.generator_cores = self.generator_cores;
        figures.foreign_cores = self.foreign_cores;
        figures.own_cores = self.own_cores;
    }
}

/// When the steady part begins and ends.
enum Marks<'a> {
    /// After these times from the start.
    Times(Duration, Duration),
    /// When lines with these words come.
    Lines(&'a str, &'a str),
    /// From the start to the end of the run.
    Whole,
}

/// A child that is killed when it goes out of scope.
struct Loader(Child);

impl Drop for Loader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Server, generator and this program at a mark.
struct Mark {
    server: Reading,
    generator: Reading,
    own: Reading,
    machine: Option<(f64, f64)>,
    at: Instant,
}

impl Mark {
    fn set(job: &Job<'_>, generator: u32) -> Self {
        Self {
            server: job.server_reading(),
            generator: Reading::of(&[generator]),
            own: Reading::of(&[std::process::id()]),
            machine: crate::process::busy_cores(),
            at: Instant::now(),
        }
    }
}

/// Runs a generator's program and reads the clocks at its marks.
fn watch_program(
    job: &Job<'_>,
    arguments: &[String],
    marks: &Marks<'_>,
    interrupt: &Interrupt,
    middle: &mut dyn FnMut(),
) -> Result<Watched, String> {
    let (program, rest) = arguments.split_first().ok_or("no generator")?;
    let errors = job.directory.join("generator.err");
    let log = std::fs::File::create(&errors).map_err(|error| format!("{program}: {error}"))?;
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = spawn_on(command, &job.cores)
        .map_err(|error| format!("`{program}` can't be run: {error}"))?;
    let mut child = Loader(child);
    let id = child.0.id();
    let started = Instant::now();
    let planned = job.warm_up + job.duration;
    let lines = read_lines(child.0.stdout.take());
    let mut text = String::new();
    let mut first = matches!(marks, Marks::Whole).then(|| Mark::set(job, id));
    let mut last: Option<Mark> = None;
    let mut middle = Some(middle);
    loop {
        interrupt.check()?;
        let elapsed = started.elapsed();
        if let Marks::Times(begin, end) = marks {
            if first.is_none() && elapsed >= *begin {
                first = Some(Mark::set(job, id));
            }
            if last.is_none() && elapsed >= *end {
                last = Some(Mark::set(job, id));
            }
        }
        if elapsed > planned / 2
            && let Some(middle) = middle.take()
        {
            middle();
        }
        if elapsed > planned + GRACE {
            return Err(format!("`{program}` did not end in time: {}", text.trim()));
        }
        match lines.recv_timeout(next_look(marks, started)) {
            Ok(line) => {
                if let Marks::Lines(begin, end) = marks {
                    if first.is_none() && line.contains(begin) {
                        first = Some(Mark::set(job, id));
                    } else if line.contains(end) {
                        last = Some(Mark::set(job, id));
                    }
                }
                text.push_str(&line);
                text.push('\n');
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let end = last.unwrap_or_else(|| Mark::set(job, id));
    let status = child.0.wait().map_err(|error| error.to_string())?;
    if !status.success() && text.trim().is_empty() {
        let said = last_lines(&errors);
        return Err(format!("`{program}` failed ({status}); it said\n{said}"));
    }
    let begin = first.ok_or_else(|| format!("`{program}` never began: {}", text.trim()))?;
    Ok(watched(text, &begin, &end))
}

fn watched(text: String, begin: &Mark, end: &Mark) -> Watched {
    let server_cores = end.server.cores_since(&begin.server);
    let generator_cores = end.generator.cores_since(&begin.generator);
    let own_cores = end.own.cores_since(&begin.own);
    let passed = end.at.duration_since(begin.at).as_secs_f64().max(1e-9);
    let foreign_cores = match (begin.machine, end.machine) {
        (Some((busy, stolen)), Some((busy_then, stolen_then))) => {
            let others = (busy_then - busy) / passed - server_cores - generator_cores - own_cores;
            others.max(0.0) + (stolen_then - stolen) / passed
        }
        _ => 0.0,
    };
    Watched { text, server_cores, generator_cores, foreign_cores, own_cores }
}

/// How long to wait for the next line.
fn next_look(marks: &Marks<'_>, started: Instant) -> Duration {
    let Marks::Times(begin, end) = marks else { return LOOK_INTERVAL };
    let elapsed = started.elapsed();
    [*begin, *end]
        .into_iter()
        .filter_map(|mark| mark.checked_sub(elapsed))
        .map(|left| left.max(Duration::from_micros(200)))
        .fold(LOOK_INTERVAL, Duration::min)
}

/// Lines of a pipe, as they come, from a thread of its own.
fn read_lines(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = channel();
    if let Some(pipe) = pipe {
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    lines
}

/// The processes of a server, or only the one that was started.
pub(crate) fn accounted(id: u32, is_tree: bool) -> Vec<u32> {
    if is_tree { tree(id) } else { vec![id] }
}

/// Judges who was full, for generators that don't say so themselves.
fn judge(job: &Job<'_>, figures: &mut Figures) {
    let server = figures.server_cores / job.server_cores.max(1) as f64;
    let generator = figures.generator_cores / job.cores.len().max(1) as f64;
    figures.bound = if job.rate.is_some() {
        Bound::Rate
    } else if server >= FULL {
        Bound::Server
    } else if generator >= FULL && server < WAITING {
        Bound::Client
    } else {
        Bound::Unclear
    };
}

/// `1.23ms`, `45us`, `2.00s` in µs.
fn microseconds(text: &str) -> Option<f64> {
    for (unit, factor) in [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 6e7), ("h", 3.6e9)] {
        if let Some(number) = text.strip_suffix(unit)
            && let Ok(number) = number.parse::<f64>()
        {
            return Some(number * factor);
        }
    }
    None
}

/// The number before a word: `123` of `... 123 requests in ...`.
fn number_before(text: &str, word: &str) -> Option<f64> {
    let (before, _) = text.split_once(word)?;
    before.split([' ', ',', '\n', ':', '\t']).rfind(|part| !part.is_empty())?.parse().ok()
}

/// The first word after a phrase.
fn word_after<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    text.split_once(phrase)?.1.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_text() {
        assert_eq!(microseconds("1.50ms"), Some(1500.0));
        assert_eq!(microseconds("45us"), Some(45.0));
        assert_eq!(microseconds("2.00s"), Some(2e6));
        assert_eq!(microseconds("1.00m"), Some(6e7));
        assert_eq!(microseconds("x"), None);
        assert_eq!(number_before("a: 12 total, 30 done", " done"), Some(30.0));
        assert_eq!(word_after("Requests/sec:  42.1\n", "Requests/sec:"), Some("42.1"));
    }
}
