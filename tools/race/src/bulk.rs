//! `bolide net bulk`: one transfer through the lab, by every stack, in both directions, in
//! interleaved rounds; what it costs both sides, and who was full. `bolide net page`: a page of small objects over a
//! path that is long and loses packets.

mod browser;
mod client;
mod course;
mod loaded;
mod outcome;
mod page;
mod prepared;
mod show;
mod stack;
mod stage;
mod sweep;
mod swept;
mod watched;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bolide_netlab::quantity;
use bolide_semantics::in_lines;
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::report::Part;

pub use page::{PageArguments, run_page};

/// Payload of a transfer (1 GiB), rounds, and how long a transfer may take, where nothing else is said.
const BYTES: u64 = 1 << 30;
const ROUNDS: u32 = 5;
const TIMEOUT: Duration = Duration::from_secs(60);

const AFTER_HELP: &str = "Examples:
  bolide net bulk
      every stack that is here, download and upload of 1 GiB, five rounds
  bolide net bulk --only bolide,go --rounds 9 --bytes 4GiB
  bolide net bulk --only bolide --sweep streams,windows,rtt

The lab is made and removed by this command: client – router – server, unshaped, cubic. The server runs
on the first core, the client (`bolide measure`, or a browser) and what a proxy asks on the second. Exit codes: 0 fine; 1 a transfer failed;
2 usage.";

/// The arguments of `bolide net bulk`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(flatten)]
    setting: Setting,

    /// Payload of a transfer.
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = bolide_units::size)]
    bytes: u64,

    /// How many rounds.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Besides: streams (1 to 16), windows (frame size and receive window), rtt (0 to 100 ms at
    /// 500 Mbit/s).
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    sweep: Vec<sweep::Sweep>,

    /// Directory of `bulk.html` and `bulk.json`.
    #[arg(long, value_name = "DIR", default_value = "bulk")]
    out: PathBuf,
}

/// Settings of a measurement in a lab.
#[derive(Debug, Args)]
struct Setting {
    /// Only these stacks: raw, chromium, or contenders by name.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// Congestion control of TCP.
    #[arg(short = 'C', long, value_name = "NAME", default_value = "cubic")]
    congestion: String,

    /// The program that is the contender `bolide`. Default: this one.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// The program whose `measure` or `load` is the client. Default: this one.
    #[arg(long, value_name = "FILE")]
    client: Option<PathBuf>,

    /// The directory of the contenders' files. Default: `contenders` here or above, else those that
    /// this program carries.
    #[arg(long, value_name = "DIR")]
    contenders: Option<PathBuf>,

    /// The seed of the order of the rounds, and of what the path loses.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// How long one transfer may take.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::time)]
    timeout: Duration,
}

/// Settings that a race passes on to its bulk table.
pub(crate) struct OfRace {
    pub(crate) only: Vec<String>,
    pub(crate) rounds: Option<u32>,
    pub(crate) contenders: Option<PathBuf>,
    pub(crate) seed: Option<u64>,
    pub(crate) out: PathBuf,
}

impl OfRace {
    /// Fills the table T11. `Ok(false)`: a transfer failed.
    ///
    /// # Errors
    ///
    /// One sentence: a wrong name, or a machine on which no lab can be made.
    pub(crate) fn run(self) -> Result<bool, String> {
        let Self { mut only, rounds, contenders, seed, out } = self;
        if !only.is_empty() {
            // What the others are compared with.
            only.insert(0, "raw".to_owned());
        }
        course::run(&Arguments {
            setting: Setting {
                only,
                congestion: "cubic".to_owned(),
                program: None,
                client: None,
                contenders,
                seed: seed.unwrap_or(1),
                timeout: TIMEOUT,
            },
            bytes: BYTES,
            rounds: rounds.unwrap_or(ROUNDS),
            sweep: Vec::new(),
            out,
        })
    }
}

/// Returns what `bulk.json` in a directory says, as a part of a race's page; `None` where there is none. One that can't be read is a warning: a race
/// that took an hour has its page even if a file next to it is broken.
pub(crate) fn part(directory: &Path) -> Option<Part> {
    show::part(directory).unwrap_or_else(|error| {
        eprintln!("warning: {error}; the report is without bulk transfers");
        None
    })
}

/// Writes the page of a published `bulk.json` or `page.json`, and returns it; `None` where the file has another name.
///
/// # Errors
///
/// The file can't be read, or the page can't be written.
pub(crate) fn report(file: &Path, out: &Path) -> Result<Option<PathBuf>, String> {
    match file.file_name().and_then(OsStr::to_str) {
        Some("bulk.json") => show::write_page(out, &read(file)?).map(Some),
        Some("page.json") => page::write_page(out, &read(file)?).map(Some),
        _ => Ok(None),
    }
}

/// The figures in a file.
fn read<T: DeserializeOwned>(file: &Path) -> Result<T, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Writes a file of a report.
fn put(out: &Path, name: &str, text: String) -> Result<PathBuf, String> {
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let file = out.join(name);
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}

/// Writes figures next to a report.
fn put_json(out: &Path, name: &str, figures: &impl Serialize) -> Result<(), String> {
    let json = serde_json::to_string(figures).map_err(|error| error.to_string())?;
    put(out, name, json + "\n").map(drop)
}

/// Carries the command out.
pub fn run(arguments: &Arguments) -> ExitCode {
    exit("bulk", course::run(arguments))
}

/// Returns whether all of it was measured; otherwise why there is nothing.
fn exit(command: &str, result: Result<bool, String>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(mistake) => {
            eprintln!("bolide net {command}: {}", in_lines(&mistake));
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_asks_for_stacks_by_their_names() {
        let only = vec!["nobody".to_owned()];
        let out = std::env::temp_dir().join("bolide-t11-nobody");
        let table = OfRace { only, rounds: None, contenders: None, seed: None, out: out.clone() };
        let told = table.run().unwrap_err();
        assert!(told.contains("nobody: no such stack") || told.contains("a core each"), "{told}");
        assert!(!out.exists());
    }
}
