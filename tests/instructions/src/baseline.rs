//! Earlier costs of each row: `tests/instructions/baseline.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::row::Carrier;
use crate::{ROWS, Row};

/// By how much a row may differ from its baseline, in percent. What a datagram carries depends on time.
fn tolerance(row: &str) -> f64 {
    let is_timed = Row::named(row).is_some_and(|row| row.carrier == Carrier::Http3);
    if is_timed { 6.0 } else { 2.0 }
}

/// Instructions per request by row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    rows: BTreeMap<String, u64>,
}

/// Comparison of a count with the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Same,
    /// Less, by more than the tolerance.
    Below,
    /// More, by more than the tolerance.
    Above,
    /// The row has no baseline.
    Unknown,
}

impl Baseline {
    /// The file that is committed.
    pub fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("baseline.json")
    }

    /// Reads a file; one that doesn't exist has no rows.
    ///
    /// # Errors
    ///
    /// Why it can't be read.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(format!("can't read {}: {error}", path.display())),
        };
        let rows = serde_json::from_str(&text)
            .map_err(|error| format!("can't read {}: {error}", path.display()))?;
        Ok(Self { rows })
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Why it can't be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let rows = ROWS.iter().filter_map(|row| Some((row.name, self.of(row.name)?)));
        let rows: Vec<_> = rows.map(|(name, count)| format!("  \"{name}\": {count}")).collect();
        std::fs::write(path, format!("{{\n{}\n}}\n", rows.join(",\n")))
            .map_err(|error| format!("can't write {}: {error}", path.display()))
    }

    /// Returns what the row has cost.
    pub fn of(&self, row: &str) -> Option<u64> {
        self.rows.get(row).copied()
    }

    /// From now on, the row is to cost this.
    pub fn set(&mut self, row: &str, per_request: f64) {
        self.rows.insert(row.to_owned(), rounded(per_request));
    }

    /// The change against the baseline, in percent.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn change(&self, row: &str, per_request: f64) -> Option<f64> {
        let before = self.of(row)? as f64;
        Some((per_request - before) / before * 100.0)
    }

    /// Returns what the count of a row is to its baseline.
    pub fn judge(&self, row: &str, per_request: f64) -> Verdict {
        let tolerance = tolerance(row);
        match self.change(row, per_request) {
            None => Verdict::Unknown,
            Some(change) if change > tolerance => Verdict::Above,
            Some(change) if change < -tolerance => Verdict::Below,
            Some(_) => Verdict::Same,
        }
    }
}

/// To whole instructions.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are positive and far below 2^52"
)]
pub(crate) fn rounded(per_request: f64) -> u64 {
    per_request.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline() -> Baseline {
        let mut baseline = Baseline::default();
        baseline.set("h2c-same-ping", 1999.6);
        baseline
    }

    #[test]
    fn a_row_may_differ_by_two_percent() {
        let baseline = baseline();
        let judge = |per_request| baseline.judge("h2c-same-ping", per_request);
        assert_eq!(judge(2040.0), Verdict::Same);
        assert_eq!(judge(2040.1), Verdict::Above);
        assert_eq!(judge(1960.0), Verdict::Same);
        assert_eq!(judge(1959.9), Verdict::Below);
        assert_eq!(baseline.judge("h1-same-ping", 1.0), Verdict::Unknown);
    }

    #[test]
    fn what_is_written_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("baseline.json");
        assert_eq!(Baseline::read(&path), Ok(Baseline::default()));
        baseline().write(&path).unwrap();
        assert_eq!(Baseline::read(&path), Ok(baseline()));
        std::fs::write(&path, "{ \"h2c-same-ping\": \"much\" }").unwrap();
        assert!(Baseline::read(&path).unwrap_err().contains("baseline.json: invalid type"));
    }

    #[test]
    fn every_row_has_a_baseline() {
        let baseline = Baseline::read(&Baseline::path()).unwrap();
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        let mut known: Vec<_> = baseline.rows.keys().map(String::as_str).collect();
        known.sort_by_key(|name| names.iter().position(|row| row == name));
        assert_eq!(known, names);
    }
}
