//! Running a row under callgrind.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::process::Command;

use bolide_launcher::{Server, program};

use crate::Row;
use crate::client::Client;
use crate::profile::Profile;
use crate::request::Request;
use crate::row::{CONNECTIONS, Carrier, Content, FILES, file_server};

/// Requests before those that count: tables are filled, files are in memory, buffers have their size.
const WARM_UP: usize = 3_000;

/// Requests of the shorter run and of the longer one, after the warm-up.
const LENGTHS: [usize; 2] = [2_000, 8_000];

/// How often rows are counted whose counts differ with time: three are enough for one that is far off.
const TIMED_COUNT: usize = 3;

/// callgrind, ready to run the program.
#[derive(Debug)]
pub struct Valgrind {
    valgrind: PathBuf,
    chrt: PathBuf,
}

/// Cost of a row.
#[derive(Debug)]
pub struct Counted {
    /// How many requests `profile` is about.
    pub requests: usize,
    /// Places where their instructions went.
    pub profile: Profile,
}

impl Counted {
    /// Instructions per request.
    pub fn per_request(&self) -> f64 {
        self.share(self.profile.total)
    }

    /// One request's share of a count.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(crate) fn share(&self, count: i64) -> f64 {
        count as f64 / self.requests as f64
    }
}

impl Valgrind {
    /// Finds what counting needs, and keeps this thread and what it starts on one core.
    ///
    /// # Errors
    ///
    /// What is missing, in a sentence.
    pub fn find() -> Result<Self, String> {
        let found = |tool| {
            on_path(tool)
                .ok_or_else(|| format!("can't count instructions: {tool} is not installed"))
        };
        let tools = Self { valgrind: found("valgrind")?, chrt: found("chrt")? };
        stay_on_one_core()?;
        Ok(tools)
    }

    /// Counts one row; the median of three counts where those differ.
    ///
    /// # Errors
    ///
    /// What went wrong, in a sentence.
    pub fn count(&self, row: &Row) -> Result<Counted, String> {
        if row.carrier != Carrier::Http3 {
            return self.count_once(row);
        }
        let mut counts = Vec::new();
        for _ in 0..TIMED_COUNT {
            counts.push(self.count_once(row)?);
        }
        counts.sort_by_key(|counted: &Counted| counted.profile.total);
        Ok(counts.swap_remove(TIMED_COUNT / 2))
    }

    fn count_once(&self, row: &Row) -> Result<Counted, String> {
        let directory =
            tempfile::tempdir().map_err(|error| format!("no directory for files: {error}"))?;
        let [shorter, longer] = LENGTHS;
        let before = self.run(row, WARM_UP + shorter, directory.path())?;
        let after = self.run(row, WARM_UP + longer, directory.path())?;
        Ok(Counted { requests: longer - shorter, profile: after.without(&before) })
    }

    /// Runs the server from start to end with so many requests.
    fn run(&self, row: &Row, requests: usize, directory: &Path) -> Result<Profile, String> {
        let output = directory.join("callgrind.out");
        let unwritten = |error| format!("a file can't be written: {error}");
        let upstream = match row.content {
            Content::Upstream => {
                let arguments = file_server(directory).map_err(unwritten)?;
                Some(Server::start(&strs(&arguments)))
            }
            Content::Builtin | Content::Files => None,
        };
        let arguments = row.arguments(directory, upstream.as_ref().map(Server::http));
        let arguments = arguments.map_err(unwritten)?;
        let server = Server::start_by(self.command(&output), &strs(&arguments));
        let clients = match row.carrier {
            Carrier::Http3 => load(row, server.https(), requests),
            Carrier::Http1 | Carrier::H2c => ask(row, server.http(), requests),
        };
        server.terminate();
        let status = server.wait();
        clients?;
        if !status.success() {
            return Err(format!("the server ended badly: {status}"));
        }
        let text = read_to_string(&output)
            .map_err(|error| format!("callgrind has written no counts: {error}"))?;
        Profile::parse(&text)
    }

    /// The program under callgrind.
    ///
    /// It is a batch process on the core of its clients: when one of them writes, it doesn't run before all have
    /// written. So each of its turns finds what all ten connections have sent, as under load, and every time.
    fn command(&self, output: &Path) -> Command {
        let mut command = Command::new(&self.chrt);
        command
            .args(["--batch", "0"])
            .arg(&self.valgrind)
            .args(["--quiet", "--tool=callgrind"])
            .arg(format!("--callgrind-out-file={}", output.display()))
            .arg(program());
        command
    }
}

fn strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// Has `bolide load` send requests; each response must be as expected.
fn load(row: &Row, url: &str, requests: usize) -> Result<(), String> {
    let Request { path, .. } = (row.request)(0, 0);
    let output = Command::new(program())
        .args(["load", "--http3", "--insecure", "-c", &CONNECTIONS.to_string()])
        .args(["-m", &row.requests_at_once().to_string(), "-n", &requests.to_string()])
        .arg(format!("{url}{path}"))
        .output()
        .map_err(|error| format!("the load can't be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("the load failed: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Sends requests round by round; each response must be the right one.
fn ask(row: &Row, url: &str, requests: usize) -> Result<(), String> {
    let address =
        Server::authority(url).parse().map_err(|error| format!("{url} has no address: {error}"))?;
    let clients = (0..CONNECTIONS).map(|_| Client::connect(address, row.carrier));
    let mut clients: Vec<_> = clients.collect::<Result<_, _>>()?;
    if row.content != Content::Builtin {
        // How many wait for a file that is being read is a matter of luck: here it is one, always.
        for n in 0..FILES {
            clients[0].send(std::iter::once((row.request)(0, n)))?;
            clients[0].receive()?;
        }
    }
    let at_once = row.requests_at_once();
    for round in 0..requests / row.requests_per_round() {
        for (connection, client) in clients.iter_mut().enumerate() {
            let numbers = round * at_once..(round + 1) * at_once;
            client.send(numbers.map(|n| (row.request)(connection, n)))?;
        }
        for client in &mut clients {
            client.receive()?;
        }
    }
    Ok(())
}

/// Keeps this thread and all that it starts on the first core that it may use.
#[cfg(target_os = "linux")]
fn stay_on_one_core() -> Result<(), String> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let failed = |error| format!("can't choose a core: {error}");
    let allowed = sched_getaffinity(None).map_err(failed)?;
    let mut one = CpuSet::new();
    if let Some(first) = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)) {
        one.set(first);
    }
    sched_setaffinity(None, &one).map_err(failed)
}

#[cfg(not(target_os = "linux"))]
fn stay_on_one_core() -> Result<(), String> {
    Err("counting needs Linux".to_owned())
}

fn on_path(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(tool)).find(|path| path.is_file())
}
