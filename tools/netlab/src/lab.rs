//! Labs: made, found, used and removed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Mistake;
use crate::limits::UP_TIMEOUT;
pub use crate::linux::carrier::Carried;
pub use crate::linux::keeper::Live;
use crate::linux::keeper::{Order, Word};
use crate::linux::namespace;
use crate::linux::processes;
use crate::linux::record::{INSIDE, Lock, Record, place, remove_leftovers};
pub use crate::linux::shaping::Shaper;
pub use crate::linux::verify::{Rate, Report};
use crate::spec::{Node, Spec};

/// The arguments of this program that keep a lab.
const KEEP: [&str; 2] = ["net", "keep"];

/// A lab that is up. It stays up when this goes out of scope: [`Lab::down`] removes it.
#[derive(Debug)]
pub struct Lab {
    record: Record,
    /// The process that keeps it, if it was started here.
    keeper: Option<Child>,
}

impl Lab {
    /// Makes a lab; first it removes those that killed runs have left. `step` hears what is being
    /// done. The calling program must be `bolide`, or understand `net keep` as it does: the lab is
    /// kept by a process of its own.
    ///
    /// # Errors
    ///
    /// One sentence; nothing is left then. What was measured is not judged here: see
    /// [`Report::complaints`].
    pub fn up(spec: &Spec, mut step: impl FnMut(&str)) -> Result<Self, Mistake> {
        spec.check().map_err(Mistake::Usage)?;
        check_system(spec)?;
        let _lock = Lock::take()?;
        for name in remove_leftovers()? {
            step(&format!("removed the rest of the lab `{name}` after a killed run"));
        }
        if let Some(record) = Record::find(&spec.name)? {
            return Err(Mistake::Usage(format!(
                "a lab `{0}` is up already, kept by process {1}; `bolide net down --name {0}` removes it, and \
                 another --name makes another lab",
                spec.name, record.keeper
            )));
        }
        let foreign = Node::ALL.iter().map(|node| spec.namespace(*node));
        if let Some(name) = foreign.filter(|_| !spec.rootless).find(|n| namespace::path(n).exists())
        {
            return Err(Mistake::Usage(format!(
                "a network namespace `{name}` exists that belongs to no lab; choose another --name"
            )));
        }
        let directory = place(&spec.name)?;
        fs::create_dir(&directory).map_err(Mistake::io(directory.display()))?;
        let made = Self::make(spec, &directory, &mut step);
        if made.is_err() && !directory.join("record.json").exists() {
            // Nothing was made of it but that.
            let _ = fs::remove_dir_all(&directory);
        }
        made
    }

    fn make(
        spec: &Spec,
        directory: &std::path::Path,
        step: &mut dyn FnMut(&str),
    ) -> Result<Self, Mistake> {
        let log = File::create(directory.join("log")).map_err(Mistake::io("the lab's log"))?;
        let mut keeper = keeper(spec)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(Mistake::io("the process that keeps the lab can't be started"))?;
        let id = keeper.id();
        let own = std::process::id();
        let owner = spec.owned.then(|| (own, processes::started(own).unwrap_or_default()));
        let mut record = Record {
            spec: spec.clone(),
            owner,
            keeper: id,
            started: processes::started(id).unwrap_or_default(),
            namespaces: Vec::new(),
            report: None,
        };
        // Before the order, so that there is no namespace without a record.
        record.save()?;
        let order = Order { spec: spec.clone(), socket: directory.join("live") };
        let ready = tell(&mut keeper, &order).and_then(|()| wait(&mut keeper, step));
        match ready {
            Ok((namespaces, report)) => {
                record.namespaces = namespaces;
                record.report = report;
                record.save()?;
                Ok(Self { record, keeper: Some(keeper) })
            }
            Err(mistake) => {
                let words = fs::read_to_string(directory.join("log")).unwrap_or_default();
                // It removes what it has made; what it can't is found by the record.
                record.remove()?;
                let _ = keeper.wait();
                Err(match (mistake, words.lines().next_back()) {
                    (Mistake::Failed(text), Some(last)) => {
                        Mistake::Failed(format!("{text} ({})", last.trim()))
                    }
                    (mistake, _) => mistake,
                })
            }
        }
    }

