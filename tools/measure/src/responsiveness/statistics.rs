//! draft-ietf-ippm-responsiveness-09: the arithmetic. Pure, with times in milliseconds.

use serde::Serialize;

/// The draft's constants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// MAD: intervals that an average moves over.
    pub moving_count: usize,
    /// TMP: the share of the probes that a mean keeps.
    pub kept_share: f64,
    /// SDT: the deviation of averages, as a share of the newest, below which they are stable.
    pub stable_share: f64,
    /// INC: connections that are added in each interval.
    pub added_count: usize,
    /// MNP: connections at most.
    pub connections_max: usize,
    /// MPS: probes per second at most.
    pub probes_max: f64,
    /// PTC: the share of the capacity that probes may take.
    pub probes_share: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            moving_count: 4,
            kept_share: 0.95,
            stable_share: 0.05,
            added_count: 1,
            connections_max: 16,
            probes_max: 100.0,
            probes_share: 0.05,
        }
    }
}

/// The mean of the lower part of `values`: the worst are left out (one-sided). `None` without any.
pub fn trimmed_mean(values: &[f64], kept_share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let dropped = (sorted.len() as f64 * (1.0 - kept_share) + 1e-9) as usize;
    sorted.truncate(sorted.len() - dropped);
    if sorted.is_empty() {
        return None;
    }
    Some(sorted.iter().sum::<f64>() / sorted.len() as f64)
}

/// Test of whether a figure that is taken in each interval has settled: the standard deviation of its last moving
/// averages is small against the newest of them.
#[derive(Debug, Clone)]
pub struct Settling {
    moving_count: usize,
    stable_share: f64,
    values: Vec<f64>,
    averages: Vec<f64>,
}

impl Settling {
    /// Nothing is known yet.
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            moving_count: parameters.moving_count.max(1),
            stable_share: parameters.stable_share,
            values: Vec::new(),
            averages: Vec::new(),
        }
    }

    /// Takes the next interval's value; whether the figure has settled.
    pub fn settles_with(&mut self, value: f64) -> bool {
        self.values.push(value);
        let last =
            |values: &[f64], count: usize| values[values.len().saturating_sub(count)..].to_vec();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        self.averages.push(mean(&last(&self.values, self.moving_count)));
        if self.averages.len() < self.moving_count {
            return false;
        }
        let window = last(&self.averages, self.moving_count);
        let middle = mean(&window);
        let variance = window.iter().map(|average| (average - middle).powi(2)).sum::<f64>()
            / window.len() as f64;
        let newest = window.last().copied().unwrap_or(0.0);
        newest > 0.0 && variance.sqrt() < self.stable_share * newest
    }
}

/// Trimmed means of what the probes took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Means {
    /// New connections: TCP's handshake.
    pub tcp_foreign_ms: f64,
    /// TLS's, for each of its round trips; none over cleartext.
    pub tls_foreign_ms: Option<f64>,
    /// The request on them.
    pub http_foreign_ms: f64,
    /// A request on a connection that carries load.
    pub http_loaded_ms: f64,
}

/// How fast a server answers under load, in round trips per minute.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Score {
    /// On new connections.
    pub foreign_rpm: f64,
    /// On loaded ones.
    pub loaded_rpm: f64,
    /// The mean of both.
    pub rpm: f64,
}

/// The score of these means.
pub fn score(means: &Means) -> Score {
    let (tcp, http) = (means.tcp_foreign_ms, means.http_foreign_ms);
    let foreign_ms = match means.tls_foreign_ms {
        Some(tls) => (tcp + tls + http) / 3.0,
        None => (tcp + http) / 2.0,
    };
    let per_minute = |ms: f64| if ms > 0.0 { 60_000.0 / ms } else { 0.0 };
    let (foreign_rpm, loaded_rpm) = (per_minute(foreign_ms), per_minute(means.http_loaded_ms));
    Score { foreign_rpm, loaded_rpm, rpm: f64::midpoint(foreign_rpm, loaded_rpm) }
}

