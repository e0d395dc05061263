//! Check that `docs/REQUEST.md` names the files that a request goes through: no other ones, and none is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::Counted;

/// The page.
pub const PAGE: &str = "docs/REQUEST.md";

/// A request's work in a file that the page must name, in instructions.
const NAMED: f64 = 50.0;

/// The rows that the page is about: each version, and both kinds of handlers.
const ROWS: [&str; 4] = ["h2c-same-ping", "h1-same-ping", "h2c-one-file", "h3-same-ping"];

/// Directories of the sources that serve a request.
const LAYERS: [&str; 3] = ["eventloop/", "protocol/", "service/"];

/// Compares the page with what was counted; rows that it is not about are ignored, and all of those that it is about
/// are needed.
///
/// # Errors
///
/// The files that are named in vain, and those that are not named, in a sentence.
pub fn check(page: &str, counts: &[(&str, Counted)]) -> Result<(), String> {
    let seen: Vec<_> = counts
        .iter()
        .filter(|(name, _)| ROWS.contains(name))
        .map(|(name, counted)| (*name, work_by_file(counted)))
        .collect();
    if seen.len() < ROWS.len() {
        return Ok(());
    }
    compare(page, &seen)
}

/// A request's own instructions in each file of ours.
fn work_by_file(counted: &Counted) -> BTreeMap<&str, f64> {
    let mut files = BTreeMap::new();
    for (place, own) in &counted.profile.places {
        if let Some(file) = within_checkout(&place.file) {
            *files.entry(file).or_default() += counted.share(*own);
        }
    }
    files
}

/// A path from the directory of its layer on; `None`: it is not of ours.
fn within_checkout(path: &str) -> Option<&str> {
    let starts = LAYERS.iter().filter_map(|layer| {
        let inside = path.rfind(&format!("/{layer}"))?;
        Some(&path[inside + 1..])
    });
    starts.min_by_key(|path| path.len()).filter(|path| path.contains("/src/"))
}

fn compare(page: &str, seen: &[(&str, BTreeMap<&str, f64>)]) -> Result<(), String> {
    let named = named(page);
    let mut wrong = String::new();
    for (file, is_always) in &named {
        let is_seen = seen.iter().any(|(_, files)| files.get(file).is_some_and(|own| *own > 0.0));
        if *is_always && !is_seen {
            _ = write!(wrong, "\n  {file} is named, and no request went through it");
        }
    }
    let named: BTreeSet<&str> = named.into_iter().map(|(file, _)| file).collect();
    for (row, files) in seen {
        for (file, own) in files {
            if *own >= NAMED && !named.contains(file) {
                _ = write!(
                    wrong,
                    "\n  {file} is not named; {row} spends {own:.0} instructions in it"
                );
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{PAGE} is not what requests do:{wrong}")) }
}

/// Files of the page's first table; `false`: the step is in parentheses, so it is not part of every request.
fn named(page: &str) -> Vec<(&str, bool)> {
    let rows = page.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    rows.flat_map(|row| {
        let mut cells = row.split('|').map(str::trim).skip(2);
        let is_always = !cells.next().unwrap_or_default().starts_with('(');
        let files = cells.next().unwrap_or_default().split('`').skip(1).step_by(2);
        files.map(move |file| (file, is_always))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A request

| # | step | file | symbol | what |
|---|---|---|---|---|
| 1 | read | `service/a/src/read.rs` | `read` | |
| 2 | (TLS) | `protocol/tls/src/layer.rs` | `open` | |
| 3 | write | `protocol/a/src/write.rs`, `protocol/a/src/body.rs` | `write` | |

| # | stage | file |
|---|---|---|
| 1 | other | `service/other/src/lib.rs` |
";

    fn seen<'a>(files: &[(&'a str, f64)]) -> Vec<(&'static str, BTreeMap<&'a str, f64>)> {
        vec![("row", files.iter().copied().collect())]
    }

    #[test]
    fn a_page_that_names_what_was_on_the_way_is_right() {
        let files = [
            ("service/a/src/read.rs", 1.0),
            ("protocol/a/src/write.rs", 200.0),
            ("protocol/a/src/body.rs", 7.0),
            ("protocol/a/src/small.rs", 49.0),
        ];
        assert_eq!(compare(PAGE, &seen(&files)), Ok(()));
    }

    #[test]
    fn files_that_are_named_in_vain_and_files_that_are_missing_are_told() {
        let files = [
            ("service/a/src/read.rs", 1.0),
            ("protocol/a/src/write.rs", 200.0),
            ("protocol/a/src/large.rs", 50.0),
        ];
        let wrong = compare(PAGE, &seen(&files)).unwrap_err();
        assert!(wrong.contains("protocol/a/src/body.rs is named"), "{wrong}");
        assert!(wrong.contains("large.rs is not named; row spends 50"), "{wrong}");
        assert!(!wrong.contains("tls") && !wrong.contains("other"), "{wrong}");
    }

    #[test]
    fn paths_begin_with_their_layer() {
        let ours = "/x/service/bolide/protocol/h2/src/send.rs";
        assert_eq!(within_checkout(ours), Some("protocol/h2/src/send.rs"));
        assert_eq!(within_checkout("/rustc/1/library/core/src/lib.rs"), None);
        assert_eq!(within_checkout("???"), None);
    }
}
