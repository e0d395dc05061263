//! The sweeps, as tables and as plots.

use super::outcome::{Point, Results};
use super::stack::Direction;
use crate::report::{Section, sweeps as plots};

/// A line of a table, and of a plot.
type Series = (String, Vec<Option<f64>>);

/// A section for each sweep and direction, streams and round trips with one line for each stack; and for
/// each stack a map of frames and windows.
pub(super) fn sweeps(results: &Results) -> Vec<Section> {
    let mut sections = Vec::new();
    for (sweep, title, unit, factor) in [
        ("streams", "Gbit/s by streams on one connection", "", 1e9),
        ("rtt", "Mbit/s by round trip at 500 Mbit/s", " ms", 1e6),
    ] {
        for direction in Direction::ALL {
            let points = |p: &&Point| p.sweep == sweep && p.direction == direction;
            let points: Vec<&Point> = results.sweeps.iter().filter(points).collect();
            let (heads, series) =
                grid(&points, factor, |point| point.stack.title.clone(), |x| format!("{x}{unit}"));
            let head = format!("{title}, {}", direction.title());
            let plots = plots::lines(&head, &heads, &series);
            sections.push(Section { plots, rows: table(&heads, &series), head });
        }
    }
    let maps: Vec<&Point> = results.sweeps.iter().filter(|p| p.sweep == "windows").collect();
    for stack in unique(maps.iter().map(|point| point.stack.title.clone())) {
        let points: Vec<&Point> =
            maps.iter().copied().filter(|point| point.stack.title == stack).collect();
        let window = |point: &Point| format!("window {}", size(point.y.unwrap_or_default()));
        let (heads, series) = grid(&points, 1e9, window, |x| format!("frame {}", size(x)));
        let head = format!("Gbit/s of {stack} by the client's frames and windows");
        let plots = plots::map(&head, &heads, &series);
        sections.push(Section { plots, rows: table(&heads, &series), head });
    }
    sections.retain(|section| section.rows.len() > 1);
    sections
}

/// Names down, values of x across.
fn grid(
    points: &[&Point],
    factor: f64,
    name: impl Fn(&Point) -> String,
    head: impl Fn(f64) -> String,
) -> (Vec<String>, Vec<Series>) {
    let mut across: Vec<f64> = points.iter().map(|point| point.x).collect();
    across.sort_by(f64::total_cmp);
    across.dedup();
    let figure = |row: &str, x: f64| {
        let point = points.iter().find(|p| (p.x - x).abs() < 1e-9 && name(p) == row)?;
        point.sample.as_ref().map(|sample| sample.bits_per_second / factor)
    };
    let names = unique(points.iter().map(|point| name(point)));
    let series = names.into_iter().map(|row| {
        let figures = across.iter().map(|x| figure(&row, *x)).collect();
        (row, figures)
    });
    let series = series.collect();
    (across.iter().map(|x| head(*x)).collect(), series)
}

fn table(heads: &[String], series: &[Series]) -> Vec<Vec<String>> {
    let cell = |figure: &Option<f64>| {
        figure.map_or_else(|| "failed".to_owned(), |figure| format!("{figure:.1}"))
    };
    let row = |(name, figures): &Series| {
        std::iter::once(name.clone()).chain(figures.iter().map(cell)).collect()
    };
    let first = std::iter::once(String::new()).chain(heads.iter().cloned()).collect();
    std::iter::once(first).chain(series.iter().map(row)).collect()
}

fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Bytes with their unit; windows that end one below a power of two are called by that.
pub(super) fn size(bytes: f64) -> String {
    let bytes = if bytes >= 65_535.0 { bytes + bytes % 2.0 } else { bytes };
    match bytes {
        bytes if bytes >= 1_073_741_824.0 => format!("{} GiB", bytes / 1_073_741_824.0),
        bytes if bytes >= 1_048_576.0 => format!("{} MiB", bytes / 1_048_576.0),
        bytes => format!("{} KiB", bytes / 1024.0),
    }
}
