//! A page of its own: spectra of latency and of what else was timed, and rate over time. One file that loads nothing.
//!
//! The page is a template; what is put into it is escaped here, and its script puts texts into the
//! page as texts only.

use std::cmp::Reverse;
use std::io::{self, Write};

use bolide_probe::report::{Bound, Latencies, PhaseReport, Report, RequestReport};
use bolide_semantics::in_markup;
use bolide_units::figures::{duration, grouped, rate};
use serde_json::{Value, json};

use super::text::{bound, client_bound, model};
use crate::schedule::succeeded_rate;

const PAGE: &str = include_str!("page.html");

/// Steps of the spectrum for each halving of what lies above: enough for a smooth curve.
const STEPS_PER_HALVING: u32 = 5;

/// More samples than this are thinned out: a chart has about as many pixels.
const MOST_SAMPLES: usize = 1_200;

/// More curves than this can't be told apart.
const MOST_STEPS: usize = 12;

/// Writes the page. `summary` is shown below the charts.
///
/// # Errors
///
/// Those of `out`.
pub fn write(report: &Report, summary: &str, out: &mut dyn Write) -> io::Result<()> {
    let banner = client_bound(report)
        .map(|line| format!("<p class=\"banner\">{}</p>", in_markup(&line)))
        .unwrap_or_default();
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.write_all(before.as_bytes())?;
        let content = match name {
            "url" => in_markup(&report.url),
            "about" => in_markup(&about(report)),
            "banner" => banner.clone(),
            "tiles" => tiles(report),
            "rows" => report.phases.iter().map(row).collect(),
            "summary" => in_markup(summary),
            "data" => in_script(&data(report)),
            _ => String::new(),
        };
        out.write_all(content.as_bytes())?;
        rest = after;
    }
    out.write_all(rest.as_bytes())?;
    out.flush()
}

/// JSON inside of a script element: nothing in it can end the element.
fn in_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn about(report: &Report) -> String {
    let tls = report.tls.as_ref().map_or_else(String::new, |tls| format!(", {}", tls.version));
    format!(
        "{}{tls} · {} connections × {} in flight · {} threads",
        if report.protocol.is_empty() { "nothing spoken" } else { &report.protocol },
        report.connections,
        report.depth,
        report.threads
    )
}

/// The figures that matter most.
fn tiles(report: &Report) -> String {
    let mut tiles = Vec::new();
    let fastest =
        report.phases.iter().max_by(|a, b| succeeded_rate(a).total_cmp(&succeeded_rate(b)));
    if let Some(knee) = &report.knee {
        let said =
            knee.rate.map_or_else(|| "none".to_owned(), |held| format!("{} req/s", rate(held)));
        tiles.push(("Knee", said, format!("p99 under {}", duration(knee.limit_ns))));
    } else if let Some(phase) = fastest {
        let lower = phase.verdict.bound == Bound::Client;
        let said =
            format!("{}{} req/s", if lower { "≥ " } else { "" }, rate(succeeded_rate(phase)));
        tiles.push(("Highest rate", said, phase.phase.name.clone()));
    }
    if let Some(phase) = report.phases.last().filter(|phase| phase.times.latency.count > 0) {
        for name in ["p50", "p99"] {
            if let Some(ns) = phase.times.latency.percentiles_ns.get(name) {
                let title = if name == "p50" { "Latency p50" } else { "Latency p99" };
                let of = format!("{}, {}", phase.phase.name, model(&phase.phase.load));
                tiles.push((title, duration(*ns), of));
            }
        }
    }
    let failed: u64 = report.phases.iter().map(|phase| phase.counts.failed).sum();
    let due: u64 = report.phases.iter().map(|phase| phase.counts.due).sum();
    tiles.push(("Failed", grouped(failed), format!("of {} requests", grouped(due))));
    tiles
        .into_iter()
        .map(|(title, figure, of)| {
            format!(
                "<div class=\"tile\"><h3>{}</h3><b>{}</b><small>{}</small></div>",
                in_markup(title),
                in_markup(&figure),
                in_markup(&of)
            )
        })
        .collect()
}