    /// Ends the process that keeps the lab of this name, if this process has started it: what makes the lab fails then,
    /// and removes it. Whether there was one.
    pub(crate) fn end_own_keeper(name: &str) -> bool {
        let Ok(Some(record)) = Record::find(name) else { return false };
        let is_own = processes::parent(record.keeper) == Some(std::process::id());
        if is_own {
            processes::kill(record.keeper);
        }
        is_own
    }

    /// The lab of that name.
    ///
    /// # Errors
    ///
    /// If there is none, or its keeper has died.
    pub fn find(name: &str) -> Result<Self, Mistake> {
        crate::spec::check_name(name).map_err(Mistake::Usage)?;
        match Record::find(name)? {
            Some(record) if inside() || record.is_kept() => Ok(Self { record, keeper: None }),
            Some(_) => Err(Mistake::Failed(format!(
                "the process that kept the lab `{name}` is gone; `bolide net down --name {name}` removes the rest"
            ))),
            None => Err(Mistake::Usage(format!(
                "no lab `{name}`; `bolide net up --name {name}` makes one"
            ))),
        }
    }

    /// All labs of this user; whether each is kept, or only left over.
    ///
    /// # Errors
    ///
    /// If the records can't be read.
    pub fn all() -> Result<Vec<(Self, bool)>, Mistake> {
        let found = Record::all()?.into_iter().map(|record| {
            let kept = record.is_kept();
            (Self { record, keeper: None }, kept)
        });
        Ok(found.collect())
    }

    /// Removes the lab of that name, also one that a killed run has left.
    ///
    /// # Errors
    ///
    /// If there is none, or something of it can't be removed.
    pub fn remove(name: &str) -> Result<(), Mistake> {
        crate::spec::check_name(name).map_err(Mistake::Usage)?;
        let _lock = Lock::take()?;
        match Record::find(name)? {
            Some(record) => record.remove(),
            None => Err(Mistake::Usage(format!("no lab `{name}` is up"))),
        }
    }

    /// Ends what runs in it, and removes it.
    ///
    /// # Errors
    ///
    /// If something of it can't be removed.
    pub fn down(mut self) -> Result<(), Mistake> {
        let _lock = Lock::take()?;
        let removed = self.record.remove();
        if let Some(mut keeper) = self.keeper.take() {
            let _ = keeper.wait();
        }
        removed
    }

    /// Returns what it was asked to be.
    pub fn spec(&self) -> &Spec {
        &self.record.spec
    }

    /// Returns what was measured after set-up; `None` if nothing was.
    pub fn report(&self) -> Option<&Report> {
        self.record.report.as_ref()
    }

    /// The process that keeps it.
    pub fn keeper(&self) -> u32 {
        self.record.keeper
    }

