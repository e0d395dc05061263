//! Processes: started on given cores, watched, accounted, and always stopped.

mod cores;
mod cost;
mod distance;
mod outside;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bolide_semantics::in_one_line;
use outside::Mark;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

pub(crate) use cores::{available, pin_this_thread};
pub(crate) use cost::{Reading, busy_cores, peak_memory_bytes, resident_memory_bytes, tree};
pub(crate) use distance::{are_alike, distance_ns};
pub(crate) use outside::{Outside, has_groups};

/// How long a process has between SIGTERM and SIGKILL.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a process that ends is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Last lines that are shown of a process that failed.
const LAST_LINES_COUNT: usize = 10;

/// Program that is to be run.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Environment variables on top of ours.
    pub(crate) env: BTreeMap<String, String>,
    /// Working directory.
    pub(crate) directory: PathBuf,
    /// File of its output.
    pub(crate) log: PathBuf,
    /// The cores that it may use; empty: any.
    pub(crate) cores: Vec<usize>,
}

/// A running process and its descendants, stopped when this goes out of scope: also when a panic or
/// Ctrl-C unwinds.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
    mark: Mark,
    /// The cores that it was given.
    cores: Vec<usize>,
}

impl Process {
    /// Starts it in a process group of its own, so that Ctrl-C reaches us alone.
    pub(crate) fn start(launch: &Launch) -> Result<Self, String> {
        let out = File::create(&launch.log)
            .map_err(|error| format!("{}: {error}", launch.log.display()))?;
        let errors = out.try_clone().map_err(|error| error.to_string())?;
        let mut command = launch.command()?;
        command.stdout(out).stderr(errors);
        let mut mark = Mark::new();
        let (variable, text) = mark.variable();
        command.env(variable, text);
        let child = spawn_on(command, &launch.cores)
            .map_err(|error| format!("`{}` can't be run: {error}", launch.command[0]))?;
        mark.take(child.id());
        Ok(Self { child, log: launch.log.clone(), status: None, mark, cores: launch.cores.clone() })
    }

    /// Its id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The control group of its own, if there is one and it tells CPU times.
    pub(crate) fn group(&self) -> Option<PathBuf> {
        let group = self.mark.group().filter(|group| Reading::of_group(group).is_some());
        group.map(Path::to_owned)
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Returns what its processes outside of its tree have used so far.
    pub(crate) fn outside(&self) -> Outside {
        Outside::of(self.id(), &self.mark)
    }

    /// The evidence that it worked outside of its tree since `before`, or may run on other cores than its own.
    pub(crate) fn escape(&self, before: &Outside) -> Option<String> {
        let all = || self.mark.members().into_iter().chain(tree(self.id())).collect();
        before.complaint(self.id(), &self.mark).or_else(|| outside::strayed(&all(), &self.cores))
    }

    /// Returns what it said last, indented.
    pub(crate) fn last_lines(&self) -> String {
        last_lines(&self.log)
    }

    /// Ends it and all that it has started: politely first.
    pub(crate) fn stop(&mut self) {
        let mut descendants = self.mark.members();
        descendants.extend(tree(self.id()));
        let group = Pid::from_raw(self.child.id().cast_signed());
        for signal in [Signal::TERM, Signal::KILL] {
            if let Some(group) = group {
                // What has ended already needs no signal.
                let _ = kill_process_group(group, signal);
            }
            let asked = Instant::now();
            while asked.elapsed() < END_TIMEOUT {
                if self.ended().is_some() && !descendants.iter().any(|id| is_alive(*id)) {
                    return;
                }
                thread::sleep(LOOK_INTERVAL);
            }
            // Those that left the group.
            for id in descendants.iter().filter_map(|id| Pid::from_raw(id.cast_signed())) {
                let _ = kill_process(id, signal);
            }
        }
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Launch {
    fn command(&self) -> Result<Command, String> {
        let (program, arguments) =
            self.command.split_first().ok_or_else(|| "there is nothing to run".to_owned())?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(&self.env)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .process_group(0);
        Ok(command)
    }
}

/// Starts `command` on `cores`: from a thread that is pinned there, for children inherit that.
pub(crate) fn spawn_on(mut command: Command, cores: &[usize]) -> std::io::Result<Child> {
    thread::scope(|scope| {
        let spawned = scope.spawn(|| {
            pin_this_thread(cores);
            command.spawn()
        });
        spawned.join().unwrap_or_else(|_| Err(std::io::Error::other("the starting thread failed")))
    })
}

/// Returns whether a process is there and not only waits to be collected.
pub(crate) fn is_alive(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}

/// The last lines of a file, indented.
pub(crate) fn last_lines(path: &Path) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = text.unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return "    (it said nothing)".to_owned();
    }
    let first = lines.len().saturating_sub(LAST_LINES_COUNT);
    let shown: Vec<String> = lines[first..].iter().map(|line| format!("    {line}")).collect();
    shown.join("\n")
}

/// The first line that a command prints, to either output; empty if it can't be run.
pub(crate) fn first_line(command: &[&str]) -> String {
    let Some((program, arguments)) = command.split_first() else { return String::new() };
    let program = find_program(program).unwrap_or_else(|| program.into());
    let Ok(output) = Command::new(program).args(arguments).stdin(Stdio::null()).output() else {
        return String::new();
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    in_one_line(line).into_owned()
}

/// The path of `program`, if it is in `PATH` or is a path to a file.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Path::new(program).is_file().then(|| PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    // Servers of distributions live where only administrators look.
    let directories = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    directories.map(|directory| directory.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests;
