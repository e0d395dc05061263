//! `bolide serve` as a child process.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::{program, root};

/// How long the server may take to end when it has nothing left to do.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// A running server; it is killed when this goes out of scope.
#[derive(Debug)]
pub struct Server {
    child: Child,
    urls: Vec<String>,
    admin: Option<String>,
    rest: Option<JoinHandle<String>>,
    /// Its standard error, line by line.
    said: Mutex<Receiver<String>>,
    /// The server behind it, if it is a proxy.
    behind: Option<Box<Self>>,
}

impl Server {
    /// Starts `bolide serve` with these arguments and waits until it is ready.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_by(Command::new(program()), arguments)
    }

    /// The same by a command of its own, such as that of a tool that runs the program: `serve` and the arguments are
    /// added to it.
    pub fn start_by(mut command: Command, arguments: &[&str]) -> Self {
        if !command.get_envs().any(|(name, _)| name == "XDG_DATA_HOME") {
            // The user's own CA for development is none of the tests'.
            command.env("XDG_DATA_HOME", root().join("target/tests/data"));
        }
        let mut child = command
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program exists and can be run");
        let stderr = child.stderr.take().expect("stderr is piped");
        let (sender, said) = mpsc::channel();
        // It ends with the server.
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                eprintln!("{line}");
                // A test that has heard enough has dropped the other end.
                drop(sender.send(line));
            }
        });
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut stdout = BufReader::new(stdout);
        let (urls, admin) = read_urls(&mut stdout);
        let rest = std::thread::spawn(move || {
            let mut rest = String::new();
            // What comes after the start is for people; an error would be the end of the process.
            drop(stdout.read_to_string(&mut rest));
            rest
        });
        let rest = Some(rest);
        let server = Self { child, urls, admin, rest, said: Mutex::new(said), behind: None };
        assert!(!server.urls.is_empty(), "`bolide serve` named no URL and ended");
        server
    }

    /// One cleartext and one TLS listener on free ports of 127.0.0.1.
    pub fn start_both() -> Self {
        Self::start(&["--http", "127.0.0.1:0", "--https", "127.0.0.1:0"])
    }

    /// The same as a proxy, before another server that it speaks `scheme` with: `http`, `h2c` or `https`.
    pub fn start_before(scheme: &str) -> Self {
        let behind = Self::start_both();
        let url = if scheme == "https" { behind.https() } else { behind.http() };
        let url = format!("{scheme}://{}", Self::authority(url));
        let both = ["--http", "127.0.0.1:0", "--https", "127.0.0.1:0"];
        let proxy = ["--proxy", &url, "--proxy-insecure"];
        let mut server = Self::start(&[&both[..], &proxy].concat());
        server.behind = Some(Box::new(behind));
        server
    }

    /// The server alone, and behind proxies that speak each version with it.
    pub fn start_everywhere() -> [Self; 4] {
        let [http, h2c, https] = ["http", "h2c", "https"].map(Self::start_before);
        [Self::start_both(), http, h2c, https]
    }

    /// The URL of the first cleartext listener, without a slash at the end.
    pub fn http(&self) -> &str {
        self.url("http://")
    }

    /// The URL of the first TLS listener, without a slash at the end.
    pub fn https(&self) -> &str {
        self.url("https://")
    }

    /// The URL of the operator's listener, without a slash at the end.
    pub fn admin(&self) -> &str {
        self.admin.as_deref().expect("the server was started with --admin")
    }

    /// All URLs, in the order of the arguments' kinds: cleartext, then TLS.
    pub fn urls(&self) -> Vec<&str> {
        self.urls.iter().map(|url| url.trim_end_matches('/')).collect()
    }

    /// Both URLs: cleartext, then TLS.
    pub fn both(&self) -> [&str; 2] {
        [self.http(), self.https()]
    }

    /// `host:port` of a URL.
    pub fn authority(url: &str) -> &str {
        url.split("://").nth(1).unwrap_or(url).trim_end_matches('/')
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the server to drain and end, as an operator would.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits until the server says a line with these words on its standard error; returns the line.
    #[track_caller]
    pub fn said(&self, words: &str) -> String {
        let lines = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match lines.recv_timeout(END_TIMEOUT) {
                Ok(line) if line.contains(words) => return line,
                Ok(_) => {}
                Err(error) => panic!("the server never said `{words}`: {error}"),
            }
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let id = id.expect("the id of a process is positive");
        kill_process(id, signal).expect("the server runs, and is ours");
    }

    /// Waits for the end, which was asked for.
    pub fn wait(mut self) -> ExitStatus {
        let deadline = Instant::now() + END_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server doesn't end");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn url(&self, scheme: &str) -> &str {
        let url = self.urls.iter().find(|url| url.starts_with(scheme));
        url.unwrap_or_else(|| panic!("no {scheme} among {:?}", self.urls)).trim_end_matches('/')
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already: then there is nothing to kill, which is as good.
        drop(self.child.kill());
        drop(self.child.wait());
        if let Some(rest) = self.rest.take() {
            drop(rest.join());
        }
    }
}

/// One line per listener, its URL first; perhaps `Admin:` with its URLs; then `Ready`.
fn read_urls(stdout: &mut BufReader<ChildStdout>) -> (Vec<String>, Option<String>) {
    let mut urls = Vec::new();
    let mut admin = None;
    let mut line = String::new();
    while stdout.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        let first = line.split_whitespace().next().unwrap_or_default();
        if first.starts_with("http://") || first.starts_with("https://") {
            urls.push(first.to_owned());
        }
        if let Some((url, _)) =
            line.strip_prefix("Admin: ").and_then(|rest| rest.split_once("/metrics"))
        {
            admin = Some(url.to_owned());
        }
        if line.starts_with("Ready") {
            return (urls, admin);
        }
        line.clear();
    }
    (Vec::new(), None)
}