/// A row of the table of phases.
fn row(report: &PhaseReport) -> String {
    let latency = |name: &str| {
        report.times.latency.percentiles_ns.get(name).map_or_else(String::new, |ns| duration(*ns))
    };
    let max = if report.times.latency.count > 0 {
        duration(report.times.latency.max_ns)
    } else {
        String::new()
    };
    let cells = [
        report.phase.name.clone(),
        model(&report.phase.load).to_owned(),
        rate(succeeded_rate(report)),
        latency("p50"),
        latency("p90"),
        latency("p99"),
        latency("p99.9"),
        max,
        grouped(report.counts.failed),
        bound(report.verdict.bound).to_owned(),
    ];
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", in_markup(cell))).collect();
    let evidence = in_markup(&report.verdict.evidence.join(" "));
    format!("<tr title=\"{evidence}\">{cells}</tr>")
}

/// Returns what the charts are drawn from.
fn data(report: &Report) -> Value {
    let phases: Vec<Value> = report
        .phases
        .iter()
        .map(|phase| {
            json!({
                "name": phase.phase.name,
                "model": model(&phase.phase.load),
                "spectrum": spectrum(&phase.times.latency),
                "series": series(phase),
            })
        })
        .collect();
    json!({ "phases": phases, "more": more(report) })
}

/// Charts besides that of the latency: of what only some kinds of load have.
fn more(report: &Report) -> Vec<Value> {
    let of = |latencies: fn(&PhaseReport) -> Option<&Latencies>| -> Vec<(String, &Latencies)> {
        let phases = report.phases.iter();
        phases.filter_map(|phase| Some((phase.phase.name.clone(), latencies(phase)?))).collect()
    };
    let steps = report.phases.last().map_or(&[][..], |phase| &phase.kinds.requests);
    let mut steps: Vec<&RequestReport> = steps.iter().collect();
    steps.sort_by_key(|step| Reverse(step.latency.percentiles_ns.get("p99").copied()));
    let steps = steps.iter().take(MOST_STEPS).map(|step| {
        let name = step.name.clone().unwrap_or_else(|| format!("{} {}", step.method, step.target));
        (name, &step.latency)
    });
    let charts = [
        (
            "Time to the first event",
            "From the beginning of a request to the first event, or message, of its response.",
            of(|phase| Some(&phase.kinds.events.as_ref()?.first)),
        ),
        (
            "Gap between events",
            "Time between two events, or messages, of a response.",
            of(|phase| Some(&phase.kinds.events.as_ref()?.gap)),
        ),
        (
            "WebSocket upgrade",
            "From the end of the connection's handshake to the server's acceptance.",
            of(|phase| Some(&phase.kinds.websocket.as_ref()?.upgrade)),
        ),
        (
            "Users",
            "From the first step to the last, of users who did all.",
            of(|phase| Some(&phase.kinds.users.as_ref()?.duration)),
        ),
        ("By request", "The slowest of the last phase, by their 99th percentile.", steps.collect()),
    ];
    charts
        .into_iter()
        .map(|(title, about, mut curves)| {
            curves.retain(|(_, latencies)| latencies.count > 0);
            (title, about, curves)
        })
        .filter(|(.., curves)| !curves.is_empty())
        .map(|(title, about, curves)| {
            let curves =
                curves.iter().map(|(name, of)| json!({ "name": name, "spectrum": spectrum(of) }));
            json!({ "title": title, "about": about, "curves": curves.collect::<Vec<_>>() })
        })
        .collect()
}

/// Pairs of a quantile and its latency in nanoseconds.
fn spectrum(all: &Latencies) -> Vec<(f64, u64)> {
    let Some(histogram) = all.histogram.as_ref().filter(|all| !all.is_empty()) else {
        return all
            .percentiles_ns
            .iter()
            .filter_map(|(name, ns)| {
                Some((name.strip_prefix('p')?.parse::<f64>().ok()? / 100.0, *ns))
            })
            .collect();
    };
    // Beyond the last sample there is nothing to show.
    let last = 1.0 - 0.5 / histogram.len() as f64;
    histogram
        .iter_quantiles(STEPS_PER_HALVING)
        .map(|step| (step.quantile_iterated_to().min(last), step.value_iterated_to()))
        .collect()
}

/// Rows of time in seconds, rate, p50 and p99 in nanoseconds, failures, and cores of both sides.
fn series(report: &PhaseReport) -> Vec<Value> {
    let every = report.course.series.len().div_ceil(MOST_SAMPLES).max(1);
    report
        .course
        .series
        .iter()
        .step_by(every)
        .map(|sample| {
            json!([
                sample.at_ns as f64 / 1e9,
                sample.rate,
                sample.p50_ns,
                sample.p99_ns,
                sample.failed,
                sample.generator_cores,
                sample.server_cores,
            ])
        })
        .collect()
}

#[cfg(test)]
mod tests;
