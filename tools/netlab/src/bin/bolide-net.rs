//! The lab's commands without the rest of the program: what the lab's own tests run.

use std::process::ExitCode;

use bolide_netlab::command::{AFTER_HELP, Action, run};
use clap::Parser;

#[derive(Debug, Parser)]
#[command(name = "bolide-net")]
struct Arguments {
    #[command(subcommand)]
    command: Net,
}

#[derive(Debug, clap::Subcommand)]
enum Net {
    /// Make networks of namespaces on this machine.
    #[command(after_help = AFTER_HELP)]
    Net {
        #[command(subcommand)]
        action: Action,
    },
}

fn main() -> ExitCode {
    // clap ends with 2 by itself when it is asked for something that isn't there.
    let Net::Net { action } = Arguments::parse().command;
    run(&action)
}
