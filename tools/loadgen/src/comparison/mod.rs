//! Two runs compared: what differs by more than the runs' own noise explains.
//!
//! A phase's series is cut into [`BATCHES_COUNT`] stretches of time; the mean of each is one value, so that neighbors
//! depend little on each other (batch means), and the two sets are compared by Welch's test on their logarithms. All
//! comparisons of a pair of runs together have a chance of [`ERROR`] to name a difference that is none.

mod text;

pub use text::text;

use bolide_probe::plan::Load;
use bolide_probe::report::{PhaseReport, Report, Sample};

/// Stretches that a phase is cut into.
pub const BATCHES_COUNT: usize = 10;

/// Samples that a stretch has at least.
const BATCH_SAMPLES: usize = 2;

/// The chance that anything is called different of two runs that are not.
pub const ERROR: f64 = 0.05;

/// Open-loop rates that differ by more than this share are no rates of one load.
const RATE_SHARE: f64 = 0.01;

/// Figure that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Responses per second, of loads that are as fast as possible.
    Rate,
    /// Median latency of the samples, of open loops.
    Median,
    /// The same of the 99th percentile.
    P99,
    /// CPU time of the server per response.
    ServerCpu,
    /// Failures as a share of what was due; compared as counts.
    Failures,
}

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// None is shown.
    None,
    /// The second run is better.
    Better,
    /// The second run is worse.
    Worse,
}

/// One metric of one phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The phase's name in the first run.
    pub phase: String,
    /// Figure that is compared.
    pub metric: Metric,
    /// Of the first and the second run; durations in nanoseconds.
    pub figures: [f64; 2],
    /// The second over the first, with the ends of its interval; missing where counts are compared.
    pub ratio: Option<[f64; 3]>,
    /// The conclusion.
    pub difference: Difference,
}

/// Compares the phases of two runs, one by one. Differences of less than `tolerance` are none.
///
/// # Errors
///
/// Why the runs are not of one load, in a sentence.
pub fn compare(first: &Report, second: &Report, tolerance: f64) -> Result<Vec<Comparison>, String> {
    let counts = [first.phases.len(), second.phases.len()];
    if counts[0] != counts[1] || counts[0] == 0 {
        return Err(format!("the runs have {} and {} phases", counts[0], counts[1]));
    }
    let mut pairs = Vec::new();
    for (one, other) in first.phases.iter().zip(&second.phases) {
        check(one, other)?;
        for metric in [Metric::Rate, Metric::Median, Metric::P99, Metric::ServerCpu] {
            if metric.is_of(&one.phase.load)
                && let (Some(one_batches), Some(other_batches)) =
                    (batches(one, metric)?, batches(other, metric)?)
            {
                pairs.push((one.phase.name.clone(), metric, one_batches, other_batches));
            }
        }
    }
    let chance = ERROR / (pairs.len() + first.phases.len()) as f64;
    let mut found: Vec<_> = pairs
        .into_iter()
        .map(|(phase, metric, one, other)| {
            let ratio = welch(&one, &other, chance);
            let [low, middle, high] = ratio;
            let is_shown = (low > 1.0 || high < 1.0) && middle.ln().abs() >= tolerance.ln_1p();
            let difference = match (is_shown, (middle > 1.0) == (metric == Metric::Rate)) {
                (false, _) => Difference::None,
                (true, true) => Difference::Better,
                (true, false) => Difference::Worse,
            };
            let figures = [one, other].map(|logs| mean(&logs).exp());
            Comparison { phase, metric, figures, ratio: Some(ratio), difference }
        })
        .collect();
    found.extend(first.phases.iter().zip(&second.phases).map(failures));
    Ok(found)
}

/// Checks whether two phases are of one load.
fn check(one: &PhaseReport, other: &PhaseReport) -> Result<(), String> {
    let names = format!("`{}` and `{}`", one.phase.name, other.phase.name);
    match (&one.phase.load, &other.phase.load) {
        (Load::Open { rate: first, .. }, Load::Open { rate: second, .. })
            if (first / second - 1.0).abs() > RATE_SHARE =>
        {
            Err(format!(
                "{names} have different rates: repeat the second run with --rate {first:.0}"
            ))
        }
        (Load::Open { .. }, Load::Open { .. })
        | (Load::Closed, Load::Closed)
        | (Load::Connect, Load::Connect) => Ok(()),
        _ => Err(format!("{names} are different kinds of load")),
    }
}

