//! Whole runs, with an engine that is made up.

use std::cell::RefCell;
use std::rc::Rc;

use bolide_probe::plan::Load;
use bolide_probe::progress::Control;
use bolide_probe::report::{Failure, TlsReport};
use clap::Parser;

use super::*;
use crate::fabricated::{quiet, report};

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    load: Arguments,
}

fn arguments(line: &str) -> Arguments {
    let words = std::iter::once("load").chain(line.split_whitespace());
    Program::try_parse_from(words).unwrap().load
}

/// Answers each phase at once; what it was asked is kept.
#[derive(Default)]
struct Pretended {
    asked: Rc<RefCell<Vec<Phase>>>,
    failed: u64,
    dies: bool,
    stops: Option<Stop>,
}

impl Runner for Pretended {
    fn run(
        &mut self,
        phase: &Phase,
        observer: &mut dyn FnMut(&Progress) -> Control,
    ) -> PhaseReport {
        self.asked.borrow_mut().push(phase.clone());
        if let Some(stop) = &self.stops {
            stop.ask();
        }
        let mut found = quiet(phase.load);
        found.phase = phase.clone();
        let progress =
            Progress { elapsed: Duration::from_secs(1), rate: 1e3, ..Progress::default() };
        if observer(&progress) == Control::Stop {
            found.counts.completed = 10;
        }
        found.counts.failed = self.failed;
        if self.failed > 0 {
            found.failures.insert(Failure::Timeout, self.failed);
        }
        found
    }

    fn protocol(&self) -> String {
        "h2c".into()
    }

    fn tls(&self) -> Option<TlsReport> {
        None
    }

    fn server_died_after_ns(&self) -> Option<u64> {
        self.dies.then_some(5)
    }
}

/// The exit code, and what the engine was asked.
fn run_with(line: &str, stop: &Stop, runner: Pretended) -> (Result<u8, String>, Vec<Phase>) {
    let asked = Rc::clone(&runner.asked);
    let code = run_job(&arguments(line), Box::new(|_, _| Ok(Box::new(runner))), stop);
    let asked = asked.borrow().clone();
    (code, asked)
}

fn code(line: &str, runner: Pretended) -> u8 {
    run_with(line, &Stop::default(), runner).0.unwrap()
}

const URL: &str = "-q --no-server-watch http://127.0.0.1:1/";

#[test]
fn the_exit_code_tells_how_it_went() {
    let fails = || Pretended { failed: 1, ..Pretended::default() };
    assert_eq!(code(URL, Pretended::default()), 0);
    assert_eq!(code(URL, fails()), 1);
    assert_eq!(code(URL, Pretended { dies: true, ..Pretended::default() }), 1);
    assert_eq!(code(&format!("--fail-if p99>500us {URL}"), Pretended::default()), 3);
    assert_eq!(code(&format!("--fail-if errors>0 {URL}"), fails()), 3);
    assert_eq!(code(&format!("--fail-if p99>5ms {URL}"), Pretended::default()), 0);
}

#[test]
fn a_search_may_lose_requests_and_must_find_something() {
    let knee = |rate| KneeReport { limit_ns: 1, rate, broken_at: Some(2.0) };
    let mut lossy = quiet(Load::Closed);
    lossy.counts.failed = 5;
    lossy.failures.insert(Failure::Timeout, 5);
    let exit = |found: &PhaseReport, knee| {
        conclusion::exit_code(&Report { knee, ..report(vec![found.clone()]) }, &[])
    };
    assert_eq!(exit(&lossy, Some(knee(Some(1.0)))), 0);
    assert_eq!(exit(&lossy, Some(knee(None))), 1);
    assert_eq!(exit(&lossy, None), 1);
    lossy.failures.insert(Failure::Body, 1);
    assert_eq!(exit(&lossy, Some(knee(Some(1.0)))), 1);
}

#[test]
fn the_phases_follow_the_schedule_and_a_stop_ends_them() {
    let (code, asked) = run_with(URL, &Stop::default(), Pretended::default());
    assert_eq!((code, asked.len()), (Ok(0), 3));
    let stop = Stop::default();
    let stopped = Pretended { stops: Some(stop.clone()), ..Pretended::default() };
    let (code, asked) = run_with(URL, &stop, stopped);
    assert_eq!((code, asked.len()), (Ok(0), 1));
    let died = Pretended { dies: true, ..Pretended::default() };
    assert_eq!(run_with(URL, &Stop::default(), died).1.len(), 1);
}

