//! h2load, for HTTP/2, and for handshakes.

use super::{Figures, Job, Marks, judge, microseconds, number_before, watch_program};
use crate::interrupt::Interrupt;

/// Connections of one run of handshakes, each with one request.
const HANDSHAKES_COUNT: usize = 2000;

pub(super) fn run(
    job: &Job<'_>,
    interrupt: &Interrupt,
    middle: &mut dyn FnMut(),
) -> Result<Figures, String> {
    let arguments = arguments(job)?;
    let marks = if job.is_handshake() {
        Marks::Whole
    } else {
        Marks::Lines("duration is started", "duration is over")
    };
    let seen = watch_program(job, &arguments, &marks, interrupt, middle)?;
    let mut figures = parse(&seen.text)?;
    seen.note(&mut figures);
    figures.cpu_us = seen.server_cores / figures.rate * 1e6;
    judge(job, &mut figures);
    Ok(figures)
}

fn arguments(job: &Job<'_>) -> Result<Vec<String>, String> {
    let cell = job.cell;
    let threads = job.cores.len().clamp(1, cell.connections);
    let mut arguments = vec!["h2load".to_owned(), format!("-t{threads}")];
    if job.is_handshake() {
        arguments.extend([
            format!("-c{HANDSHAKES_COUNT}"),
            format!("-n{HANDSHAKES_COUNT}"),
            "-m1".to_owned(),
        ]);
    } else {
        arguments.extend([
            format!("-c{}", cell.connections),
            format!("-m{}", cell.depth),
            format!("-D{}ms", job.duration.as_millis()),
            format!("--warm-up-time={}ms", job.warm_up.as_millis().max(100)),
        ]);
    }
    if !cell.protocol.is_http2() {
        arguments.push("--h1".to_owned());
    }
    if let Some(window) = cell.window {
        arguments.extend([format!("-w{window}"), format!("-W{window}")]);
    }
    if let Some(file) = job.posted()? {
        arguments.extend(["-d".to_owned(), file.display().to_string()]);
    }
    for (name, value) in cell.fields() {
        arguments.extend(["-H".to_owned(), format!("{name}: {value}")]);
    }
    arguments.push(job.url());
    Ok(arguments)
}

/// Reads h2load's summary.
fn parse(text: &str) -> Result<Figures, String> {
    let said = || {
        let line = text.lines().find(|line| line.starts_with("requests: "));
        line.or_else(|| text.lines().next_back()).unwrap_or("it said nothing").trim().to_owned()
    };
    let finished = text.split_once("finished in ").map(|(_, rest)| rest);
    let rate = finished.and_then(|rest| number_before(rest, " req/s"));
    let Some(rate) = rate.filter(|rate| *rate > 0.0) else {
        return Err(format!("h2load counted no responses: {}", said()));
    };
    let line = text.lines().find(|line| line.starts_with("requests: ")).unwrap_or_default();
    let count = |word: &str| number_before(line, word).unwrap_or_default() as u64;
    let mut figures = Figures {
        rate,
        completed: count(" done"),
        failed: count(" failed") + count(" errored") + count(" timeout"),
        ..Figures::default()
    };
    let codes = text.lines().find(|line| line.starts_with("status codes: ")).unwrap_or_default();
    let others: f64 =
        [" 3xx", " 4xx", " 5xx"].iter().filter_map(|class| number_before(codes, class)).sum();
    figures.failed = figures.failed.max(others as u64);
    let times = text.split_once("time for request:").map(|(_, rest)| rest).unwrap_or_default();
    let mut words = times.split_whitespace().skip(1).map_while(microseconds);
    if let (Some(max), Some(mean)) = (words.next(), words.next()) {
        figures.latencies_us.insert("max".to_owned(), max);
        figures.latencies_us.insert("mean".to_owned(), mean);
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "starting benchmark...
Warm-up started for thread #0.
Main benchmark duration is started for thread #0.
Main benchmark duration is over for thread #0. Stopping all clients.

finished in 1.40s, 538905.00 req/s, 20.56MB/s
requests: 538905 total, 539905 started, 538905 done, 538900 succeeded, 5 failed, 2 errored, 1 timeout
status codes: 538890 2xx, 0 3xx, 15 4xx, 0 5xx
traffic: 20.56MB (21556400) total, 513.94KB (526275) headers (space savings 95.89%), 2.06MB (2155620) data
                     min         max         mean         sd        +/- sd
time for request:      121us      5.22ms      1.78ms       180us    76.02%
time for connect:        0us         0us         0us         0us     0.00%
";

    #[test]
    fn a_summary_is_read() {
        let figures = parse(TEXT).unwrap();
        assert_eq!((figures.completed, figures.failed), (538_905, 15));
        assert_eq!(figures.rate, 538_905.0);
        assert_eq!(figures.latencies_us["mean"], 1780.0);
        assert_eq!(figures.latencies_us["max"], 5220.0);
    }

    #[test]
    fn no_responses_are_an_error() {
        let error = parse("finished in 1.00s, 0.00 req/s, 0B/s\n").unwrap_err();
        assert!(error.contains("no responses"), "{error}");
        assert!(parse("").is_err());
    }
}
