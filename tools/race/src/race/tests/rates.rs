//! Races at one rate for all, where a slow-down shows that the generator hides at capacity.

use super::*;
use crate::outcome::settle;
use crate::statistics::Verdict;

#[test]
fn all_runs_of_a_row_have_one_rate_below_what_the_slowest_can_do() {
    let cell = Cell { load: Kind::Rate, ..cell() };
    let (rounds, parts) = (Rounds::Fixed(6), ["honest", "slow"]);
    let each = &mut |_: &str| {};
    let interrupt = Interrupt::default();
    let raced = raced_by(Generator::InProcess, rounds, &cell, &parts, &interrupt, each);
    let mut outcome = raced.unwrap();
    settle(std::slice::from_mut(&mut outcome));
    let rate = outcome.rate.unwrap();
    // It needs 300 µs of CPU for a request.
    assert!(rate > 0.0 && rate <= 0.5e6 / 300.0, "{rate}");
    for entrant in &outcome.entrants {
        assert!(entrant.figures().count() >= 6, "{entrant:?}");
        assert!(entrant.figures().all(|figures| figures.rate == rate), "{entrant:?}");
    }
    let found = outcome.cpu_ratio(outcome.entrant("slow").unwrap()).unwrap();
    assert_eq!(found.verdict, Verdict::More, "{found:?}");
    let table = crate::table::table(&outcome, crate::table::Columns::All);
    let title = format!(", 1 connections, at {} requests/s\n", count(rate));
    assert!(table.contains(&title), "{table}");
    let mut at_capacity = outcome;
    (at_capacity.rate, at_capacity.cell.load) = (None, Kind::Closed);
    assert!(at_capacity.title().ends_with(", at capacity"), "{}", at_capacity.title());
}

#[test]
fn the_rate_is_half_of_the_slowest_capacity_in_two_digits() {
    assert_eq!(rate_below(&[254_321.0, 93_456.0, 110_000.0]), Some(46_000.0));
    assert_eq!(rate_below(&[3000.0]), Some(1500.0));
    assert_eq!(rate_below(&[]), None);
    assert_eq!(rate_below(&[0.0]), None);
}

#[test]
fn a_run_that_does_not_come_to_its_rate_is_left_out() {
    let figures = |rate| Figures { rate, ..Figures::default() };
    assert!(met(Some(1000.0), figures(960.0)).is_ok() && met(None, figures(1.0)).is_ok());
    let why = met(Some(46_000.0), figures(42_000.0)).unwrap_err();
    assert_eq!(why, "a run came to 42,000 requests/s, not to 46,000, and is left out");
}
