//! SIGUSR2: the program as it is now on the disk takes over, with the same sockets.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bolide::server::EarlierProcess;
use bolide_eventloop::hand_on;

use super::inherit::{HANDED_ON, READY};

/// How often it is looked whether the start of a successor was called off.
const LOOK: Duration = Duration::from_millis(100);

/// The sockets of one listener, and the address that they were asked for by.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) address: String,
    /// Those of the operator's listener.
    pub(super) is_admin: bool,
    pub(super) descriptors: Vec<OwnedFd>,
    /// UDP sockets at the same port.
    pub(super) datagrams: Vec<OwnedFd>,
}

/// Starts successors.
#[derive(Debug)]
pub(super) struct Upgrade {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// How long one may take until it is ready.
    patience: Duration,
    sockets: Vec<Sockets>,
    /// A service manager holds them too.
    is_managed: bool,
    under_way: Option<UnderWay>,
}

/// A successor that starts.
#[derive(Debug)]
struct UnderWay {
    thread: JoinHandle<Result<Child, String>>,
    called_off: Arc<AtomicBool>,
}

impl Upgrade {
    /// Successors are the program by the name that this process was started by.
    pub(super) fn new(patience: Duration, sockets: Vec<Sockets>, is_managed: bool) -> Self {
        let mut arguments = env::args_os();
        let program = arguments.next().unwrap_or_default();
        Self {
            program: program_path(&program),
            arguments: arguments.collect(),
            patience,
            sockets,
            is_managed,
            under_way: None,
        }
    }

    /// Returns what a successor is started from.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Starts a successor, unless one starts already; `over` is called when it is ready, or has failed. Those that `running`
    /// has followed, and that have connections, are handed on with it.
    pub(super) fn begin(
        &mut self,
        running: impl FnOnce() -> io::Result<Vec<EarlierProcess>>,
        over: impl FnOnce() + Send + 'static,
    ) -> Result<(), String> {
        if self.under_way.is_some() {
            return Err("an upgrade is already in progress".to_owned());
        }
        let earlier = running().map_err(|error| format!("can't hand HTTP/3 over: {error}"))?;
        let (child, stream) = self.spawn(earlier)?;
        let called_off = Arc::new(AtomicBool::new(false));
        let (stop, deadline) = (Arc::clone(&called_off), Instant::now() + self.patience);
        let thread = std::thread::Builder::new()
            .name("upgrade".to_owned())
            .spawn(move || {
                let result = wait(child, stream, deadline, &stop);
                over();
                result
            })
            .map_err(|error| format!("can't start a thread: {error}"))?;
        self.under_way = Some(UnderWay { thread, called_off });
        Ok(())
    }

    fn spawn(&self, earlier: Vec<EarlierProcess>) -> Result<(Child, UnixStream), String> {
        let failed = |error: io::Error| format!("{}: {error}", self.program.display());
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let managed = u8::from(self.is_managed);
        let mut text = format!("ready {}\nmanaged {managed}\n", theirs.as_raw_fd());
        let mut descriptors = vec![OwnedFd::from(theirs)];
        for Sockets { address, is_admin, descriptors: sockets, datagrams } in &self.sockets {
            let what = if *is_admin { "admin" } else { "listen" };
            for (what, sockets) in [(what, sockets), ("datagrams", datagrams)] {
                let copies = sockets.iter().map(OwnedFd::try_clone).collect::<io::Result<Vec<_>>>();
                let copies = copies.map_err(failed)?;
                if !copies.is_empty() {
                    text.push_str(&format!("{what} {} {address}\n", numbers(&copies)));
                }
                descriptors.extend(copies);
            }
        }
        for EarlierProcess { number, pipes } in earlier {
            text.push_str(&format!("earlier {number},{}\n", numbers(&pipes)));
            descriptors.extend(pipes);
        }
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env(HANDED_ON, text);
        // They were for this process.
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"] {
            command.env_remove(name);
        }
        hand_on(&mut command, descriptors);
        Ok((command.spawn().map_err(failed)?, ours))
    }

    /// Returns what has come of the one under way, which is over: the successor's process id.
    pub(super) fn finish(&mut self) -> Result<u32, String> {
        let Some(UnderWay { thread, .. }) = self.under_way.take() else {
            return Err("no upgrade is in progress".to_owned());
        };
        let panicked = |_| Err("failed to wait for the new process".to_owned());
        // It lives on, and can't be waited for once this process has ended.
        thread.join().unwrap_or_else(panicked).map(|child| child.id())
    }

    /// This process ends: one that starts does so too. From here on no socket is held for a successor.
    pub(super) fn call_off(&mut self) {
        self.sockets.clear();
        let Some(UnderWay { thread, called_off }) = self.under_way.take() else { return };
        called_off.store(true, Ordering::Release);
        if let Ok(Ok(child)) = thread.join() {
            end(child);
        }
    }

    /// A successor has taken over: no socket is held any more.
    pub(super) fn close(&mut self) {
        self.sockets.clear();
    }
}

/// The descriptors' numbers, with commas between them.
fn numbers(descriptors: &[OwnedFd]) -> String {
    let numbers: Vec<_> = descriptors.iter().map(|one| one.as_raw_fd().to_string()).collect();
    numbers.join(",")
}

