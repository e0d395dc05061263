//! One race: from its arguments to its report.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bolide_probe::nearest::suggestion;
use bolide_semantics::in_lines;

use super::RaceArguments;
use super::reference::Wish;
use crate::bulk::{self, OfRace};
use crate::catalogue::{Cell, Kind, Selection, Table, cells, is_bulk};
use crate::contender::{Contender, Sources, from_command_line};
use crate::entrant::{Ground, Present};
use crate::gather;
use crate::generator::Generator;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::manifest::{Entry, FORMAT, Machine, Manifest};
use crate::outcome::{CellOutcome, Fate, settle};
use crate::preflight::preflight;
use crate::process;
use crate::progress::{Progress, text};
use crate::race::{Layout, Race, players};
use crate::report;
use crate::rounds::{Rounds, Settings};
use crate::statistics::PAIRS_MIN;
use crate::store::Store;
use crate::summary::claims;
use crate::table::{Columns, table};
use crate::workplace::Workplace;

/// Plan of a race, however it was asked for.
struct Plan {
    selection: Selection,
    contenders: Vec<Contender>,
    sources: Sources,
    generator: Option<Generator>,
    settings: Option<Settings>,
    rounds: Option<Rounds>,
    duration: Option<Duration>,
    is_profiled: bool,
    reference: Wish,
    seed: Option<u64>,
    is_install: bool,
    is_fresh: bool,
    is_forced: bool,
    out: PathBuf,
}

/// `bolide race`. `Ok(false)`: it ran, and something was wrong with a server, or it was stopped.
pub(super) fn race(arguments: &RaceArguments) -> Result<bool, String> {
    let has_bulk = arguments.table.iter().any(|name| is_bulk(name));
    // First, for it says at once where no lab can be made; and a wrong name is told before both.
    let is_all = arguments.selection().tables()?.is_empty();
    let is_fine = !has_bulk || bulk(arguments)?;
    if has_bulk && is_all {
        return Ok(is_fine);
    }
    let sources = Sources::find(arguments.contenders.as_deref())?;
    let mut contenders = sources.contenders()?;
    for text in &arguments.contender {
        let own = from_command_line(text)?;
        contenders.retain(|contender| contender.name != own.name);
        contenders.push(own);
    }
    retain_named(&mut contenders, &arguments.only)?;
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name.as_str()).collect();
    let reference = Wish::new(arguments.reference.as_deref(), &names)?;
    let ran = run(Plan {
        selection: arguments.selection(),
        contenders,
        sources,
        generator: arguments.generator,
        settings: None,
        rounds: arguments.rounds,
        duration: arguments.duration,
        is_profiled: arguments.profile,
        reference,
        seed: arguments.seed,
        is_install: arguments.install,
        is_fresh: arguments.fresh,
        is_forced: arguments.force,
        out: arguments.place.out.clone(),
    })?;
    Ok(ran && is_fine)
}

/// The table of bulk transfers, in the race's directory, where its report finds it.
fn bulk(arguments: &RaceArguments) -> Result<bool, String> {
    let rounds = match arguments.rounds {
        Some(Rounds::Fixed(rounds)) => u32::try_from(rounds).ok(),
        Some(Rounds::Auto) | None => None,
    };
    let table = OfRace {
        only: arguments.only.clone(),
        rounds,
        contenders: arguments.contenders.clone(),
        seed: arguments.seed,
        out: arguments.place.out.clone(),
    };
    table.run()
}

/// `bolide race replay`.
pub(super) fn replay(file: &Path, directory: Option<&Path>, out: &Path) -> Result<bool, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let manifest =
        Manifest::parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let raced = manifest.contenders.into_iter().filter(|entry| entry.skipped.is_none());
    run(Plan {
        selection: if manifest.is_quick {
            Selection::Quick
        } else {
            Selection::Named(manifest.tables)
        },
        contenders: raced.map(|entry| entry.contender).collect(),
        sources: Sources::find(directory)?,
        generator: Some(manifest.generator),
        settings: Some(manifest.settings),
        rounds: None,
        duration: None,
        is_profiled: false,
        reference: Wish { name: manifest.reference, is_firm: false },
        seed: Some(manifest.seed),
        is_install: false,
        is_fresh: true,
        is_forced: false,
        out: out.to_owned(),
    })
}

fn retain_named(contenders: &mut Vec<Contender>, only: &[String]) -> Result<(), String> {
    let names: Vec<String> = contenders.iter().map(|contender| contender.name.clone()).collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in only {
        if !known.contains(&name.as_str()) {
            return Err(format!("--only: no contender `{name}`; {}", suggestion(name, &known)));
        }
    }
    if !only.is_empty() {
        contenders.retain(|contender| only.contains(&contender.name));
    }
    Ok(())
}

