//! A server, and the processes that take over from it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server that was started, and the process that is the server by now. All of its processes are killed when this
/// goes out of scope.
pub(crate) struct Instance {
    child: Child,
    /// The server's process.
    pub(crate) id: u32,
    /// Output of its processes, line by line.
    lines: Receiver<String>,
    /// The first address that it listens on.
    pub(crate) address: String,
    pub(crate) admin: Option<String>,
}

fn pid(id: u32) -> Pid {
    i32::try_from(id).ok().and_then(Pid::from_raw).expect("the id of a process is positive")
}

impl Instance {
    /// Starts `command` and waits until it is ready.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut instance = Self::spawn(command);
        let mut said = Vec::new();
        loop {
            let line = instance.line().unwrap_or_else(|| panic!("it ended: {said:?}"));
            let is_first = instance.address.is_empty() && line.starts_with("http");
            if let Some(rest) = line.split("://").nth(1).filter(|_| is_first) {
                let address = rest.split_whitespace().next().unwrap_or_default();
                instance.address = address.trim_end_matches('/').to_owned();
            }
            if let Some(rest) = line.strip_prefix("Admin: http://") {
                instance.admin = rest.split("/metrics").next().map(str::to_owned);
            }
            if line.starts_with("Ready") {
                return instance;
            }
            said.push(line);
        }
    }

    /// Starts `command`.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the program exists and can be run");
        let (sender, lines) = mpsc::channel();
        let outputs: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("stdout is piped")),
            Box::new(child.stderr.take().expect("stderr is piped")),
        ];
        for output in outputs {
            let sender = sender.clone();
            // It ends with the last process of the server.
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    eprintln!("{line}");
                    drop(sender.send(line));
                }
            });
        }
        let id = child.id();
        Self { child, id, lines, address: String::new(), admin: None }
    }

    /// The next line; none: all of its processes have ended.
    pub(crate) fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(error) => panic!("the server is silent: {error}"),
        }
    }

    /// Waits for a line with these words.
    #[track_caller]
    pub(crate) fn said(&self, words: &str) -> String {
        loop {
            match self.line() {
                Some(line) if line.contains(words) => return line,
                Some(_) => {}
                None => panic!("the server never said `{words}`"),
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(pid(self.id), signal).expect("the server runs, and is ours");
    }

    /// Sends SIGUSR2, and waits until another process is the server.
    pub(crate) fn upgrade(&mut self) {
        let before = self.id;
        self.signal(Signal::USR2);
        let said = self.said("has taken over");
        let id = said.split_whitespace().find_map(|word| word.parse().ok());
        self.id = id.expect("it names the process");
        assert_ne!(self.id, before);
    }

    /// Waits for the end of the process that was started first.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server doesn't end");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Waits for the end of the process that is the server by now.
    pub(crate) fn wait_for_last(&mut self) {
        wait_for_end(self.id);
        self.wait();
    }

    /// As [`Self::upgrade`], and waits until the old process has ended: it responds next to the new one for a moment.
    pub(crate) fn upgrade_fully(&mut self) {
        let before = self.id;
        self.upgrade();
        wait_for_end(before);
    }

    /// The body of one response, over a connection of its own.
    pub(crate) fn get(&self, path: &str) -> String {
        get(&self.address, path)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // They may have ended already.
        let _ = kill_process_group(pid(self.child.id()), Signal::KILL);
        drop(self.child.wait());
    }
}

fn wait_for_end(id: u32) {
    let deadline = Instant::now() + PATIENCE;
    while is_alive(id) {
        assert!(Instant::now() < deadline, "the server doesn't end");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Returns whether a process runs: one that has ended and was not waited for does not.
fn is_alive(id: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let ended = state.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'));
    test_kill_process(pid(id)).is_ok() && !ended
}

/// The body of one response at an address.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it responds");
    response.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

/// `bolide serve` from this file.
pub(crate) fn serve(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("serve").args(arguments);
    for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID"] {
        command.env_remove(name);
    }
    command
}