/// The path behind a program's name as a shell finds it, so that what lies there later is found too.
fn program_path(name: &OsString) -> PathBuf {
    let path = Path::new(name);
    if path.components().count() > 1 || path.is_absolute() {
        return std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    }
    let directories = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&directories)
        .map(|directory| directory.join(path))
        .find(|it| it.is_file());
    found.or_else(|| env::current_exe().ok()).unwrap_or_else(|| path.to_owned())
}

/// Waits until the successor says that it is ready.
fn wait(
    mut child: Child,
    mut stream: UnixStream,
    deadline: Instant,
    called_off: &AtomicBool,
) -> Result<Child, String> {
    let began = Instant::now();
    let mut said = Vec::new();
    let failed = loop {
        if called_off.load(Ordering::Acquire) {
            break "it was cancelled".to_owned();
        }
        let now = Instant::now();
        if now >= deadline {
            let seconds = (now - began).as_secs_f64();
            break format!("the new process was not ready within {seconds:.0} s");
        }
        let mut bytes = [0; 16];
        // A timeout of zero would be none.
        let most = (deadline - now).min(LOOK).max(Duration::from_millis(1));
        let read = stream.set_read_timeout(Some(most)).and_then(|()| stream.read(&mut bytes));
        match read {
            // Its end of the stream is closed: it ends, or is something else than this program.
            Ok(0) => break ended(&mut child, deadline),
            Ok(count) => said.extend_from_slice(&bytes[..count]),
            Err(error) if is_timeout(&error) => {}
            Err(error) => break format!("can't read from the new process: {error}"),
        }
        if said.starts_with(READY) {
            return Ok(child);
        }
    };
    end(child);
    Err(failed)
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// How a successor ended that will not be ready.
fn ended(child: &mut Child, deadline: Instant) -> String {
    let grace = deadline.min(Instant::now() + Duration::from_secs(1));
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                return format!("the new process ended with {status} before it was ready");
            }
            Ok(None) if Instant::now() < grace => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                return "the new process doesn't report that it is ready: is it another program?"
                    .to_owned();
            }
        }
    }
}

/// Ends a successor that is not wanted.
fn end(mut child: Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::super::inherit::Inheritance;
    use super::*;

    fn upgrade(script: &str) -> Upgrade {
        upgrade_to("/bin/sh".into(), vec!["-c".into(), script.into()])
    }

    fn upgrade_to(program: PathBuf, arguments: Vec<OsString>) -> Upgrade {
        Upgrade {
            program,
            arguments,
            patience: Duration::from_secs(30),
            sockets: Vec::new(),
            is_managed: false,
            under_way: None,
        }
    }

    fn none() -> io::Result<Vec<EarlierProcess>> {
        Ok(Vec::new())
    }

    /// Runs one to its end.
    fn result(mut upgrade: Upgrade) -> Result<u32, String> {
        let (sender, receiver) = std::sync::mpsc::channel();
        upgrade.begin(none, move || sender.send(()).expect("the test waits"))?;
        receiver.recv().expect("it comes to an end");
        upgrade.finish()
    }

    #[test]
    fn a_successor_says_when_it_is_ready() {
        let name = "serve::upgrade::tests::plays_a_successor";
        let arguments = vec![name.into(), "--exact".into()];
        assert!(result(upgrade_to(env::current_exe().unwrap(), arguments)).is_ok());
    }

    /// Not a test where an upgrade has started it: the successor.
    #[test]
    fn plays_a_successor() {
        let dealt = Inheritance::from_environment().unwrap().deal(&[], false).unwrap();
        if let Some(ready) = dealt.ready {
            ready.say();
        }
    }

    #[test]
    fn what_fails_says_why() {
        let said = result(upgrade("exit 2")).unwrap_err();
        assert_eq!(said, "the new process ended with exit status: 2 before it was ready");
        let said = result(upgrade("kill -9 $$")).unwrap_err();
        assert!(said.contains("signal: 9"), "{said}");
        let hasty = Upgrade { patience: Duration::from_millis(50), ..upgrade("sleep 60") };
        assert!(result(hasty).unwrap_err().contains("not ready within"));
        let missing = Upgrade { program: "/no/such/program".into(), ..upgrade("") };
        assert!(result(missing).unwrap_err().starts_with("/no/such/program: "));
    }

    #[test]
    fn one_at_a_time_and_none_after_the_end() {
        let mut slow = upgrade("sleep 60");
        slow.begin(none, || {}).unwrap();
        assert_eq!(slow.begin(none, || {}).unwrap_err(), "an upgrade is already in progress");
        slow.call_off();
        assert!(slow.finish().is_err());
    }

    #[test]
    fn a_program_is_found_where_it_was_started() {
        assert_eq!(program_path(&"/a/b".into()), Path::new("/a/b"));
        let relative = program_path(&"./b".into());
        assert!(relative.is_absolute() && relative.ends_with("b"), "{relative:?}");
        assert!(program_path(&"sh".into()).ends_with("sh"));
        assert!(program_path(&"sh".into()).is_absolute());
    }
}
