//! The program `bolide`. Wiring only: what it does lives in the crates below it.

mod certificate;
mod completions;
mod configuration;
mod development;
mod files;
mod hash_password;
mod load;
mod manual;
mod measure;
mod net;
mod observe;
mod place;
mod proxy;
mod race;
mod routes;
mod serve;
mod top;
mod writable;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An HTTP engine: HTTP/1.1, HTTP/2 and HTTP/3 on a thread-per-core event loop.
#[derive(Debug, Parser)]
#[command(name = "bolide", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve files, upstreams and built-in routes over HTTP/1.1, HTTP/2 and HTTP/3.
    Serve(Box<serve::Arguments>),
    /// Load a server over HTTP, WebSocket or gRPC, and report what limited it.
    Load(Box<bolide_loadgen::options::Arguments>),
    /// Create a network lab of namespaces and measure servers in it.
    Net(net::Arguments),
    /// Show live metrics of a server started with --admin.
    Top(top::Arguments),
    /// Measure one transfer: its speed, what it cost both sides, and what limited it.
    Measure(Box<bolide_measure::arguments::Arguments>),
    /// Compare HTTP servers and report which differences are significant.
    Race(race::Arguments),
    /// Read a password from the terminal or the standard input, and print its hash for `basic-auth`.
    HashPassword,
    /// Print a shell completion script.
    Completions(completions::Arguments),
    /// Print the manual page of this program, or write the pages of all commands.
    Man(manual::Arguments),
}

const EXIT_CODES: &str = "Exit codes: 0 success; 1 the run failed; 2 usage or configuration; 3 a threshold was exceeded.";

fn main() -> ExitCode {
    keep_pages_small();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no mistakes, and go to the standard output.
            let mistake =
                !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return match error.print() {
                Ok(()) if !mistake => ExitCode::SUCCESS,
                _ => ExitCode::from(2),
            };
        }
    };
    let result = match arguments.command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Load(arguments) => return load::run(&arguments),
        Command::Net(arguments) => return net::run(&arguments),
        Command::Top(arguments) => return top::run(&arguments),
        Command::Measure(arguments) => return measure::run(&arguments),
        Command::Race(arguments) => return race::run(&arguments),
        Command::HashPassword => return hash_password::run(),
        Command::Completions(arguments) => {
            return completions::run(&arguments, Arguments::command());
        }
        Command::Man(arguments) => return manual::run(&arguments, Arguments::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bolide: {}", failure.what);
            ExitCode::from(failure.exit)
        }
    }
}

/// Gives memory out in small pages. In huge ones, which the allocator asks for, ten thousand idle
/// connections take nearly twice as much (docs/decisions/0005).
fn keep_pages_small() {
    // It saves memory where it works, and is nothing to fail for.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_mistyped_option_names_the_nearest() {
        let error = Arguments::try_parse_from(["bolide", "serve", "--htpp", "a"]).unwrap_err();
        assert!(error.to_string().contains("--http"), "{error}");
        let error = Arguments::try_parse_from(["bolide", "sevre"]).unwrap_err();
        assert!(error.to_string().contains("serve"), "{error}");
    }
}
