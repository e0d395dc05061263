//! The fuzz targets of `fuzz/`, built by the stable compiler: coverage by LLVM's own pass, the
//! engine by libfuzzer-sys. cargo-fuzz runs the same targets on a nightly, with sanitizers.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use toml::{Table, Value};

use crate::manifest::cargo;
use crate::report::Report;

/// Flags that cargo-fuzz passes too: counters on every edge, and every comparison seen.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
];

/// How long a target runs by default.
const SECONDS: u32 = 60;

/// `cargo xtask fuzz [--seconds N] [TARGET]…`
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let mut seconds = SECONDS;
    let mut wanted = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--seconds" {
            let Some(number) = arguments.next().and_then(|number| number.parse().ok()) else {
                eprintln!("--seconds needs a number");
                return ExitCode::from(2);
            };
            seconds = number;
        } else {
            wanted.push(argument.clone());
        }
    }
    let root = crate::root();
    let targets = targets(&root);
    if let Some(unknown) = wanted.iter().find(|target| !targets.contains(target)) {
        eprintln!("there is no target `{unknown}`; there are: {}", targets.join(", "));
        return ExitCode::from(2);
    }
    let mut report = Report::default();
    build(&mut report, &root);
    every(&mut report, &root, seconds, if wanted.is_empty() { &targets } else { &wanted });
    report.finish()
}

/// This task as a command: builds all targets and runs each for some seconds.
pub(crate) fn command(seconds: u32) -> Command {
    let mut command = crate::task("fuzz");
    command.args(["--seconds", &seconds.to_string()]);
    command
}

/// Builds all targets.
fn build(report: &mut Report, root: &Path) {
    let mut build = Command::new(cargo());
    build
        .args(["build", "--release", "-p", "bolide-fuzz", "--features", "targets"])
        .args(["--target", &host(), "--target-dir", "fuzz/target"])
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"))
        .env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only")
        .current_dir(root);
    report.step("fuzz: build", build);
}

/// Runs each of `targets`, which are built, for some seconds.
fn every(report: &mut Report, root: &Path, seconds: u32, targets: &[String]) {
    let host = host();
    let runs = targets.iter().map(|target| {
        let program = root.join("fuzz/target").join(&host).join("release").join(target);
        let found = root.join("fuzz/target/found").join(target);
        let artifacts = root.join("fuzz/artifacts").join(target);
        for directory in [&found, &artifacts] {
            if let Err(error) = std::fs::create_dir_all(directory) {
                eprintln!("{} can't be made: {error}", directory.display());
            }
        }
        let mut command = Command::new(program);
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args(["-timeout=10", "-rss_limit_mb=2048", "-verbosity=0", "-print_final_stats=1"])
            .arg(found)
            .arg(corpus(root, target))
            .current_dir(root);
        (format!("fuzz: {target}"), command)
    });
    report.quiet_steps(runs.collect(), "stat::");
}

/// The committed inputs of a target.
fn corpus(root: &Path, target: &str) -> PathBuf {
    root.join("fuzz/corpus").join(target)
}

/// The targets that the manifest of `fuzz/` names.
fn targets(root: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap_or_default();
    named(&text)
}

fn named(manifest: &str) -> Vec<String> {
    let table: Table = manifest.parse().unwrap_or_default();
    let binaries = table.get("bin").and_then(Value::as_array).into_iter().flatten();
    binaries
        .filter_map(|binary| binary.get("name").and_then(Value::as_str).map(str::to_owned))
        .collect()
}

/// The platform that we run on: with `--target`, build scripts are built without the flags.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.unwrap_or("x86_64-unknown-linux-gnu").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_from_the_manifest() {
        let manifest = "[package]\nname = \"f\"\n[[bin]]\nname = \"a\"\n[[bin]]\nname = \"b\"\n";
        assert_eq!(named(manifest), ["a", "b"]);
        assert!(named("").is_empty());
    }

    #[test]
    fn every_target_has_committed_inputs() {
        let root = crate::root();
        for target in targets(&root) {
            let inputs = std::fs::read_dir(corpus(&root, &target)).map(Iterator::count);
            assert!(inputs.is_ok_and(|count| count > 0), "fuzz/corpus/{target} is missing");
        }
    }
}
