//! How the program is built.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::manifest::cargo;
use crate::report::Report;

/// Features of the program where it is not built in a hurry.
pub(crate) const WHOLE: [&str; 2] = ["--features", "bolide-cli/parquet"];

/// The profile of what is published and measured.
pub(crate) const MEASURED: &str = "dist";

/// Builds the program with a profile of cargo. Returns where it is.
pub(crate) fn built(report: &mut Report, root: &Path, profile: &str) -> PathBuf {
    let (build, program) = building(root, profile);
    report.step(&format!("{profile} build"), build);
    program
}

/// Returns what builds the program with a profile of cargo, and where it will be.
pub(crate) fn building(root: &Path, profile: &str) -> (Command, PathBuf) {
    let build = ["build", "--profile", profile, "--package", "bolide-cli"];
    let command = in_root(root, &[&build[..], &WHOLE].concat());
    (command, target(root).join(profile).join("bolide"))
}

/// Builds the program with the tests: what both consist of is built once. Returns where it is.
pub(crate) fn built_for_tests(report: &mut Report, root: &Path) -> PathBuf {
    let build = ["build", "--workspace", "--bins", "--tests"];
    report.step("build", in_root(root, &[&build[..], &WHOLE].concat()));
    target(root).join("debug/bolide")
}

/// Sets how many tests of a program run at a time, unless the user did: two per core, because half of a test's time is spent
/// waiting.
pub(crate) fn tests_at_a_time(command: &mut Command, cores: usize) {
    const TEST_THREADS: &str = "RUST_TEST_THREADS";
    if std::env::var_os(TEST_THREADS).is_none() {
        command.env(TEST_THREADS, (2 * cores).to_string());
    }
}

fn target(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target.map_or_else(|| root.join("target"), PathBuf::from)
}

/// Cargo in the root of the repository.
pub(crate) fn in_root(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo());
    command.args(arguments).current_dir(root);
    command
}
