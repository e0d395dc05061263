//! The steps of `cargo xtask test`, `cargo xtask ci` and their parts.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::manifest::cargo;
use crate::report::Report;
use crate::tree::Tree;
use crate::{deny, fuzz, steady, tidy, tools};

/// How long each fuzz target runs in CI: enough to see that it runs and holds on its corpus.
const FUZZ_SECONDS: u32 = 5;

/// The packages whose tests talk to the program from outside.
const OUTSIDE: &[&str] = &["bolide-e2e", "bolide-conformance"];

/// Where the release build is.
const PROGRAM: &str = "target/release/bolide";

/// `cargo xtask test`: every test that this machine can run.
pub(crate) fn test(_: &[String]) -> ExitCode {
    let root = crate::root();
    let mut report = Report::default();
    report.check("tidy", || tidy::check(&Tree::read(&root)));
    tests(&mut report, &root);
    report.finish()
}

/// `cargo xtask ci`: all that must hold, with nothing skipped.
pub(crate) fn all(_: &[String]) -> ExitCode {
    let root = crate::root();
    let mut report = Report::default();
    report.step("format", in_root(&root, &["fmt", "--all", "--check"]));
    report.check("tidy", || tidy::check(&Tree::read(&root)));
    report.check("deny", || deny::check(&root));
    tools::every(&mut report, &root);
    let lint = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    report.step("clippy", in_root(&root, &lint));
    tests(&mut report, &root);
    steady::short(&mut report, &root);
    let mut instructions = counting(&root);
    instructions.env("BOLIDE_BIN", root.join(PROGRAM));
    report.step("instructions", instructions);
    let mut docs = in_root(&root, &["doc", "--no-deps", "--workspace"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    report.step("documentation", docs);
    fuzz::every(&mut report, &root, FUZZ_SECONDS, &fuzz::targets(&root));
    report.finish()
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
    report
        .step("release build", in_root(&root, &["build", "--release", "--package", "bolide-cli"]));
    outside(&mut report, &root);
    report.finish()
}

/// `cargo xtask instructions`: of the program that `BOLIDE_BIN` names, or the release build.
pub(crate) fn instructions(arguments: &[String]) -> ExitCode {
    let status = counting(&crate::root()).args(arguments).status();
    let code = status.ok().and_then(|status| status.code());
    // One that was killed has no code.
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The release build, the tests of all crates, then those that talk to the program from outside:
/// on their own, for they load the machine and measure nothing but right answers.
fn tests(report: &mut Report, root: &Path) {
    report.step("release build", in_root(root, &["build", "--release", "--package", "bolide-cli"]));
    let mut inside = in_root(root, &["test", "--workspace", "--no-fail-fast"]);
    inside.args(OUTSIDE.iter().flat_map(|package| ["--exclude", package]));
    report.tests("tests", inside);
    outside(report, root);
}

fn outside(report: &mut Report, root: &Path) {
    let mut outside = in_root(root, &["test", "--no-fail-fast"]);
    outside.args(OUTSIDE.iter().flat_map(|package| ["--package", package]));
    outside.env("BOLIDE_BIN", root.join(PROGRAM));
    report.tests("conformance and interoperation", outside);
}

fn counting(root: &Path) -> Command {
    in_root(root, &["run", "--quiet", "--package", "bolide-instructions", "--"])
}

fn in_root(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo());
    command.args(arguments).current_dir(root);
    command
}
