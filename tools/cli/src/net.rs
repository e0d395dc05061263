//! `bolide net`: wiring only.

use std::process::ExitCode;

use bolide_netlab::command::{AFTER_HELP, Action};

/// The arguments of `bolide net`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// Carries it out.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    bolide_netlab::command::run(&arguments.action)
}
