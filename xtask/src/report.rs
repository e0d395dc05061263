//! Record of what ran, what passed, failed or was skipped, and the one line that sums it up.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::cores;

/// A test that can't run here says so in a line that begins like this.
const SKIPPED: &str = "SKIPPED: ";

/// How many lines of what a failed test said are repeated at the end.
const REPEATED_LINES: usize = 12;

/// Commands that run concurrently with the steps.
pub(crate) struct Begun(JoinHandle<Vec<(String, Ended)>>);

/// How a command ended that was run without showing what it said.
struct Ended {
    lines: Vec<String>,
    result: std::io::Result<bool>,
    time: Duration,
}

/// Counts, and what has to be repeated at the end.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: u64,
    failed: u64,
    ignored: u64,
    failures: Vec<String>,
    skips: BTreeSet<String>,
    times: Vec<(String, Duration)>,
}

impl Report {
    /// Runs a command as one step: it passes if the command ends well.
    pub(crate) fn step(&mut self, name: &str, mut command: Command) {
        self.run(name, false, |tally| shown(&mut command, tally));
    }

    /// Runs `cargo test` as a step in which every test counts.
    pub(crate) fn tests(&mut self, name: &str, mut command: Command) {
        self.run(name, true, |tally| shown(&mut command, tally));
    }

    /// Begins commands that are steps of their own and run concurrently with the others, one after the other. What they say is shown
    /// when they are [waited for](Self::end).
    pub(crate) fn begin(&self, steps: Vec<(String, Command)>) -> Begun {
        let names: Vec<&str> = steps.iter().map(|(name, _)| name.as_str()).collect();
        println!("\n==> {}: begins", names.join(", then "));
        let run = || steps.into_iter().map(|(name, command)| (name, quietly(command))).collect();
        Begun(thread::spawn(run))
    }

    /// Waits for commands that were begun; the time of each is its own.
    pub(crate) fn end(&mut self, begun: Begun) {
        for (name, ended) in begun.0.join().expect("nothing in the thread panics") {
            self.ended(&name, ended, "");
        }
    }

    /// Runs talkative commands as steps, one on each core at a time: what they say is shown only if they end badly, but
    /// for the lines that begin like `worth`.
    pub(crate) fn quiet_steps(&mut self, steps: Vec<(String, Command)>, worth: &str) {
        let (waiting, ended) = (Mutex::new(steps.into_iter()), Mutex::new(Vec::new()));
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some((name, command)) = next() {
                let step = (name, quietly(command));
                ended.lock().unwrap_or_else(PoisonError::into_inner).push(step);
            }
        };
        thread::scope(|scope| {
            for _ in 0..cores() {
                scope.spawn(work);
            }
        });
        for (name, ended) in ended.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.ended(&name, ended, worth);
        }
    }

    /// Counts a command that was run without showing what it said: shows all of it if it ended badly, and else the lines that
    /// begin like `worth`.
    fn ended(&mut self, name: &str, ended: Ended, worth: &str) {
        let Ended { lines, result, time } = ended;
        self.run(name, false, |_| {
            let ended_well = result?;
            for line in lines.iter().filter(|line| !ended_well || line.starts_with(worth)) {
                println!("{line}");
            }
            Ok(ended_well)
        });
        if let Some(last) = self.times.last_mut() {
            last.1 = time;
        }
    }

    /// Runs a check of our own as one step: it passes if it finds nothing.
    pub(crate) fn check(&mut self, name: &str, check: impl FnOnce() -> Vec<String>) {
        println!("\n==> {name}");
        let start = Instant::now();
        let findings = check();
        for finding in &findings {
            println!("{finding}");
        }
        self.times.push((name.to_owned(), start.elapsed()));
        if findings.is_empty() {
            self.passed += 1;
        } else {
            self.failed += 1;
            self.failures.push(format!("{name}: {} findings, see above", findings.len()));
        }
    }

    fn run(
        &mut self,
        name: &str,
        counts_tests: bool,
        step: impl FnOnce(&mut Tally) -> std::io::Result<bool>,
    ) {
        println!("\n==> {name}");
        let start = Instant::now();
        let mut tally = Tally::default();
        let ended_well = match step(&mut tally) {
            Ok(ended_well) => ended_well,
            Err(error) => {
                println!("{name} can't be run: {error}");
                false
            }
        };
        self.times.push((name.to_owned(), start.elapsed()));
        if counts_tests {
            let skipped = tally.skips.len() as u64;
            self.passed += tally.passed.saturating_sub(skipped);
            self.failed += tally.failed;
            self.ignored += tally.ignored;
            self.skips.append(&mut tally.skips);
            for test in &tally.failures {
                let mut failure = format!("{name}: {test}");
                for line in tally.said.get(test).into_iter().flatten() {
                    failure.push_str("\n    ");
                    failure.push_str(line);
                }
                self.failures.push(failure);
            }
        }
        if !ended_well && tally.failed == 0 {
            self.failed += 1;
            self.failures.push(format!("{name}: ended with an error, see above"));
        } else if ended_well && !counts_tests {
            self.passed += 1;
        }
    }

    /// Prints what is to be known about the whole run; the last line sums it up.
    pub(crate) fn finish(self) -> ExitCode {
        println!("\n==> Summary");
        for (name, time) in &self.times {
            println!("{:>7.1} s  {name}", time.as_secs_f64());
        }
        for skip in &self.skips {
            println!("{SKIPPED}{skip}");
        }
        for failure in &self.failures {
            println!("FAILED: {failure}");
        }
        println!("{}", self.line());
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn line(&self) -> String {
        let skipped = self.skips.len() as u64 + self.ignored;
        let counts = format!("{} passed, {} failed", self.passed, self.failed);
        if skipped == 0 { counts } else { format!("{counts}, {skipped} skipped") }
    }
}

