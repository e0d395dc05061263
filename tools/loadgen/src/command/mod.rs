//! `bolide load`, from its arguments to its exit code.

mod compare;
mod conclusion;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use bolide_probe::accounting::{ProcessAccounting, online_cores};
use bolide_probe::cost::Accounting;
use bolide_probe::engine::Mistake;
use bolide_probe::plan::{Phase, Plan, TlsTrust};
use bolide_probe::progress::{Progress, Runner};
use bolide_probe::report::{KneeReport, PhaseReport, Report};
use bolide_probe::stop::Stop;

use crate::compat::{self, Foreign};
use crate::options::{Action, Arguments, Job};
use crate::output::live::Live;
use crate::output::metrics::MetricsEndpoint;
use crate::output::push::Push;
use crate::output::records::Records;
use crate::output::{in_lines, in_one_line};
use crate::parts;
use crate::schedule::{Outcome, Schedule};
use crate::verdict;
use conclusion::Files;

/// The exit code of a run that failed.
const FAILED: u8 = 1;

/// The exit code of a usage or configuration mistake.
const USAGE: u8 = 2;

/// The exit code of a condition that held, or of a run that is worse.
const BROKEN: u8 = 3;

/// The exit code of a run whose parts did not come together, or were lost.
const LOST: u8 = 4;

/// Maker of an engine from a plan and from what it is to ask for costs. Its mistake is a sentence: nothing
/// could be sent.
pub type Engine<'a> =
    dyn FnOnce(&Plan, Box<dyn Accounting>) -> Result<Box<dyn Runner>, Mistake> + 'a;

/// Runs what the arguments ask for. The exit code is 0 when all was fine, 1 when responses were wrong or
/// missing or the server can't be reached, 2 when nothing was sent because of a mistake in the arguments,
/// 3 when a condition of `--fail-if` held, 4 when parts of the run were lost. With the command line of another tool it is that tool's.
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
    if let Some(job) = parts::printed_job(arguments)? {
        // A closed pipe is no reason to fail.
        let _ = io::stdout().write_all(job.as_bytes());
        return Ok(0);
    }
    let identity = parts::identity(arguments)?;
    let job = arguments.job()?;
    if let Some(note) = job.note.as_deref().filter(|_| !job.outputs.quiet) {
        eprintln!("bolide: {note}");
    }
    if let Some(identity) = identity.as_ref().filter(|identity| !identity.is_first()) {
        stop.at_signals();
        return parts::take_part(arguments, &job, identity, stop).map_or_else(refused, Ok);
    }
    let mut files = Files::open(&job.outputs)?;
    let records = job.outputs.records.as_deref().map(Records::create).transpose()?;
    let mut metrics = Metrics::begin(&job)?;
    let accounting = ProcessAccounting::new(job.plan.server.clone(), &job.plan.origin);
    let accounting = Box::new(accounting);
    let made = match &identity {
        None => engine(&job.plan, accounting),
        Some(identity) => {
            stop.at_signals();
            parts::lead(arguments, &job, identity, accounting, stop)
        }
    };
    let mut runner = match made {
        Ok(runner) => runner,
        Err(mistake) => return refused(with_hint(mistake, &job.plan)),
    };
    if let Some(records) = &records {
        runner.record_to(records.sink());
    }
    if identity.is_none() {
        stop.at_signals();
    }
    let mut live = (!job.outputs.quiet)
        .then(|| Live::new(io::stderr(), terminal_size, job.schedule.known_phases()));
    let report = carry_out(&job, &mut *runner, stop, live.as_mut(), &mut metrics);
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
    let written = written.and(finished).map_err(|error| error.to_string());
    let failures: Vec<String> = written.err().into_iter().chain(metrics.finish()).collect();
    for failure in &failures {
        eprintln!("bolide: {}", in_one_line(failure));
    }
    Ok(conclusion::exit_code(&report, &broken).max(u8::from(!failures.is_empty())))
}

/// Targets of metrics while the load runs.
struct Metrics {
    endpoint: Option<MetricsEndpoint>,
    pushes: Vec<Push>,
}

impl Metrics {
    fn begin(job: &Job) -> Result<Self, String> {
        let endpoint = job.outputs.metrics.as_deref().map(MetricsEndpoint::start).transpose()?;
        let pushes = job.outputs.collectors.iter();
        let pushes = pushes.map(|collector| Push::start(collector.clone(), &job.url));
        Ok(Self { endpoint, pushes: pushes.collect::<Result<_, _>>()? })
    }

    fn observe(&mut self, phase: &str, progress: &Progress) {
        if let Some(endpoint) = &self.endpoint {
            endpoint.observe(phase, progress);
        }
        self.pushes.iter_mut().for_each(|push| push.observe(phase, progress));
    }

    /// Returns what was not taken, in sentences.
    fn finish(self) -> Vec<String> {
        self.pushes.into_iter().filter_map(|push| push.finish().err()).collect()
    }
}

/// Columns and rows of the terminal that the standard error is, if it is one.
fn terminal_size() -> Option<(u16, u16)> {
    io::stderr().is_terminal().then(|| ratatui::crossterm::terminal::size().unwrap_or((80, 24)))
}

/// A run that did not begin: its exit code, or what is wrong with the arguments.
fn refused(mistake: Mistake) -> Result<u8, String> {
    let (what, code) = match mistake {
        Mistake::Plan(mistake) => return Err(mistake),
        Mistake::Connection(what) => (what, FAILED),
        Mistake::Parts(what) => (what, LOST),
    };
    eprintln!("bolide: {}", in_lines(&what));
    Ok(code)
}

/// Carries the schedule out and gathers what was found.
fn carry_out(
    job: &Job,
    runner: &mut dyn Runner,
    stop: &Stop,
    mut live: Option<&mut Live<impl Write>>,
    metrics: &mut Metrics,
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
            metrics.observe(&phase.name, progress);
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
        let is_over = stop.is_asked() || runner.is_over();
        let goes_on = !is_over && runner.server_died_after_ns().is_none();
        goes_on.then_some(found)
    });
    report.phases = phases;
    report.parts = runner.finish();
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
        stop.control()
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
        parts: None,
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
fn with_hint(mistake: Mistake, plan: &Plan) -> Mistake {
    let lower = mistake.to_string().to_ascii_lowercase();
    let verifies = plan.origin.is_https && !matches!(plan.tls.trust, TlsTrust::Any);
    let is_about_trust = ["certificate", "issuer"].iter().any(|word| lower.contains(word));
    if !verifies || !is_about_trust || lower.contains("--insecure") {
        return mistake;
    }
    let hint =
        "; --insecure accepts any certificate, such as the self-signed one of `bolide serve`";
    match mistake {
        Mistake::Plan(what) => Mistake::Plan(what + hint),
        Mistake::Connection(what) => Mistake::Connection(what + hint),
        Mistake::Parts(what) => Mistake::Parts(what),
    }
}
