//! The load generator: one engine and one scheduler for every protocol.
//!
//! A [`Plan`](plan::Plan) says whom to ask and what; a [`Phase`](plan::Phase) says how hard and how
//! long. What came is a [`Report`](report::Report): counts, latencies, costs of both sides, and a
//! verdict on what limited the run.

pub mod accounting;
pub mod command;
pub mod comparison;
pub mod compat;
pub mod cost;
pub mod engine;
pub mod exchanges;
#[cfg(test)]
mod fabricated;
pub mod nearest;
pub mod options;
pub mod output;
mod parts;
pub mod plan;
pub mod progress;
pub mod report;
mod scenario;
pub mod schedule;
pub mod verdict;
