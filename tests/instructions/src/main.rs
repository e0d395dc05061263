//! Counts instructions per request and compares them with the committed baseline.
#![allow(clippy::print_stdout, reason = "a task writes to its terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bolide_instructions::{
    Baseline, PAGE, ROWS, Row, Valgrind, Verdict, annotated, check, json, line, title,
};
use clap::Parser;
use clap::builder::PossibleValuesParser;

/// The exit code for a command line that can't be carried out here.
const USAGE: u8 = 2;

/// Counts the user instructions of `bolide serve` per request under callgrind, and compares them with
/// tests/instructions/baseline.json.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask instructions")]
struct Arguments {
    /// Count this row alone.
    #[arg(long, value_name = "ROW", value_parser = names())]
    row: Option<String>,

    /// Show which functions and lines of source a row's instructions go to; nothing is compared.
    #[arg(long, value_name = "ROW", value_parser = names(), conflicts_with_all = ["row", "json", "update"])]
    annotate: Option<String>,

    /// Write the table to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Make what is counted the new baseline.
    #[arg(long)]
    update: bool,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(ROWS.iter().map(|row| row.name))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let valgrind = match Valgrind::find() {
        Ok(valgrind) => valgrind,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(USAGE);
        }
    };
    let done = match arguments.annotate.as_deref().and_then(Row::named) {
        Some(row) => annotate(&valgrind, row),
        None => compare(&valgrind, &arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn annotate(valgrind: &Valgrind, row: &Row) -> Result<(), String> {
    print!("{}", annotated(row.name, &valgrind.count(row)?));
    Ok(())
}

/// Counts rows and prints their table; an error if a row is above its baseline or has none.
fn compare(valgrind: &Valgrind, arguments: &Arguments) -> Result<(), String> {
    let path = Baseline::path();
    let mut baseline = Baseline::read(&path)?;
    let chosen = |row: &&Row| arguments.row.as_ref().is_none_or(|name| name == row.name);
    let mut counted_rows = Vec::new();
    for row in ROWS.iter().filter(chosen) {
        let counted = valgrind.count(row).map_err(|why| format!("{}: {why}", row.name))?;
        counted_rows.push((row.name, counted));
    }
    let counts: Vec<_> =
        counted_rows.iter().map(|(name, counted)| (*name, counted.per_request())).collect();
    // At the end, for servers talk while they run.
    println!("{}", title());
    for (name, per_request) in &counts {
        println!("{}", line(name, *per_request, &baseline));
    }
    if let Some(file) = &arguments.json {
        std::fs::write(file, json(&counts, &baseline))
            .map_err(|error| format!("can't write {}: {error}", file.display()))?;
    }
    if arguments.update {
        for (name, per_request) in &counts {
            baseline.set(name, *per_request);
        }
        baseline.write(&path)?;
        println!("wrote {}", path.display());
        return Ok(());
    }
    let of = |verdict| -> Vec<&str> {
        let rows = counts.iter().filter(|(name, count)| baseline.judge(name, *count) == verdict);
        rows.map(|(name, _)| *name).collect()
    };
    let below = of(Verdict::Below);
    if !below.is_empty() {
        println!(
            "below the baseline by more than the count varies: {}; make that the baseline by --update",
            below.join(", ")
        );
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let page = std::fs::read_to_string(&page)
        .map_err(|error| format!("can't read {}: {error}", page.display()))?;
    check(&page, &counted_rows)?;
    let above = [of(Verdict::Above), of(Verdict::Unknown)].concat();
    if above.is_empty() {
        return Ok(());
    }
    Err(format!(
        "above the baseline by more than the count varies, or without one: {}; see --annotate ROW, or accept it by --update",
        above.join(", ")
    ))
}
