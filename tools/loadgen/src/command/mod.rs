//! `bolide load`, from its arguments to its exit code.

mod compare;
mod conclusion;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use bolide_eventloop::{Signal, Signals};

use crate::accounting::{ProcessAccounting, online_cores};
use crate::compat::{self, Foreign};
use crate::cost::Accounting;
use crate::engine::Mistake;
use crate::options::{Action, Arguments, Job};
use crate::output::live::Live;
use crate::output::metrics::MetricsEndpoint;
use crate::output::records::Records;
use crate::output::{in_lines, in_one_line};
use crate::plan::{Phase, Plan, TlsTrust};
use crate::progress::{Control, Progress, Runner};
use crate::report::{KneeReport, PhaseReport, Report};
use crate::schedule::{Outcome, Schedule};
use crate::verdict;
use conclusion::Files;

/// The exit code of a run that failed.
const FAILED: u8 = 1;

/// The exit code of a usage or configuration mistake.
const USAGE: u8 = 2;

/// The exit code of a condition that held, or of a run that is worse.
const BROKEN: u8 = 3;

/// What makes an engine of a plan and what it is to ask for costs. Its mistake is a sentence: nothing
/// could be sent.
pub type Engine<'a> =
    dyn FnOnce(&Plan, Box<dyn Accounting>) -> Result<Box<dyn Runner>, Mistake> + 'a;

/// Runs what the arguments ask for. The exit code is 0 when all was fine, 1 when answers were wrong or
/// missing or the server can't be reached, 2 when nothing was sent because of a mistake in the arguments,
/// 3 when a condition of `--fail-if` held. With the command line of another tool it is that tool's.
pub fn run(
    arguments: &Arguments,
    engine: impl FnOnce(&Plan, Box<dyn Accounting>) -> Result<Box<dyn Runner>, Mistake>,
) -> ExitCode {
    if let Some(Action::Compare(runs)) = &arguments.action {
        return compare::run(runs);
    }
    let stop = Stop::default();
    let foreign = match (&arguments.h2load, &arguments.wrk) {
        (Some(words), _) => Some(compat::h2load::parse(words)),
        (None, Some(words)) => Some(compat::wrk::parse(words)),
        (None, None) => None,
    };
    let code = match foreign {
        Some(Ok(foreign)) => {
            stop.at_signals();
            run_foreign(foreign, Box::new(engine), &stop, &mut io::stdout().lock()).unwrap_or(1)
        }
        Some(Err(mistake)) => {
            eprintln!("{}", in_lines(&mistake));
            1
        }
        None => match run_job(arguments, Box::new(engine), &stop) {
            Ok(code) => code,
            Err(mistake) => {
                eprintln!("bolide: {}", in_lines(&mistake));
                USAGE
            }
        },
    };
    ExitCode::from(code)
}

fn run_job(arguments: &Arguments, engine: Box<Engine<'_>>, stop: &Stop) -> Result<u8, String> {
    let job = arguments.job()?;
    let mut files = Files::open(&job.outputs)?;
    let records = job.outputs.records.as_deref().map(Records::create).transpose()?;
    let metrics = job.outputs.metrics.as_deref().map(MetricsEndpoint::start).transpose()?;
    let accounting = ProcessAccounting::new(job.plan.server.clone(), &job.plan.origin);
    let mut runner = match engine(&job.plan, Box::new(accounting)) {
        Ok(runner) => runner,
        Err(Mistake::Plan(mistake)) => return Err(with_hint(mistake, &job.plan)),
        Err(Mistake::Connection(what)) => {
            eprintln!("bolide: {}", in_lines(&with_hint(what, &job.plan)));
            return Ok(FAILED);
        }
    };
    if let Some(records) = &records {
        runner.record_to(records.sink());
    }
    stop.at_signals();
    let is_terminal = io::stderr().is_terminal();
    let mut live = (!job.outputs.quiet)
        .then(|| Live::new(io::stderr(), is_terminal, job.schedule.known_phases()));
    let report = carry_out(&job, &mut *runner, stop, live.as_mut(), metrics.as_ref());
    let broken: Vec<String> =
        job.thresholds.iter().filter_map(|threshold| threshold.broken_by(&report)).collect();
    let text = crate::output::text::summary(&report, &broken);
    let text = in_lines(&text).into_owned();
    if !job.outputs.quiet {
        // A closed output is no reason to lose the files.
        let _ = if files.json_is_standard_output() {
            io::stderr().write_all(text.as_bytes())
        } else {
            io::stdout().write_all(text.as_bytes())
        };
    }
    let written = files.write(&report, &job.thresholds, &text);
    let finished = records.map_or(Ok(()), Records::finish);
    let written = written.and(finished);
    if let Err(error) = &written {
        eprintln!("bolide: {}", in_one_line(&error.to_string()));
    }
    Ok(conclusion::exit_code(&report, &broken).max(u8::from(written.is_err())))
}

