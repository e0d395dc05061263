//! Summary of the parts of a run.

use std::fmt::Write;

use bolide_probe::report::{Latencies, PartReport, PhaseReport, Report};

use super::{duration, grouped, percent, rate};

/// Clocks that may be apart by more than this are mentioned next to the series, in nanoseconds (5 ms).
const UNCERTAIN_NS: u64 = 5_000_000;

/// Why a part was lost, in a sentence without its end.
pub(crate) fn lost_part(part: &PartReport) -> Option<String> {
    let why = part.lost.as_ref()?;
    let host = if part.host.is_empty() { String::new() } else { format!(" on {}", part.host) };
    Some(format!("part {}{host} is lost: {why}", part.part))
}

/// A line for each part that was lost.
pub(super) fn write_lost(text: &mut String, report: &Report) -> std::fmt::Result {
    let Some(parts) = &report.parts else { return Ok(()) };
    for lost in parts.parts.iter().filter_map(lost_part) {
        writeln!(text, "INCOMPLETE: {lost}. What it counted since its last phase is missing.")?;
    }
    Ok(())
}

/// How many parts there were, and how far their clocks can be trusted.
pub(super) fn write_parts(text: &mut String, report: &Report) -> std::fmt::Result {
    let Some(parts) = &report.parts else { return Ok(()) };
    let bound = duration(parts.clock_bound_ns);
    let drift = parts.parts.iter().filter_map(|part| part.clock_drift_ns);
    let drift = drift.map(i64::unsigned_abs).max();
    let drifted = drift.map_or_else(String::new, |ns| format!(", drift {}", duration(ns)));
    writeln!(text, "{} parts, clocks within ±{bound}{drifted}", parts.parts.len())?;
    if parts.clock_bound_ns > UNCERTAIN_NS {
        writeln!(text, "The series of the parts may be shifted against each other by {bound}.")?;
    }
    Ok(())
}

/// A line for each part: what it did, and whether it kept up.
pub(super) fn write_shares(text: &mut String, report: &PhaseReport) -> std::fmt::Result {
    let at = |latencies: &Latencies, name: &str| {
        duration(latencies.percentiles_ns.get(name).copied().unwrap_or(0))
    };
    for part in &report.course.parts {
        let seconds = part.elapsed_ns.max(1) as f64 / 1e9;
        let content = format!(
            "{} responses/s, {} failed, p50 {}, p99 {}, clock late by {} (p99), busiest thread {}",
            rate(part.counts.completed as f64 / seconds),
            grouped(part.counts.failed),
            at(&part.latency, "p50"),
            at(&part.latency, "p99"),
            at(&part.pacing, "p99"),
            percent(part.generator.busiest_thread),
        );
        super::row(text, &format!("part {}", part.part), &content)?;
    }
    Ok(())
}
