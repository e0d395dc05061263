//! The rounds: a lab, a server in it, a client, one transfer after the other in random order.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bolide_netlab::shape::Shape;
use bolide_probe::nearest::suggestion;
use bolide_semantics::in_lines;
use fastrand::Rng;

use super::outcome::{Point, Results, Row};
use super::stack::{BROWSER, BROWSERS_SERVER, Direction, Stack};
use super::stage::Stage;
use super::sweep::{RTT_RATE_BITS_PER_SECOND, RTTS_MS, Sweep};
use super::{Arguments, Setting, browser, show};
use crate::contender::{Contender, Sources};
use crate::entrant::{Ground, Present, detect};
use crate::interrupt::Interrupt;
use crate::manifest::Machine;
use crate::process;
use crate::workplace::Workplace;

/// Payload of a transfer of the RTT sweep, at most: two seconds of its rate.
const RTT_BYTES_MAX: u64 = 128 << 20;

/// Everything that labs are made with.
pub(super) struct Prepared {
    pub(super) interrupt: Interrupt,
    sources: Sources,
    program: PathBuf,
    /// The client's.
    pub(super) client: PathBuf,
    /// Of the server, and of the client.
    pub(super) cores: [usize; 2],
    pub(super) place: Workplace,
}

impl Prepared {
    pub(super) fn new(setting: &Setting) -> Result<Self, String> {
        let interrupt = Interrupt::install()?;
        let [server, client, ..] = process::available()[..] else {
            return Err("server and client need a core each, and this machine has one".to_owned());
        };
        Ok(Self {
            interrupt,
            sources: Sources::find(setting.contenders.as_deref())?,
            program: program("--program", setting.program.as_deref())?,
            client: program("--client", setting.client.as_deref())?,
            cores: [server, client],
            place: Workplace::new(setting.seed)?,
        })
    }

    pub(super) fn machine(&self) -> Machine {
        let [server, client] = self.cores;
        Machine::here(&process::available(), &[server], &[client])
    }

    /// What servers are started with.
    pub(super) fn ground(&self, setting: &Setting) -> Ground<'_> {
        let (sources, interrupt) = (&self.sources, &self.interrupt);
        Ground { sources, interrupt, program: self.program.clone(), seed: setting.seed }
    }
}

/// Measures everything. `Ok(false)`: a transfer failed.
pub(super) fn run(arguments: &Arguments) -> Result<bool, String> {
    let setting = &arguments.setting;
    let prepared = Prepared::new(setting)?;
    if arguments.bytes == 0 {
        return Err("--bytes 0: nothing would be measured".to_owned());
    }
    let Gathered { present, stacks, skipped } = gather(&setting.only, &prepared)?;
    let ground = prepared.ground(setting);
    let mut results = Results {
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs()),
        machine: prepared.machine(),
        bytes: arguments.bytes,
        rounds: arguments.rounds,
        seed: setting.seed,
        congestion_control: setting.congestion.clone(),
        rows: rows(&stacks),
        sweeps: Vec::new(),
        versions: versions(&present, &stacks),
        skipped,
    };
    let stage = |shape| Stage::up(setting, shape, &present, &ground, &prepared);
    let plain = stage(Shape::default())?;
    let told = rounds(&plain, arguments, &mut results.rows)
        .and_then(|()| sweeps(&plain, arguments, &stacks, &mut results.sweeps));
    plain.down()?;
    let told = told.and_then(|()| round_trips(&stage, arguments, &stacks, &mut results.sweeps));
    // What was measured is worth having also when the rest was interrupted.
    out(&show::tables(&results))?;
    let page = show::write(&arguments.out, &results)?;
    eprintln!("{}", page.display());
    told?;
    let failed = |failed: &Option<String>| failed.is_some();
    Ok(!results.rows.iter().any(|row| failed(&row.failed))
        && !results.sweeps.iter().any(|point| failed(&point.failed)))
}

/// The program that an option names, or this one.
fn program(option: &str, given: Option<&Path>) -> Result<PathBuf, String> {
    match given {
        Some(program) => fs::canonicalize(program)
            .map_err(|error| format!("{option} {}: {error}", program.display())),
        None => std::env::current_exe().map_err(|error| error.to_string()),
    }
}

fn out(text: &str) -> Result<(), String> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())
}

/// Who is here, the rows that they have, and who is not, with the reasons.
pub(super) struct Gathered {
    pub(super) present: Vec<Present>,
    pub(super) stacks: Vec<Stack>,
    pub(super) skipped: Vec<(String, String)>,
}

