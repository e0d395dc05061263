//! Races between planted servers, which are this test program itself, started again.

use std::sync::Mutex;

use super::*;
use crate::catalogue::{Certificate, Protocol, Route};
use crate::contender::{Contender, Sources};
use crate::differing::Requests;
use crate::interrupt::INTERRUPTED;
use crate::interrupt::Interrupt;
use crate::process::is_alive;
use crate::rounds::Rounds;

use planted::{PART, TEST};

fn present(part: &str, interrupt: &Interrupt) -> Present {
    let program = std::env::current_exe().unwrap();
    let text = format!(
        "name = '{part}'\nprotocols = ['h1']\nroutes = [{}]\n[start]\n\
         command = ['{}', '{TEST}', '--exact', '--nocapture']\n\
         env = {{ {PART} = '{part}:{{port}}' }}\nwrites = {}\n[ready]\nwithin_s = {}\n",
        if part == "alone" { "'ping'" } else { "'ping', 'echo', 'post'" },
        program.display(),
        match part {
            "diligent" => "['asked']",
            "lazy" => "['never']",
            _ => "[]",
        },
        if part == "mute" { 0.5 } else { 20.0 },
    );
    let contender = Contender::parse(&text, part).unwrap();
    crate::entrant::detect(&contender, &Sources::Carried, interrupt).unwrap()
}

fn cell() -> Cell {
    Cell {
        protocol: Protocol::H1,
        route: Route::Echo,
        connections: 1,
        depth: 1,
        size: 64,
        window: None,
        load: Kind::Closed,
        cores: Cores::One,
        certificate: Certificate::default(),
        requests: Requests::default(),
    }
}

/// Races these parts, with `each` called before each step; races work in one directory, one by one.
fn raced(
    parts: &[&str],
    interrupt: &Interrupt,
    each: &mut dyn FnMut(&str),
) -> Result<CellOutcome, String> {
    raced_in(&cell(), parts, interrupt, each)
}

fn raced_in(
    cell: &Cell,
    parts: &[&str],
    interrupt: &Interrupt,
    each: &mut dyn FnMut(&str),
) -> Result<CellOutcome, String> {
    raced_by(Generator::InProcess, Rounds::Fixed(3), cell, parts, interrupt, each)
}

fn raced_by(
    generator: Generator,
    rounds: Rounds,
    cell: &Cell,
    parts: &[&str],
    interrupt: &Interrupt,
    each: &mut dyn FnMut(&str),
) -> Result<CellOutcome, String> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let present: Vec<Present> = parts.iter().map(|part| present(part, interrupt)).collect();
    let ground = Ground {
        sources: &Sources::Carried,
        interrupt,
        program: std::env::current_exe().unwrap(),
        seed: 5,
    };
    // wrk takes whole seconds only.
    let duration = Duration::from_secs(1);
    let settings = Settings { rounds, duration, ..Settings::full() };
    let mut race = Race {
        ground,
        place: Workplace::empty(5).unwrap(),
        generator,
        settings,
        reference: parts[0].to_owned(),
        cores: Layout::of(crate::process::available()),
    };
    race.run(cell, &present, each).map(Option::unwrap)
}

/// Our children that are planted servers of `part`.
fn planted_servers(part: &str) -> Vec<u32> {
    crate::process::tree(std::process::id())
        .into_iter()
        .filter(|id| {
            let wanted = format!("{PART}={part}:");
            std::fs::read(format!("/proc/{id}/environ"))
                .is_ok_and(|text| String::from_utf8_lossy(&text).contains(&wanted))
        })
        .collect()
}

#[test]
fn an_honest_server_and_its_twin_are_timed_in_every_round() {
    let outcome = raced(&["honest"], &Interrupt::default(), &mut |_| {}).unwrap();
    assert_eq!(outcome.entrants.len(), 2);
    for entrant in &outcome.entrants {
        // Where the host has moved the cores, rounds that have no like are run again.
        assert_eq!(entrant.fate, Fate::Timed);
        assert!((3..=6).contains(&entrant.rounds.len()), "{}", entrant.rounds.len());
        assert!(entrant.figures().all(|figures| figures.cpu_us > 0.0), "{entrant:?}");
        assert!(entrant.peak_memory_bytes > 100_000);
    }
    assert!(outcome.twins().is_some());
    assert_eq!(planted_servers("honest"), [0; 0]);
}

