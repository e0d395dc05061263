//! The search for the knee: the highest rate whose 99th percentile stays under a limit.

use std::time::Duration;

use bolide_probe::plan::{Arrivals, Load, Phase, Until};
use bolide_probe::report::PhaseReport;

use super::{LEAST_RATE, Outcome, succeeded_rate};

/// The search ends when the highest rate that held and the lowest that did not are this close,
/// relative to the former.
pub const PRECISION: f64 = 0.05;

/// A rate is missed when less than this share of it is answered: the queue grows, and its latency
/// depends on nothing but how long one looks.
const LEAST_MET: f64 = 0.98;

/// More failures than this share break a rate.
const MOST_FAILED: f64 = 0.001;

/// The first guess is this share of what the closed loop reached.
const FIRST_GUESS: f64 = 0.8;

/// How much the rate grows or shrinks while the knee is not yet between two rates.
const STRIDE: f64 = 1.25;

/// So many rates at most: a bracket within a factor of 10⁴ of the first guess, and its bisection.
const MOST_RATES: usize = 48;

/// How to search.
#[derive(Debug, Clone, PartialEq)]
pub struct Knee {
    /// Limit that the 99th percentile of latency must stay under.
    pub limit: Duration,
    /// How long each rate is tried.
    pub each: Duration,
    /// Before each, not counted.
    pub warm_up: Duration,
    /// How intended times are spread.
    pub arrivals: Arrivals,
    /// Rate at which to begin, in requests per second. `None`: a closed loop finds it.
    pub start: Option<f64>,
}

impl Knee {
    pub(super) fn carry_out(&self, mut run: impl FnMut(&Phase) -> Option<PhaseReport>) -> Outcome {
        let Some(mut rate) = self.first_guess(&mut run) else { return Outcome::Stopped };
        let (mut held, mut broken) = (None::<f64>, None::<f64>);
        for _ in 0..MOST_RATES {
            if rate < LEAST_RATE {
                break;
            }
            match self.tries(rate, &mut run) {
                None => return Outcome::Stopped,
                Some(true) => held = Some(rate),
                Some(false) => broken = Some(rate),
            }
            rate = match (held, broken) {
                (Some(held), Some(broken)) if broken - held <= PRECISION * held => break,
                (Some(held), Some(broken)) => f64::midpoint(held, broken),
                (Some(held), None) => held * STRIDE,
                (None, Some(broken)) => broken / STRIDE,
                (None, None) => break,
            };
        }
        Outcome::Knee { rate: held, broken_at: broken }
    }

    /// Returns whether a rate holds. One that doesn't is tried again, for a single disturbance from outside
    /// would end the search far below the knee. `None`: the run is to end.
    fn tries(
        &self,
        rate: f64,
        run: &mut impl FnMut(&Phase) -> Option<PhaseReport>,
    ) -> Option<bool> {
        let phase = self.phase(rate);
        Some(self.holds(&run(&phase)?, rate) || self.holds(&run(&phase)?, rate))
    }

    /// `None`: the run is to end.
    fn first_guess(&self, run: &mut impl FnMut(&Phase) -> Option<PhaseReport>) -> Option<f64> {
        if let Some(start) = self.start {
            return Some(start);
        }
        let closed = Phase { name: "capacity".into(), load: Load::Closed, ..self.phase(0.0) };
        run(&closed).map(|report| succeeded_rate(&report) * FIRST_GUESS)
    }

    fn phase(&self, rate: f64) -> Phase {
        Phase {
            name: format!("{rate:.0}/s"),
            load: Load::Open { rate, arrivals: self.arrivals },
            warm_up: self.warm_up,
            until: Until { requests: None, time: Some(self.each) },
        }
    }

    /// The rate was met, hardly anything failed, and the latency stayed under the limit.
    fn holds(&self, report: &PhaseReport, rate: f64) -> bool {
        let counts = &report.counts;
        let asked = rate * report.elapsed_ns as f64 / 1e9;
        // A slow rate may lack its last request for no more reason than where the phase was cut.
        let met = (counts.succeeded + 1) as f64 >= LEAST_MET * asked;
        let failed = counts.failed as f64 > MOST_FAILED * counts.due.max(1) as f64;
        let p99 = report.times.latency.percentiles_ns.get("p99").copied();
        met && !failed && p99.is_some_and(|ns| u128::from(ns) <= self.limit.as_nanos())
    }
}