    /// Returns what its delay lines have done so far; `None` if its keeper doesn't answer.
    pub fn live(&self) -> Option<Live> {
        let mut stream =
            UnixStream::connect(place(&self.record.spec.name).ok()?.join("live")).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// A command that runs `program` at a node.
    pub fn command(&self, node: Node, program: impl AsRef<OsStr>) -> Command {
        let mut command = if self.is_apart() { self.enter("ip") } else { Command::new("ip") };
        command.args(["netns", "exec", &self.record.spec.namespace(node)]).arg(program);
        command
    }

    /// Connects from a node, as a program there would.
    ///
    /// # Errors
    ///
    /// If the node can't be entered from here, or there is no reply within `time`.
    pub fn connect(
        &self,
        node: Node,
        address: SocketAddr,
        time: Duration,
    ) -> Result<TcpStream, Mistake> {
        namespace::inside(&self.record.spec.namespace(node), || {
            TcpStream::connect_timeout(&address, time)
        })?
        .map_err(Mistake::io(format_args!("{} from the {}", address, node.name())))
    }

    /// Listens at a node, as a program there would.
    ///
    /// # Errors
    ///
    /// If the node can't be entered from here, or the address is taken.
    pub fn listen(&self, node: Node, address: SocketAddr) -> Result<TcpListener, Mistake> {
        namespace::inside(&self.record.spec.namespace(node), || TcpListener::bind(address))?
            .map_err(Mistake::io(format_args!("{} at the {}", address, node.name())))
    }

    /// Returns whether its namespaces can only be seen from within its user namespace, where this process is
    /// not.
    pub fn is_apart(&self) -> bool {
        self.record.spec.rootless && !inside()
    }

    /// A command that runs `program` in the user namespace of a rootless lab, where this program
    /// finds the lab as root finds others.
    pub fn enter(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--user", "--mount", "--net", "--preserve-credentials", "--target"]);
        command.arg(self.record.keeper.to_string());
        if let Ok(here) = std::env::current_dir() {
            command.arg(format!("--wd={}", here.display()));
        }
        command.arg("--").arg(program);
        command.env(INSIDE, serde_json::to_string(&self.record).unwrap_or_default());
        command
    }
}

/// Returns whether this process was sent into a lab's user namespace.
fn inside() -> bool {
    std::env::var_os(INSIDE).is_some_and(|text| !text.is_empty())
}

/// This program.
pub(crate) fn program() -> Result<PathBuf, Mistake> {
    std::env::current_exe().map_err(Mistake::io("this program's own file can't be found"))
}

/// Checks for what a user who isn't root needs.
fn check_system(spec: &Spec) -> Result<(), Mistake> {
    if !spec.rootless {
        return Ok(());
    }
    let most = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    if most.trim().parse::<u64>().unwrap_or(0) == 0 {
        return Err(Mistake::Usage(
            "a lab needs root, or user namespaces, and this system allows none \
             (/proc/sys/user/max_user_namespaces)"
                .to_owned(),
        ));
    }
    let response = Command::new("unshare").args(["--user", "--map-root-user", "true"]).output();
    match response {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(Mistake::Usage(format!(
            "a lab needs root, or user namespaces, and this user can't create any: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
        Err(_) => Err(Mistake::Usage(
            "a lab without root needs the program `unshare` (Debian: apt-get install util-linux)"
                .to_owned(),
        )),
    }
}

fn keeper(spec: &Spec) -> Result<Command, Mistake> {
    let program = program()?;
    let mut command = if spec.rootless {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--net", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.args(KEEP).env_remove(INSIDE);
    Ok(command)
}

fn tell(keeper: &mut Child, order: &Order) -> Result<(), Mistake> {
    let text = serde_json::to_string(order).map_err(|error| Mistake::Failed(error.to_string()))?;
    let mut stdin = keeper.stdin.take().ok_or_else(|| Mistake::Failed("no pipe".to_owned()))?;
    writeln!(stdin, "{text}").map_err(Mistake::io("the lab's keeper doesn't listen"))
}

type Ready = (Vec<u64>, Option<Report>);

/// Hears the keeper until it is ready or has failed.
fn wait(keeper: &mut Child, step: &mut dyn FnMut(&str)) -> Result<Ready, Mistake> {
    let stdout = keeper.stdout.take().ok_or_else(|| Mistake::Failed("no pipe".to_owned()))?;
    let (words, heard) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Ok(word) = serde_json::from_str::<Word>(&line)
                && words.send(word).is_err()
            {
                return;
            }
        }
    });
    let until = Instant::now() + UP_TIMEOUT;
    loop {
        match heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Word::Step(text)) => step(&text),
            Ok(Word::Ready { namespaces, report }) => return Ok((namespaces, report)),
            Ok(Word::Failed { usage: true, sentence }) => return Err(Mistake::Usage(sentence)),
            Ok(Word::Failed { usage: false, sentence }) => return Err(Mistake::Failed(sentence)),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                return Err(Mistake::Failed(format!(
                    "the lab was not ready within {} s",
                    UP_TIMEOUT.as_secs()
                )));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(Mistake::Failed(
                    "the process that keeps the lab has exited".to_owned(),
                ));
            }
        }
    }
}
