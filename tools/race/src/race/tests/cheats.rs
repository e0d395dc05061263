//! Every kind of cheating is a contender here, and is caught by name.

use bolide_launcher::decide;

use super::*;

/// How likely it is, at most, that a race that can't catch a cheat says that it has.
const BY_CHANCE: f64 = 0.001;

/// A contender that cheats.
struct Cheat {
    part: &'static str,
    route: Route,
    /// Statement of the race about it.
    says: Says,
}

/// Place where the race says it.
#[derive(Clone, Copy)]
enum Says {
    /// It is disqualified, and this is in the evidence.
    Disqualified(&'static str),
    /// It is timed, and this is in the first remark of its line in the table.
    Timed(&'static str),
    /// None of its runs counts, for this reason.
    NotTimed(&'static str),
}

use Says::{Disqualified, NotTimed, Timed};

/// Bytes that came before the request was sent.
const UNASKED: &str = "bytes came that belong to no response";

/// All that one race can hold; those that burn CPU have races of their own.
const CHEATS: [Cheat; 18] = [
    cheat("constant", Route::Echo, Disqualified("the body has 64 bytes, not ")),
    cheat("turncoat", Route::Echo, Disqualified("in the middle of a run: ")),
    cheat("gushing", Route::Echo, Disqualified(UNASKED)),
    cheat("doubling", Route::Echo, NotTimed(UNASKED)),
    cheat(
        "smudging",
        Route::Echo,
        Disqualified(" bodies under load were wrong, of 1500 responses"),
    ),
    cheat(
        "shortening",
        Route::Echo,
        Disqualified(" bodies under load were wrong, of 1500 responses"),
    ),
    cheat(
        "garbling",
        Route::Echo,
        Disqualified(" bodies under load were wrong, of 1500 responses"),
    ),
    cheat("busy", Route::Echo, Disqualified("wrong or missing: status ")),
    cheat("missing", Route::Echo, Disqualified("wrong or missing: status ")),
    cheat(
        "seldom",
        Route::Echo,
        Timed("1 of its 1,500 responses under load were wrong or missing: status 1"),
    ),
    cheat("hanging-up", Route::Echo, Disqualified("wrong or missing: reset ")),
    cheat("closing", Route::Echo, Timed("it closed connections under load: 153 were made for 3")),
    cheat("scripted", Route::Ping, Disqualified("in the middle of a run: ")),
    cheat("ponging", Route::Ping, Disqualified("in the middle of a run: POST /echo with ")),
    cheat("pretending", Route::Ping, Disqualified(" bodies under load were wrong")),
    cheat("unlabelled", Route::Ping, Disqualified(" responses under load had other header fields")),
    cheat("canned", Route::Post, Disqualified(" bodies under load were wrong")),
    cheat("learning", Route::Post, Disqualified(" bodies under load were wrong")),
];

const fn cheat(part: &'static str, route: Route, says: Says) -> Cheat {
    Cheat { part, route, says }
}

#[test]
fn every_cheat_is_caught_by_name_and_an_honest_server_goes_on() {
    let mut missed = Vec::new();
    for route in [Route::Echo, Route::Ping, Route::Post] {
        let cheats: Vec<&Cheat> = CHEATS.iter().filter(|cheat| cheat.route == route).collect();
        let parts: Vec<&str> =
            std::iter::once("honest").chain(cheats.iter().map(|cheat| cheat.part)).collect();
        let cell = Cell { route, ..cell() };
        let outcome = raced_in(&cell, &parts, &Interrupt::default(), &mut |_| {}).unwrap();
        let table = crate::table::table(&outcome, crate::table::Columns::All);
        assert!(outcome.entrant("honest").unwrap().counts(), "{table}");
        for Cheat { part, says, .. } in cheats {
            let entrant = outcome.entrant(part).unwrap();
            let found = match (says, &entrant.fate) {
                (Disqualified(why), Fate::Disqualified(evidence)) => evidence.contains(why),
                (Timed(why), Fate::Timed) => {
                    entrant.counts() && entrant.remarks.iter().any(|remark| remark == why)
                }
                (NotTimed(why), _) => {
                    !entrant.counts() && entrant.remarks.iter().all(|remark| remark == why)
                }
                _ => false,
            };
            let (Disqualified(why) | Timed(why) | NotTimed(why)) = says;
            if !found || !named(&table, part).contains(why) {
                missed.push(format!("{part}: {:?} {:?}\n{table}", entrant.fate, entrant.remarks));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Returns what the table says of a part below its rows.
fn named(table: &str, part: &str) -> String {
    let head = format!("  {part}: ");
    table.lines().filter(|line| line.starts_with(&head)).collect()
}

#[test]
fn a_server_of_which_nothing_unguessable_can_be_asked_is_named() {
    let cell = Cell { route: Route::Ping, ..cell() };
    let outcome = raced_in(&cell, &["honest", "alone"], &Interrupt::default(), &mut |_| {});
    let outcome = outcome.unwrap();
    assert_eq!(outcome.entrant("honest").unwrap().remarks, [""; 0]);
    let remarks = &outcome.entrant("alone").unwrap().remarks;
    assert_eq!(*remarks, ["all of its responses can be known beforehand"]);
}

/// The evidence against a part that races an honest one, or what else became of it.
fn found(part: &str) -> Result<String, Fate> {
    let outcome = raced(&["honest", part], &Interrupt::default(), &mut |_| {}).unwrap();
    assert!(outcome.entrant("honest").unwrap().counts(), "{:?}", outcome.entrants);
    match &outcome.entrant(part).unwrap().fate {
        Fate::Disqualified(evidence) => Ok(evidence.clone()),
        fate => Err(fate.clone()),
    }
}

#[test]
fn work_in_a_process_that_left_the_tree_is_caught_and_the_process_ended() {
    // Without its environment it is found by its control group alone.
    let parts = ["escaping", "halving", "hiding"];
    let parts = if crate::process::has_groups() { &parts[..] } else { &parts[..2] };
    for part in parts {
        let mut evidence = String::new();
        // On a busy machine, it may not have had the CPU that it takes within the runs of one race.
        let decided = decide(BY_CHANCE, || -> Result<(), Fate> {
            evidence = found(part)?;
            Ok(())
        });
        decided.unwrap();
        let found = evidence;
        assert!(found.contains(" left its process tree and used "), "{found}");
        let id: u32 = found.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(!is_alive(id));
    }
}

#[test]
fn a_server_that_may_run_on_the_generators_core_is_caught() {
    if crate::process::available().len() < 2 {
        return;
    }
    let found = found("straying").unwrap();
    assert!(found.contains(" may run on core 1, which is not the server's"), "{found}");
}

#[test]
fn impossible_figures_and_foreign_work_are_caught() {
    use crate::outcome::tests::entrant;
    let reference = entrant("bolide", false, &[3.0; 6]);
    let mut other = entrant("other", false, &[0.001; 6]);
    let found = complaint(&other, Some(&reference)).unwrap();
    assert!(found.starts_with("0.00 µs of CPU per request can't be all"), "{found}");
    assert_eq!(complaint(&other, Some(&entrant("bolide", false, &[0.0; 6]))), None);
    other = entrant("other", false, &[3.0; 6]);
    for (index, figures) in other.rounds.iter_mut().flatten().enumerate() {
        figures.foreign_cores = if index == 0 { 0.9 } else { 0.1 };
    }
    assert_eq!(complaint(&other, Some(&reference)), None);
    for figures in other.rounds.iter_mut().flatten() {
        figures.foreign_cores = 0.42;
    }
    let found = complaint(&other, Some(&reference)).unwrap();
    assert!(found.starts_with("0.42 cores were in use outside of its processes"), "{found}");
}

#[test]
fn what_a_foreign_generator_measured_is_marked_unchecked_by_the_race() {
    let generator = Generator::H2loadAndWrk;
    if let Err(why) = generator.check(std::path::Path::new("")) {
        return bolide_launcher::skip(&why);
    }
    let (once, parts) = (Rounds::Fixed(1), ["honest", "smudging"]);
    let mut counted = None;
    // On a busy machine, the only run of a race may be one that is left out.
    let decided = decide(BY_CHANCE, || -> Result<(), String> {
        let interrupt = Interrupt::default();
        let outcome = raced_by(generator, once, &cell(), &parts, &interrupt, &mut |_| {}).unwrap();
        let smudging = outcome.entrant("smudging").unwrap();
        if !smudging.counts() {
            return Err(format!("{smudging:?}"));
        }
        counted = Some(outcome);
        Ok(())
    });
    decided.unwrap();
    let outcome = counted.unwrap();
    assert!(outcome.is_unchecked);
    let said = crate::table::table(&outcome, crate::table::Columns::All);
    assert!(said.contains("unchecked: the generator compares no bodies"), "{said}");
}
