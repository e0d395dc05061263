//! The load generator: command lines, scenarios and schedules become plans and phases for the engine of `bolide-probe`;
//! its reports become tables, pages, records, and a verdict on what limited the run.

pub mod command;
pub mod comparison;
pub mod compat;
pub mod exchanges;
#[cfg(test)]
mod fabricated;
mod given;
pub mod options;
pub mod output;
mod parts;
mod scenario;
pub mod schedule;
pub mod verdict;
