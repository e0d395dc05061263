//! Responsiveness under working conditions: how many round trips per minute a server answers while it is
//! loaded to its limit (draft-ietf-ippm-responsiveness-09).

mod config;
mod run;
pub mod statistics;
mod text;

use bolide_probe::stop::Stop;
use std::time::Duration;

use serde::Serialize;

use crate::plan::Connecting;
use statistics::{Confidence, Means, Parameters, Score};

pub use run::run;
pub use text::summary;

/// ID: how long an interval takes.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// A direction that has not settled after so many intervals is scored as it stands.
pub const INTERVALS_MAX: usize = 16;

/// How responsiveness is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// As it was given.
    pub url: String,
    /// How the server is reached. HTTP/2 is spoken.
    pub connecting: Connecting,
    /// Path of the server's description of its resources.
    pub config_path: String,
    /// The server may name another origin or host than the URL's.
    pub allows_other_hosts: bool,
    /// How long an interval takes.
    pub interval: Duration,
    /// Intervals of each direction at most.
    pub intervals_max: usize,
    /// The draft's constants.
    pub parameters: Parameters,
    /// Ends it before its end.
    pub stop: Stop,
}

/// Report of the measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// As it was given.
    pub url: String,
    /// While the server sent.
    pub download: Option<Scored>,
    /// While we sent.
    pub upload: Option<Scored>,
    /// The first thing that went wrong, in a sentence.
    pub error: Option<String>,
}

/// One direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scored {
    /// The score.
    #[serde(flatten)]
    pub score: Score,
    /// Name of the class.
    pub class: &'static str,
    /// How sure it is.
    pub confidence: Confidence,
    /// Means of which it was made.
    pub means: Means,
    /// Payload per second over the last intervals.
    pub goodput_bits_per_second: f64,
    /// Connections that carried load at the end.
    pub connections: usize,
    /// Intervals that it took.
    pub intervals: usize,
    /// Probes that the score was made from.
    pub probes: usize,
}

/// An interval is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Which way the load goes.
    pub direction: crate::plan::Direction,
    /// Its number, from 1.
    pub interval: usize,
    /// Payload per second in it.
    pub goodput: f64,
    /// Connections that carry load.
    pub connections: usize,
    /// Score of its probes, where there were any of both kinds.
    pub rpm: Option<f64>,
}
