//! Results of the rounds.

use serde::{Deserialize, Serialize};

use super::browser::Parts;
use super::stack::{Direction, Stack};
use crate::manifest::Machine;
use crate::process::are_alike;
use crate::statistics::{Interval, LogRatios, median, spread};

/// A side that uses so much of its core is full.
const FULL: f64 = 0.9;

/// One transfer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Payload bits per second.
    pub(super) bits_per_second: f64,
    /// CPU seconds per GiB of the server's process tree.
    pub(super) server_cpu_per_gib: f64,
    /// The same of the client.
    pub(super) client_cpu_per_gib: f64,
    /// The part of the time for which the server ran, 1 for a core.
    pub(super) server_busy: f64,
    /// The same of the client.
    pub(super) client_busy: f64,
    /// The most memory that the server has had; `None` for raw TCP.
    pub(super) server_memory_bytes: Option<u64>,
    /// The same of the client.
    pub(super) client_memory_bytes: Option<u64>,
    /// Limit, as the client said.
    pub(super) limit: String,
    /// Congestion control of TCP, if it is known.
    pub(super) congestion_control: Option<String>,
    /// How long a cache line took from the server's core to the client's and back, in ns, before
    /// the transfer and after it.
    #[serde(default)]
    pub(super) distance_ns: Option<[f64; 2]>,
    /// Parts of a browser's CPU time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parts: Option<Parts>,
}

/// All transfers of a stack in a direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) stack: Stack,
    pub(super) direction: Direction,
    #[serde(with = "crate::columns")]
    pub(super) samples: Vec<Sample>,
    /// Why there are none, or fewer than rounds.
    pub(super) failed: Option<String>,
}

impl Row {
    /// Gbit/s with the range of the transfers.
    pub(super) fn gbit(&self) -> Option<Interval> {
        spread(&self.samples.iter().map(|s| s.bits_per_second / 1e9).collect::<Vec<_>>())
    }

    /// The median of a figure.
    pub(super) fn median(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        median(&self.samples.iter().filter_map(figure).collect::<Vec<_>>())
    }

    /// The server's CPU over that of `other` in the same rounds, in those in which the cores lay
    /// alike.
    pub(super) fn server_cpu_over(&self, other: &Self) -> Option<LogRatios> {
        let both = self.samples.iter().zip(&other.samples);
        let pairs: Vec<(f64, f64)> = both
            .filter(|(own, other)| are_alike([own.distance_ns, other.distance_ns]))
            .map(|(own, other)| (own.server_cpu_per_gib, other.server_cpu_per_gib))
            .collect();
        LogRatios::of(&pairs)
    }

    /// Returns whose core was full.
    pub(super) fn full(&self) -> &'static str {
        let busy = |side: fn(&Sample) -> f64| self.median(|s| Some(side(s))).unwrap_or_default();
        match (busy(|s| s.server_busy) >= FULL, busy(|s| s.client_busy) >= FULL) {
            (true, true) => "both",
            (true, false) => "server",
            (false, true) => "client",
            (false, false) => "neither",
        }
    }
}

/// One point of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Point {
    /// Quantity that was swept: `streams`, `windows`, `rtt`.
    pub(super) sweep: String,
    pub(super) stack: Stack,
    pub(super) direction: Direction,
    /// Across: streams, bytes of a frame, or milliseconds.
    pub(super) x: f64,
    /// Down, in a heat map: bytes of a window.
    pub(super) y: Option<f64>,
    pub(super) sample: Option<Sample>,
    pub(super) failed: Option<String>,
}

/// Everything, as it is written to `bulk.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Results {
    pub(super) started_unix_s: u64,
    pub(super) machine: Machine,
    pub(super) bytes: u64,
    pub(super) rounds: u32,
    pub(super) seed: u64,
    pub(super) congestion_control: String,
    pub(super) rows: Vec<Row>,
    pub(super) sweeps: Vec<Point>,
    /// Servers that were measured, with their versions.
    pub(super) versions: Vec<(String, String)>,
    /// Contenders that are not here, with the reason.
    pub(super) skipped: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_compared_within_rounds_in_which_the_cores_lay_alike() {
        let row = |costs: [(f64, f64); 4]| Row {
            stack: Stack::raw(),
            direction: Direction::Upload,
            samples: costs
                .map(|(server_cpu_per_gib, distance)| Sample {
                    server_cpu_per_gib,
                    distance_ns: Some([distance; 2]),
                    ..Sample::default()
                })
                .to_vec(),
            failed: None,
        };
        let raw = row([(0.1, 74.0), (0.2, 350.0), (0.1, 74.0), (0.2, 350.0)]);
        let other = row([(0.11, 74.0), (0.22, 350.0), (0.3, 350.0), (0.22, 351.0)]);
        let found = other.server_cpu_over(&raw).unwrap().range().ratio;
        assert!((found.mid - 1.1).abs() < 1e-9 && found.high < 1.101, "{found:?}");
        assert_eq!(other.server_cpu_over(&Row { samples: Vec::new(), ..raw }), None);
    }

    #[test]
    fn who_is_full_is_the_median_of_the_rounds() {
        let sample =
            |server_busy, client_busy| Sample { server_busy, client_busy, ..Sample::default() };
        let row = |samples| Row {
            stack: Stack::raw(),
            direction: Direction::Upload,
            samples,
            failed: None,
        };
        assert_eq!(
            row(vec![sample(0.95, 0.5), sample(0.96, 0.6), sample(0.1, 0.99)]).full(),
            "server"
        );
        assert_eq!(row(vec![sample(0.95, 0.95)]).full(), "both");
        assert_eq!(row(Vec::new()).full(), "neither");
        assert_eq!(row(Vec::new()).gbit(), None);
    }
}
