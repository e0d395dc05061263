//! `bolide race`: wiring only.

use std::process::ExitCode;

pub(crate) use bolide_race::command::Arguments;

/// Runs the race.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    bolide_race::command::run(arguments)
}
