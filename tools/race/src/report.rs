//! The report: one page that needs nothing else, and all results as JSON.

mod bars;
mod colours;
mod glance;
mod markup;
mod page;
mod reach;
mod scale;
mod seeds;
mod spectrum;
mod stages;
pub(crate) mod sweeps;
mod throughput;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::catalogue::Table;
use crate::manifest::Manifest;
use crate::outcome::CellOutcome;

/// Writes the report; `bulk` is a part of its page.
///
/// The files are `report/index.html`, `report/results.json`, `report/manifest.json` and, if servers can be
/// compared, `report/glance.svg`; returns the page.
pub(crate) fn write(
    out: &Path,
    race: u32,
    manifest: &Manifest,
    tables: &[Table],
    outcomes: &[CellOutcome],
    bulk: Option<&Part>,
) -> Result<PathBuf, String> {
    let directory = out.join("report");
    let put = |name: &str, text: String| {
        let file = directory.join(name);
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok::<PathBuf, String>(file)
    };
    fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let described = json!(manifest);
    let results = json!({
        "race": race,
        "manifest": described,
        "comparisons": comparisons(outcomes),
        "cells": outcomes,
    });
    put("manifest.json", format!("{described:#}\n"))?;
    put("results.json", format!("{results}\n"))?;
    if let Some(plot) = glance::glance(outcomes, &names(outcomes), &manifest.reference, false) {
        put("glance.svg", plot)?;
    }
    put("index.html", page::page(manifest, tables, outcomes, bulk))
}

/// Every ratio of CPU per request to the reference's, with its pairs, what it says and what would have been found; its
/// rate is that of the load, `null` at capacity.
fn comparisons(outcomes: &[CellOutcome]) -> Vec<serde_json::Value> {
    let of = |outcome: &CellOutcome| -> Vec<serde_json::Value> {
        let entrants = outcome.entrants.iter();
        entrants
            .filter_map(|entrant| {
                let found = outcome.cpu_ratio(entrant)?;
                let (cell, reference) = (outcome.cell.key(), &outcome.reference);
                let (server, rate) = (entrant.label(), outcome.rate);
                Some(json!({ "cell": cell, "rate": rate, "server": server, "reference": reference, "found": found }))
            })
            .collect()
    };
    outcomes.iter().flat_map(of).collect()
}

/// A part of a plain page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    pub(crate) head: String,
    /// Plots, as [`sweeps`] draws them.
    pub(crate) plots: String,
    /// A table, its heads in the first row.
    pub(crate) rows: Vec<Vec<String>>,
}

/// Part of a page about bulk transfers: sentences, plots and tables, and who was left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) notes: Vec<String>,
    pub(crate) sections: Vec<Section>,
    pub(crate) skipped: Vec<String>,
}

/// A page of tables and plots: sentences first, what was left out last.
pub(crate) fn plain_page(
    title: &str,
    lead: &str,
    notes: &[String],
    sections: &[Section],
    skipped: &[String],
) -> String {
    page::plain(title, lead, notes, sections, skipped)
}

/// The names of all entrants, in the order of the tables.
fn names(outcomes: &[CellOutcome]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entrant in outcomes.iter().flat_map(|outcome| &outcome.entrants) {
        if !names.contains(&entrant.name) {
            names.push(entrant.name.clone());
        }
    }
    names
}

/// `2026-11-21 21:11 UTC`.
pub(crate) fn date(unix_s: u64) -> String {
    let (days, rest) = (unix_s / 86_400, unix_s % 86_400);
    // Years that begin in March have their leap day at the end.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3600, rest % 3600 / 60)
}

#[cfg(test)]
mod browser;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_295_460), "2026-11-21 21:11 UTC");
    }

    #[test]
    fn the_report_is_four_files_and_can_be_replayed() {
        let out = std::env::temp_dir().join(format!("bolide-report-{}", std::process::id()));
        let manifest = crate::store::tests::manifest();
        let outcomes = [crate::outcome::tests::outcome()];
        let page = write(&out, 1, &manifest, &[], &outcomes, None).unwrap();
        assert!(page.is_file() && out.join("report/glance.svg").is_file());
        for file in ["manifest.json", "results.json"] {
            let text = fs::read_to_string(out.join("report").join(file)).unwrap();
            assert_eq!(Manifest::parse(&text).unwrap(), manifest, "{file}");
        }
        let text = fs::read_to_string(out.join("report/results.json")).unwrap();
        let results: serde_json::Value = serde_json::from_str(&text).unwrap();
        let go = &results["comparisons"][1];
        assert_eq!((&go["server"], &go["found"]["pairs"]), (&json!("go"), &json!(12)));
        assert!(go["found"]["verdict"] == "more" && go["found"]["detectable"].is_f64(), "{go}");
        fs::remove_dir_all(out).unwrap();
    }
}
