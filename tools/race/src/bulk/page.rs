//! A page of small objects over a path that is long and loses packets: how long until it is there, by each version of HTTP.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bolide_netlab::quantity::{self, shown_rate, shown_share, shown_time};
use bolide_netlab::shape::Shape;
use bolide_semantics::in_lines;
use clap::Args;
use fastrand::Rng;
use serde::{Deserialize, Serialize};

use super::loaded::{Parts, Sample};
use super::prepared::{Gathered, Prepared, gather, versions};
use super::stack::{Stack, Way};
use super::stage::Stage;
use super::{Setting, put, put_json};
use crate::catalogue::Protocol;
use crate::figures::{aligned, verdict_text};
use crate::manifest::Machine;
use crate::report::{self, Section, sweeps};
use crate::statistics::{LogRatios, Rule, median, spread};

const AFTER_HELP: &str = "Examples:
  bolide net page
      32 objects of 20 kB with a round trip of 50 ms and 1 % loss, from every server that is here
  bolide net page --only bolide,go --rtt 100ms --loss 2% --rate 20mbit

Each page is loaded over new connections: one with all requests at once, or six of HTTP/1.1. The lab is
made and removed by this command. Exit codes: 0 fine; 1 a page was not complete; 2 usage.";

/// The arguments of `bolide net page`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct PageArguments {
    #[command(flatten)]
    setting: Setting,

    /// Objects of the page.
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u32).range(1..=100))]
    objects: u32,

    /// Size of each.
    #[arg(long, value_name = "BYTES", default_value = "20kB", value_parser = bolide_units::size)]
    bytes: u64,

    /// Round trip of the path.
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = quantity::time)]
    rtt: Duration,

    /// The proportion of packets that are lost, in both directions.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = bolide_units::share)]
    loss: f64,

    /// Bits per second of both directions. Default: as fast as the machine.
    #[arg(long, value_name = "RATE", value_parser = bolide_units::bit_rate)]
    rate: Option<u64>,

    /// How many rounds.
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Directory of `page.html` and `page.json`.
    #[arg(long, value_name = "DIR", default_value = "page")]
    out: PathBuf,
}

/// Carries the command out.
pub fn run_page(arguments: &PageArguments) -> ExitCode {
    super::exit("page", run(arguments))
}

/// The pages of one server over one version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    stack: Stack,
    #[serde(with = "crate::columns")]
    samples: Vec<Sample>,
    /// Why there are none, or fewer than rounds.
    failed: Option<String>,
}

impl Row {
    fn all(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.all_ms).collect()
    }

    fn median(&self, part: fn(&Parts) -> f64) -> Option<f64> {
        let parts = self.samples.iter().filter_map(|sample| sample.parts.as_ref());
        median(&parts.map(part).collect::<Vec<_>>())
    }

    /// Its times over those of `other` in the same rounds.
    fn over(&self, other: &Self) -> Option<LogRatios> {
        LogRatios::of(&self.all().into_iter().zip(other.all()).collect::<Vec<_>>())
    }
}

/// Everything, as it is written to `page.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Results {
    started_unix_s: u64,
    machine: Machine,
    objects: u32,
    bytes: u64,
    shape: Shape,
    rounds: u32,
    seed: u64,
    congestion_control: String,
    rows: Vec<Row>,
    versions: Vec<(String, String)>,
    skipped: Vec<(String, String)>,
}

