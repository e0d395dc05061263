//! `bolide measure`, from its arguments to its exit code.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use bolide_semantics::{in_lines, in_one_line, is_terminal_order};
use serde::Serialize;

use crate::arguments::Arguments;
use crate::output::live::Live;
use crate::output::speed;
use crate::output::text::summary;
use crate::responsiveness;
use crate::transfer;

/// The exit code of a transfer that failed, or that was ended before its end.
const FAILED: u8 = 1;

/// The exit code of a usage or configuration mistake.
const USAGE: u8 = 2;

/// Runs what the arguments ask for. The exit code is 0 when all was transferred, 1 when not, 2 when
/// nothing was sent because of a mistake in the arguments. Ctrl-C and SIGTERM end it with what was done
/// until then, and 1; the second one ends the process at once.
pub fn run(arguments: &Arguments) -> ExitCode {
    match measure(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(mistake) => {
            eprintln!("bolide: {}", in_lines(&mistake));
            ExitCode::from(USAGE)
        }
    }
}

fn measure(arguments: &Arguments) -> Result<u8, String> {
    if arguments.probes.rpm {
        return score(arguments);
    }
    let plan = arguments.plan()?;
    can_be_written(arguments)?;
    plan.stop.at_signals();
    let mut live = (!arguments.quiet).then(|| Live::new(io::stderr(), io::stderr().is_terminal()));
    let report = transfer::run(&plan, &mut |progress| {
        if let Some(live) = &mut live {
            // What is shown is never a reason to end.
            let _ = live.show(progress);
        }
    })?;
    if let Some(live) = &mut live {
        let _ = live.clear();
    }
    let code = finish(arguments, &report, &summary(&report), report.end.error.as_deref())?;
    Ok(if report.end.interrupted { FAILED } else { code })
}

/// Responsiveness instead of a transfer.
fn score(arguments: &Arguments) -> Result<u8, String> {
    let plan = arguments.responsiveness()?;
    can_be_written(arguments)?;
    plan.stop.at_signals();
    let mut announce = |what: &str| eprintln!("bolide: {}", in_one_line(what));
    let report = responsiveness::run(&plan, &mut announce, &mut |progress| {
        if !arguments.quiet {
            let rpm = progress.rpm.map(|rpm| format!(", {rpm:.0} RPM")).unwrap_or_default();
            eprintln!(
                "{} {}: {} over {} connections{rpm}",
                progress.direction.name(),
                progress.interval,
                speed(progress.goodput),
                progress.connections,
            );
        }
    })?;
    finish(arguments, &report, &responsiveness::summary(&report), report.error.as_deref())
}

/// A report that has no place is found out before anything is measured.
fn can_be_written(arguments: &Arguments) -> Result<(), String> {
    match arguments.json.as_deref() {
        Some(path) if path != Path::new("-") => {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            opened.map(drop).map_err(|error| format!("--json {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Shows and writes what was found.
pub(crate) fn finish(
    arguments: &Arguments,
    report: &impl Serialize,
    text: &str,
    error: Option<&str>,
) -> Result<u8, String> {
    let to_standard_output = arguments.json.as_deref() == Some(Path::new("-"));
    if !arguments.quiet {
        let text = in_lines(text);
        // A closed output is no reason to lose the file.
        let _ = if to_standard_output {
            io::stderr().write_all(text.as_bytes())
        } else {
            io::stdout().write_all(text.as_bytes())
        };
    }
    if let Some(path) = &arguments.json {
        let json = serde_json::to_string(report).map_err(|error| error.to_string())?;
        let json = plain(&json) + "\n";
        let written = if to_standard_output {
            io::stdout().write_all(json.as_bytes())
        } else {
            std::fs::write(path, json)
        };
        written.map_err(|error| format!("--json {}: {error}", path.display()))?;
    }
    if let Some(error) = error {
        eprintln!("bolide: {}", in_one_line(error));
        return Ok(FAILED);
    }
    Ok(0)
}

/// JSON without what a terminal obeys: only its strings have such, as a server said it.
fn plain(json: &str) -> String {
    let mut plain = String::with_capacity(json.len() + 1);
    for one in json.chars() {
        if is_terminal_order(one) {
            plain.push_str(&format!("\\u{:04x}", u32::from(one)));
        } else {
            plain.push(one);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_no_orders_to_the_terminal_and_says_the_same() {
        let said = "a\x1b[2J\u{9b}31m\u{7f}\u{202e}\n\u{e9}";
        let json = plain(&serde_json::to_string(said).unwrap());
        assert_eq!(json, r#""a\u001b[2J\u009b31m\u007f\u202e\né""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), said);
    }
}
