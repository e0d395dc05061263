//! The steps of `cargo xtask test`, `cargo xtask ci` and their parts.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::builds::{MEASURED, WHOLE, building, built, built_for_tests, in_root, tests_at_a_time};
use crate::report::Report;
use crate::tree::Tree;
use crate::{cores, deny, fuzz, packages, steady, tidy, tools};

/// How long each fuzz target runs in CI: enough to see that it runs and holds on its corpus.
const FUZZ_SECONDS: u32 = 5;

/// The packages whose tests talk to the program from outside.
const OUTSIDE: &[&str] = &["bolide-e2e", "bolide-conformance"];

/// `cargo xtask test`: every test that this machine can run.
pub(crate) fn test(_: &[String]) -> ExitCode {
    let root = crate::root();
    let mut report = Report::default();
    report.check("tidy", || tidy::check(&Tree::read(&root)));
    let program = built_for_tests(&mut report, &root);
    tests(&mut report, &root, &program);
    report.finish()
}

/// `cargo xtask ci`: all that must hold, with nothing skipped.
pub(crate) fn all(_: &[String]) -> ExitCode {
    let root = crate::root();
    let mut report = Report::default();
    report.step("format", in_root(&root, &["fmt", "--all", "--check"]));
    report.check("tidy", || tidy::check(&Tree::read(&root)));
    report.check("deny", || deny::check(&root));
    // While this links, which takes one core and minutes, the others have work.
    let (dist, program) = building(&root, MEASURED);
    let dist = report.begin(vec![("dist build".to_owned(), dist)]);
    tools::every(&mut report, &root);
    let lint = [&["clippy", "--workspace", "--all-targets"], &WHOLE[..], &["--", "-D", "warnings"]];
    report.step("clippy", in_root(&root, &lint.concat()));
    report.step("tests: build", of_tests(&root, &["--no-run"]));
    report.end(dist);
    let begun = report.begin(beside_tests(&root, &program));
    tests(&mut report, &root, &program);
    steady::short(&mut report, &root, &program);
    report.end(begun);
    report.finish()
}

/// Returns what runs while the tests wait, with what they leave of the processors; instructions are the same whatever else runs.
/// Fuzzing is first: the others use the directory of the tests' build, which is locked until these have begun.
fn beside_tests(root: &Path, program: &Path) -> Vec<(String, Command)> {
    let without_tls = ["clippy", "--package", "bolide", "--no-default-features", "--features"];
    let others = ["client,files,proxy", "--", "-D", "warnings"];
    let without_tls = in_root(root, &[&without_tls[..], &others].concat());
    let mut docs = in_root(root, &["doc", "--no-deps", "--workspace"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    let mut instructions = counting(root);
    instructions.env("BOLIDE_BIN", program);
    let steps = [
        ("fuzz", fuzz::command(FUZZ_SECONDS)),
        ("instructions", instructions),
        ("packages", packages::command(program)),
        ("without TLS", without_tls),
        ("documentation", docs),
    ];
    steps.map(|(name, command)| (name.to_owned(), with_least_priority(&command))).into()
}

fn with_least_priority(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    nice.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = command.get_current_dir() {
        nice.current_dir(directory);
    }
    nice
}

/// `cargo xtask tidy`
pub(crate) fn tidy(_: &[String]) -> ExitCode {
    let mut report = Report::default();
    report.check("tidy", || tidy::check(&Tree::read(&crate::root())));
    report.finish()
}

/// `cargo xtask deny`
pub(crate) fn deny(_: &[String]) -> ExitCode {
    let mut report = Report::default();
    report.check("deny", || deny::check(&crate::root()));
    report.finish()
}

/// `cargo xtask interop`: the tests from outside alone.
pub(crate) fn interop(_: &[String]) -> ExitCode {
    let root = crate::root();
    let mut report = Report::default();
    let program = built_for_tests(&mut report, &root);
    outside(&mut report, &root, &program);
    report.finish()
}

/// `cargo xtask instructions`: of the program that `BOLIDE_BIN` names, or the build that is published.
pub(crate) fn instructions(arguments: &[String]) -> ExitCode {
    let root = crate::root();
    let mut counting = counting(&root);
    if std::env::var_os("BOLIDE_BIN").is_none() {
        let mut report = Report::default();
        counting.env("BOLIDE_BIN", built(&mut report, &root, MEASURED));
    }
    let status = counting.args(arguments).status();
    let code = status.ok().and_then(|status| status.code());
    // One that was killed has no code.
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The tests of all packages, one program after the other.
fn tests(report: &mut Report, root: &Path, program: &Path) {
    let mut tests = of_tests(root, &["--no-fail-fast"]);
    tests_at_a_time(&mut tests, cores());
    tests.env("BOLIDE_BIN", program);
    report.tests("tests", tests);
}

fn of_tests(root: &Path, arguments: &[&str]) -> Command {
    in_root(root, &[&["test", "--workspace"], arguments, &WHOLE].concat())
}

/// The tests that talk to the program from outside, alone.
fn outside(report: &mut Report, root: &Path, program: &Path) {
    let mut outside = in_root(root, &["test", "--no-fail-fast"]);
    outside.args(OUTSIDE.iter().flat_map(|package| ["--package", package]));
    outside.env("BOLIDE_BIN", program);
    tests_at_a_time(&mut outside, cores());
    report.tests("conformance and interoperation", outside);
}

fn counting(root: &Path) -> Command {
    in_root(root, &["run", "--quiet", "--package", "bolide-instructions", "--"])
}