/// Runs a command to its end and keeps what it says.
fn quietly(mut command: Command) -> Ended {
    let (start, mut lines) = (Instant::now(), Vec::new());
    let result = follow(&mut command, |line| lines.push(line.to_owned()));
    Ended { lines, result, time: start.elapsed() }
}

/// Runs a command to its end and repeats each of its lines at once.
fn shown(command: &mut Command, tally: &mut Tally) -> std::io::Result<bool> {
    follow(command, |line| {
        println!("{line}");
        tally.line(line);
    })
}

/// Runs a command to its end and shows each of its lines to `each` at once.
fn follow(command: &mut Command, mut each: impl FnMut(&str)) -> std::io::Result<bool> {
    let (reader, writer) = std::io::pipe()?;
    command.stdin(std::process::Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command keeps our ends of the pipe open: what it holds goes with it.
    *command = Command::new("true");
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        each(text.trim_end());
        line.clear();
    }
    Ok(child.wait()?.success())
}

/// Sums of the lines of `cargo test`.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    failures: Vec<String>,
    skips: BTreeSet<String>,
    /// The first lines of what each failed test said.
    said: BTreeMap<String, Vec<String>>,
    /// The test whose words are being repeated.
    says: Option<String>,
}

impl Tally {
    fn line(&mut self, line: &str) {
        if let Some(test) =
            line.strip_prefix("---- ").and_then(|test| test.strip_suffix(" stdout ----"))
        {
            self.says = Some(test.to_owned());
            return;
        }
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += count_before(counts, " passed");
            self.failed += count_before(counts, " failed");
            self.ignored += count_before(counts, " ignored");
        } else if let Some(test) =
            line.strip_prefix("test ").and_then(|test| test.strip_suffix(" ... FAILED"))
        {
            self.failures.push(test.to_owned());
        } else if let Some((_, what)) = line.split_once(SKIPPED) {
            self.skips.insert(what.to_owned());
        } else if line == "failures:" {
            self.says = None;
        } else if let Some(test) = &self.says {
            let said = self.said.entry(test.clone()).or_default();
            if said.len() < REPEATED_LINES && !line.is_empty() {
                said.push(line.to_owned());
            }
        }
    }
}

/// The number that stands before `word`, or 0.
fn count_before(text: &str, word: &str) -> u64 {
    let Some((before, _)) = text.split_once(word) else { return 0 };
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_cargo_test_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "SKIPPED: node is not installed (http2_by_node)",
            "failures:",
            "",
            "---- a::c stdout ----",
            "",
            "thread 'a::c' panicked at x.rs:1:1:",
            "no",
            "",
            "failures:",
            "    a::c",
            "",
            "test result: FAILED. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out",
            "test result: ok. 30 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            tally.line(line);
        }
        assert_eq!((tally.passed, tally.failed, tally.ignored), (42, 1, 2));
        assert_eq!(tally.failures, ["a::c"]);
        assert_eq!(tally.said["a::c"], ["thread 'a::c' panicked at x.rs:1:1:", "no"]);
        assert!(tally.skips.contains("node is not installed (http2_by_node)"));
    }

    #[test]
    fn a_skip_is_neither_passed_nor_failed() {
        let mut report = Report { passed: 3, ..Report::default() };
        assert_eq!(report.line(), "3 passed, 0 failed");
        report.skips.insert("wrk is not installed".to_owned());
        assert_eq!(report.line(), "3 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_step_that_ends_badly_is_a_failure() {
        let mut report = Report::default();
        report.step("well", Command::new("true"));
        report.step("badly", Command::new("false"));
        report.step("not at all", Command::new("no-such-program"));
        report.check("finds", || vec!["a finding".to_owned()]);
        assert_eq!(report.line(), "1 passed, 3 failed");
    }
}
