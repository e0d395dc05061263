//! `bolide race`: its arguments, and what they lead to.

mod history;
mod reference;
mod session;
mod start;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bolide_probe::nearest::suggestion;
use bolide_semantics::in_lines;
use clap::{Args, Subcommand};

use crate::catalogue::Selection;
use crate::generator::Generator;
use crate::rounds::Rounds;
use crate::table::Columns;

/// How the command ends when a server answered wrong, died or did not start, or on Ctrl-C.
const FAILED: u8 = 1;

/// How it ends when it was asked for something that can't be done.
const USAGE: u8 = 2;

const AFTER_HELP: &str = "Examples:
  bolide race --quick
      two to three minutes: three workloads, with every server that is here
  bolide race --table T1,T6 --only bolide,go,nginx
      two tables with three servers, 12 to 30 rounds depending on the noise
  bolide race --seeds
      all tables of the published reports; after Ctrl-C, the same command resumes
  bolide race --quick --contender 'name=mine;cmd=./server --port {port};tls=no'
      adds a server: `{port}`, `{tlsport}`, `{cert}`, `{key}`, `{www}`, `{run}`, `{workers}` and
      `{backend}` are replaced; routes=ping,static-6:/six.txt and h2c=no state what it supports
  bolide race compare 3 5
      compares two races, workload by workload

A server is timed only after its responses were right, byte for byte. All servers run in interleaved
rounds in random order, one of them twice. The main figure is the server's CPU time per request; requests per
second are a lower bound where the load generator was the limit. A difference is claimed from six
pairs of runs, when all workloads are measured: at most 5 % of the claims are false, by expectation.

Exit codes: 0 success; 1 a server sent a wrong response, died or did not start, or Ctrl-C; 2 usage.";

/// The arguments of `bolide race`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    race: RaceArguments,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists tables, contenders and stored races.
    List(Where),
    /// Prints the tables of a stored race and writes its report again.
    Show {
        /// Number of the race. Default: the latest.
        race: Option<u32>,
        /// Print all columns: ranges, pairs, memory and the use of each side's cores, too.
        #[arg(long)]
        wide: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Compares two stored races, workload by workload.
    Compare {
        /// Number of the older race.
        old: u32,
        /// Number of the newer race.
        new: u32,
        #[command(flatten)]
        place: Where,
    },
    /// Writes the report of a published `results.json`, `bulk.json` or `page.json`.
    Report {
        /// File to read.
        results: PathBuf,
        #[command(flatten)]
        place: Where,
    },
    /// Starts one contender as a race does, prints its address and process as JSON, and stops it on Ctrl-C.
    Start(start::StartArguments),
    /// Repeats the race that a manifest describes (`manifest.json` or `results.json` of a report).
    Replay {
        /// File to read.
        manifest: PathBuf,
        /// Use the contenders of another directory.
        #[arg(long, value_name = "DIR")]
        contenders: Option<PathBuf>,
        #[command(flatten)]
        place: Where,
    },
}

#[derive(Debug, Clone, Args)]
struct Where {
    /// Directory of the races and the report.
    #[arg(long, value_name = "DIR", default_value = "race")]
    out: PathBuf,
}

#[derive(Debug, Clone, Args)]
struct RaceArguments {
    /// Three workloads, at least seven rounds: about three minutes after the builds.
    #[arg(long, conflicts_with_all = ["seeds", "table"])]
    quick: bool,

    /// All tables of the published reports: T1 to T10 and T12 to T22.
    #[arg(long, conflicts_with = "table")]
    seeds: bool,

    /// Run only these tables, such as `T1,T6`, `distinct`, `handshakes`, `idle` or `latency`. T11 moves bulk data
    /// through a lab, as `bolide net bulk` does: it needs root and Linux.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    table: Vec<String>,

    /// Run only these contenders.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// Add a contender: `name=…;cmd=…`. May be repeated.
    #[arg(long, value_name = "KEY=VALUE;…")]
    contender: Vec<String>,

    /// Directory of the contenders' files. Default: `contenders` in this directory or above, otherwise the files
    /// that this program contains.
    #[arg(long, value_name = "DIR")]
    contenders: Option<PathBuf>,

    /// Contender with which all others are compared; it runs twice. Default: `bolide`, or the first contender where
    /// `bolide` takes no part.
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,

    /// Load generator: `bolide` (`bolide load`) or `h2load+wrk`.
    #[arg(long, value_name = "NAME", value_parser = generator)]
    generator: Option<Generator>,

    /// Number of rounds (nothing is claimed below 6), or `auto`: 12 to 30, depending on the noise of the first 12.
    #[arg(long, value_name = "N|auto", value_parser = Rounds::parse)]
    rounds: Option<Rounds>,

    /// Measured time of each run, such as `2s` or `500ms` (default: 2s; less in a quick race).
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// After the rounds of a workload, profile the contenders that support it, in separate runs.
    #[arg(long)]
    profile: bool,

    /// Seed of the order, the sizes and the bodies. Default: from the clock.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Install what contenders on this machine lack, with the commands that their files name (apt-get).
    #[arg(long)]
    install: bool,

    /// Start again instead of resuming a stopped race.
    #[arg(long)]
    fresh: bool,

    /// Run on an unsuitable machine, too.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    place: Where,
}

impl RaceArguments {
    fn selection(&self) -> Selection {
        if self.quick {
            Selection::Quick
        } else if self.seeds {
            Selection::Seeds
        } else if self.table.is_empty() {
            Selection::Everything
        } else {
            Selection::Named(self.table.clone())
        }
    }
}

/// Carries the command out.
pub fn run(arguments: &Arguments) -> ExitCode {
    let result = match &arguments.action {
        None => session::race(&arguments.race),
        Some(Action::List(place)) => history::list(&place.out).map(|()| true),
        Some(Action::Show { race, wide, place }) => {
            let columns = if *wide { Columns::All } else { Columns::Main };
            history::show(*race, &place.out, columns).map(|()| true)
        }
        Some(Action::Report { results, place }) => {
            history::report(results, &place.out).map(|()| true)
        }
        Some(Action::Compare { old, new, place }) => {
            history::compare(*old, *new, &place.out).map(|()| true)
        }
        Some(Action::Start(arguments)) => start::start(arguments).map(|()| true),
        Some(Action::Replay { manifest, contenders, place }) => {
            session::replay(manifest, contenders.as_deref(), &place.out)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(mistake) => {
            eprintln!("bolide race: {}", in_lines(&mistake));
            ExitCode::from(USAGE)
        }
    }
}

fn generator(text: &str) -> Result<Generator, String> {
    match text {
        "bolide" => Ok(Generator::Bolide),
        "h2load+wrk" | "wrk+h2load" => Ok(Generator::H2loadAndWrk),
        _ => Err(format!("unknown generator `{text}`; {}", suggestion(text, &Generator::NAMES))),
    }
}

/// Reads `2s`, `500ms`, `1.5`.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if (0.1..=600.0).contains(&(value * factor)) => {
            Ok(Duration::from_secs_f64(value * factor))
        }
        _ => Err(format!("`{text}` is not a time between 100ms and 600s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "s", "-1s", "1h", "1e9", "nan", "50ms"] {
            assert!(duration(wrong).unwrap_err().contains("100ms and 600s"), "{wrong}");
        }
    }

    #[test]
    fn generators_are_named() {
        assert_eq!(generator("bolide"), Ok(Generator::Bolide));
        assert!(generator("bolid").unwrap_err().contains("did you mean `bolide`?"));
    }
}
