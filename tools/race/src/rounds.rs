//! How long, how often, and in which order contenders run; and when that is enough.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::statistics::{Comparison, ROUNDS_MIN, Verdict};

/// Fewest rounds of `--rounds auto`.
pub(crate) const AUTO_ROUNDS_MIN: usize = 12;

/// Most rounds of `--rounds auto`.
const AUTO_ROUNDS_MAX: usize = 30;

/// `--rounds auto` stops when ratios are known to this, either way (1.5 %).
const AUTO_HALF_WIDTH: f64 = 0.015;

/// A counted run of a full race.
const DURATION: Duration = Duration::from_secs(2);

/// What comes before it.
const WARM_UP: Duration = Duration::from_millis(300);

/// What a run takes beside its duration: starting the generator, connecting, looking closely.
const OVERHEAD: Duration = Duration::from_millis(150);

/// What a server takes to start, to be verified and to stop.
const START: Duration = Duration::from_millis(250);

/// A quick race: all of its cells together.
const QUICK_BUDGET: Duration = Duration::from_secs(105);

/// Rounds of a quick race: as many as fit, within this.
const QUICK_ROUNDS: (usize, usize) = (3, 7);

/// A counted run of a quick race: at least and at most.
const QUICK_DURATION: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));

/// How many rounds a cell has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounds {
    /// So many.
    Fixed(usize),
    /// Until the ratios are known well enough.
    Auto,
}

impl Rounds {
    /// Reads `auto` or a number.
    ///
    /// # Errors
    ///
    /// What would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        match text.parse() {
            Ok(count @ 1..=1000) => Ok(Self::Fixed(count)),
            _ => Err(format!("`{text}` is neither `auto` nor a number from 1 to 1000")),
        }
    }
}

/// Durations and rounds of a race.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// What is counted of a run.
    pub duration: Duration,
    /// What comes before.
    pub warm_up: Duration,
    /// How many.
    pub rounds: Rounds,
    /// No further round of a cell begins after so much time and three rounds; `None`: no limit.
    pub cell_budget: Option<Duration>,
    /// Whether those that can are profiled after the rounds of a cell.
    #[serde(default)]
    pub profiles: bool,
}

impl Settings {
    /// A full race.
    #[must_use]
    pub fn full() -> Self {
        Self {
            duration: DURATION,
            warm_up: WARM_UP,
            rounds: Rounds::Auto,
            cell_budget: None,
            profiles: false,
        }
    }

    /// A quick race of `runs` runs in each round, over all of its `cells`. `whole_seconds`: the
    /// generator can't do less.
    #[must_use]
    pub fn quick(runs: usize, cells: usize, whole_seconds: bool) -> Self {
        let warm_up = Duration::from_millis(100);
        let least = if whole_seconds { Duration::from_millis(900) } else { QUICK_DURATION.0 };
        let round = |duration: Duration| (duration + warm_up + OVERHEAD) * runs.max(1) as u32;
        let budget = QUICK_BUDGET.saturating_sub(START * runs as u32);
        let fit = (budget.as_secs_f64() / round(least).as_secs_f64()) as usize;
        let rounds = fit.clamp(QUICK_ROUNDS.0, QUICK_ROUNDS.1);
        let slot = budget / (rounds * runs.max(1)) as u32;
        let duration =
            slot.saturating_sub(warm_up + OVERHEAD).clamp(least, QUICK_DURATION.1.max(least));
        Self {
            duration,
            warm_up,
            rounds: Rounds::Fixed(rounds),
            cell_budget: Some(QUICK_BUDGET * 2 / cells.max(1) as u32),
            profiles: false,
        }
    }

    /// Whether a cell needs another round after `done`, given what its ratios are known to.
    #[must_use]
    pub(crate) fn goes_on(
        &self,
        done: usize,
        elapsed: Duration,
        comparisons: &[Comparison],
    ) -> bool {
        // Fewer rounds than that would have been run for nothing.
        if self.cell_budget.is_some_and(|budget| elapsed >= budget) && done >= ROUNDS_MIN {
            return false;
        }
        match self.rounds {
            // Where the cores moved, half of the rounds or more may be no use.
            Rounds::Fixed(count) => {
                let too_few = |found: &Comparison| found.verdict == Verdict::TooFew;
                done < count
                    || (count >= ROUNDS_MIN && done < 2 * count && comparisons.iter().any(too_few))
            }
            Rounds::Auto if done < AUTO_ROUNDS_MIN => true,
            Rounds::Auto => {
                done < AUTO_ROUNDS_MAX
                    && comparisons.iter().any(|comparison| half_width(comparison) > AUTO_HALF_WIDTH)
            }
        }
    }