/// Looks who of `only`, or of all, is here.
pub(super) fn gather(only: &[String], prepared: &Prepared) -> Result<Gathered, String> {
    let Prepared { sources, interrupt, .. } = prepared;
    let mut contenders = sources.contenders()?;
    contenders.retain(|contender| !Stack::of(contender).is_empty());
    let names: Vec<&str> =
        ["raw", BROWSER].into_iter().chain(contenders.iter().map(|c| c.name.as_str())).collect();
    for name in only {
        if !names.contains(&name.as_str()) {
            return Err(format!("--only {name}: no such stack; {}", suggestion(name, &names)));
        }
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|n| n == name);
    // A browser needs a server.
    let needed = |name: &str| wanted(name) || (name == BROWSERS_SERVER && wanted(BROWSER));
    contenders.retain(|contender: &Contender| needed(&contender.name));
    let (mut present, mut skipped) = (Vec::new(), Vec::new());
    let mut stacks: Vec<Stack> = wanted("raw").then(Stack::raw).into_iter().collect();
    for contender in &contenders {
        let mut announce = || eprintln!("building {} (once; the result is kept)", contender.name);
        match detect(contender, sources, interrupt, &mut announce) {
            Ok(there) => {
                if wanted(&contender.name) {
                    stacks.extend(Stack::of(contender));
                }
                present.push(there);
            }
            Err(why) => {
                eprintln!("skipped {}: {}", contender.name, in_lines(&why));
                skipped.push((contender.name.clone(), why));
            }
        }
        interrupt.check()?;
    }
    if wanted(BROWSER) {
        match browser::program() {
            Ok(_) if present.iter().any(|there| there.contender.name == BROWSERS_SERVER) => {
                stacks.extend(Stack::browser());
            }
            Ok(_) => skipped.push((BROWSER.to_owned(), "its server is not here".to_owned())),
            Err(why) => {
                eprintln!("skipped {BROWSER}: {why}");
                skipped.push((BROWSER.to_owned(), why));
            }
        }
    }
    Ok(Gathered { present, stacks, skipped })
}

/// The versions of those that say one.
pub(super) fn versions(present: &[Present], stacks: &[Stack]) -> Vec<(String, String)> {
    let of = |there: &Present| (there.contender.name.clone(), there.version.clone());
    let browser = stacks.iter().any(|stack| stack.name == BROWSER).then(browser::version).flatten();
    let browser = browser.map(|version| (BROWSER.to_owned(), version));
    let all = present.iter().map(of).chain(browser);
    all.filter(|(_, version)| !version.is_empty()).collect()
}

fn rows(stacks: &[Stack]) -> Vec<Row> {
    let row = |direction| {
        stacks.iter().filter(move |stack| stack.goes(direction)).map(move |stack| Row {
            stack: stack.clone(),
            direction,
            samples: Vec::new(),
            failed: None,
        })
    };
    Direction::ALL.into_iter().flat_map(row).collect()
}

/// Every row once in each round; a row that has failed is left out from then on.
fn rounds(stage: &Stage<'_>, arguments: &Arguments, rows: &mut [Row]) -> Result<(), String> {
    let mut random = Rng::with_seed(arguments.setting.seed);
    for round in 1..=arguments.rounds {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let row = &mut rows[index];
            if row.failed.is_some() {
                continue;
            }
            eprint!("\x1b[2K\rround {round} of {}: {}", arguments.rounds, row.stack.title);
            match stage.measure(&row.stack, row.direction, arguments.bytes, &[]) {
                Ok(sample) => row.samples.push(sample),
                Err(error) => {
                    stage.check()?;
                    let (title, direction) = (&row.stack.title, row.direction.title());
                    eprintln!("\x1b[2K\r{title}, {direction}: {}", in_lines(&error));
                    row.failed = Some(error);
                }
            }
        }
    }
    eprint!("\x1b[2K\r");
    Ok(())
}

/// The sweeps that need no other network.
fn sweeps(
    stage: &Stage<'_>,
    arguments: &Arguments,
    stacks: &[Stack],
    points: &mut Vec<Point>,
) -> Result<(), String> {
    for sweep in arguments.sweep.iter().filter(|sweep| **sweep != Sweep::Rtt) {
        for (mut point, options) in stacks.iter().flat_map(|stack| sweep.points(stack)) {
            let streams = if *sweep == Sweep::Streams { point.x as u64 } else { 1 };
            eprint!("\x1b[2K\r{}: {}", sweep.name(), point.stack.title);
            fill(&mut point, stage, arguments.bytes / streams.max(1), &options)?;
            points.push(point);
        }
    }
    Ok(())
}

/// The sweep over round trips, each in a lab of its own.
fn round_trips<'a>(
    stage: &dyn Fn(Shape) -> Result<Stage<'a>, String>,
    arguments: &Arguments,
    stacks: &[Stack],
    points: &mut Vec<Point>,
) -> Result<(), String> {
    if !arguments.sweep.contains(&Sweep::Rtt) {
        return Ok(());
    }
    for rtt in RTTS_MS {
        let shape = Shape {
            rate: Some(RTT_RATE_BITS_PER_SECOND),
            delay: std::time::Duration::from_millis(rtt) / 2,
            ..Shape::default()
        };
        let stage = stage(shape)?;
        for (mut point, options) in stacks.iter().flat_map(|stack| Sweep::Rtt.points(stack)) {
            if point.x as u64 == rtt {
                eprint!("\x1b[2K\r{rtt} ms: {}", point.stack.title);
                fill(&mut point, &stage, arguments.bytes.min(RTT_BYTES_MAX), &options)?;
                points.push(point);
            }
        }
        stage.down()?;
    }
    eprint!("\x1b[2K\r");
    Ok(())
}

fn fill(
    point: &mut Point,
    stage: &Stage<'_>,
    bytes: u64,
    options: &[String],
) -> Result<(), String> {
    match stage.measure(&point.stack, point.direction, bytes.max(1), options) {
        Ok(sample) => point.sample = Some(sample),
        Err(error) => {
            stage.check()?;
            point.failed = Some(error);
        }
    }
    Ok(())
}
