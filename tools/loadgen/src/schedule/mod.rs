//! Which phases follow each other. Pure: what carries a phase out is a closure, and the next phase
//! depends on what it returned.

mod knee;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bolide_probe::plan::{Arrivals, Load, Phase, Until};
use bolide_probe::report::PhaseReport;

pub use knee::{Knee, PRECISION};

/// Phases of which a run consists.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// These phases, one after the other.
    Fixed(Vec<Phase>),
    /// The closed loop for what the server can do, then the open loop at shares of that for what its
    /// latency is.
    CapacityThenLatency {
        /// The closed loop.
        capacity: Phase,
        /// The shares of the capacity's rate, each a phase.
        shares: Vec<f64>,
        /// How the intended times of those are spread.
        arrivals: Arrivals,
    },
    /// The highest rate whose latency stays under a limit.
    FindKnee(Knee),
}

/// Shares of the capacity that latency is measured at, when only a URL is given: half, where a
/// server should be calm, and four fifths, where queues begin to show.
pub const DEFAULT_SHARES: [f64; 2] = [0.5, 0.8];

/// A closed loop slower than this, in requests per second, has no rate to take shares of.
const LEAST_RATE: f64 = 0.1;

/// Result of a schedule, in addition to the reports of its phases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// All was carried out.
    Done,
    /// The run was ended early.
    Stopped,
    /// The knee: the highest rate that held, in requests per second. `None`: none did.
    Knee {
        /// Requests per second.
        rate: Option<f64>,
        /// The next higher rate that was tried and did not hold. `None`: all that were tried held.
        broken_at: Option<f64>,
    },
}

impl Schedule {
    /// Carries it out. `run` does one phase; `None` from it means that the run is to end.
    pub fn carry_out(&self, mut run: impl FnMut(&Phase) -> Option<PhaseReport>) -> Outcome {
        match self {
            Self::Fixed(phases) => {
                if phases.iter().all(|phase| run(phase).is_some()) {
                    Outcome::Done
                } else {
                    Outcome::Stopped
                }
            }
            Self::CapacityThenLatency { capacity, shares, arrivals } => {
                let Some(measured) = run(capacity) else { return Outcome::Stopped };
                let rate = succeeded_rate(&measured);
                if rate < LEAST_RATE {
                    return Outcome::Done;
                }
                for share in shares {
                    let phase = Phase {
                        name: format!("{:.0} % of capacity", share * 100.0),
                        load: Load::Open { rate: rate * share, arrivals: *arrivals },
                        ..capacity.clone()
                    };
                    if run(&phase).is_none() {
                        return Outcome::Stopped;
                    }
                }
                Outcome::Done
            }
            Self::FindKnee(knee) => knee.carry_out(run),
        }
    }

    /// The phases that are known beforehand; a search knows none.
    pub fn known_phases(&self) -> usize {
        match self {
            Self::Fixed(phases) => phases.len(),
            Self::CapacityThenLatency { shares, .. } => 1 + shares.len(),
            Self::FindKnee(_) => 0,
        }
    }
}

/// A ramp: from one rate to another in equal steps, without a pause.
///
/// The steps are a second each, or a tenth of the whole if that is shorter, so that each is long
/// enough to have percentiles of its own.
pub fn ramp(
    from: f64,
    to: f64,
    whole: Duration,
    warm_up: Duration,
    arrivals: Arrivals,
) -> Vec<Phase> {
    let steps = usize::try_from(whole.as_secs()).unwrap_or(usize::MAX).clamp(10, 600);
    let each = whole / u32::try_from(steps).unwrap_or(10);
    let rates: Vec<f64> =
        (0..steps).map(|step| from + (to - from) * step as f64 / (steps - 1) as f64).collect();
    steps_of(&rates, each, warm_up, arrivals)
}

/// One phase at each rate. Only the first has a warm-up.
pub fn steps_of(
    rates: &[f64],
    each: Duration,
    warm_up: Duration,
    arrivals: Arrivals,
) -> Vec<Phase> {
    rates
        .iter()
        .enumerate()
        .map(|(index, rate)| Phase {
            name: format!("{rate:.0}/s"),
            load: Load::Open { rate: *rate, arrivals },
            warm_up: if index == 0 { warm_up } else { Duration::ZERO },
            until: Until { requests: None, time: Some(each) },
        })
        .collect()
}

/// Requests per second that were answered as expected.
pub(crate) fn succeeded_rate(report: &PhaseReport) -> f64 {
    report.counts.succeeded as f64 * 1e9 / report.elapsed_ns.max(1) as f64
}
