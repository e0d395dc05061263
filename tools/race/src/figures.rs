//! Figures as tables and sentences write them.

use std::fmt::Write as _;

use bolide_probe::report::Bound;

use crate::statistics::{Comparison, Interval, Verdict};

/// `254,321`.
pub(crate) fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A ratio with its interval, or what there is instead of a claim.
pub(crate) fn verdict_text(found: &Comparison) -> String {
    let Interval { low, mid, high } = found.ratio;
    match found.verdict {
        Verdict::NotDecided => format!("not decided ({low:.2}–{high:.2})"),
        Verdict::Range => format!("{mid:.2}, range {low:.2}–{high:.2}"),
        Verdict::Less | Verdict::More => format!("{mid:.2} ({low:.2}–{high:.2})"),
    }
}

/// Returns who was the bottleneck, in words.
pub(crate) fn bound_text(bound: Bound) -> &'static str {
    match bound {
        Bound::Server => "server",
        Bound::Client => "client",
        Bound::Network => "network",
        Bound::Window => "windows",
        Bound::Rate => "set rate",
        Bound::Unclear => "unclear",
    }
}

/// The columns side by side: the first to the left, the others to the right.
pub(crate) fn aligned(rows: &mut [Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        })
        .map(Option::unwrap_or_default)
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width - cell.chars().count());
            let _ = match column {
                0 => write!(line, " {cell}{space}"),
                _ => write!(line, "  {space}{cell}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Returns the mark where there is no figure.
pub(crate) fn dash() -> String {
    "–".to_owned()
}

/// `3.07`, `56.7`, `497`.
pub(crate) fn cost(us: f64) -> String {
    let places = if us < 10.0 { 2 } else { usize::from(us < 100.0) };
    format!("{us:.places$}")
}

/// `391 µs`, `1.52 ms`, `2.1 s`.
pub(crate) fn duration(us: f64) -> String {
    if us < 1000.0 {
        format!("{us:.0} µs")
    } else if us < 1e6 {
        format!("{:.2} ms", us / 1e3)
    } else {
        format!("{:.1} s", us / 1e6)
    }
}

/// A ratio as a difference: `+1.2 %`.
pub(crate) fn percent(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567.4), "1,234,567");
        assert_eq!(count(999.0), "999");
        assert_eq!(
            (cost(3.071), cost(56.71), cost(497.2)),
            ("3.07".into(), "56.7".into(), "497".into())
        );
        assert_eq!(duration(391.0), "391 µs");
        assert_eq!(duration(1520.0), "1.52 ms");
        assert_eq!(percent(1.012), "+1.2 %");
    }
}
