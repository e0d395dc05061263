//! Output of the counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json as value};

use crate::baseline::rounded;
use crate::{Baseline, Counted, Place, Profile, Verdict};

/// How many functions, files and lines an annotated row shows.
const SHOWN: usize = 25;

/// The table's first line.
pub fn title() -> String {
    format!("{:<22}{:>12}{:>12}{:>10}", "row", "instructions", "baseline", "change")
}

/// A row's line.
pub fn line(name: &str, per_request: f64, baseline: &Baseline) -> String {
    let before = baseline.of(name).map_or_else(|| "–".to_owned(), grouped);
    let change = baseline.change(name, per_request);
    let change = change.map_or_else(|| "–".to_owned(), |change| format!("{change:+.1} %"));
    let mark = match baseline.judge(name, per_request) {
        Verdict::Same => "",
        Verdict::Below => "  below",
        Verdict::Above => "  ABOVE",
        Verdict::Unknown => "  NEW",
    };
    format!("{name:<22}{:>12}{before:>12}{change:>10}{mark}", grouped(rounded(per_request)))
}

/// The same for programs.
pub fn json(counts: &[(&str, f64)], baseline: &Baseline) -> String {
    let rows = counts.iter().map(|(name, per_request)| {
        value!({
            "row": name,
            "instructions": rounded(*per_request),
            "baseline": baseline.of(name),
            "change_percent": baseline.change(name, *per_request),
        })
    });
    let rows: Vec<Value> = rows.collect();
    format!("{:#}\n", value!({ "rows": rows }))
}

/// Returns where a row's instructions go: to which functions, to what is written in which file, and to which lines.
pub fn annotated(name: &str, counted: &Counted) -> String {
    let Profile { functions, places, .. } = &counted.profile;
    let mut text = format!(
        "{name}: {} instructions per request; all figures are per request\n",
        grouped(rounded(counted.per_request()))
    );
    // A string takes whatever is written.
    _ = writeln!(text, "\n{:>10}{:>12}{:>9}  function", "own", "inclusive", "calls");
    for (function, cost) in most(functions.iter(), |cost| cost.own) {
        let (own, inclusive) = (counted.share(cost.own), counted.share(cost.inclusive));
        let calls = counted.share(cost.calls);
        _ = writeln!(text, "{own:>10.1}{inclusive:>12.1}{calls:>9.2}  {function}");
    }
    let mut files: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for (place, own) in places {
        *files.entry((&place.file, &place.function)).or_default() += own;
    }
    _ = writeln!(text, "\n{:>10}  file, as a part of a function", "own");
    for ((file, function), own) in most(files, |own| *own) {
        _ = writeln!(text, "{:>10.1}  {}  in {function}", counted.share(own), within_crate(file));
    }
    _ = writeln!(text, "\n{:>10}  line, as a part of a function", "own");
    for (Place { function, file, line }, own) in most(places, |own| **own) {
        let (own, file) = (counted.share(*own), within_crate(file));
        _ = writeln!(text, "{own:>10.1}  {file}:{line}  in {function}");
    }
    text
}

/// Those with the highest figures, the highest first.
fn most<K, V>(all: impl IntoIterator<Item = (K, V)>, figure: impl Fn(&V) -> i64) -> Vec<(K, V)> {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(_, value)| Reverse(figure(value)));
    all.truncate(SHOWN);
    all
}

/// A path from the directory of its crate on.
fn within_crate(path: &str) -> &str {
    let Some(source) = path.rfind("/src/") else { return path };
    path[..source].rfind('/').map_or(path, |before| &path[before + 1..])
}

/// `1,234,567`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cost;

    #[test]
    fn a_line_says_what_has_changed() {
        let mut baseline = Baseline::default();
        baseline.set("h2c-same-ping", 2000.0);
        let line = |per_request| line("h2c-same-ping", per_request, &baseline);
        assert_eq!(line(2010.0), "h2c-same-ping                2,010       2,000    +0.5 %");
        assert!(line(2100.0).ends_with("+5.0 %  ABOVE"));
        assert!(line(1900.0).ends_with("-5.0 %  below"));
        assert!(super::line("h1-same-ping", 7.0, &baseline).ends_with("–  NEW"));
        assert_eq!(title(), "row                   instructions    baseline    change");
    }

    #[test]
    fn programs_get_the_same() {
        let mut baseline = Baseline::default();
        baseline.set("h2c-same-ping", 2000.0);
        let text = json(&[("h2c-same-ping", 2100.4), ("h1-same-ping", 7.0)], &baseline);
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["rows"][0]["instructions"], 2100);
        assert_eq!(read["rows"][0]["baseline"], 2000);
        assert_eq!(read["rows"][1]["baseline"], Value::Null);
    }

    #[test]
    fn functions_come_by_their_own_instructions() {
        let cost = |own, calls| Cost { own, inclusive: own + 100, calls };
        let functions = [("small".to_owned(), cost(20, 10)), ("large".to_owned(), cost(400, 5))];
        let place = |line| {
            let file = "/of/protocol/hpack/src/table.rs".to_owned();
            Place { function: "large".to_owned(), file, line }
        };
        let places = [(place(9), 30), (place(11), 50)];
        let profile = Profile { total: 420, functions: functions.into(), places: places.into() };
        let text = annotated("row", &Counted { requests: 10, profile });
        let expected = "\
row: 42 instructions per request; all figures are per request

       own   inclusive    calls  function
      40.0        50.0     0.50  large
       2.0        12.0     1.00  small

       own  file, as a part of a function
       8.0  hpack/src/table.rs  in large

       own  line, as a part of a function
       5.0  hpack/src/table.rs:11  in large
       3.0  hpack/src/table.rs:9  in large
";
        assert_eq!(text, expected);
    }
}