/// Carries the schedule out and gathers what was found.
fn carry_out(
    job: &Job,
    runner: &mut dyn Runner,
    stop: &Stop,
    mut live: Option<&mut Live<impl Write>>,
    metrics: Option<&MetricsEndpoint>,
) -> Report {
    let cores = online_cores();
    let mut report = new_report(&job.url, &job.plan);
    let mut phases: Vec<PhaseReport> = Vec::new();
    let outcome = job.schedule.carry_out(|phase| {
        // What is shown is never a reason to end.
        if let Some(live) = live.as_deref_mut() {
            let _ = live.begin(phase);
        }
        let found = run_phase(runner, phase, stop, |progress| {
            if let Some(metrics) = metrics {
                metrics.observe(&phase.name, progress);
            }
            if let Some(live) = live.as_deref_mut() {
                let _ = live.progress(progress);
            }
        });
        if let Some(live) = live.as_deref_mut() {
            let _ = live.clear();
        }
        let mut found = found;
        found.verdict = verdict::judge(&found, cores);
        phases.push(found.clone());
        let goes_on = !stop.is_asked() && runner.server_died_after_ns().is_none();
        goes_on.then_some(found)
    });
    report.phases = phases;
    finish_report(&mut report, runner, stop);
    if let (Outcome::Knee { rate, broken_at }, Schedule::FindKnee(knee)) = (outcome, &job.schedule)
    {
        let limit_ns = u64::try_from(knee.limit.as_nanos()).unwrap_or(u64::MAX);
        report.knee = Some(KneeReport { limit_ns, rate, broken_at });
    }
    report
}

fn run_phase(
    runner: &mut dyn Runner,
    phase: &Phase,
    stop: &Stop,
    mut show: impl FnMut(&Progress),
) -> PhaseReport {
    runner.run(phase, &mut |progress| {
        show(progress);
        if stop.is_asked() { Control::Stop } else { Control::Continue }
    })
}

fn new_report(url: &str, plan: &Plan) -> Report {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Report {
        url: url.to_owned(),
        protocol: String::new(),
        tls: None,
        connections: plan.connections,
        depth: plan.depth,
        threads: plan.threads,
        phases: Vec::new(),
        started_unix_s: since_1970.unwrap_or(Duration::ZERO).as_secs_f64(),
        server_died_after_ns: None,
        interrupted: false,
        knee: None,
    }
}

fn finish_report(report: &mut Report, runner: &dyn Runner, stop: &Stop) {
    report.protocol = runner.protocol();
    report.tls = runner.tls();
    report.server_died_after_ns = runner.server_died_after_ns();
    report.interrupted = stop.is_asked();
}

/// The command line of another tool, with that tool's output and exit code.
fn run_foreign(
    mut foreign: Foreign,
    engine: Box<Engine<'_>>,
    stop: &Stop,
    out: &mut dyn Write,
) -> io::Result<u8> {
    let accounting = ProcessAccounting::new(foreign.plan.server.clone(), &foreign.plan.origin);
    let mut runner = match engine(&foreign.plan, Box::new(accounting)) {
        Ok(runner) => runner,
        Err(mistake) => {
            foreign.voice.begin(out, "")?;
            return foreign.voice.refused(out, &mistake.to_string());
        }
    };
    let protocol = runner.protocol();
    foreign.voice.begin(out, &protocol)?;
    let mut report = new_report(&foreign.url, &foreign.plan);
    let found = run_phase(&mut *runner, &foreign.phase, stop, |progress| {
        // A closed pipe shows when the summary is printed.
        let _ = foreign.voice.progress(out, progress);
    });
    report.phases = vec![found];
    finish_report(&mut report, &*runner, stop);
    foreign.voice.end(out, &report)?;
    Ok(0)
}

/// Names the option that is most likely wanted.
fn with_hint(mistake: String, plan: &Plan) -> String {
    let lower = mistake.to_ascii_lowercase();
    let verifies = plan.origin.is_https && !matches!(plan.tls.trust, TlsTrust::Anybody);
    let is_about_trust = ["certificate", "issuer"].iter().any(|word| lower.contains(word));
    if verifies && is_about_trust && !mistake.contains("--insecure") {
        return format!(
            "{mistake}; --insecure believes any certificate, such as the self-signed one of `bolide \
             serve`"
        );
    }
    mistake
}

/// Whether somebody wants the run to end.
#[derive(Debug, Clone, Default)]
struct Stop {
    is_asked: Arc<AtomicBool>,
}

impl Stop {
    fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// From here on Ctrl-C and SIGTERM ask, and the second time end the process at once. Where the
    /// system refuses, they end it the first time.
    fn at_signals(&self) {
        let Ok(mut signals) = Signals::new(&[Signal::Interrupt, Signal::Terminate]) else { return };
        let stop = self.clone();
        thread::spawn(move || {
            while signals.wait().is_some() {
                if stop.is_asked() {
                    // As a shell reports a process that an interrupt ended.
                    std::process::exit(130);
                }
                stop.ask();
            }
        });
    }
}
