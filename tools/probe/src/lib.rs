//! Engine that asks servers and measures them, for the load generator, the transfer test and the race.
//!
//! A [`Plan`](plan::Plan) says whom to ask and what; a [`Phase`](plan::Phase) says how hard and how
//! long. The [`Engine`](engine::Engine) carries phases out, for every protocol. What came is a
//! [`Report`](report::Report): counts, latencies, and the costs of both sides.

pub mod accounting;
pub mod cost;
pub mod engine;
pub mod exchanges;
pub mod nearest;
mod origin;
pub mod patient;
pub mod plan;
pub mod progress;
pub mod report;
pub mod scenario;
pub mod stop;
pub mod student;
pub mod target;
