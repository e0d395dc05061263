//! The command lines of other tools, and their output: scripts that call them and read what they
//! print go on working.

mod getopt;
pub mod h2load;
pub mod wrk;

use std::io;

use bolide_probe::plan::{Phase, Plan};
use bolide_probe::progress::Progress;
use bolide_probe::report::{Latencies, PhaseReport, Report};

use crate::output::in_lines;

/// A run that was asked for in another tool's words.
#[derive(Debug)]
pub struct Foreign {
    /// The first URL.
    pub url: String,
    /// Whom to ask, and what.
    pub plan: Plan,
    /// Its only phase.
    pub phase: Phase,
    /// Printer in the manner of that tool.
    pub voice: Voice,
}

/// Prints as another tool does.
#[derive(Debug)]
pub enum Voice {
    /// As h2load.
    H2load(h2load::Text),
    /// As wrk.
    Wrk(wrk::Text),
}

impl Voice {
    /// Before the run.
    ///
    /// # Errors
    ///
    /// Those of `out`, here and below.
    pub fn begin(&mut self, out: &mut dyn io::Write, protocol: &str) -> io::Result<()> {
        match self {
            Self::H2load(text) => text.begin(out, protocol),
            Self::Wrk(text) => text.begin(out),
        }
    }

    /// While it runs.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn progress(&mut self, out: &mut dyn io::Write, progress: &Progress) -> io::Result<()> {
        match self {
            Self::H2load(text) => text.progress(out, progress),
            Self::Wrk(_) => Ok(()),
        }
    }

    /// After it.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn end(&mut self, out: &mut dyn io::Write, report: &Report) -> io::Result<()> {
        let Some(phase) = report.phases.first() else { return Ok(()) };
        match self {
            Self::H2load(text) => text.end(out, report, phase),
            Self::Wrk(text) => text.end(out, phase),
        }
    }

    /// Returns what is printed, and the exit code, when nothing could be sent. The reason goes to the standard
    /// error.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn refused(&mut self, out: &mut dyn io::Write, mistake: &str) -> io::Result<u8> {
        eprintln!("{}", in_lines(mistake));
        match self {
            Self::H2load(text) => text.refused(out).map(|()| 0),
            Self::Wrk(_) => Ok(1),
        }
    }
}

/// Responses whose status is one of `statuses`.
fn responses(phase: &PhaseReport, statuses: std::ops::Range<u16>) -> u64 {
    phase.statuses.range(statuses).map(|(_, count)| count).sum()
}

/// The share of the values that lie within one standard deviation of the mean.
fn within_deviation(latencies: &Latencies) -> f64 {
    let Some(histogram) = latencies.histogram.as_ref().filter(|all| !all.is_empty()) else {
        return 0.0;
    };
    let low = (latencies.mean_ns - latencies.deviation_ns).max(0.0) as u64;
    let high = (latencies.mean_ns + latencies.deviation_ns) as u64;
    histogram.count_between(low, high) as f64 / histogram.len() as f64
}

/// Mean, standard deviation, greatest and share within one deviation of a list of numbers.
fn spread(values: &[f64]) -> (f64, f64, f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0, 0.0, 0.0);
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
    let within = values.iter().filter(|value| (**value - mean).abs() <= deviation).count();
    let greatest = values.iter().copied().fold(0.0, f64::max);
    (mean, deviation, greatest, within as f64 / count)
}
