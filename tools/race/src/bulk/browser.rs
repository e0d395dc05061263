//! A browser as the client: headless Chromium at the lab's client, a page of ours that calls `fetch()`,
//! and a small server for that page, which hears when the transfer begins and ends.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use bolide_netlab::lab::Lab;
use bolide_netlab::spec::Node;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::{Cost, Measured, Verdict};
use super::stack::Direction;
use super::watched::Watched;
use crate::interrupt::Interrupt;
use crate::process::{Launch, Process, Reading, find_program, peak_memory_bytes, tree};

/// The page; `TASK` is replaced by what it has to do.
const PAGE: &str = include_str!("browser.html");

/// Its names in distributions.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The largest transfer, in bytes: an upload is a blob, which the browser holds.
pub(super) const BYTES_MAX: u64 = 256 << 20;

/// The longest request of the page, in bytes.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// How long the page may take to send a request once it has connected.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the page is listened for.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// Flags of every run of the browser: no profile, no sandbox (it runs as root), nothing on its own
/// account, and that a page of ours may fetch from a server with a certificate of its own.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-web-security",
    "--ignore-certificate-errors",
    "--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessRespectPreflightResults",
];

/// CPU seconds per GiB of the browser's processes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Parts {
    /// The network service: sockets, TLS, HTTP.
    pub(super) network: f64,
    /// The renderer: the page and its script.
    pub(super) renderer: f64,
    /// All others.
    pub(super) rest: f64,
}

/// One transfer.
pub(super) struct Task<'a> {
    pub(super) lab: &'a Lab,
    pub(super) url: String,
    pub(super) direction: Direction,
    pub(super) bytes: u64,
    /// Without HTTP/2.
    pub(super) is_h1: bool,
    pub(super) core: usize,
    /// For its profile and its log.
    pub(super) directory: PathBuf,
    pub(super) time: Duration,
    pub(super) interrupt: &'a Interrupt,
    /// The server's process.
    pub(super) server: u32,
}

/// The browser's program, or why there is none.
pub(super) fn program() -> Result<PathBuf, String> {
    PROGRAMS.iter().find_map(|name| find_program(name)).ok_or_else(|| {
        "`chromium` is not in PATH; `apt-get install -y chromium` brings it".to_owned()
    })
}

/// Returns what the browser's version is.
pub(super) fn version() -> Option<String> {
    let program = program().ok()?.display().to_string();
    Some(crate::process::first_line(&[&program, "--version"]))
}

/// Report of the page at the end.
#[derive(Debug, Deserialize)]
struct Told {
    bytes: u64,
    seconds: f64,
    error: Option<String>,
}

/// Which processes of the browser do what.
struct Groups([Vec<u32>; 3]);

impl Groups {
    fn of(root: u32) -> Self {
        let mut groups = [Vec::new(), Vec::new(), Vec::new()];
        for id in tree(root) {
            let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            groups[group(&String::from_utf8_lossy(&words))].push(id);
        }
        Self(groups)
    }

    fn read(&self) -> [Reading; 3] {
        self.0.each_ref().map(|ids| Reading::of(ids))
    }
}

/// Network service, renderer, or the rest, by the command line.
fn group(command: &str) -> usize {
    if command.contains("--utility-sub-type=network") {
        0
    } else if command.contains("--type=renderer") {
        1
    } else {
        2
    }
}

/// Lets a fresh browser carry the transfer out: what it measured, what the server used meanwhile, and where
/// the browser's CPU time went.
pub(super) fn run(task: &Task<'_>) -> Result<(Measured, Watched, Option<Parts>), String> {
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let listener = task.lab.listen(Node::Client, address).map_err(|error| error.to_string())?;
    let page = listener.local_addr().map_err(|error| error.to_string())?;
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    let mut process = Process::start(&launch(task, &format!("http://{page}/"))?)?;
    let began = Instant::now();
    let mut before: Option<(Groups, [Reading; 3], Watched)> = None;
    loop {
        task.interrupt.check()?;
        if process.ended().is_some() || began.elapsed() > task.time {
            let why = if process.ended().is_some() { "ended" } else { "took too long" };
            return Err(format!("the browser {why}; it said\n{}", process.last_lines()));
        }
        let Some((mut stream, request)) = next(&listener)? else {
            thread::sleep(LOOK_INTERVAL);
            continue;
        };
        let (head, body) = request.split_once("\r\n\r\n").unwrap_or((&request, ""));
        match head.split(' ').nth(1) {
            Some("/") => answer(&mut stream, "200 OK", &PAGE.replace("TASK", &todo(task))),
            Some("/begin") => {
                let groups = Groups::of(process.id());
                let readings = groups.read();
                before = Some((groups, readings, Watched::begin(task.server)));
                answer(&mut stream, "204 No Content", "");
            }
            Some("/end") => {
                let (groups, readings, mut watched) =
                    before.ok_or_else(|| format!("the page never began: {body}"))?;
                let used = groups.read();
                watched.end();
                let told: Told = serde_json::from_str(body)
                    .map_err(|error| format!("the page said `{body}`: {error}"))?;
                let memory = peak_memory_bytes(&groups.0.concat());
                let used: [f64; 3] =
                    std::array::from_fn(|at| used[at].since(&readings[at]).0.as_secs_f64());
                let (measured, parts) = measured(told, used, memory)?;
                return Ok((measured, watched, Some(parts)));
            }
            _ => answer(&mut stream, "404 Not Found", ""),
        }
    }
}

