//! Output of wrk.

use std::io;
use std::time::Duration;

use bolide_probe::report::{Failure, Latencies, PhaseReport};

use crate::compat::{responses, spread, within_deviation};

/// Prints as wrk does.
#[derive(Debug)]
pub struct Text {
    pub(super) url: String,
    pub(super) duration: Duration,
    pub(super) threads: u64,
    pub(super) connections: u64,
    pub(super) shows_distribution: bool,
}

impl Text {
    pub(crate) fn begin(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let duration = scaled(self.duration.as_secs_f64(), &SECONDS, 0);
        writeln!(out, "Running {duration} test @ {}", self.url)?;
        writeln!(out, "  {} threads and {} connections", self.threads, self.connections)?;
        out.flush()
    }

    pub(crate) fn end(&self, out: &mut dyn io::Write, phase: &PhaseReport) -> io::Result<()> {
        let latency = &phase.times.latency;
        writeln!(out, "  Thread Stats{:>6}{:>11}{:>8}{:>12}", "Avg", "Stdev", "Max", "+/- Stdev")?;
        row(
            out,
            "Latency",
            [
                microseconds(latency.mean_ns),
                microseconds(latency.deviation_ns),
                microseconds(latency.max_ns as f64),
            ],
            within_deviation(latency),
        )?;
        let per_thread: Vec<f64> = phase
            .course
            .series
            .iter()
            .map(|sample| sample.rate / self.threads.max(1) as f64)
            .collect();
        let (mean, deviation, greatest, within) = spread(&per_thread);
        row(
            out,
            "Req/Sec",
            [mean, deviation, greatest].map(|rate| scaled(rate, &METRIC, 2)),
            within,
        )?;
        if self.shows_distribution {
            distribution(out, latency)?;
        }
        let elapsed_s = phase.elapsed_ns as f64 / 1e9;
        let (completed, bytes) =
            (phase.counts.completed as f64, phase.traffic.wire_received_bytes as f64);
        writeln!(
            out,
            "  {} requests in {}, {}B read",
            phase.counts.completed,
            microseconds(phase.elapsed_ns as f64),
            scaled(bytes, &BINARY, 2)
        )?;
        errors(out, phase)?;
        let per_second = |sum: f64| if elapsed_s > 0.0 { sum / elapsed_s } else { 0.0 };
        writeln!(out, "Requests/sec: {:9.2}", per_second(completed))?;
        writeln!(out, "Transfer/sec: {:>10}B", scaled(per_second(bytes), &BINARY, 2))?;
        out.flush()
    }
}

fn errors(out: &mut dyn io::Write, phase: &PhaseReport) -> io::Result<()> {
    let count = |kinds: &[Failure]| -> u64 {
        kinds.iter().filter_map(|kind| phase.failures.get(kind)).sum()
    };
    let connect = count(&[Failure::Connect, Failure::Tls]);
    let read = count(&[Failure::Reset, Failure::Goaway, Failure::Protocol]);
    let timeout = count(&[Failure::Timeout]);
    if connect + read + timeout > 0 {
        writeln!(
            out,
            "  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}"
        )?;
    }
    let wrong = responses(phase, 400..1000);
    if wrong > 0 {
        writeln!(out, "  Non-2xx or 3xx responses: {wrong}")?;
    }
    Ok(())
}

fn distribution(out: &mut dyn io::Write, latency: &Latencies) -> io::Result<()> {
    writeln!(out, "  Latency Distribution")?;
    for percent in [50, 75, 90, 99] {
        let ns = latency.percentiles_ns.get(&format!("p{percent}")).copied().unwrap_or(0);
        writeln!(out, "{percent:7}%{}", padded(&microseconds(ns as f64), 10))?;
    }
    Ok(())
}

fn row(out: &mut dyn io::Write, name: &str, columns: [String; 3], within: f64) -> io::Result<()> {
    let [mean, deviation, greatest] = columns;
    writeln!(
        out,
        "    {name:<10}{}{}{}{:8.2}%",
        padded(&mean, 8),
        padded(&deviation, 10),
        padded(&greatest, 9),
        within * 100.0
    )
}

/// Right-aligned so that the digits stand below each other, whatever the length of the unit.
fn padded(text: &str, width: usize) -> String {
    let letters = text.bytes().rev().take(2).filter(u8::is_ascii_alphabetic).count();
    let behind = 2 - letters;
    format!("{text:>width$}{:behind$}", "", width = width - behind)
}

/// Units that follow each other at a factor.
struct Units {
    factor: f64,
    names: &'static [&'static str],
}

const MICROSECONDS: Units = Units { factor: 1000.0, names: &["us", "ms"] };
const SECONDS: Units = Units { factor: 60.0, names: &["s", "m"] };
const METRIC: Units = Units { factor: 1000.0, names: &["", "k", "M", "G", "T"] };
const BINARY: Units = Units { factor: 1024.0, names: &["", "K", "M", "G", "T"] };

