//! Network namespaces by name: entering them, and running `ip` and `tc` in them.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::Mistake;

/// Directory in which `ip netns` keeps its names.
pub(crate) const DIRECTORY: &str = "/run/netns";

/// The file that stands for a namespace.
pub(crate) fn path(namespace: &str) -> PathBuf {
    PathBuf::from(DIRECTORY).join(namespace)
}

/// Returns what tells it from all others; `None` if there is none of that name.
pub(crate) fn inode(namespace: &str) -> Option<u64> {
    std::fs::metadata(path(namespace)).ok().map(|found| found.ino())
}

/// Does `work` in a namespace, on a thread of its own: sockets and devices that it opens stay there.
pub(crate) fn inside<T: Send>(
    namespace: &str,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Mistake> {
    let file = File::open(path(namespace))
        .map_err(Mistake::io(format_args!("the namespace {namespace} can't be opened")))?;
    thread::scope(|scope| {
        let spawned = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| {
                    Mistake::Failed(format!("the namespace {namespace} can't be entered: {error}"))
                })
                .map(|()| work())
        });
        spawned
            .join()
            .unwrap_or_else(|_| Err(Mistake::Failed(format!("work in {namespace} panicked"))))
    })
}

/// Runs `ip` or `tc` over the lines of `batch`, in a namespace if one is given.
pub(crate) fn batch(
    program: &str,
    namespace: Option<&str>,
    lines: &[String],
) -> Result<(), Mistake> {
    let mut command = Command::new(program);
    if let Some(namespace) = namespace {
        command.args(["-n", namespace]);
    }
    let mut child = command
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|_| missing(program))?;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if let Some(mut stdin) = child.stdin.take() {
        // A child that has ended says why by its exit code.
        let _ = stdin.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(Mistake::io(program))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let number: Option<usize> = errors
        .lines()
        .find_map(|line| line.strip_prefix("Command failed -:"))
        .and_then(|number| number.trim().parse().ok());
    let line = number.and_then(|number| lines.get(number.saturating_sub(1)));
    let words = errors.lines().next().unwrap_or("it failed without a message").trim();
    let place = namespace.map_or_else(String::new, |namespace| format!(" in {namespace}"));
    let what = line.map_or_else(String::new, |line| format!(" {line}"));
    Err(Mistake::Failed(format!("`{program}{what}`{place}: {words}")))
}

fn missing(program: &str) -> Mistake {
    Mistake::Usage(format!(
        "the lab needs the program `{program}` (Debian: apt-get install iproute2)"
    ))
}

/// Writes a setting below `/proc/sys/net` of the namespace that the thread is in. What this kernel
/// doesn't have needs no setting.
pub(crate) fn set(name: &str, value: &str) {
    let _ = std::fs::write(format!("/proc/sys/net/{name}"), value);
}
