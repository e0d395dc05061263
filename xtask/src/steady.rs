//! Repeated runs of the suites that look at time, whatever else the machine does.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::builds::{self, tests_at_a_time};
use crate::cores;
use crate::manifest::cargo;
use crate::report::Report;

/// The packages whose tests look at time.
const PACKAGES: &[&str] = &[
    "bolide-eventloop",
    "bolide-server",
    "bolide-probe",
    "bolide-loadgen",
    "bolide-netlab",
    "bolide-race",
    "bolide-tower-tests",
    "bolide-e2e",
];

/// Those of which CI runs a short form: they take less than two minutes in both conditions.
const SHORT_PACKAGES: &[&str] = &["bolide-eventloop", "bolide-netlab"];

/// How often each suite runs in each condition, by default.
const TIMES: u32 = 20;

/// Other work of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Alone,
    Busy,
    OneCore,
}

const CONDITIONS: &[Condition] = &[Condition::Alone, Condition::Busy, Condition::OneCore];

impl Condition {
    fn name(self) -> &'static str {
        match self {
            Self::Alone => "nothing else",
            Self::Busy => "a busy loop for each core",
            Self::OneCore => "one core",
        }
    }

    /// The condition that an argument names.
    fn of_argument(argument: &str) -> Option<Self> {
        match argument {
            "alone" => Some(Self::Alone),
            "busy" => Some(Self::Busy),
            "one-core" => Some(Self::OneCore),
            _ => None,
        }
    }

    /// The test program in this condition.
    fn command(self, program: &Path) -> Command {
        let (mut command, cores) = match self {
            Self::OneCore => {
                let mut command = Command::new("taskset");
                command.args(["--cpu-list", "0"]).arg(program);
                (command, 1)
            }
            Self::Alone | Self::Busy => (Command::new(program), cores()),
        };
        tests_at_a_time(&mut command, cores);
        command
    }
}

/// Threads that keep every core busy until they are dropped.
struct Busy {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    fn start() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let spin = |ends: Arc<AtomicBool>| {
            move || {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::black_box(0);
                }
            }
        };
        let threads = (0..cores()).map(|_| thread::spawn(spin(Arc::clone(&ends)))).collect();
        Self { ends, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A loop without an end of its own can't have panicked.
            let _ = thread.join();
        }
    }
}

/// A test program of a package.
#[derive(Debug, PartialEq, Eq)]
struct Suite {
    package: String,
    name: String,
    directory: PathBuf,
    program: PathBuf,
}

/// How often a suite passed in a condition, and which of its tests failed.
struct Row {
    suite: String,
    condition: Condition,
    passed: u32,
    times: u32,
    failures: Vec<String>,
}

impl Row {
    fn text(&self) -> String {
        let Self { suite, condition, passed, times, failures } = self;
        let failed = failures.join(", ");
        format!("{suite:<40} {:<26} {passed:>3} of {times:>3}  {failed}", condition.name())
    }
}

/// `cargo xtask steady [--times N] [--condition alone|busy|one-core] [PACKAGE…]`
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let mut times = TIMES;
    let mut conditions = CONDITIONS.to_vec();
    let mut wanted = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--times" {
            let Some(number) = arguments.next().and_then(|number| number.parse().ok()) else {
                eprintln!("--times needs a number");
                return ExitCode::from(2);
            };
            times = number;
        } else if argument == "--condition" {
            let named = arguments.next().map(String::as_str).and_then(Condition::of_argument);
            let Some(condition) = named else {
                eprintln!("--condition needs one of alone, busy, one-core");
                return ExitCode::from(2);
            };
            conditions = vec![condition];
        } else {
            wanted.push(argument.as_str());
        }
    }
    let packages = if wanted.is_empty() { PACKAGES } else { &wanted };
    let (root, mut report) = (crate::root(), Report::default());
    let program = builds::built_for_tests(&mut report, &root);
    report.check("steady", || check(&root, &program, packages, &conditions, times));
    report.finish()
}

/// The short form of CI: once with busy cores, once on one core.
pub(crate) fn short(report: &mut Report, root: &Path, program: &Path) {
    let conditions = [Condition::Busy, Condition::OneCore];
    report.check("steady", || check(root, program, SHORT_PACKAGES, &conditions, 1));
}

/// Runs the suites of these packages; what failed.
fn check(
    root: &Path,
    program: &Path,
    packages: &[&str],
    conditions: &[Condition],
    times: u32,
) -> Vec<String> {
    let suites = match suites(root, packages) {
        Ok(suites) => suites,
        Err(what) => return vec![what],
    };
    let mut rows = Vec::new();
    for condition in conditions {
        let busy = (*condition == Condition::Busy).then(Busy::start);
        for suite in &suites {
            let row = repeat(program, suite, *condition, times);
            println!("{}", row.text());
            rows.push(row);
        }
        drop(busy);
    }
    rows.iter().filter(|row| row.passed < row.times).map(Row::text).collect()
}

