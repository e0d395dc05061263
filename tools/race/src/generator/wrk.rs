//! wrk, for HTTP/1.1.

use std::fs;
use std::time::Duration;

use super::{Figures, Job, Marks, judge, microseconds, number_before, watch_program, word_after};
use crate::interrupt::Interrupt;

/// Left out at the beginning and the end: connections are made, and counters are collected.
const LEAD: Duration = Duration::from_millis(250);
const TAIL: Duration = Duration::from_millis(60);

pub(super) fn run(
    job: &Job<'_>,
    interrupt: &Interrupt,
    middle: &mut dyn FnMut(),
) -> Result<Figures, String> {
    let arguments = arguments(job)?;
    // wrk takes whole seconds.
    let whole = Duration::from_secs(seconds(job));
    let begin = LEAD.max(job.warm_up).min(whole / 2);
    let marks = Marks::Times(begin, whole.saturating_sub(TAIL));
    let seen = watch_program(job, &arguments, &marks, interrupt, middle)?;
    let mut figures = parse(&seen.text)?;
    seen.note(&mut figures);
    figures.cpu_us = seen.server_cores / figures.rate * 1e6;
    judge(job, &mut figures);
    Ok(figures)
}

fn seconds(job: &Job<'_>) -> u64 {
    (job.duration + job.warm_up).as_secs_f64().ceil().max(1.0) as u64
}

fn arguments(job: &Job<'_>) -> Result<Vec<String>, String> {
    let threads = job.cores.len().clamp(1, job.cell.connections);
    let mut arguments = vec![
        "wrk".to_owned(),
        format!("-t{threads}"),
        format!("-c{}", job.cell.connections),
        format!("-d{}s", seconds(job)),
        "--latency".to_owned(),
        "--timeout".to_owned(),
        "5s".to_owned(),
    ];
    if let Some(body) = job.posted()? {
        let script = body.with_extension("lua");
        let text = format!(
            "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/octet-stream\"\n\
             wrk.body = io.open({:?}, \"rb\"):read(\"*a\")\n",
            body.display().to_string()
        );
        fs::write(&script, text).map_err(|error| format!("{}: {error}", script.display()))?;
        arguments.extend(["-s".to_owned(), script.display().to_string()]);
    }
    arguments.push(job.url());
    Ok(arguments)
}

/// Reads wrk's summary.
fn parse(text: &str) -> Result<Figures, String> {
    let rate = word_after(text, "Requests/sec:").and_then(|word| word.parse::<f64>().ok());
    let Some(rate) = rate.filter(|rate| *rate > 0.0) else {
        return Err(format!("wrk counted no responses: {}", text.trim()));
    };
    let mut figures = Figures {
        rate,
        completed: number_before(text, " requests in").unwrap_or_default() as u64,
        ..Figures::default()
    };
    if let Some(errors) = text.split_once("Socket errors:").map(|(_, rest)| rest) {
        let line = errors.lines().next().unwrap_or_default();
        let numbers = line.split([' ', ',']).filter_map(|word| word.parse::<u64>().ok());
        figures.failed += numbers.sum::<u64>();
    }
    if let Some(others) = word_after(text, "Non-2xx or 3xx responses:") {
        figures.failed += others.parse::<u64>().unwrap_or_default();
    }
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let value = words.next().and_then(microseconds);
        if let (Some(percentile), Some(value)) = (first.strip_suffix('%'), value) {
            figures.latencies_us.insert(percentile.to_owned(), value);
        }
        if first == "Latency"
            && let Some(mean) = value
        {
            figures.latencies_us.insert("mean".to_owned(), mean);
            if let Some(max) = words.nth(1).and_then(microseconds) {
                figures.latencies_us.insert("max".to_owned(), max);
            }
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Running 3s test @ http://127.0.0.1:8080/ping
  1 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   392.79us   54.10us   2.09ms   92.75%
    Req/Sec   253.96k     3.32k  257.38k    80.65%
  Latency Distribution
     50%  391.00us
     75%  408.00us
     90%  427.00us
     99%    1.52ms
  783157 requests in 3.10s, 85.14MB read
  Socket errors: connect 0, read 3, write 0, timeout 2
  Non-2xx or 3xx responses: 7
Requests/sec: 252636.61
Transfer/sec:     27.46MB
";

    #[test]
    fn a_summary_is_read() {
        let figures = parse(TEXT).unwrap();
        assert_eq!((figures.completed, figures.failed), (783_157, 12));
        assert!((figures.rate - 252_636.61).abs() < 0.01);
        assert_eq!(figures.latencies_us["50"], 391.0);
        assert_eq!(figures.latencies_us["99"], 1520.0);
        assert_eq!(figures.latencies_us["mean"], 392.79);
        assert_eq!(figures.latencies_us["max"], 2090.0);
        assert_eq!(figures.latencies_us.len(), 6, "{figures:?}");
    }

    #[test]
    fn no_responses_are_an_error() {
        assert!(parse("unable to connect to 127.0.0.1:1").unwrap_err().contains("unable"));
        assert!(parse("Requests/sec:      0.00\n").is_err());
    }
}
