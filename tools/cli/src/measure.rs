//! `bolide measure`: one transfer, and what limited it.

use std::process::ExitCode;

use bolide_measure::arguments::Arguments;

/// Runs to the end.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    bolide_measure::command::run(arguments)
}