impl Metric {
    /// Returns whether it says something of such a load: latency in a closed loop is its rate once more.
    fn is_of(self, load: &Load) -> bool {
        match self {
            Self::Rate => !matches!(load, Load::Open { .. }),
            Self::Median | Self::P99 => matches!(load, Load::Open { .. }),
            Self::ServerCpu | Self::Failures => true,
        }
    }

    /// The value of some samples together.
    fn value(self, samples: &[Sample]) -> Option<f64> {
        let sum = |of: fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>();
        let of_answered = |of: fn(&Sample) -> f64| {
            let answered = samples.iter().filter(|sample| sample.rate > 0.0);
            let (count, sum) =
                answered.fold((0.0, 0.0), |(count, sum), sample| (count + 1.0, sum + of(sample)));
            (count > 0.0).then(|| sum / count)
        };
        let value = match self {
            Self::Rate => Some(sum(|sample| sample.rate) / samples.len() as f64),
            Self::Median => of_answered(|sample| sample.p50_ns as f64),
            Self::P99 => of_answered(|sample| sample.p99_ns as f64),
            Self::ServerCpu if samples.iter().any(|sample| sample.server_cores.is_none()) => None,
            Self::ServerCpu => {
                Some(1e9 * sum(|sample| sample.server_cores.unwrap_or(0.0)) / sum(|s| s.rate))
            }
            Self::Failures => None,
        };
        value.filter(|value| value.is_finite() && *value > 0.0)
    }
}

/// The logarithms of the batch means of a metric; `None`: the phase doesn't have it.
fn batches(report: &PhaseReport, metric: Metric) -> Result<Option<Vec<f64>>, String> {
    let warm_up_ns = u64::try_from(report.phase.warm_up.as_nanos()).unwrap_or(u64::MAX);
    let begun = report.course.series.partition_point(|sample| sample.at_ns <= warm_up_ns);
    let samples = &report.course.series[begun..];
    let length = samples.len() / BATCHES_COUNT;
    if length < BATCH_SAMPLES {
        return Err(format!(
            "`{}` is too short to be compared: use -D 3s or more",
            report.phase.name
        ));
    }
    // The oldest samples that are too many are those in which connections were made.
    let samples = &samples[samples.len() - length * BATCHES_COUNT..];
    Ok(samples.chunks(length).map(|batch| metric.value(batch).map(f64::ln)).collect())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The ratio of the second to the first, of logarithms, with an interval that misses it with this chance: low, middle,
/// high.
fn welch(first: &[f64], second: &[f64], chance: f64) -> [f64; 3] {
    // The squared error of the mean, and its degrees of freedom.
    let error = |values: &[f64]| {
        let (mean, count) = (mean(values), values.len() as f64);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (count - 1.0) / count, count - 1.0)
    };
    let ((one, one_freedom), (other, other_freedom)) = (error(first), error(second));
    let both = one + other;
    let middle = mean(second) - mean(first);
    if both <= 0.0 {
        return [middle.exp(); 3];
    }
    let freedom = both.powi(2) / (one.powi(2) / one_freedom + other.powi(2) / other_freedom);
    let wide = bolide_probe::student::quantile(chance, (freedom as usize).max(1)) * both.sqrt();
    [middle - wide, middle, middle + wide].map(f64::exp)
}

/// Failures are different where one run has some, and so many more than the other that chance hardly explains it.
fn failures((one, other): (&PhaseReport, &PhaseReport)) -> Comparison {
    let counts = [one.counts.failed as f64, other.counts.failed as f64];
    let dues = [one, other].map(|report| report.counts.due.max(report.counts.failed).max(1) as f64);
    let share = (counts[0] + counts[1]) / (dues[0] + dues[1]);
    let error = (share * (1.0 - share) * (1.0 / dues[0] + 1.0 / dues[1])).sqrt();
    let figures = [counts[0] / dues[0], counts[1] / dues[1]];
    let apart = figures[1] - figures[0];
    // Four errors: failures come in groups, as with a connection that is lost.
    let difference = match apart.abs() > 4.0 * error {
        true if apart > 0.0 => Difference::Worse,
        true if apart < 0.0 => Difference::Better,
        _ => Difference::None,
    };
    let phase = one.phase.name.clone();
    Comparison { phase, metric: Metric::Failures, figures, ratio: None, difference }
}

#[cfg(test)]
mod tests;