fn run(plan: Plan) -> Result<bool, String> {
    let interrupt = Interrupt::install()?;
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let tables = plan.selection.tables()?;
    let all = cells(&tables);
    let layout = Layout::of(process::available());
    let connections = all.iter().map(|cell| cell.connections).max().unwrap_or_default();
    let found = preflight(layout.all.len(), connections);
    if !plan.is_forced && !found.refusals.is_empty() {
        return Err(found.refusals.join("; "));
    }
    let mut warnings = found.refusals;
    warnings.extend(found.warnings);
    for warning in &warnings {
        eprintln!("warning: {warning}");
    }
    let generator = match plan.generator {
        Some(generator) => generator.check(&program).map(|()| generator)?,
        None => Generator::choose(&program)?,
    };
    if plan.is_install {
        install(&plan.contenders)?;
    }
    let (present, entries) = gather(&plan, &all, &interrupt)?;
    let reference = reference(&plan, &all, &layout, &present, generator)?;
    let total: usize = all.iter().map(|cell| runs(cell, &layout, &present)).sum();
    let settings = settings(&plan, total, all.len(), generator);
    let seed = plan.seed.unwrap_or_else(|| unix_seconds().wrapping_mul(0x9e37_79b9));
    let manifest = Manifest {
        format: FORMAT,
        program: format!("{}, profile {}", env!("CARGO_PKG_VERSION"), env!("BOLIDE_PROFILE")),
        started_unix_s: unix_seconds(),
        seed,
        tables: tables.iter().map(|table| table.name.clone()).collect(),
        is_quick: plan.selection == Selection::Quick,
        settings,
        generator,
        generator_versions: generator.versions(),
        reference,
        contenders: entries,
        sources: plan.sources.shown(),
        machine: Machine::here(&layout.all, &layout.server, &layout.generator),
        warnings,
    };
    let store = Store::open(&plan.out)?;
    let stopped = if plan.is_fresh { None } else { store.unfinished(&manifest)? };
    let (id, manifest) = match stopped {
        Some((id, manifest)) => (id, manifest),
        None => (store.begin(&manifest)?, manifest),
    };
    let race = Race {
        ground: Ground {
            sources: &plan.sources,
            interrupt: &interrupt,
            program,
            seed: manifest.seed,
        },
        place: Workplace::new(manifest.seed)?,
        generator,
        settings: manifest.settings,
        reference: manifest.reference.clone(),
        cores: layout,
    };
    process::pin_this_thread(&race.cores.generator);
    let mut course = Course { race, store, id, tables, manifest, out: plan.out };
    course.run(&all, &present)
}

/// Returns who is here, one at least, and all with the reasons of those who aren't.
fn gather(
    plan: &Plan,
    cells: &[Cell],
    interrupt: &Interrupt,
) -> Result<(Vec<Present>, Vec<Entry>), String> {
    // Only those are built that have something to do.
    let needed: Vec<&Contender> =
        plan.contenders.iter().filter(|contender| contender.is_needed(cells)).collect();
    let found = gather::gather(&needed, &plan.sources, interrupt)?;
    let (mut present, mut entries) = (Vec::new(), Vec::new());
    for (contender, found) in needed.into_iter().zip(found) {
        let mut entry =
            Entry { contender: contender.clone(), version: String::new(), skipped: None };
        match found {
            Ok(there) => {
                entry.version.clone_from(&there.version);
                present.push(there);
            }
            Err(why) => {
                gather::say_skipped(&contender.name, &why);
                entry.skipped = Some(why);
            }
        }
        entries.push(entry);
    }
    if present.is_empty() {
        return Err("none of the contenders is on this machine and serves what is raced; --install may help".to_owned());
    }
    Ok((present, entries))
}

/// Whom the others are compared with: said where it is not whom one would expect.
fn reference(
    plan: &Plan,
    cells: &[Cell],
    layout: &Layout,
    present: &[Present],
    generator: Generator,
) -> Result<String, String> {
    let possible = cells.iter().filter(|cell| generator.can(cell));
    let playing: BTreeSet<&str> = possible
        .flat_map(|cell| players(cell, layout.of_cell(cell).0.len(), present).all)
        .map(|player| player.contender.name.as_str())
        .collect();
    let names = present.iter().map(|present| present.contender.name.as_str());
    let in_order: Vec<&str> = names.filter(|name| playing.contains(name)).collect();
    let reference = plan.reference.settle(&in_order)?;
    if reference != plan.reference.name {
        eprintln!(
            "reference: {reference}, because {} takes no part in these workloads",
            plan.reference.name
        );
    }
    Ok(reference)
}

/// Runs the commands that bring what is missing.
fn install(contenders: &[Contender]) -> Result<(), String> {
    for contender in contenders {
        let missing = |program: &String| process::find_program(program).is_none();
        let needs = contender.build.iter().flat_map(|build| &build.needs);
        let is_missing = contender.detect.programs.iter().chain(needs).any(missing);
        let Some(command) = contender.detect.install.as_ref().filter(|_| is_missing) else {
            continue;
        };
        eprintln!("installing {}: {command}", contender.name);
        let status = Command::new("sh").args(["-c", command]).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => eprintln!("installing {} failed ({status})", contender.name),
            Err(error) => return Err(format!("`sh` can't be run: {error}")),
        }
    }
    Ok(())
}