    /// How long `runs` runs may take at least.
    #[must_use]
    pub(crate) fn estimate(&self, runs: usize) -> Duration {
        let rounds = match self.rounds {
            Rounds::Fixed(count) => count,
            Rounds::Auto => AUTO_ROUNDS_MIN,
        };
        (self.duration + self.warm_up + OVERHEAD) * (runs * rounds) as u32 + START * runs as u32
    }
}

fn half_width(comparison: &Comparison) -> f64 {
    (comparison.ratio.high / comparison.ratio.low).ln() / 2.0
}

/// The order of a round: each has its own, and all follow from the seed.
pub(crate) fn order(seed: u64, cell: &str, round: usize, count: usize) -> Vec<usize> {
    let cell = cell.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    let mut order: Vec<usize> = (0..count).collect();
    Random::new(seed ^ cell ^ (round as u64) << 40).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Interval;

    fn known_to(half: f64) -> Comparison {
        let ratio = Interval { low: (-half).exp(), mid: 1.0, high: half.exp() };
        Comparison { ratio, verdict: Verdict::NoDifference, detectable: half }
    }

    #[test]
    fn auto_stops_when_all_ratios_are_known() {
        let settings = Settings::full();
        let go = |done, half| settings.goes_on(done, Duration::ZERO, &[known_to(half)]);
        assert!(go(AUTO_ROUNDS_MIN - 1, 0.001));
        assert!(!go(AUTO_ROUNDS_MIN, 0.014));
        assert!(go(AUTO_ROUNDS_MIN, 0.016));
        assert!(!go(AUTO_ROUNDS_MAX, 0.5));
    }

    #[test]
    fn rounds_that_were_of_no_use_are_run_again_up_to_twice_as_many() {
        let settings = Settings { rounds: Rounds::Fixed(4), ..Settings::full() };
        let few = Comparison { verdict: Verdict::TooFew, ..known_to(0.1) };
        let go = |done, found: Comparison| settings.goes_on(done, Duration::ZERO, &[found]);
        assert!(go(3, known_to(0.1)) && !go(4, known_to(0.1)));
        assert!(go(4, few) && go(7, few) && !go(8, few));
        let one = Settings { rounds: Rounds::Fixed(1), ..Settings::full() };
        assert!(!one.goes_on(1, Duration::ZERO, &[few]), "one round was asked for");
    }

    #[test]
    fn a_budget_ends_a_cell_when_something_can_be_said() {
        let settings = Settings { cell_budget: Some(Duration::from_secs(1)), ..Settings::full() };
        assert!(settings.goes_on(ROUNDS_MIN - 1, Duration::from_secs(2), &[]));
        assert!(!settings.goes_on(ROUNDS_MIN, Duration::from_secs(2), &[]));
    }

    #[test]
    fn a_quick_race_takes_two_minutes_whoever_takes_part() {
        for runs in [12, 36, 60, 90] {
            let settings = Settings::quick(runs, 6, false);
            let total = settings.estimate(runs);
            let range = Duration::from_secs(20)..Duration::from_secs(165);
            assert!(range.contains(&total), "{runs}: {total:?} {settings:?}");
        }
        let settings = Settings::quick(36, 6, true);
        assert!(settings.duration + settings.warm_up >= Duration::from_secs(1));
    }

    #[test]
    fn each_round_has_an_order_of_its_own() {
        let orders: Vec<_> = (0..10).map(|round| order(1, "a", round, 5)).collect();
        assert!(orders.iter().any(|other| *other != orders[0]));
        assert_eq!(order(1, "a", 3, 5), orders[3]);
        assert_ne!(order(1, "b", 3, 9), order(1, "a", 3, 9));
        assert!(Rounds::parse("auto").is_ok() && Rounds::parse("7").is_ok());
        assert!(Rounds::parse("0").unwrap_err().contains("1 to 1000"));
    }
}