#[test]
fn a_server_that_does_not_write_what_it_has_to_is_disqualified() {
    let mut left = Vec::new();
    let outcome = raced(&["diligent", "lazy"], &Interrupt::default(), &mut |step| {
        if step.starts_with("round 3") && left.is_empty() {
            left = planted_servers("diligent")
                .iter()
                .map(|id| std::fs::metadata(format!("/proc/{id}/cwd/asked")).unwrap().len())
                .collect();
        }
    });
    let outcome = outcome.unwrap();
    assert!(outcome.entrant("diligent").unwrap().counts(), "{:?}", outcome.entrants);
    let Fate::Disqualified(evidence) = &outcome.entrant("lazy").unwrap().fate else {
        panic!("{:?}", outcome.entrants)
    };
    assert_eq!(evidence, "it has written nothing to `never`");
    // A round writes tens of kilobytes, which are gone after it.
    assert!(!left.is_empty() && left.iter().all(|bytes| *bytes < 10_000), "{left:?}");
}

#[test]
fn work_of_children_that_have_ended_is_counted_where_control_groups_can_be_made() {
    use crate::generator::CpuOf;
    let outcome = raced(&["honest", "forking"], &Interrupt::default(), &mut |_| {}).unwrap();
    let said = crate::table::table(&outcome, crate::table::Columns::All);
    let forking = outcome.entrant("forking").unwrap();
    let least = planted::BURNT.as_secs_f64() * 1e6 / f64::from(planted::FORKING) * 0.8;
    for figures in forking.figures() {
        let is_group = figures.cpu_of == CpuOf::Group;
        assert_eq!(is_group, crate::process::has_groups());
        assert!(!is_group || figures.cpu_us > least, "{figures:?}");
    }
    assert!(forking.figures().count() == 3, "{said}");
    let of = if crate::process::has_groups() { "control groups" } else { "process trees" };
    assert!(said.contains(&format!("  CPU time of {of}")), "{said}");
}

#[test]
fn a_server_that_dies_is_reported_with_its_last_words() {
    let outcome = raced(&["mortal"], &Interrupt::default(), &mut |_| {}).unwrap();
    let Fate::Died(words) = &outcome.entrants[0].fate else { panic!("{:?}", outcome.entrants) };
    assert!(words.contains("out of planted memory"), "{words}");
}

#[test]
fn a_server_that_does_not_come_up_shows_its_last_ten_lines() {
    let outcome = raced(&["mute"], &Interrupt::default(), &mut |_| {}).unwrap();
    let Fate::NotStarted(why) = &outcome.entrants[0].fate else { panic!("{:?}", outcome.entrants) };
    assert!(why.starts_with("not ready within 0.5 s"), "{why}");
    assert!(
        why.contains("line 3\n") && why.contains("line 12") && !why.contains("line 2\n"),
        "{why}"
    );
}

#[test]
fn a_port_that_is_taken_is_chosen_anew() {
    let outcome = raced(&["late"], &Interrupt::default(), &mut |_| {}).unwrap();
    assert_eq!(outcome.entrants[0].fate, Fate::Timed);
}

#[test]
fn an_interruption_stops_every_server() {
    let signals = Interrupt::install().unwrap();
    let mut seen = Vec::new();
    let result = raced(&["brief"], &signals, &mut |step| {
        if step.starts_with("round 2") {
            seen.extend(planted_servers("brief"));
            signal_hook::low_level::raise(signal_hook::consts::SIGTERM).unwrap();
        }
    });
    assert_eq!(result.unwrap_err(), INTERRUPTED);
    assert_eq!(seen.len(), 2, "the server and its twin ran");
    assert!(!seen.iter().any(|id| is_alive(*id)));
}

mod cheats;
mod planted;
mod rates;
