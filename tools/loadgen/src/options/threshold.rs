//! Thresholds that break a run: `p99>5ms`, `errors>0`, `rate<10k`.

use bolide_probe::plan::Load;
use bolide_probe::report::{Latencies, PhaseReport, Report};
use bolide_units::figures;

use crate::schedule::succeeded_rate;

/// A condition that must not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// As it was written.
    pub text: String,
    metric: Metric,
    comparison: Comparison,
    /// In nanoseconds, requests, a share or requests per second, as the metric is.
    value: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Metric {
    /// A figure of one kind of times.
    Latency {
        of: Times,
        which: Which,
    },
    Errors,
    FailedShare,
    Rate,
}

/// Which times of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Response,
    FirstByte,
    FirstEvent,
    EventGap,
}

impl Times {
    /// Prefixes of a figure's name.
    const PREFIXES: [(&str, Self); 3] =
        [("ttfb_", Self::FirstByte), ("first_event_", Self::FirstEvent), ("gap_", Self::EventGap)];

    /// These times of a phase, if it has some.
    fn of(self, phase: &PhaseReport) -> Option<&Latencies> {
        match self {
            Self::Response => Some(&phase.times.latency),
            Self::FirstByte => Some(&phase.times.first_byte),
            Self::FirstEvent => phase.kinds.events.as_ref().map(|events| &events.first),
            Self::EventGap => phase.kinds.events.as_ref().map(|events| &events.gap),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Which {
    Percentile(f64),
    Mean,
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

const GRAMMAR: &str = "a metric (p50 to p99.999, mean, max, the same with ttfb_, first_event_ or gap_ before them, errors, \
                       failed_share, rate), one of > >= < <= and a value, such as p99>5ms, errors>0, \
                       failed_share>0.1% or rate<10k";

impl Threshold {
    /// Reads a condition.
    ///
    /// # Errors
    ///
    /// What would be right, in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a condition: use {GRAMMAR}");
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (name, rest) = text.split_at(at);
        let (comparison, value) = [
            (">=", Comparison::GreaterOrEqual),
            ("<=", Comparison::LessOrEqual),
            (">", Comparison::Greater),
            ("<", Comparison::Less),
        ]
        .into_iter()
        .find_map(|(sign, comparison)| Some((comparison, rest.strip_prefix(sign)?)))
        .ok_or_else(wrong)?;
        let metric = Metric::parse(name.trim()).ok_or_else(wrong)?;
        let value = metric.value(value.trim()).map_err(|why| format!("`{text}`: {why}"))?;
        Ok(Self { text: text.trim().to_owned(), metric, comparison, value })
    }

    /// Why the condition holds in this run, or `None` when it does not. Latencies are those of the
    /// open-loop phases where there are any, for a closed loop's only say how full it was; errors are
    /// those of the whole run; the rate is the knee, where one was searched, or else the highest of
    /// any phase.
    pub fn broken_by(&self, report: &Report) -> Option<String> {
        let said = |figure: String| format!("{} ({figure})", self.text);
        match &self.metric {
            Metric::Latency { of, which } => {
                let is_open = |phase: &&PhaseReport| matches!(phase.phase.load, Load::Open { .. });
                let any_open = report.phases.iter().any(|phase| is_open(&phase));
                report.phases.iter().filter(|phase| !any_open || is_open(phase)).find_map(|phase| {
                    let figure = which.of(of.of(phase)?)?;
                    let text = figures::duration(figure as u64);
                    self.holds(figure).then(|| said(format!("{text} in `{}`", phase.phase.name)))
                })
            }
            Metric::Errors => {
                let failed: u64 = report.phases.iter().map(|phase| phase.counts.failed).sum();
                self.holds(failed as f64).then(|| said(failed.to_string()))
            }
            Metric::FailedShare => {
                let failed: u64 = report.phases.iter().map(|phase| phase.counts.failed).sum();
                let due: u64 = report.phases.iter().map(|phase| phase.counts.due).sum();
                let share = failed as f64 / due.max(failed).max(1) as f64;
                self.holds(share).then(|| said(format!("{:.4} %", share * 100.0)))
            }
            Metric::Rate => {
                let rate = match report.knee {
                    Some(knee) => knee.rate.unwrap_or(0.0),
                    None => report.phases.iter().map(succeeded_rate).fold(0.0, f64::max),
                };
                self.holds(rate).then(|| said(format!("{} req/s", figures::rate(rate))))
            }
        }
    }

    /// Returns whether it is about streams of events.
    pub(super) fn is_of_events(&self) -> bool {
        use Times::{EventGap, FirstEvent};
        matches!(self.metric, Metric::Latency { of: FirstEvent | EventGap, .. })
    }

    fn holds(&self, figure: f64) -> bool {
        match self.comparison {
            Comparison::Greater => figure > self.value,
            Comparison::GreaterOrEqual => figure >= self.value,
            Comparison::Less => figure < self.value,
            Comparison::LessOrEqual => figure <= self.value,
        }
    }
}

impl Metric {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "errors" | "failed" => return Some(Self::Errors),
            "failed_share" => return Some(Self::FailedShare),
            "rate" => return Some(Self::Rate),
            _ => {}
        }
        let prefixed = |(prefix, of): (&str, Times)| Some((of, name.strip_prefix(prefix)?));
        let prefixed = Times::PREFIXES.into_iter().find_map(prefixed);
        let (of, bare) = prefixed.unwrap_or((Times::Response, name));
        let which = match bare {
            "mean" => Which::Mean,
            "max" => Which::Max,
            _ => {
                let digits = bare.strip_prefix('p')?;
                if digits.len() > 8 || digits.starts_with(['+', '-']) {
                    return None;
                }
                let percent: f64 = digits.parse().ok()?;
                // NaN is no percentile either.
                if !(percent > 0.0 && percent < 100.0) {
                    return None;
                }
                Which::Percentile(percent)
            }
        };
        Some(Self::Latency { of, which })
    }

    fn value(&self, text: &str) -> Result<f64, String> {
        match self {
            Self::Latency { .. } => {
                let duration = bolide_units::seconds(text)?;
                if text.ends_with(|c: char| c.is_ascii_digit()) && !duration.is_zero() {
                    return Err(format!("`{text}` needs a unit: ms, or us, or s"));
                }
                Ok(duration.as_nanos() as f64)
            }
            Self::Errors if text == "0" => Ok(0.0),
            Self::Errors => bolide_units::count(text).map(|count| count as f64),
            Self::FailedShare => bolide_units::share(text),
            Self::Rate => bolide_units::rate(text),
        }
    }
}

impl Which {
    /// `None` when nothing was counted.
    fn of(&self, latencies: &Latencies) -> Option<f64> {
        if latencies.count == 0 {
            return None;
        }
        match self {
            Self::Mean => Some(latencies.mean_ns),
            Self::Max => Some(latencies.max_ns as f64),
            Self::Percentile(percent) => match &latencies.histogram {
                Some(histogram) => Some(histogram.value_at_percentile(*percent) as f64),
                None => latencies.percentiles_ns.get(&format!("p{percent}")).map(|ns| *ns as f64),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use bolide_probe::report::{EventsReport, KneeReport};

    use super::*;
    use crate::fabricated::{OPEN_1000, flat, quiet, report};
    use proptest::prelude::*;

    fn broken(text: &str, report: &Report) -> bool {
        Threshold::parse(text).unwrap().broken_by(report).is_some()
    }

    #[test]
    fn each_metric_is_compared_in_its_own_unit() {
        let mut phase = quiet(OPEN_1000);
        phase.counts.failed = 3;
        let (first, gap) = (flat(10, 7_000_000), flat(10, 3_000_000));
        phase.kinds.events = Some(EventsReport { first, gap, ..EventsReport::default() });
        let report = report(vec![phase]);
        for (text, holds) in [
            ("p99>500us", true),
            ("p99>5ms", false),
            ("p99.99 <= 2ms", true),
            ("p42.5>0", true),
            ("max<900us", false),
            ("mean>=1s", false),
            ("ttfb_p50>800us", true),
            ("ttfb_p50>950us", false),
            ("first_event_p50>6ms", true),
            ("first_event_p50>8ms", false),
            ("gap_max<=2ms", false),
            ("gap_mean<4ms", true),
            ("errors>0", true),
            ("errors>3", false),
            ("failed>=3", true),
            ("failed_share>0.1%", true),
            ("failed_share>0.003", false),
            ("rate<1k", false),
            ("rate<1001", true),
        ] {
            assert_eq!(broken(text, &report), holds, "{text}");
        }
    }

    #[test]
    fn a_closed_loops_latency_does_not_break_what_an_open_loop_keeps() {
        let mut closed = quiet(Load::Closed);
        closed.times.latency = flat(10, 9_000_000);
        assert!(broken("p99>5ms", &report(vec![closed.clone()])));
        assert!(!broken("p99>5ms", &report(vec![closed, quiet(OPEN_1000)])));
    }

    #[test]
    fn the_rate_of_a_search_is_its_knee() {
        let mut report = report(vec![quiet(OPEN_1000)]);
        let threshold = Threshold::parse("rate<500").unwrap();
        report.knee = Some(KneeReport { limit_ns: 1, rate: Some(700.0), broken_at: None });
        assert_eq!(threshold.broken_by(&report), None);
        report.knee = Some(KneeReport { limit_ns: 1, rate: None, broken_at: None });
        assert!(threshold.broken_by(&report).unwrap().contains("rate<500 (0.00 req/s)"));
    }

    #[test]
    fn a_wrong_condition_is_told_what_would_be_right() {
        for text in ["", "p99", ">5ms", "p0>1ms", "p100>1ms", "pNaN>1ms", "p99=5ms", "speed>1"] {
            assert!(Threshold::parse(text).unwrap_err().contains("p99>5ms"), "{text}");
        }
        assert!(Threshold::parse("p99>5").unwrap_err().contains("needs a unit"));
        assert!(Threshold::parse("p99>5parsecs").unwrap_err().contains("not a time"));
        assert!(Threshold::parse("errors>-1").unwrap_err().contains("not a count"));
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in ".{0,20}") {
            let _ = Threshold::parse(&text);
        }

        #[test]
        fn nearly_right_texts_do_not_break_it_either(
            text in "(ttfb_)?(p[0-9.]{0,4}|max|mean|errors|rate)[<>]=?[0-9.]{0,5}(ms|k|%)?"
        ) {
            if let Ok(threshold) = Threshold::parse(&text) {
                let why = threshold.broken_by(&report(vec![quiet(OPEN_1000)]));
                prop_assert!(why.is_none_or(|why| why.starts_with(&text)));
            }
        }
    }
}
