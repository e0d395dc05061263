//! Races that are stored: listed, shown, compared.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::session::print;
use crate::bulk;
use crate::catalogue::{Selection, tables};
use crate::contender::Sources;
use crate::figures::{cost, percent};
use crate::manifest::Manifest;
use crate::outcome::{CellOutcome, settle};
use crate::report;
use crate::statistics::{Comparison, Verdict};
use crate::store::{Listed, Store};
use crate::summary::claims;
use crate::table::{Columns, table};

/// `bolide race list`.
pub(super) fn list(out: &Path) -> Result<(), String> {
    let tables = tables()?;
    let rows = tables.iter().map(|table| [&table.name, &table.title].map(String::as_str));
    let mut text = "Tables, for --table:\n".to_owned() + &listed(rows);
    let contenders = Sources::find(None)?.contenders()?;
    let rows = contenders.iter().map(|entry| [&entry.name, &entry.title].map(String::as_str));
    text = text + "\nContenders, for --only:\n" + &listed(rows) + "\nRaces:\n";
    let races = Store::open_existing(out).and_then(|store| store.list()).unwrap_or_default();
    for race in &races {
        let _ = writeln!(text, "{}", line(race));
    }
    if races.is_empty() {
        let _ = writeln!(text, "  none in {}", out.display());
    }
    print(&text);
    Ok(())
}

/// Names, each with its title in a second column.
fn listed<'a>(rows: impl Iterator<Item = [&'a str; 2]>) -> String {
    rows.map(|[name, title]| format!("  {name:<16}  {title}\n")).collect()
}

fn line(race: &Listed) -> String {
    let manifest = &race.manifest;
    let raced = manifest.contenders.iter().filter(|entry| entry.skipped.is_none());
    let names: Vec<&str> = raced.map(|entry| entry.contender.name.as_str()).collect();
    let tables = manifest.tables.join(",");
    format!(
        "{:>4}  {}  {:>3} workloads{}  {}{}{}  {}",
        race.id,
        report::date(manifest.started_unix_s),
        race.cells,
        if race.is_finished { "" } else { ", not finished" },
        if manifest.is_quick { "quick, " } else { "" },
        if tables.is_empty() { tables } else { tables + ", " },
        manifest.generator.name(),
        names.join(" ")
    )
}

/// `bolide race show`.
pub(super) fn show(id: Option<u32>, out: &Path, columns: Columns) -> Result<(), String> {
    let store = Store::open_existing(out)?;
    let race = store.race(id)?;
    let mut outcomes = store.cells(race.id)?;
    settle(&mut outcomes);
    let mut text = line(&race) + "\n";
    for outcome in &outcomes {
        text += &table(outcome, columns);
    }
    text += &claims(&race.manifest.reference, &outcomes);
    print(&text);
    write_report(out, race.id, &race.manifest, &outcomes)
}

