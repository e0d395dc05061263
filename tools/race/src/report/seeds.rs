//! The tables that others have published, with their figures next to ours. Absolute figures of
//! different machines can't be compared; the ratio between two servers can, and so can the ratio of
//! those ratios.

use bolide_probe::report::Bound;
use bolide_semantics::in_markup;

use super::markup;
use crate::catalogue::{Row, Table};
use crate::cells::lower_bound;
use crate::figures::{cost, count};
use crate::outcome::{CellOutcome, EntrantOutcome};

/// The section of one table: our figures for all, and the seed's next to them.
pub(super) fn section(table: &Table, outcomes: &[CellOutcome]) -> String {
    let rows: Vec<(&Row, &CellOutcome)> = table
        .rows
        .iter()
        .filter_map(|row| Some((row, outcomes.iter().find(|outcome| outcome.cell == row.cell)?)))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let name = in_markup(&table.name);
    let mut text =
        format!("<section id=\"{name}\"><h3>{name} · {}</h3>\n", in_markup(&table.title));
    text += &ours(table, &rows);
    if let Some(gain) = &table.gain {
        text += &gains(table, gain, &rows);
    }
    if table.is_seed() && !table.columns.is_empty() {
        text += &beside(table, &rows);
    }
    text + "</section>\n"
}

/// Returns what we measured: one line for each server, one column for each cell.
fn ours(table: &Table, rows: &[(&Row, &CellOutcome)]) -> String {
    let mut heads = vec![format!("by {}", table.x)];
    heads.extend(rows.iter().map(|(row, _)| row.x.clone()));
    let mut names: Vec<String> = Vec::new();
    for entrant in rows.iter().flat_map(|(_, outcome)| &outcome.entrants) {
        if !entrant.is_twin && !names.contains(&entrant.name) {
            names.push(entrant.name.clone());
        }
    }
    let lines: Vec<Vec<String>> = names
        .iter()
        .map(|name| {
            let cells = rows.iter().map(|(_, outcome)| {
                let found = outcome.entrant(name).filter(|entrant| entrant.counts());
                found.map_or_else(|| "–".to_owned(), figure)
            });
            std::iter::once(name.clone()).chain(cells).collect()
        })
        .collect();
    markup::table(&heads, &lines)
}

fn figure(entrant: &EntrantOutcome) -> String {
    if let Some(bytes) = entrant.idle_connection_bytes {
        return format!("{} B per connection", count(bytes));
    }
    let rate = entrant.median(|figures| Some(figures.rate)).unwrap_or_default();
    let cpu = entrant.cpu_us().map(|cpu| cost(cpu.mid)).unwrap_or_default();
    format!("{}{}/s · {cpu} µs", lower_bound(entrant), count(rate))
}

/// The last cell over the first, for each server, and for those of the seed.
fn gains(table: &Table, title: &str, rows: &[(&Row, &CellOutcome)]) -> String {
    let (Some((first_row, first)), Some((last_row, last))) = (rows.first(), rows.last()) else {
        return String::new();
    };
    if rows.len() < 2 {
        return String::new();
    }
    let heads =
        ["", "req/s here", "CPU per request here", "req/s in the seed"].map(str::to_owned).to_vec();
    let mut lines = Vec::new();
    for after in last.ranking().into_iter().filter(|entrant| !entrant.is_twin) {
        let Some(entrant) = first.entrant(&after.name).filter(|entrant| entrant.counts()) else {
            continue;
        };
        let gain = |figure: fn(&crate::generator::Figures) -> f64| {
            let of = |entrant: &EntrantOutcome| entrant.median(|figures| Some(figure(figures)));
            of(after).zip(of(entrant)).map_or_else(dash, |(after, before)| times(after / before))
        };
        let column = table.columns.iter().position(|(_, name)| *name == after.name);
        let seed = column.and_then(|column| {
            let (before, after) = (first_row.seed.get(column)?, last_row.seed.get(column)?);
            (*before > 0.0).then(|| times(after / before))
        });
        lines.push(vec![
            after.name.clone(),
            gain(|figures| figures.rate),
            gain(|figures| figures.cpu_us),
            seed.unwrap_or_else(dash),
        ]);
    }
    format!("<h4>{}</h4>\n{}", in_markup(title), markup::table(&heads, &lines))
}

