//! The tasks of this repository. `cargo xtask` lists them.
#![allow(clippy::print_stdout, reason = "a task runner talks to its user")]

mod autobahn;
mod builds;
mod ci;
mod deny;
mod fuzz;
mod generate;
mod manifest;
mod packages;
mod report;
mod steady;
mod tidy;
mod tools;
mod tree;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// One task: its name, what it does, and the function that does it.
struct Task {
    name: &'static str,
    purpose: &'static str,
    run: fn(&[String]) -> ExitCode,
}

/// Every task, in the order in which the help lists them.
const TASKS: &[Task] = &[
    Task {
        name: "test",
        purpose: "run every test that this machine can run; says at the end what it skipped",
        run: ci::test,
    },
    Task {
        name: "ci",
        purpose: "run all that must hold before a change lands, with nothing skipped",
        run: ci::all,
    },
    Task {
        name: "tidy",
        purpose: "check the rules of style that no compiler knows",
        run: ci::tidy,
    },
    Task {
        name: "deny",
        purpose: "check licences, sources and who may depend on what (deny.toml)",
        run: ci::deny,
    },
    Task {
        name: "fuzz",
        purpose: "run the fuzz targets: cargo xtask fuzz [--seconds N] [TARGET]…",
        run: fuzz::run,
    },
    Task {
        name: "interop",
        purpose: "run the foreign clients and the conformance suites against the release build",
        run: ci::interop,
    },
    Task {
        name: "autobahn",
        purpose: "run the Autobahn test suite (WebSocket) in both roles; needs Python 2.7: cargo xtask autobahn [CASE…]",
        run: autobahn::run,
    },
    Task {
        name: "instructions",
        purpose: "compare the server's instructions per request with their baseline; needs valgrind: cargo xtask instructions [--row ROW | --annotate ROW] [--json FILE] [--update]",
        run: ci::instructions,
    },
    Task {
        name: "steady",
        purpose: "run the suites that look at time alone, with busy cores and on one core: cargo xtask steady [--times N] [--condition alone|busy|one-core] [PACKAGE…]",
        run: steady::run,
    },
    Task {
        name: "tools",
        purpose: "install the foreign test tools that no package manager of the system has",
        run: tools::install,
    },
    Task {
        name: "generate",
        purpose: "write the generated pages; with --check: say which of them are stale",
        run: generate::run,
    },
    Task {
        name: "dist",
        purpose: "build the packages and try them: cargo xtask dist [wheel|deb|container]…",
        run: packages::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = arguments.first() else {
        help();
        return ExitCode::SUCCESS;
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        help();
        return ExitCode::SUCCESS;
    }
    match TASKS.iter().find(|task| task.name == name) {
        Some(task) => (task.run)(&arguments[1..]),
        None => {
            eprintln!("there is no task `{name}`");
            help();
            ExitCode::from(2)
        }
    }
}

fn help() {
    println!("Usage: cargo xtask TASK [ARGUMENT]…\n");
    for task in TASKS {
        println!("  {:<14}{}", task.name, task.purpose);
    }
}

/// The task of this name as a command.
fn task(name: &str) -> Command {
    let this = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("xtask"));
    let mut command = Command::new(this);
    command.arg(name);
    command
}

/// The root of the repository: the directory above this package.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a directory of the root").into()
}

/// The number of cores that this process may use.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