/// `bolide race report`.
pub(super) fn report(file: &Path, out: &Path) -> Result<(), String> {
    if let Some(page) = bulk::report(file, out)? {
        print(&format!("report: {}\n", page.display()));
        return Ok(());
    }
    let failed = |what: &dyn std::fmt::Display| format!("{}: {what}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    let manifest = Manifest::parse(&text).map_err(|what| failed(&what))?;
    let results: Results = serde_json::from_str(&text)
        .map_err(|error| failed(&format!("not the results of a race: {error}")))?;
    let mut outcomes = results.cells;
    settle(&mut outcomes);
    print(&claims(&manifest.reference, &outcomes));
    write_report(out, results.race, &manifest, &outcomes)
}

/// Parts of a `results.json` that a report needs, in addition to its manifest.
#[derive(Deserialize)]
struct Results {
    race: u32,
    cells: Vec<CellOutcome>,
}

fn write_report(
    out: &Path,
    id: u32,
    manifest: &Manifest,
    outcomes: &[CellOutcome],
) -> Result<(), String> {
    let selection = if manifest.is_quick {
        Selection::Quick
    } else {
        Selection::Named(manifest.tables.clone())
    };
    let page =
        report::write(out, id, manifest, &selection.tables()?, outcomes, bulk::part(out).as_ref())?;
    print(&format!("\nreport: {}\n", page.display()));
    Ok(())
}

/// `bolide race compare`.
pub(super) fn compare(old: u32, new: u32, out: &Path) -> Result<(), String> {
    let store = Store::open_existing(out)?;
    let (old, new) = (store.race(Some(old))?, store.race(Some(new))?);
    let mut text = format!("{}\n{}\n", line(&old), line(&new));
    if old.manifest.machine != new.manifest.machine {
        text += "The machines differ: only the ratios to the reference may be compared.\n";
    }
    let (mut older, mut newer) = (store.cells(old.id)?, store.cells(new.id)?);
    settle(&mut older);
    settle(&mut newer);
    for before in older {
        if let Some(after) = newer.iter().find(|after| after.cell == before.cell) {
            text += &cell(&before, after);
        }
    }
    print(&text);
    Ok(())
}

/// One cell of both races. The races ran at different times, so ratios to the reference are what
/// stands; costs are shown next to them.
fn cell(before: &CellOutcome, after: &CellOutcome) -> String {
    let mut text = format!("\n{}\n", after.title());
    for new in after.ranking() {
        let Some(old) =
            before.entrants.iter().find(|old| old.label() == new.label() && old.counts())
        else {
            continue;
        };
        let (Some(was), Some(is)) = (old.cpu_us(), new.cpu_us()) else {
            continue;
        };
        let _ = write!(
            text,
            "  {:<16} {:>7} → {:>7} µs/req ({})",
            new.label(),
            cost(was.mid),
            cost(is.mid),
            percent(is.mid / was.mid)
        );
        if let (Some(was), Some(is)) = (before.cpu_ratio(old), after.cpu_ratio(new)) {
            let _ = write!(
                text,
                "; × reference {:.2} → {:.2}{}",
                was.ratio.mid,
                is.ratio.mid,
                if are_apart(&was, &is) { "" } else { ", not decided" }
            );
        }
        text.push('\n');
    }
    text
}

/// Returns whether two ratios have intervals without a common part; ranges of few pairs say nothing.
fn are_apart(a: &Comparison, b: &Comparison) -> bool {
    let is_known = a.verdict != Verdict::Range && b.verdict != Verdict::Range;
    is_known && (a.ratio.high < b.ratio.low || b.ratio.high < a.ratio.low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_apart_if_their_intervals_are() {
        let before = crate::outcome::tests::outcome();
        let mut after = before.clone();
        let text = cell(&before, &after);
        assert!(text.contains("× reference 2.00 → 2.00, not decided"), "{text}");
        for figures in after.entrants[2].rounds.iter_mut().flatten() {
            figures.cpu_us *= 1.2;
        }
        let text = cell(&before, &after);
        assert!(text.contains("× reference 2.00 → 2.40\n"), "{text}");
        assert!(text.contains("(+20.0 %)"), "{text}");
        assert!(!text.contains("cheat"), "{text}");
        after.rule = None;
        assert!(cell(&before, &after).contains("2.00 → 2.40, not decided"), "few pairs");
    }

    #[test]
    fn the_report_of_published_results_is_the_one_that_was_written_with_them() {
        let out = std::env::temp_dir().join(format!("bolide-published-{}", std::process::id()));
        let (manifest, again) = (crate::store::tests::manifest(), out.join("again"));
        let mut outcomes = [crate::outcome::tests::outcome()];
        settle(&mut outcomes);
        write_report(&out, 1, &manifest, &outcomes).unwrap();
        report(&out.join("report/results.json"), &again).unwrap();
        for file in ["results.json", "index.html", "glance.svg"] {
            let read = |out: &Path| std::fs::read_to_string(out.join("report").join(file)).unwrap();
            assert!(read(&out) == read(&again), "{file}");
        }
        let manifest = out.join("report/manifest.json");
        let error = report(&manifest, &again).unwrap_err();
        assert!(error.contains("not the results of a race: missing field"), "{error}");
        std::fs::remove_dir_all(out).unwrap();
    }
}