/// Measures everything. `Ok(false)`: a page was not complete.
fn run(arguments: &PageArguments) -> Result<bool, String> {
    let setting = &arguments.setting;
    let prepared = Prepared::new(setting)?;
    if arguments.bytes == 0 {
        return Err("--bytes 0: nothing would be measured".to_owned());
    }
    let Gathered { present, stacks, skipped } = gather(&setting.only, &prepared)?;
    let is_page =
        |stack: &Stack| stack.way == Way::Direct && stack.protocol.is_some_and(Protocol::is_tls);
    let stacks: Vec<Stack> = stacks.into_iter().filter(is_page).collect();
    if stacks.is_empty() {
        return Err("none of the servers that are here serves files over TLS".to_owned());
    }
    let ground = prepared.ground(setting);
    let shape = Shape {
        rate: arguments.rate,
        delay: arguments.rtt / 2,
        loss: arguments.loss,
        ..Shape::default()
    };
    let row = |stack: &Stack| Row { stack: stack.clone(), samples: Vec::new(), failed: None };
    let mut results = Results {
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs()),
        machine: prepared.machine(),
        objects: arguments.objects,
        bytes: arguments.bytes,
        shape: shape.clone(),
        rounds: arguments.rounds,
        seed: setting.seed,
        congestion_control: setting.congestion.clone(),
        rows: stacks.iter().map(row).collect(),
        versions: versions(&present, &stacks),
        skipped,
    };
    let stage = Stage::up(setting, shape, &present, &ground, &prepared)?;
    let told = rounds(&stage, &mut results);
    stage.down()?;
    // What was measured is worth having also when the rest was interrupted.
    let text = tables(&results);
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    put_json(&arguments.out, "page.json", &results)?;
    eprintln!("{}", write_page(&arguments.out, &results)?.display());
    told?;
    Ok(results.rows.iter().all(|row| row.failed.is_none()))
}

/// Every row once in each round; a row that has failed is left out from then on.
fn rounds(stage: &Stage<'_>, results: &mut Results) -> Result<(), String> {
    let mut random = Rng::with_seed(results.seed);
    for round in 1..=results.rounds {
        let mut order: Vec<usize> = (0..results.rows.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let row = &mut results.rows[index];
            if row.failed.is_some() {
                continue;
            }
            let title = &row.stack.title;
            eprint!("\x1b[2K\rround {round} of {}: {title}", results.rounds);
            match stage.page(&row.stack, results.objects, results.bytes) {
                Ok(loaded) => row.samples.push(loaded.sample(is_concurrent(&row.stack))),
                Err(error) => {
                    stage.check()?;
                    eprintln!("\x1b[2K\r{title}: {}", in_lines(&error));
                    row.failed = Some(error);
                }
            }
        }
    }
    eprint!("\x1b[2K\r");
    Ok(())
}

/// Returns whether all objects are asked for at once.
fn is_concurrent(stack: &Stack) -> bool {
    stack.protocol != Some(Protocol::H1s)
}

/// The path and the page in words.
fn caption(results: &Results) -> String {
    let Results { objects, bytes, shape, rounds, .. } = results;
    let rate = shape.rate.map(|rate| format!(", {}", shown_rate(rate as f64)));
    format!(
        "{objects} objects of {bytes} bytes, round trip {}, loss {}{}, TCP with {}, {rounds} {}",
        shown_time(shape.delay * 2),
        shown_share(shape.loss),
        rate.unwrap_or_default(),
        results.congestion_control,
        if *rounds == 1 { "round" } else { "rounds" },
    )
}

const HEADS: [&str; 7] = ["server", "page ms", "range", "first", "half", "¾", "× its HTTP/2"];

/// The rows, heads first, in the order of their servers.
fn rows(results: &Results) -> Vec<Vec<String>> {
    let ratio = |row: &Row| {
        let is_other = |other: &&Row| {
            other.stack.name == row.stack.name && other.stack.protocol == Some(Protocol::H2)
        };
        let other =
            results.rows.iter().find(is_other).filter(|other| !std::ptr::eq(*other, row))?;
        row.over(other)
    };
    let all: Vec<_> = results.rows.iter().filter_map(|row| Some((ratio(row)?, None))).collect();
    let rule = Rule::of(&all, &[]);
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    for row in &results.rows {
        let ms = |value: Option<f64>| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0}"))
        };
        let part = |part| ms(row.median(part));
        let all = spread(&row.all());
        rows.push(vec![
            row.stack.title.clone(),
            ms(all.map(|all| all.mid)),
            match all {
                None => "failed".to_owned(),
                Some(all) => format!("{:.0}–{:.0}", all.low, all.high),
            },
            part(|parts| parts.first_ms),
            part(|parts| parts.half_ms),
            part(|parts| parts.three_quarters_ms),
            ratio(row)
                .map_or_else(|| "–".to_owned(), |found| verdict_text(&rule.judge(&found, None))),
        ]);
    }
    rows
}