/// Returns what a score is called.
pub fn class(rpm: f64) -> &'static str {
    match rpm {
        rpm if rpm < 300.0 => "poor",
        rpm if rpm < 1000.0 => "fair",
        rpm if rpm <= 6000.0 => "good",
        _ => "excellent",
    }
}

/// How sure a score is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Not even the goodput settled.
    Low,
    /// The goodput did, the responsiveness did not.
    Medium,
    /// Both did.
    High,
}

impl Confidence {
    /// From what settled.
    pub fn of(goodput_settled: bool, responsiveness_settled: bool) -> Self {
        match (goodput_settled, responsiveness_settled) {
            (true, true) => Self::High,
            (true, false) => Self::Medium,
            (false, _) => Self::Low,
        }
    }

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Cost of a pair of probes, in bytes: a new connection with TLS, and a request on a loaded one.
const PROBE_PAIR_BYTES: f64 = 6_000.0;

/// How many pairs of probes there may be per second at this goodput, in bits per second: as many as the
/// parameters allow, and at least one.
pub fn probe_rate(goodput: f64, parameters: &Parameters) -> f64 {
    let by_share = parameters.probes_share * goodput / 8.0 / PROBE_PAIR_BYTES;
    by_share.clamp(1.0, parameters.probes_max.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
    }

    #[test]
    fn the_worst_twentieth_is_left_out() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        near(trimmed_mean(&values, 0.95).unwrap(), 48.0);
        near(trimmed_mean(&[1.0, 2.0, 30.0], 0.95).unwrap(), 11.0);
        near(trimmed_mean(&[1.0, 2.0, 3.0, 100.0], 0.75).unwrap(), 2.0);
        assert_eq!(trimmed_mean(&[], 0.95), None);
    }

    #[test]
    fn a_figure_settles_when_its_averages_do() {
        let parameters = Parameters::default();
        let mut steady = Settling::new(&parameters);
        let settled: Vec<bool> = (0..5).map(|_| steady.settles_with(100.0)).collect();
        assert_eq!(settled, [false, false, false, true, true]);
        let mut growing = Settling::new(&parameters);
        assert!((0..8).all(|step| !growing.settles_with(2_f64.powi(step))));
        // Averages of 100, 110, 103.3 and 105 deviate by 3.6, which is 3.4 % of the newest.
        let mut rough = Settling::new(&parameters);
        let settled: Vec<bool> =
            [100.0, 120.0, 90.0, 110.0].iter().map(|value| rough.settles_with(*value)).collect();
        assert_eq!(settled, [false, false, false, true]);
        let mut nothing = Settling::new(&parameters);
        assert!((0..9).all(|_| !nothing.settles_with(0.0)));
    }

    #[test]
    fn the_score_follows_the_drafts_formulas() {
        let means = Means {
            tcp_foreign_ms: 10.0,
            tls_foreign_ms: Some(20.0),
            http_foreign_ms: 30.0,
            http_loaded_ms: 60.0,
        };
        let found = score(&means);
        near(found.foreign_rpm, 3000.0);
        near(found.loaded_rpm, 1000.0);
        near(found.rpm, 2000.0);
        near(score(&Means { tls_foreign_ms: None, ..means }).foreign_rpm, 3000.0);
        near(score(&Means::default()).rpm, 0.0);
    }

    #[test]
    fn scores_have_names() {
        for (rpm, name) in [
            (0.0, "poor"),
            (299.9, "poor"),
            (300.0, "fair"),
            (1000.0, "good"),
            (6001.0, "excellent"),
        ] {
            assert_eq!(class(rpm), name);
        }
        assert_eq!(Confidence::of(true, true), Confidence::High);
        assert_eq!(Confidence::of(true, false).name(), "medium");
        assert_eq!(Confidence::of(false, true).name(), "low");
    }

    #[test]
    fn probes_take_a_twentieth_of_the_capacity_at_most() {
        let parameters = Parameters::default();
        near(probe_rate(9.6e6, &parameters), 10.0);
        near(probe_rate(1e10, &parameters), 100.0);
        near(probe_rate(0.0, &parameters), 1.0);
    }
}