/// The seed's figures, its ratios, ours, and the ratio of both.
fn beside(table: &Table, rows: &[(&Row, &CellOutcome)]) -> String {
    let mut heads = vec![table.x.clone()];
    heads.extend(table.columns.iter().map(|(seed, _)| format!("{seed}, seed req/s")));
    let (first_seed, first) = &table.columns[0];
    for (seed, here) in &table.columns[1..] {
        heads.push(format!("{first_seed} / {seed} in the seed"));
        heads.push(format!("{first} / {here} here"));
        heads.push("ratio of ratios".to_owned());
    }
    let reference = rows.first().map_or("", |(_, outcome)| outcome.reference.as_str());
    let also = table.columns.iter().all(|(_, here)| here != reference);
    for (seed, here) in table.columns[1..].iter().filter(|_| also) {
        heads.push(format!("{reference} / {here} here"));
        heads.push(format!("over {first_seed} / {seed}"));
    }
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|(row, outcome)| {
            let mut line = vec![row.x.clone()];
            line.extend(row.seed.iter().map(|rate| seed_rate(*rate)));
            for (column, (_, other)) in table.columns.iter().enumerate().skip(1) {
                let seed = ratio(row.seed.first().copied(), row.seed.get(column).copied());
                let here = here(outcome, first, other);
                line.push(seed.map_or_else(dash, times));
                line.push(here.as_ref().map_or_else(dash, Here::text));
                let both = here.zip(seed).map(|(here, seed)| times(here.ratio / seed));
                line.push(both.unwrap_or_else(dash));
            }
            for (column, (_, other)) in table.columns.iter().enumerate().skip(1).filter(|_| also) {
                let seed = ratio(row.seed.first().copied(), row.seed.get(column).copied());
                let here = here(outcome, reference, other);
                line.push(here.as_ref().map_or_else(dash, Here::text));
                let both = here.zip(seed).map(|(here, seed)| times(here.ratio / seed));
                line.push(both.unwrap_or_else(dash));
            }
            line
        })
        .collect();
    let stands: Vec<String> = table
        .columns
        .iter()
        .filter(|(seed, here)| !seed.eq_ignore_ascii_case(here))
        .map(|(seed, here)| format!("{here} stands for {seed}"))
        .collect();
    let note = format!(
        "Seed: {}. {}{}Ratios are of requests per second; where the generator was the limit here, \
         of CPU per request, marked CPU.",
        table.source,
        stands.join(", "),
        if stands.is_empty() { "" } else { ". " }
    );
    format!(
        "<h4>Compared with the seed</h4>\n{}<p class=\"note\">{}</p>\n",
        markup::table(&heads, &lines),
        in_markup(&note)
    )
}

/// How much faster one server is than another, here.
struct Here {
    ratio: f64,
    is_cpu: bool,
}

impl Here {
    fn text(&self) -> String {
        let by = if self.is_cpu { " CPU" } else { "" };
        format!("{}{by}", times(self.ratio))
    }
}

fn here(outcome: &CellOutcome, first: &str, other: &str) -> Option<Here> {
    let first = outcome.entrant(first).filter(|entrant| entrant.counts())?;
    let other = outcome.entrant(other).filter(|entrant| entrant.counts())?;
    let is_cpu = [first, other].iter().any(|entrant| entrant.bound() == Bound::Client);
    let ratio = if is_cpu {
        let cpu = |entrant: &EntrantOutcome| entrant.median(|figures| Some(figures.cpu_us));
        ratio(cpu(other), cpu(first))?
    } else {
        let rate = |entrant: &EntrantOutcome| entrant.median(|figures| Some(figures.rate));
        ratio(rate(first), rate(other))?
    };
    Some(Here { ratio, is_cpu })
}

fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let (a, b) = (a.filter(|a| *a > 0.0)?, b.filter(|b| *b > 0.0)?);
    Some(a / b)
}

fn seed_rate(rate: f64) -> String {
    if rate > 0.0 { count(rate) } else { "errors".to_owned() }
}

fn times(ratio: f64) -> String {
    format!("× {ratio:.2}")
}

fn dash() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::tables;

    /// T20's row of 100 connections, where bolide and go have raced and go stands for xKit.
    fn raced() -> (Table, CellOutcome) {
        let mut table = tables().unwrap().into_iter().find(|table| table.name == "T20").unwrap();
        table.columns[0].1 = "bolide".to_owned();
        (table, crate::outcome::tests::outcome())
    }

    #[test]
    fn the_ratio_of_ratios_stands_beside_the_seed() {
        let (table, outcome) = raced();
        let text = section(&table, &[outcome]);
        // 152,316 / 128,915 = 1.18; bolide does twice what go does; 2 / 1.18 = 1.69.
        for expected in
            ["152,316", "<td>× 1.18</td><td>× 2.00</td><td>× 1.69</td>", "bolide stands for xKit"]
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(!text.contains(">200<"), "cells that were not run are left out: {text}");
    }

    #[test]
    fn a_rate_that_the_client_limited_is_compared_by_cpu() {
        let (table, mut outcome) = raced();
        for figures in outcome.entrants[0].rounds.iter_mut().flatten() {
            figures.bound = Bound::Client;
            figures.rate = 50_000.0;
        }
        assert!(section(&table, &[outcome]).contains("<td>× 2.00 CPU</td>"));
    }

    #[test]
    fn a_gain_is_the_last_cell_over_the_first() {
        let table = tables().unwrap().into_iter().find(|table| table.name == "T9").unwrap();
        let first = crate::outcome::tests::outcome();
        let mut last = first.clone();
        last.cell = table.rows[1].cell.clone();
        for figures in
            last.entrants.iter_mut().flat_map(|entrant| entrant.rounds.iter_mut()).flatten()
        {
            figures.rate /= 2.0;
        }
        let text = section(&table, &[first, last]);
        assert!(text.contains("TLS over cleartext"), "{text}");
        assert!(
            text.contains("<th>go</th><td>× 0.50</td><td>× 1.00</td><td>× 1.00</td>"),
            "{text}"
        );
    }

    #[test]
    fn the_reference_stands_beside_the_seed_too() {
        let (mut table, outcome) = raced();
        table.columns[0].1 = "nghttp2c".to_owned();
        let text = section(&table, &[outcome]);
        assert!(text.contains("<th>bolide / go here</th><th>over xKit / Go</th>"), "{text}");
        assert!(text.contains("<td>× 1.18</td><td>–</td><td>–</td><td>× 2.00</td><td>× 1.69</td>"));
    }

    #[test]
    fn a_table_that_was_not_run_has_no_section() {
        let (table, _) = raced();
        assert_eq!(section(&table, &[]), "");
    }
}
