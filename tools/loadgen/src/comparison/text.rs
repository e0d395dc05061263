//! Text of a comparison: the conclusion, then a line for each figure.

use std::fmt::Write;

use bolide_units::figures::{duration, rate};

use super::{Comparison, Difference, Metric};

impl Metric {
    /// Returns what it is called.
    fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Median => "p50",
            Self::P99 => "p99 of 0.1 s",
            Self::ServerCpu => "server CPU",
            Self::Failures => "failures",
        }
    }

    fn figure(self, value: f64) -> String {
        match self {
            Self::Rate => format!("{}/s", rate(value)),
            Self::Median | Self::P99 | Self::ServerCpu => duration(value as u64),
            Self::Failures => format!("{:.4} %", value * 100.0),
        }
    }
}

/// The conclusion first, then every comparison.
pub fn text(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for (difference, word) in [(Difference::Worse, "Worse"), (Difference::Better, "Better")] {
        for of in comparisons.iter().filter(|of| of.difference == difference) {
            let by = change(of).map_or_else(String::new, |change| format!(" by {change}"));
            let _ = writeln!(text, "{word}: {} in `{}`{by}.", of.metric.name(), of.phase);
        }
    }
    if text.is_empty() {
        text.push_str("No difference is shown.\n");
    }
    text.push('\n');
    let phases = comparisons.iter().map(|of| of.phase.chars().count());
    let width = phases.max().unwrap_or(0).max("phase".len());
    let _ = writeln!(
        text,
        "{:width$}  {:12}  {:>12}  {:>12}  change (interval)",
        "phase", "figure", "first", "second"
    );
    for of in comparisons {
        let figures = of.figures.map(|figure| of.metric.figure(figure));
        let change = change(of).unwrap_or_else(|| "–".to_owned());
        let (phase, name) = (&of.phase, of.metric.name());
        let [first, second] = figures;
        let _ = writeln!(text, "{phase:width$}  {name:12}  {first:>12}  {second:>12}  {change}");
    }
    text
}

/// `+12.3 % (+8.1 % to +16.4 %)`.
fn change(of: &Comparison) -> Option<String> {
    let [low, middle, high] = of.ratio?.map(|ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0));
    Some(format!("{middle} ({low} to {high})"))
}
