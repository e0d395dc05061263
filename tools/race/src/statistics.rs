//! Ratios of pairs of runs, and what a race claims of them.
//!
//! Rounds are interleaved, so the machine's drift is in all contenders of a round alike. A ratio is therefore taken
//! within each round (or between near ones in which the cores were equally far apart), in logarithms, and its interval
//! is Student's. The claims of a page are chosen together, by Benjamini and Hochberg's rule, and every interval of the
//! page is as wide as that rule asks: a difference is claimed if and only if its interval excludes 1.

use serde::{Deserialize, Serialize};

use bolide_probe::student::{quantile, two_sided};

/// Fewest pairs of runs that carry a claim.
pub(crate) const PAIRS_MIN: usize = 6;

/// Share of the claims of a page that may be false, by expectation; of a page on which nothing differs, the
/// probability of any claim.
pub(crate) const FALSE_SHARE: f64 = 0.05;

/// Share of races that find a difference of the size that is stated with a comparison.
pub(crate) const POWER: f64 = 0.9;

/// Servers whose interval is within this of 1, either way, share a lead.
pub(crate) const SHARED_WITHIN: f64 = 0.05;

/// Standard deviation of the logarithm of a figure from one start of a program to another, at least. More rounds do not
/// make it smaller.
const START_DEVIATION: f64 = 0.003;

/// A figure with its lower and upper end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The figure itself.
    pub mid: f64,
    /// Upper end.
    pub high: f64,
}

/// Verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Less than the reference.
    Less,
    /// More than the reference.
    More,
    /// The interval includes 1.
    NotDecided,
    /// Too few pairs, or the other comparisons are not made yet: the interval is the range of the pairs, and nothing
    /// is claimed.
    Range,
}

impl Verdict {
    /// Returns whether the two differ significantly.
    pub(crate) fn is_claim(self) -> bool {
        matches!(self, Self::Less | Self::More)
    }
}

/// A contender's figure over the reference's, from pairs of runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The ratio with its interval or range.
    pub ratio: Interval,
    /// Verdict of the comparison.
    pub verdict: Verdict,
    /// Pairs of runs.
    pub pairs: usize,
    /// The least relative difference that 9 of 10 such races would have found: 0.03 is 3 %. `None` for a range.
    pub detectable: Option<f64>,
}

impl Comparison {
    /// Returns whether the interval is within [`SHARED_WITHIN`] of 1.
    pub(crate) fn is_level(&self) -> bool {
        let within = 1.0 + SHARED_WITHIN;
        self.verdict != Verdict::Range && self.ratio.low > 1.0 / within && self.ratio.high < within
    }
}

/// Logarithms of the ratios of pairs, summed up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRatios {
    count: usize,
    mean: f64,
    variance: f64,
    low: f64,
    high: f64,
}