/// The unit changes at 85 % of the next one.
fn scaled(value: f64, units: &Units, digits: usize) -> String {
    let (mut value, mut unit) = (value, 0);
    while value >= units.factor * 0.85 && unit + 1 < units.names.len() {
        value /= units.factor;
        unit += 1;
    }
    format!("{value:.digits$}{}", units.names[unit])
}

fn microseconds(ns: f64) -> String {
    let us = ns / 1e3;
    if us >= 1e6 { scaled(us / 1e6, &SECONDS, 2) } else { scaled(us, &MICROSECONDS, 2) }
}

#[cfg(test)]
mod tests {
    use bolide_probe::plan::Load;

    use super::*;
    use crate::fabricated::{latencies, quiet};
    use std::collections::BTreeMap;

    fn printed(change: impl FnOnce(&mut PhaseReport, &mut Text)) -> String {
        let mut phase = quiet(Load::Closed);
        let mut text = Text {
            url: "http://127.0.0.1:9180/ping".into(),
            duration: Duration::from_secs(2),
            threads: 2,
            connections: 10,
            shows_distribution: true,
        };
        change(&mut phase, &mut text);
        let mut out = Vec::new();
        text.begin(&mut out).unwrap();
        text.end(&mut out, &phase).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_figures_stand_where_wrk_puts_them() {
        let text = printed(|phase, _| {
            phase.times.latency.mean_ns = 196_020.0;
            phase.times.latency.deviation_ns = 526_440.0;
            phase.times.latency.max_ns = 5_090_000;
            phase.times.latency.percentiles_ns = BTreeMap::from([
                ("p50".into(), 66_000),
                ("p75".into(), 75_000),
                ("p90".into(), 298_000),
                ("p99".into(), 2_940_000),
            ]);
            phase.times.latency.histogram =
                latencies(&[100_000; 9_269]).histogram.map(|mut all| {
                    all.record_n(5_000_000, 731).unwrap();
                    all
                });
            // 112.99k and 52.71k per thread.
            phase.course.series[0].rate = 225_980.0;
            phase.course.series[1].rate = 105_420.0;
            phase.elapsed_ns = 2_000_900_000;
            phase.counts.completed = 329_256;
            phase.traffic.wire_received_bytes = 50_048_533;
        });
        let expected = "\
Running 2s test @ http://127.0.0.1:9180/ping
  2 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   196.02us  526.44us   5.09ms   92.69%
    Req/Sec    82.85k    42.62k  112.99k   100.00%
  Latency Distribution
     50%   66.00us
     75%   75.00us
     90%  298.00us
     99%    2.94ms
  329256 requests in 2.00s, 47.73MB read
Requests/sec: 164553.95
Transfer/sec:     23.85MB
";
        assert_eq!(text, expected);
    }

    #[test]
    fn errors_are_shown_only_when_there_are_some() {
        let text = printed(|phase, text| {
            text.shows_distribution = false;
            phase.failures = BTreeMap::from([
                (Failure::Connect, 2),
                (Failure::Reset, 3),
                (Failure::Timeout, 4),
                (Failure::Status, 5),
            ]);
            phase.statuses.insert(404, 5);
        });
        let expected = "  Socket errors: connect 2, read 3, write 0, timeout 4\n  Non-2xx or 3xx \
                        responses: 5\nRequests/sec:   1000.00\n";
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("Distribution"), "{text}");
        assert!(!printed(|_, _| ()).contains("errors"));
    }

    #[test]
    fn units_change_where_wrk_changes_them() {
        for (ns, text) in [
            (0.0, "0.00us"),
            (849_000.0, "849.00us"),
            (850_000.0, "0.85ms"),
            (999_999_000.0, "1000.00ms"),
            (1_000_000_000.0, "1.00s"),
            (51e9, "0.85m"),
        ] {
            assert_eq!(microseconds(ns), text, "{ns}");
        }
        assert_eq!(scaled(500.0, &BINARY, 2), "500.00");
        assert_eq!(scaled(1_620.0, &METRIC, 2), "1.62k");
        assert_eq!(scaled(90.0, &SECONDS, 0), "2m");
        assert_eq!(padded("23.85k", 8), " 23.85k ");
        assert_eq!(padded("500.00", 8), "500.00  ");
        assert_eq!(padded("20.75us", 8), " 20.75us");
    }

    #[test]
    fn a_run_without_responses_prints_zeros() {
        let text = printed(|phase, _| {
            phase.times.latency = Latencies::default();
            phase.course.series.clear();
            phase.elapsed_ns = 0;
            phase.counts.completed = 0;
        });
        assert!(text.contains("    Latency     0.00us    0.00us   0.00us    0.00%\n"), "{text}");
        assert!(text.contains("    Req/Sec     0.00      0.00     0.00      0.00%\n"), "{text}");
    }
}
