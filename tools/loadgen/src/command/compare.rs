//! `bolide load compare`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use bolide_probe::report::Report;

use super::{BROKEN, USAGE};
use crate::comparison::{self, Difference};
use crate::options::CompareArguments;
use crate::output::{in_lines, in_one_line};

/// Compares two files. The exit code is 0 when nothing is worse, 3 when something is, 2 when they can't be compared.
pub(super) fn run(runs: &CompareArguments) -> ExitCode {
    let found = read(&runs.first).and_then(|first| {
        let second = read(&runs.second)?;
        comparison::compare(&first, &second, runs.tolerance)
            .map_err(|why| format!("the runs can't be compared: {why}"))
    });
    match found {
        Ok(found) => {
            // The exit code says the same where the output is not read.
            let _ = io::stdout().write_all(in_lines(&comparison::text(&found)).as_bytes());
            let is_worse = found.iter().any(|of| of.difference == Difference::Worse);
            ExitCode::from(if is_worse { BROKEN } else { 0 })
        }
        Err(mistake) => {
            eprintln!("bolide: {}", in_one_line(&mistake));
            ExitCode::from(USAGE)
        }
    }
}

fn read(path: &Path) -> Result<Report, String> {
    let text = fs::read(path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
    serde_json::from_slice(&text)
        .map_err(|error| format!("{} is not a report of --json: {error}", path.display()))
}
