//! What the figures carry: medians with intervals, ratios with intervals, and "no difference".
//!
//! Rounds are interleaved, so the machine's drift is in all contenders of a round alike. A ratio is
//! therefore taken within each round (or between near ones in which the cores lay alike), in logarithms, and summed up by the median of all pairwise
//! means (Hodges and Lehmann), which one disturbed round can't move far. Intervals come from a
//! bootstrap over the rounds. With few rounds a plain percentile interval is too narrow, so the
//! percentiles are moved outwards as Student's t asks.

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// Resamples of a bootstrap: enough for steady percentiles at 1 %.
const RESAMPLES_COUNT: usize = 1000;

/// Fewer rounds than this carry no statement.
pub(crate) const ROUNDS_MIN: usize = 3;

/// Intervals are wider than the books ask by this: with few rounds, some of them disturbed, simulated
/// races of a server with itself saw a difference slightly more often than in 5 of 100.
const CAUTION: f64 = 1.06;

/// A difference of this many half-widths of an interval is found in four of five races.
const DETECTABLE_HALF_WIDTHS: f64 = 1.43;

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The figure itself.
    pub mid: f64,
    /// Upper end.
    pub high: f64,
}

/// What a comparison with the reference says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Less than the reference.
    Less,
    /// More than the reference.
    More,
    /// The rounds don't tell them apart.
    NoDifference,
    /// Too few rounds to say anything.
    TooFew,
}

/// A contender's figure over the reference's, in the same rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The ratio with its interval.
    pub ratio: Interval,
    /// What it says.
    pub verdict: Verdict,
    /// The least relative difference that these rounds would have shown (four times of five):
    /// 0.03 is 3 %.
    pub detectable: f64,
}

/// The median; `None` of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// The median of `values` with its 95 % interval; `None` of nothing.
#[must_use]
pub fn summarise(values: &[f64], seed: u64) -> Option<Interval> {
    let mid = median(values)?;
    let (low, high) = bootstrap(values, seed, |sample| {
        sample.sort_by(f64::total_cmp);
        middle(sample).unwrap_or(mid)
    });
    Some(Interval { low: low.min(mid), mid, high: high.max(mid) })
}

/// Compares `pairs` of (contender, reference), one from each round. `floor` is what the same server
/// twice came to, as a ratio: a difference must also be larger than that.
#[must_use]
pub fn compare(pairs: &[(f64, f64)], floor: Option<f64>, seed: u64) -> Option<Comparison> {
    let logs: Vec<f64> = pairs
        .iter()
        .filter(|(own, reference)| *own > 0.0 && *reference > 0.0)
        .map(|(own, reference)| (own / reference).ln())
        .collect();
    if logs.is_empty() {
        return None;
    }
    let mid = pairwise_median(&logs);
    let (low, high) = bootstrap(&logs, seed, |sample| pairwise_median(sample));
    let (low, high) = (low.min(mid), high.max(mid));
    let ratio = Interval { low: low.exp(), mid: mid.exp(), high: high.exp() };
    let half = (high - low) / 2.0;
    let noise = floor.map_or(0.0, |ratio| ratio.ln().abs());
    let detectable = (half * DETECTABLE_HALF_WIDTHS).max(noise).exp_m1();
    let verdict = if logs.len() < ROUNDS_MIN {
        Verdict::TooFew
    } else if low > 0.0 && mid > noise {
        Verdict::More
    } else if high < 0.0 && -mid > noise {
        Verdict::Less
    } else {
        Verdict::NoDifference
    };
    Some(Comparison { ratio, verdict, detectable })
}

/// The median of the means of all pairs, each value with itself included.
fn pairwise_median(values: &[f64]) -> f64 {
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, left) in values.iter().enumerate() {
        means.extend(values[index..].iter().map(|right| f64::midpoint(*left, *right)));
    }
    let half = means.len() / 2;
    let even = means.len() % 2 == 0;
    let (below, upper, _) = means.select_nth_unstable_by(half, f64::total_cmp);
    let upper = *upper;
    if even {
        let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(upper);
        return f64::midpoint(lower, upper);
    }
    upper
}

/// The 95 % interval of `statistic` over resamples of `values`.
fn bootstrap(values: &[f64], seed: u64, statistic: impl Fn(&mut [f64]) -> f64) -> (f64, f64) {
    let count = values.len();
    let mut random = Random::new(seed);
    let mut sample = vec![0.0; count];
    let mut found = Vec::with_capacity(RESAMPLES_COUNT);
    for _ in 0..RESAMPLES_COUNT {
        for place in &mut sample {
            *place = values[random.below(count)];
        }
        found.push(statistic(&mut sample));
    }
    found.sort_by(f64::total_cmp);
    let tail = tail(count);
    let last = (RESAMPLES_COUNT - 1) as f64;
    let low = (tail * last).floor() as usize;
    (found[low], found[RESAMPLES_COUNT - 1 - low])
}

/// The share to cut off at each end for 95 % with `count` values: 2.5 %, moved outwards as Student's
/// distribution and the bootstrap's own bias with few values ask.
fn tail(count: usize) -> f64 {
    let Some(freedom) = count.checked_sub(1).filter(|freedom| *freedom > 0) else { return 0.0 };
    let spread = (count as f64 / freedom as f64).sqrt() * student(freedom) * CAUTION;
    normal_tail(spread)
}

/// The 97.5 % point of Student's t, to three digits.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 12] =
        [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179];
    TABLE.get(freedom - 1).copied().unwrap_or_else(|| 1.96 + 2.5 / freedom as f64)
}

/// The share of the standard normal distribution beyond `z` (Abramowitz and Stegun, 26.2.17).
fn normal_tail(z: f64) -> f64 {
    const COEFFICIENTS: [f64; 5] =
        [0.319_381_53, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let polynomial = COEFFICIENTS.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t);
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * polynomial
}

#[cfg(test)]
mod tests;