impl LogRatios {
    /// Those of `pairs` of (contender, reference); `None` if there are none of positive figures.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let logs: Vec<f64> = pairs
            .iter()
            .filter(|(own, reference)| *own > 0.0 && *reference > 0.0)
            .map(|(own, reference)| (own / reference).ln())
            .collect();
        let count = logs.len();
        let mean = logs.iter().sum::<f64>() / count as f64;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        (count > 0).then(|| Self {
            count,
            mean,
            variance: squares / count.saturating_sub(1).max(1) as f64,
            low: logs.iter().copied().fold(f64::INFINITY, f64::min),
            high: logs.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// Pairs.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The middle of the ratios: their geometric mean.
    pub fn mid(&self) -> f64 {
        self.mean.exp()
    }

    /// Pairs after which a 95 % interval would reach `half` to either side, by the noise of these.
    pub(crate) fn pairs_for(&self, half: f64) -> usize {
        let wide = quantile(0.05, self.freedom()) * self.variance.sqrt();
        (wide / half).powi(2).ceil() as usize
    }

    /// The middle with the range of the pairs.
    pub fn range(&self) -> Comparison {
        let ratio = Interval { low: self.low.exp(), mid: self.mid(), high: self.high.exp() };
        Comparison { ratio, verdict: Verdict::Range, pairs: self.count, detectable: None }
    }

    fn carries_a_claim(&self) -> bool {
        self.count >= PAIRS_MIN
    }

    fn freedom(&self) -> usize {
        self.count.saturating_sub(1).max(1)
    }

    /// The standard error of the mean with its degrees of freedom. The noise is that of these pairs, or of them and the
    /// twin's together if that is more: a few pairs that agree by chance are not taken for a quiet machine.
    fn error(&self, twin: Option<&Self>, between_starts: f64) -> (f64, usize) {
        let own = self.freedom();
        let both = own + twin.map_or(0, Self::freedom);
        let squares = twin.map_or(0.0, |twin| twin.variance * twin.freedom() as f64);
        let pooled = (self.variance * own as f64 + squares) / both as f64;
        let (variance, freedom) =
            if pooled > self.variance { (pooled, both) } else { (self.variance, own) };
        ((variance / self.count as f64 + between_starts).sqrt(), freedom)
    }
}

/// A comparison to judge, and the comparison of the reference with its twin in the same rounds.
pub(crate) type Tested = (LogRatios, Option<LogRatios>);

/// Rule that decides about the claims of a page: made once, of all of its comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Comparisons with enough pairs.
    pub comparisons: usize,
    /// Those of them that are claims.
    pub claims: usize,
    /// The level of every interval: 0.95 if all are claims, more if fewer are.
    pub level: f64,
    /// Variance of the logarithm of a ratio between two starts of the same program.
    pub between_starts: f64,
}

impl Rule {
    /// The rule for these comparisons. `twins` are those of the reference with itself, one of each workload: by how
    /// much more they differ than their rounds explain is the difference between starts.
    pub(crate) fn of(tested: &[Tested], twins: &[LogRatios]) -> Self {
        let excess: Vec<f64> = twins
            .iter()
            .filter(|twin| twin.carries_a_claim())
            .map(|twin| twin.mean.powi(2) - twin.variance / twin.count as f64)
            .collect();
        let seen = excess.iter().sum::<f64>() / excess.len().max(1) as f64;
        let between_starts = seen.max(2.0 * START_DEVIATION.powi(2));
        let mut chances: Vec<f64> = tested
            .iter()
            .filter(|(found, _)| found.carries_a_claim())
            .map(|(found, twin)| {
                let (error, freedom) = found.error(twin.as_ref(), between_starts);
                two_sided(found.mean / error, freedom)
            })
            .collect();
        chances.sort_by(f64::total_cmp);
        let comparisons = chances.len();
        let share = |rank: usize| FALSE_SHARE * rank as f64 / comparisons.max(1) as f64;
        let claims = (1..=comparisons).rev().find(|rank| chances[rank - 1] <= share(*rank));
        let claims = claims.unwrap_or_default();
        Self { comparisons, claims, level: 1.0 - share(claims.max(1)), between_starts }
    }

    /// Returns what `found` says.
    pub(crate) fn judge(&self, found: &LogRatios, twin: Option<&LogRatios>) -> Comparison {
        if !found.carries_a_claim() {
            return found.range();
        }
        let (error, freedom) = found.error(twin, self.between_starts);
        let wide = quantile(1.0 - self.level, freedom);
        let (low, high) = (found.mean - wide * error, found.mean + wide * error);
        let verdict = if low > 0.0 {
            Verdict::More
        } else if high < 0.0 {
            Verdict::Less
        } else {
            Verdict::NotDecided
        };
        let seen = (wide + quantile(2.0 * (1.0 - POWER), freedom)) * error;
        Comparison {
            ratio: Interval { low: low.exp(), mid: found.mid(), high: high.exp() },
            verdict,
            pairs: found.count,
            detectable: Some(seen.exp_m1()),
        }
    }
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// The median of `values` with their range; `None` of nothing.
pub fn spread(values: &[f64]) -> Option<Interval> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(Interval { low, mid: median(values)?, high })
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