/// Runs in each round of a cell: everybody, and the twin.
fn runs(cell: &Cell, layout: &Layout, present: &[Present]) -> usize {
    match players(cell, layout.of_cell(cell).0.len(), present).all.len() {
        0 => 0,
        players => players + 1,
    }
}

fn settings(plan: &Plan, runs: usize, cells: usize, generator: Generator) -> Settings {
    if let Some(settings) = plan.settings {
        return settings;
    }
    let mut settings = if plan.selection == Selection::Quick {
        Settings::quick(runs, cells, generator == Generator::H2loadAndWrk)
    } else {
        Settings::full()
    };
    if let Some(duration) = plan.duration {
        settings.duration = duration;
        settings.cell_budget = None;
    }
    if let Some(rounds) = plan.rounds {
        settings.rounds = rounds;
        settings.cell_budget = None;
    }
    settings.profiles = plan.is_profiled;
    if let Rounds::Fixed(count @ ..PAIRS_MIN) = settings.rounds {
        eprintln!(
            "warning: nothing is claimed from fewer than {PAIRS_MIN} rounds (--rounds {count})"
        );
    }
    settings
}

/// A race on its way through the cells.
struct Course<'a> {
    race: Race<'a>,
    store: Store,
    id: u32,
    tables: Vec<Table>,
    manifest: Manifest,
    out: PathBuf,
}

impl Course<'_> {
    fn run(&mut self, all: &[Cell], present: &[Present]) -> Result<bool, String> {
        let mut outcomes = self.store.cells(self.id)?;
        let left: Vec<&Cell> = all
            .iter()
            .filter(|cell| !outcomes.iter().any(|outcome| outcome.cell == **cell))
            .collect();
        let estimate =
            |race: &Race<'_>, cell: &Cell| race.settings.estimate(runs(cell, &race.cores, present));
        let total: Duration = left.iter().map(|cell| estimate(&self.race, cell)).sum();
        let mut progress = Progress::new(total);
        let resumed = match outcomes.len() {
            0 => String::new(),
            done => format!(", {done} done before"),
        };
        eprintln!(
            "race {}: {} cells{resumed}, {} contenders, load by {}, about {}",
            self.id,
            all.len(),
            present.len(),
            self.race.generator.name(),
            text(total),
        );
        let mut was_stopped = false;
        for (number, cell) in left.iter().enumerate() {
            let estimated = estimate(&self.race, cell);
            progress.begin(number + 1, left.len(), &cell.title());
            let ran = self.race.run(cell, present, &mut |what| progress.say(what));
            progress.end(estimated);
            match ran {
                Ok(Some(outcome)) => {
                    self.store.put(self.id, &outcome)?;
                    print(&table(&outcome, Columns::Main));
                    outcomes.push(outcome);
                }
                Ok(None) => eprintln!("{}: {}", cell.title(), self.why_not(cell)),
                Err(error) if error == INTERRUPTED => {
                    was_stopped = true;
                    break;
                }
                Err(error) => eprintln!("{}: {}", cell.title(), in_lines(&error)),
            }
        }
        if !was_stopped {
            self.store.finish(self.id)?;
        }
        self.finish(&mut outcomes, was_stopped)
    }

    fn why_not(&self, cell: &Cell) -> String {
        if self.race.generator.can(cell) {
            return "no contender that is here can do it".to_owned();
        }
        let what = match cell.load {
            Kind::Latency | Kind::Rate => "load by the clock",
            _ => "new connections with resumed sessions",
        };
        format!("{} can't make {what}; `--generator bolide` can", self.race.generator.name())
    }

    fn finish(&self, outcomes: &mut [CellOutcome], was_stopped: bool) -> Result<bool, String> {
        if outcomes.is_empty() {
            eprintln!("nothing was measured");
            return Ok(false);
        }
        settle(outcomes);
        print(&claims(&self.manifest.reference, outcomes));
        let bulk = bulk::part(&self.out);
        let page = report::write(
            &self.out,
            self.id,
            &self.manifest,
            &self.tables,
            outcomes,
            bulk.as_ref(),
        )?;
        print(&format!("\nreport: {}\n", page.display()));
        if was_stopped {
            eprintln!("stopped; the same command resumes after the finished workloads");
        }
        let fine = outcomes
            .iter()
            .flat_map(|outcome| &outcome.entrants)
            .all(|entrant| entrant.fate == Fate::Timed);
        Ok(fine && !was_stopped)
    }
}

/// To the standard output; if that is closed, it is not read.
pub(super) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(in_lines(text).as_bytes());
    let _ = out.flush();
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