fn repeat(program: &Path, suite: &Suite, condition: Condition, times: u32) -> Row {
    let mut passed = 0;
    let mut failures: Vec<String> = Vec::new();
    for _ in 0..times {
        let mut command = condition.command(&suite.program);
        command.current_dir(&suite.directory).env("BOLIDE_BIN", program);
        match command.stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => passed += 1,
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stdout);
                println!("{}", why(&said));
                failures.extend(failed(&said));
            }
            Err(error) => failures.push(format!("it can't be run: {error}")),
        }
    }
    failures.sort();
    failures.dedup();
    let suite = format!("{} {}", suite.package, suite.name);
    Row { suite, condition, passed, times, failures }
}

/// The tests that failed, by what a test program says.
fn failed(said: &str) -> Vec<String> {
    let name =
        |line: &str| line.strip_prefix("test ")?.strip_suffix(" ... FAILED").map(str::to_owned);
    said.lines().filter_map(name).collect()
}

/// Returns what a test program printed about the tests that failed.
fn why(said: &str) -> &str {
    said.find("\nfailures:\n").map_or(said, |start| &said[start..])
}

/// Builds all test programs, as `cargo xtask test` does, so that nothing is built twice with other features. Returns those of these
/// packages.
fn suites(root: &Path, packages: &[&str]) -> Result<Vec<Suite>, String> {
    let mut build = Command::new(cargo());
    build.args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    build.args(builds::WHOLE);
    let output = build.current_dir(root).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cargo can't be run: {error}"))?;
    if !output.status.success() {
        return Err("the tests can't be built".to_owned());
    }
    let mut suites = named(&String::from_utf8_lossy(&output.stdout));
    suites.retain(|suite| packages.contains(&suite.package.as_str()));
    match packages.iter().find(|name| suites.iter().all(|suite| suite.package != **name)) {
        Some(name) => Err(format!("no package {name} has tests")),
        None => Ok(suites),
    }
}

/// The test programs that cargo's messages name.
fn named(messages: &str) -> Vec<Suite> {
    messages.lines().filter(|line| is_test(line)).filter_map(suite).collect()
}

/// Returns whether it was built to test: of a target, `test` says that it could be.
fn is_test(message: &str) -> bool {
    let profile = message.split_once("\"profile\":{").map_or("", |(_, rest)| rest);
    profile.split('}').next().is_some_and(|profile| profile.contains("\"test\":true"))
}

fn suite(message: &str) -> Option<Suite> {
    let program = PathBuf::from(text(message, "\"executable\":\"")?);
    let manifest = PathBuf::from(text(message, "\"manifest_path\":\"")?);
    let directory = manifest.parent()?.to_owned();
    let target = message.split_once("\"target\":")?.1;
    let name = text(target, "\"name\":\"")?.to_owned();
    let (_, package) = text(message, "\"package_id\":\"")?.rsplit_once('#')?;
    let package = package.split('@').next()?.to_owned();
    Some(Suite { package, name, directory, program })
}

/// The string behind `key`. Paths of ours have nothing that JSON escapes.
fn text<'a>(message: &'a str, key: &str) -> Option<&'a str> {
    message.split_once(key)?.1.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_read_from_the_messages_of_cargo() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"path+file:///r/tools/netlab#bolide-netlab@0.1.0","manifest_path":"/r/tools/netlab/Cargo.toml","target":{"kind":["test"],"name":"lab"},"profile":{"test":true},"executable":"/r/target/debug/deps/lab-1"}
{"reason":"compiler-artifact","manifest_path":"/r/tools/netlab/Cargo.toml","target":{"kind":["lib"],"name":"x","test":true},"profile":{"test":false},"executable":"/r/x"}"#;
        let found = named(messages);
        let suite = Suite {
            package: "bolide-netlab".to_owned(),
            name: "lab".to_owned(),
            directory: "/r/tools/netlab".into(),
            program: "/r/target/debug/deps/lab-1".into(),
        };
        assert_eq!(found, [suite]);
    }

    #[test]
    fn what_failed_is_named_once() {
        let said = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n";
        assert_eq!(failed(said), ["a::c"]);
        let more = "\nfailures:\n\n---- a::c stdout ----\nno\n";
        assert_eq!(why(&format!("{said}{more}")), more);
        let suite = Suite {
            package: "p".to_owned(),
            name: "s".to_owned(),
            directory: "/".into(),
            program: "/bin/false".into(),
        };
        let row = repeat(Path::new("/"), &suite, Condition::Alone, 3);
        assert_eq!((row.passed, row.times), (0, 3));
    }
}
