//! `bolide load`: the load generator's front, and the engine behind it.

use std::process::ExitCode;

use bolide_loadgen::cost::Accounting;
use bolide_loadgen::engine::{Engine, Mistake};
use bolide_loadgen::options::Arguments;
use bolide_loadgen::plan::Plan;
use bolide_loadgen::progress::Runner;

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