#[test]
fn every_file_is_written_and_reads_back() {
    let directory =
        std::env::temp_dir().join(format!("bolide-load-command-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let at = |name: &str| directory.join(name).display().to_string();
    let line = format!(
        "--json {} --csv {} --hdr {} --html {} {URL}",
        at("a.json"),
        at("a.csv"),
        at("a.hdr"),
        at("a.html")
    );
    assert_eq!(code(&line, Pretended::default()), 0);
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    let report: Report = serde_json::from_str(&read("a.json")).unwrap();
    assert_eq!((report.protocol.as_str(), report.phases.len()), ("h2c", 3));
    assert!(!report.phases[0].verdict.evidence.is_empty(), "each phase is judged");
    assert!(read("a.csv").starts_with("phase,"));
    assert!(read("a.hdr").starts_with('#'));
    assert!(read("a.html").contains("</html>"));
    std::fs::remove_dir_all(&directory).unwrap();
    let (refused, asked) =
        run_with(&format!("--csv {} {URL}", at("b")), &Stop::default(), Pretended::default());
    assert!(refused.unwrap_err().starts_with("--csv "));
    assert!(asked.is_empty(), "nothing was sent");
}

#[test]
fn an_untrusted_certificate_gets_a_hint() {
    let refuse = |line: &str, mistake: &'static str| {
        with_hint(Mistake::Connection(mistake.into()), &arguments(line).job().unwrap().plan)
            .to_string()
    };
    let https = "-q https://127.0.0.1:1/";
    assert!(refuse(https, "invalid peer certificate: UnknownIssuer").contains("--insecure"));
    assert!(!refuse(https, "connection refused").contains("--insecure"));
    let insecure = "-q --insecure https://127.0.0.1:1/";
    assert!(!refuse(insecure, "certificate").contains("--insecure"));
}

#[test]
fn a_server_that_cannot_be_used_is_no_mistake_of_usage() {
    let run = |mistake: Mistake| {
        run_job(&arguments(URL), Box::new(|_, _| Err(mistake)), &Stop::default())
    };
    assert_eq!(run(Mistake::Connection("the TLS handshake failed".into())), Ok(1));
    assert!(run(Mistake::Plan("a phase must end".into())).is_err());
}

fn foreign(parsed: Result<Foreign, String>, refused: bool) -> (u8, String) {
    let mut out = Vec::new();
    let engine: Box<Engine<'_>> = if refused {
        Box::new(|_, _| Err(Mistake::Connection("refused".into())))
    } else {
        Box::new(|_, _| Ok(Box::new(Pretended::default())))
    };
    let code = run_foreign(parsed.unwrap(), engine, &Stop::default(), &mut out).unwrap();
    (code, String::from_utf8(out).unwrap())
}

#[test]
fn other_tools_speak_with_their_own_voices_and_codes() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let h2load = || compat::h2load::parse(&words("-n1000 -c10 http://127.0.0.1:1/"));
    let (code, text) = foreign(h2load(), false);
    assert_eq!(code, 0);
    assert!(text.starts_with("starting benchmark..."), "{text}");
    assert!(text.contains("Application protocol: h2c\nprogress: 10% done"), "{text}");
    assert!(text.contains("requests: 1000 total, 1000 started, 1000 done"), "{text}");
    let (code, text) = foreign(h2load(), true);
    assert_eq!(code, 0, "h2load exits with 0 whatever came");
    assert!(text.contains("1000 failed, 1000 errored"), "{text}");
    let wrk = || compat::wrk::parse(&words("-t2 -c10 -d1s http://127.0.0.1:1/"));
    let (code, text) = foreign(wrk(), false);
    assert_eq!(code, 0);
    assert!(text.starts_with("Running 1s test @ http://127.0.0.1:1/\n"), "{text}");
    assert!(text.ends_with("B\n") && text.contains("Requests/sec:   1000.00\n"), "{text}");
    assert_eq!(foreign(wrk(), true).0, 1);
}
