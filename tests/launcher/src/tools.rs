//! Foreign tools: finding them, running them, and saying loudly when one is missing.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::root;

/// Result of a tool.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Its standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Both outputs as text, for a message.
    pub fn both(&self) -> String {
        format!("{}\n{}", self.text(), String::from_utf8_lossy(&self.stderr))
    }

    /// The same, once the tool has ended well.
    #[track_caller]
    pub fn well(self) -> Self {
        assert!(self.status.success(), "{}\n{}", self.status, self.both());
        self
    }
}

/// Finds a tool: among those that `cargo xtask tools` installed, then on the path. If there is none,
/// says so and gives `None`; in CI, a missing tool is a failure.
pub fn find(tool: &str, test: &str) -> Option<PathBuf> {
    let installed = root().join("target/tools");
    let mut directories = vec![installed.join("bin"), installed.join("python/bin")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    directories.extend(std::env::split_paths(&path));
    let found =
        directories.into_iter().map(|directory| directory.join(tool)).find(|path| path.is_file());
    if found.is_none() {
        skip(&format!("{tool} is not installed ({test})"));
    }
    found
}

/// Says that a test can't run here, past the test harness, which hides the output of what passes.
pub fn skip(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "in CI nothing may be skipped: {what}");
    // The standard error may be closed.
    drop(writeln!(std::io::stderr(), "\nSKIPPED: {what}"));
}

/// Runs a tool to its end.
#[track_caller]
pub fn run<S: AsRef<OsStr>>(tool: &Path, arguments: impl IntoIterator<Item = S>) -> Finished {
    finish(spawn(tool, arguments))
}

/// Starts a tool.
#[track_caller]
pub fn spawn<S: AsRef<OsStr>>(tool: &Path, arguments: impl IntoIterator<Item = S>) -> Child {
    Command::new(tool)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{} can't be started: {error}", tool.display()))
}

/// Waits for a tool.
pub fn finish(child: Child) -> Finished {
    let output = child.wait_with_output().expect("the outputs are piped");
    Finished { status: output.status, stdout: output.stdout, stderr: output.stderr }
}

/// A directory for the files of one test, empty.
pub fn scratch(test: &str) -> PathBuf {
    let directory = root().join("target/tests").join(test);
    // It is gone already on the first run.
    drop(std::fs::remove_dir_all(&directory));
    std::fs::create_dir_all(&directory).expect("target can be written");
    directory
}