fn measured(told: Told, used: [f64; 3], memory: u64) -> Result<(Measured, Parts), String> {
    if let Some(error) = told.error {
        return Err(format!("fetch() failed: {error}"));
    }
    if told.bytes == 0 || told.seconds <= 0.0 {
        return Err("nothing was transferred".to_owned());
    }
    let gib = told.bytes as f64 / (1_u64 << 30) as f64;
    let [network, renderer, rest] = used.map(|used| used / gib);
    let measured = Measured {
        bytes: told.bytes,
        seconds: told.seconds,
        goodput_bits_per_second: told.bytes as f64 * 8.0 / told.seconds,
        congestion_control: None,
        client: Cost { cpu_seconds: used.iter().sum(), peak_memory_bytes: memory },
        verdict: Verdict { limit: String::new() },
        error: None,
    };
    Ok((measured, Parts { network, renderer, rest }))
}

/// Returns what the page is told.
fn todo(task: &Task<'_>) -> String {
    let upload = task.direction == Direction::Upload;
    json!({ "url": task.url, "bytes": task.bytes, "upload": upload }).to_string()
}

fn launch(task: &Task<'_>, page: &str) -> Result<Launch, String> {
    // A profile of its own: nothing of an earlier run is known, and nothing is left.
    let profile = task.directory.join("profile");
    if profile.exists() {
        fs::remove_dir_all(&profile).map_err(|error| format!("{}: {error}", profile.display()))?;
    }
    let inside = task.lab.command(Node::Client, program()?);
    let words = std::iter::once(inside.get_program()).chain(inside.get_args());
    let mut command: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    command.extend(FLAGS.map(str::to_owned));
    if task.is_h1 {
        command.push("--disable-http2".to_owned());
    }
    command.push(format!("--user-data-dir={}", profile.display()));
    command.push(page.to_owned());
    let home = task.directory.display().to_string();
    Ok(Launch {
        command,
        env: BTreeMap::from([("HOME".to_owned(), home)]),
        directory: task.directory.clone(),
        log: task.directory.join("log"),
        cores: vec![task.core],
    })
}

/// The next whole request of the page, if one has come.
fn next(listener: &TcpListener) -> Result<Option<(TcpStream, String)>, String> {
    let mut stream = match listener.accept() {
        Ok((stream, _)) => stream,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(format!("the page's server: {error}")),
    };
    let prepared =
        stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(REQUEST_TIMEOUT)));
    prepared.map_err(|error| format!("the page's server: {error}"))?;
    let mut text = Vec::new();
    let mut block = [0; 4096];
    while !is_whole(&text) {
        match stream.read(&mut block) {
            // A browser opens connections that it may not use.
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) if text.len() > REQUEST_BYTES_MAX => return Ok(None),
            Ok(count) => text.extend_from_slice(&block[..count]),
        }
    }
    Ok(Some((stream, String::from_utf8_lossy(&text).into_owned())))
}

/// Returns whether the head is there, and as much of a body as it says.
fn is_whole(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    body.len() >= length.unwrap_or(0)
}

fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // A page that is gone says nothing any more, and the time runs out.
    let _ = stream.write_all((head + body).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_with_its_body() {
        assert!(is_whole(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(!is_whole(b"GET / HTTP/1.1\r\nHost: a\r\n"));
        assert!(!is_whole(b"POST /end HTTP/1.1\r\nContent-Length: 3\r\n\r\nab"));
        assert!(is_whole(b"POST /end HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc"));
    }

    #[test]
    fn processes_are_told_apart_by_their_command_lines() {
        let zero = |text: &str| text.replace(' ', "\0");
        assert_eq!(group(&zero("c --type=utility --utility-sub-type=network.mojom.X")), 0);
        assert_eq!(group(&zero("c --type=renderer --lang=en")), 1);
        assert_eq!(group(&zero("c --type=gpu-process")), 2);
    }

    #[test]
    fn what_the_page_says_becomes_a_measurement() {
        let told = |error: Option<&str>| Told {
            bytes: 1 << 29,
            seconds: 0.5,
            error: error.map(str::to_owned),
        };
        let (found, parts) = measured(told(None), [0.1, 0.2, 0.05], 7).unwrap();
        assert_eq!(found.client.peak_memory_bytes, 7);
        assert!((found.goodput_bits_per_second - 8.0 * 1_073_741_824.0).abs() < 1.0);
        assert!((parts.network - 0.2).abs() < 1e-9 && (parts.renderer - 0.4).abs() < 1e-9);
        assert!(measured(told(Some("TypeError")), [0.0; 3], 0).unwrap_err().contains("TypeError"));
    }
}
