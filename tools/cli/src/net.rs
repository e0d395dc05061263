//! `bolide net`: wiring only.

use std::process::ExitCode;

use bolide_netlab::command::{AFTER_HELP, Action};
use bolide_race::bulk;

/// The arguments of `bolide net`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    #[command(flatten)]
    Lab(Action),
    /// Transfer bulk data through a lab with every HTTP version, in both directions, and compare the cost.
    Bulk(bulk::Arguments),
    /// Load a page of small objects over a path with delay and loss, by every HTTP version.
    Page(bulk::PageArguments),
}

/// Carries it out.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match &arguments.command {
        Command::Lab(action) => bolide_netlab::command::run(action),
        Command::Bulk(arguments) => bulk::run(arguments),
        Command::Page(arguments) => bulk::run_page(arguments),
    }
}
