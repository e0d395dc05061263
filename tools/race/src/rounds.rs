//! How long, how often, and in which order contenders run; and when that is enough.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use crate::statistics::{LogRatios, PAIRS_MIN};

/// Rounds after which `--rounds auto` settles how many there are, and the fewest.
const AUTO_ROUNDS_MIN: usize = 12;

/// Most rounds of `--rounds auto`.
const AUTO_ROUNDS_MAX: usize = 30;

/// `--rounds auto` chooses as many rounds as 95 % intervals of this half-width need (1.5 %).
const AUTO_HALF_WIDTH: f64 = 0.015;

/// A counted run of a full race.
const DURATION: Duration = Duration::from_secs(2);

/// Time before it.
const WARM_UP: Duration = Duration::from_millis(300);

/// Time of a run in addition to its duration: starting the generator, connecting, looking closely.
const OVERHEAD: Duration = Duration::from_millis(150);

/// Time of a server to start, to be verified and to stop.
const START: Duration = Duration::from_millis(250);

/// A quick race: all of its cells together.
const QUICK_BUDGET: Duration = Duration::from_secs(105);

/// Rounds of a quick race: as many as fit, within this. One more than a claim needs, for a pair that is left out.
const QUICK_ROUNDS: (usize, usize) = (PAIRS_MIN + 1, 12);

/// A counted run of a quick race: at least and at most.
const QUICK_DURATION: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));

/// How many rounds a cell has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounds {
    /// So many.
    Fixed(usize),
    /// As many as the noise of the first ones asks for.
    Auto,
}

impl fmt::Display for Rounds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(1) => formatter.write_str("1 round"),
            Self::Fixed(count) => write!(formatter, "{count} rounds"),
            Self::Auto => formatter.write_str("12 to 30 rounds, depending on the noise,"),
        }
    }
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
    /// Time of a run that is counted.
    pub duration: Duration,
    /// Time before it.
    pub warm_up: Duration,
    /// How many.
    pub rounds: Rounds,
    /// No further round of a cell begins after so much time and six rounds; `None`: no limit.
    pub cell_budget: Option<Duration>,
    /// True if those that can are profiled after the rounds of a cell.
    #[serde(default)]
    pub profiles: bool,
}

impl Settings {
    /// A full race.
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

    /// How long `runs` runs may take at least.
    pub(crate) fn estimate(&self, runs: usize) -> Duration {
        let rounds = match self.rounds {
            Rounds::Fixed(count) => count,
            Rounds::Auto => AUTO_ROUNDS_MIN,
        };
        (self.duration + self.warm_up + OVERHEAD) * (runs * rounds) as u32 + START * runs as u32
    }
}

/// How far a cell is, and how far it goes.
///
/// Nothing depends on what the comparisons say: `auto` looks at the noise once, and never at the ratios.
#[derive(Debug)]
pub(crate) struct Pace {
    settings: Settings,
    /// Rounds to run.
    wanted: usize,
}

impl Pace {
    pub(crate) fn new(settings: Settings) -> Self {
        let wanted = match settings.rounds {
            Rounds::Fixed(count) => count,
            Rounds::Auto => AUTO_ROUNDS_MIN,
        };
        Self { settings, wanted }
    }

    /// Returns whether a cell needs another round after `done`, given the pairs of its comparisons.
    pub(crate) fn goes_on(
        &mut self,
        done: usize,
        elapsed: Duration,
        comparisons: &dyn Fn() -> Vec<LogRatios>,
    ) -> bool {
        // Fewer rounds than that would have been run for nothing.
        if self.settings.cell_budget.is_some_and(|budget| elapsed >= budget) && done >= PAIRS_MIN {
            return false;
        }
        if self.settings.rounds == Rounds::Auto && done == AUTO_ROUNDS_MIN {
            let needed = comparisons().iter().map(|found| found.pairs_for(AUTO_HALF_WIDTH)).max();
            self.wanted = needed.unwrap_or_default().clamp(AUTO_ROUNDS_MIN, AUTO_ROUNDS_MAX);
        }
        // Where the cores moved, half of the rounds or more may be no use.
        let has_few = || comparisons().iter().any(|found| found.count() < PAIRS_MIN);
        done < self.wanted || (self.wanted >= PAIRS_MIN && done < 2 * self.wanted && has_few())
    }
}

