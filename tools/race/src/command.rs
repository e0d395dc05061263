//! `bolide race`: its arguments, and what they lead to.

mod history;
mod progress;
mod reference;
mod session;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bolide_semantics::in_lines;
use clap::{Args, Subcommand};

use crate::catalogue::Selection;
use crate::generator::Generator;
use crate::nearest::suggestion;
use crate::rounds::Rounds;

/// How the command ends when a server answered wrong, died or did not start, or on Ctrl-C.
const FAILED: u8 = 1;

/// How it ends when it was asked for something that can't be done.
const USAGE: u8 = 2;

const AFTER_HELP: &str = "Examples:
  bolide race --quick
      two to three minutes: three workloads, with every server that is here
  bolide race --table T1,T6 --only bolide,go,nginx
      two tables with three servers, 12 to 30 rounds as the noise asks for
  bolide race --seeds
      every table that others have published; stopped with Ctrl-C, it goes on where it was
  bolide race --quick --contender 'name=mine;cmd=./server --port {port};tls=no'
      one more server: `{port}`, `{tlsport}`, `{cert}`, `{key}`, `{www}`, `{run}`, `{workers}` and
      `{backend}` are filled in; routes=ping,static-6:/six.txt and h2c=no say what it can do
  bolide race compare 3 5
      two races, cell by cell

A server is timed only after it has answered right, byte for byte. All run in interleaved rounds in
random order, one of them twice. The main figure is the server's CPU time per request; requests per
second are a lower bound where the load generator was the limit. A difference is claimed from six
pairs of runs, when all workloads are measured: at most 5 % of the claims are false, by expectation.

Exit codes: 0 fine; 1 a server answered wrong, died or did not start, or Ctrl-C; 2 usage.";

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
    /// All races that are stored.
    List(Where),
    /// The tables of a stored race, and its report anew.
    Show {
        /// Its number; without it, the latest.
        race: Option<u32>,
        #[command(flatten)]
        place: Where,
    },
    /// Two stored races side by side.
    Compare {
        /// The older one's number.
        old: u32,
        /// The newer one's number.
        new: u32,
        #[command(flatten)]
        place: Where,
    },
    /// Runs what a manifest describes (`manifest.json` or `results.json` of a report).
    Replay {
        /// The file.
        manifest: PathBuf,
        /// Takes another folder's contenders.
        #[arg(long, value_name = "DIR")]
        contenders: Option<PathBuf>,
        #[command(flatten)]
        place: Where,
    },
}

#[derive(Debug, Clone, Args)]
struct Where {
    /// Where the races and the report are.
    #[arg(long, value_name = "DIR", default_value = "race")]
    out: PathBuf,
}

#[derive(Debug, Clone, Args)]
struct RaceArguments {
    /// Two to three minutes: one workload of each protocol, at least seven rounds.
    #[arg(long, conflicts_with_all = ["seeds", "table"])]
    quick: bool,

    /// Every table that others have published: T1 to T10 and T12 to T22.
    #[arg(long, conflicts_with = "table")]
    seeds: bool,

    /// Only these tables, such as `T1,T6` or `handshakes`, `idle`, `latency`, `cores`. T11 moves bulk data through
    /// a lab, as `bolide net bulk` does: as root, on Linux.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    table: Vec<String>,

    /// Only these contenders.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// One more contender: `name=…;cmd=…`. May be repeated.
    #[arg(long, value_name = "KEY=VALUE;…")]
    contender: Vec<String>,

    /// The folder of the contenders' files. Default: `contenders` here or above, else those that
    /// this program carries.
    #[arg(long, value_name = "DIR")]
    contenders: Option<PathBuf>,

    /// Whom the others are compared with; it also runs twice. Default: `bolide`, or
    /// the first contender that plays where `bolide` doesn't.
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,

    /// Who makes the load: `bolide` (`bolide load`) or `h2load+wrk`.
    #[arg(long, value_name = "NAME", value_parser = generator)]
    generator: Option<Generator>,

    /// How many rounds: a number (nothing is claimed below 6), or `auto`: 12 to 30, as the noise of the first 12 asks for.
    #[arg(long, value_name = "N|auto", value_parser = Rounds::parse)]
    rounds: Option<Rounds>,

    /// What is counted of each run, such as `2s` or `500ms` (default 2s; less in a quick race).
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// After the rounds of a workload, has those contenders that can tell it say where their CPU time goes: in a
    /// run of its own, so that no timed round is measured from inside.
    #[arg(long)]
    profile: bool,

    /// The seed of the order and of the sizes that are tried. Default: from the clock.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Installs what contenders on this machine lack, by the commands that they name (apt-get).
    #[arg(long)]
    install: bool,

    /// Begins anew, also where a race like this one was stopped.
    #[arg(long)]
    fresh: bool,

    /// Runs also on a machine that is not fit for it.
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
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let result = match &arguments.action {
        None => session::race(&arguments.race),
        Some(Action::List(place)) => history::list(&place.out).map(|()| true),
        Some(Action::Show { race, place }) => history::show(*race, &place.out).map(|()| true),
        Some(Action::Compare { old, new, place }) => {
            history::compare(*old, *new, &place.out).map(|()| true)
        }
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
        _ => Err(format!("no generator `{text}`; {}", suggestion(text, &Generator::NAMES))),
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
        _ => Err(format!("`{text}` is no time between 100ms and 600s")),
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
