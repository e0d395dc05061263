//! The measuring client: one bulk transfer, what it cost both sides, and what limited it.
//!
//! A [`Plan`](plan::Plan) says what is transferred, over which protocol and on how many streams and
//! connections; [`transfer::run`] carries it out and returns a [`Report`](report::Report).
//! [`responsiveness`] loads a server to its limit and scores how fast it still answers.

pub mod arguments;
mod carrier;
mod clock;
pub mod command;
mod costs;
mod dialing;
mod latency;
pub mod limits;
pub mod output;
pub mod plan;
mod raw;
pub mod report;
pub mod responsiveness;
pub mod target;
pub mod transfer;
pub mod verdict;

pub use latency::{Percentiles, percentiles};