/// The order of a round: each has its own, and all follow from the seed.
pub(crate) fn order(seed: u64, cell: &str, round: usize, count: usize) -> Vec<usize> {
    let cell = cell.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    let mut order: Vec<usize> = (0..count).collect();
    Rng::with_seed(seed ^ cell ^ (round as u64) << 40).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs that differ by so much, up and down in turn.
    fn pairs(count: usize, noise: f64) -> LogRatios {
        let ratio = |index: usize| (if index.is_multiple_of(2) { noise } else { -noise }).exp();
        LogRatios::of(&(0..count).map(|index| (ratio(index), 1.0)).collect::<Vec<_>>()).unwrap()
    }

    /// Rounds that a cell has whose comparison is like this after each.
    fn rounds_of(settings: Settings, found: impl Fn(usize) -> LogRatios) -> usize {
        let mut pace = Pace::new(settings);
        (0..).find(|done| !pace.goes_on(*done, Duration::ZERO, &|| vec![found(*done)])).unwrap()
    }

    #[test]
    fn auto_settles_the_rounds_once_by_the_noise_alone() {
        let auto = Settings::full();
        assert_eq!(rounds_of(auto, |done| pairs(done.max(1), 0.001)), AUTO_ROUNDS_MIN);
        assert_eq!(rounds_of(auto, |done| pairs(done.max(1), 0.1)), AUTO_ROUNDS_MAX);
        let settled = rounds_of(auto, |done| pairs(done.max(1), 0.03));
        assert!((15..25).contains(&settled), "{settled}");
        // Noise that is found later changes nothing.
        let later =
            |done: usize| pairs(done.max(1), if done > AUTO_ROUNDS_MIN { 0.1 } else { 0.03 });
        assert_eq!(rounds_of(auto, later), settled);
    }

    #[test]
    fn rounds_that_were_of_no_use_are_run_again_up_to_twice_as_many() {
        let fixed = |count| Settings { rounds: Rounds::Fixed(count), ..Settings::full() };
        assert_eq!(rounds_of(fixed(8), |done| pairs(done.max(1), 0.1)), 8);
        assert_eq!(rounds_of(fixed(8), |done| pairs((done / 2).max(1), 0.1)), 12);
        assert_eq!(rounds_of(fixed(8), |_| pairs(1, 0.1)), 16);
        assert_eq!(rounds_of(fixed(5), |_| pairs(1, 0.1)), 5, "five rounds carry no claim");
    }

    #[test]
    fn a_budget_ends_a_cell_when_something_can_be_said() {
        let settings = Settings { cell_budget: Some(Duration::from_secs(1)), ..Settings::full() };
        let mut pace = Pace::new(settings);
        assert!(pace.goes_on(PAIRS_MIN - 1, Duration::from_secs(2), &Vec::new));
        assert!(!pace.goes_on(PAIRS_MIN, Duration::from_secs(2), &Vec::new));
    }

    #[test]
    fn a_quick_race_takes_two_minutes_whoever_takes_part() {
        for runs in [9, 18, 27, 36, 45] {
            let settings = Settings::quick(runs, 3, false);
            let total = settings.estimate(runs);
            let range = Duration::from_secs(20)..Duration::from_secs(172);
            assert!(range.contains(&total), "{runs}: {total:?} {settings:?}");
            let Rounds::Fixed(rounds) = settings.rounds else { panic!("{settings:?}") };
            assert!(rounds > PAIRS_MIN, "{rounds}");
        }
        let settings = Settings::quick(18, 3, true);
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
