//! `bolide load`: the load generator's front, and the engine behind it.

use std::process::ExitCode;

use bolide_loadgen::options::Arguments;
use bolide_probe::cost::Accounting;
use bolide_probe::engine::{Engine, Mistake};
use bolide_probe::plan::Plan;
use bolide_probe::progress::Runner;

/// Runs to the end.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    bolide_loadgen::command::run(arguments, engine_of_this_build)
}

/// The engine that sends.
fn engine_of_this_build(
    plan: &Plan,
    accounting: Box<dyn Accounting>,
) -> Result<Box<dyn Runner>, Mistake> {
    Ok(Box::new(Engine::prepare(plan, accounting)?))
}