/// Everything for the terminal.
fn tables(results: &Results) -> String {
    format!("{}\n\n{}", caption(results), aligned(&mut rows(results)))
}

/// Writes `page.html`; returns it.
pub(super) fn write_page(out: &Path, results: &Results) -> Result<PathBuf, String> {
    let lead = format!(
        "{} · {} · {}",
        report::date(results.started_unix_s),
        results.machine.cpu,
        results.machine.kernel
    );
    let versions = results.versions.iter().map(|(name, version)| format!("{name}: {version}. "));
    let notes = [
        "Each page is loaded over new connections, one with all requests at once or six of HTTP/1.1, from the first packet to \
         the last byte; interleaved rounds, medians. × its HTTP/2: the page's time over that of the same server over \
         HTTPS/2 in the same rounds, with the interval of races."
            .to_owned(),
        versions.collect(),
    ];
    let skipped: Vec<String> =
        results.skipped.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let heads = ["first object", "half", "three quarters", "all"].map(str::to_owned);
    let line = |row: &Row| {
        let parts: [fn(&Parts) -> f64; 3] =
            [|parts| parts.first_ms, |parts| parts.half_ms, |parts| parts.three_quarters_ms];
        let all = parts.into_iter().map(|part| row.median(part)).chain([median(&row.all())]);
        (row.stack.title.clone(), all.collect())
    };
    let concurrent = results.rows.iter().filter(|row| is_concurrent(&row.stack));
    let plots = sweeps::lines(
        "Milliseconds until the objects are there",
        &heads,
        &concurrent.map(line).collect::<Vec<_>>(),
    );
    let section = Section { head: caption(results), plots, rows: rows(results) };
    let title = "A page over a long path";
    put(out, "page.html", report::plain_page(title, &lead, &notes, &[section], &skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let row = |name: &str, protocol: Protocol, ms: f64| Row {
            stack: Stack {
                name: name.to_owned(),
                title: format!("{name} {}", protocol.title()),
                protocol: Some(protocol),
                uploads: false,
                way: Way::Direct,
            },
            samples: (0..8)
                .map(|round| Sample { parts: None, all_ms: ms + f64::from(round) })
                .collect(),
            failed: None,
        };
        Results {
            started_unix_s: 0,
            machine: Machine::here(&[0, 1], &[0], &[1]),
            objects: 32,
            bytes: 20_000,
            shape: Shape { delay: Duration::from_millis(25), loss: 0.01, ..Shape::default() },
            rounds: 8,
            seed: 1,
            congestion_control: "cubic".to_owned(),
            rows: vec![
                row("one", Protocol::H1s, 900.0),
                row("one", Protocol::H2, 600.0),
                row("one", Protocol::H3, 300.0),
                Row {
                    samples: Vec::new(),
                    failed: Some("<no>".to_owned()),
                    ..row("two", Protocol::H2, 1.0)
                },
            ],
            versions: Vec::new(),
            skipped: vec![("h2o".to_owned(), "`h2o` is not in PATH".to_owned())],
        }
    }

    #[test]
    fn each_server_is_compared_with_its_own_http2() {
        let text = tables(&results());
        let line = |start: &str| {
            let found = text.lines().find(|line| line.trim_start().starts_with(start));
            found.unwrap_or_else(|| panic!("no {start}: {text}"))
        };
        assert!(text.contains("round trip 50 ms, loss 1 %"), "{text}");
        assert!(line("one HTTP/3").contains("0.50"), "{text}");
        assert!(line("one HTTPS/1.1").contains("1.5"), "{text}");
        assert!(line("one HTTPS/2").ends_with('–'), "{text}");
        assert!(line("two").contains("failed"), "{text}");
    }
}
