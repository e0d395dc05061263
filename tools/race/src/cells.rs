//! Texts of tables' cells about one server.

use bolide_probe::report::Bound;

use crate::figures::{dash, verdict_text};
use crate::outcome::{CellOutcome, EntrantOutcome};

/// A rate that the generator limited is a lower bound.
pub(crate) fn lower_bound(entrant: &EntrantOutcome) -> String {
    if entrant.bound() == Bound::Client { "≥ ".to_owned() } else { String::new() }
}

/// The share of responses that were wrong or missing.
pub(crate) fn failed_text(entrant: &EntrantOutcome) -> String {
    match entrant.failed_share() * 100.0 {
        0.0 => "0".to_owned(),
        share if share < 0.001 => "< 0.001 %".to_owned(),
        share => format!("{share:.3} %"),
    }
}

/// Returns what the ratio to the reference says.
pub(crate) fn ratio_text(outcome: &CellOutcome, entrant: &EntrantOutcome) -> String {
    match outcome.cpu_ratio(entrant) {
        Some(found) => verdict_text(&found),
        None if entrant.name == outcome.reference && !entrant.is_twin => "reference".to_owned(),
        None => dash(),
    }
}
