//! Plots of sweeps: one thing as lines, two as a map.

use super::markup::{Svg, figure};
use super::scale::{Scale, tick_text};
use super::spectrum::spread;

const WIDTH: f64 = 560.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 34.0;
const HEIGHT: f64 = 260.0;

/// Room for the names of lines.
const RIGHT: f64 = 150.0;

/// Room for the names of a map's rows.
const NAMES: f64 = 130.0;

/// The height of a map's row.
const ROW: f64 = 40.0;

/// How faint the least figure of a map is, and how strong the largest.
const FAINT: f64 = 0.06;
const STRONG: f64 = 0.7;

/// Figures over a few values, one line for each series; `heads` are the values as people read them.
/// A series has `None` where it has failed.
pub(crate) fn lines(
    caption: &str,
    heads: &[String],
    series: &[(String, Vec<Option<f64>>)],
) -> String {
    let figures = || series.iter().flat_map(|(_, figures)| figures.iter().flatten());
    let most = figures().copied().fold(0.0, f64::max);
    if heads.is_empty() || most <= 0.0 {
        return String::new();
    }
    // The values have the same distances: 1, 2, 4, 8, 16 as well as 0, 20, 50, 100.
    let x = Scale::linear(0.0, (heads.len() - 1) as f64, LEFT + 12.0, WIDTH - RIGHT);
    let y = Scale::linear(0.0, most * 1.05, HEIGHT - BOTTOM, TOP);
    let mut svg = Svg::new(WIDTH, HEIGHT, caption);
    for tick in y.ticks() {
        svg.line("grid", (LEFT, y.at(tick)), (WIDTH - RIGHT, y.at(tick)));
        svg.text("tick", (LEFT - 6.0, y.at(tick) + 4.0), "end", &tick_text(tick));
    }
    for (place, head) in heads.iter().enumerate() {
        svg.text("tick", (x.at(place as f64), HEIGHT - BOTTOM + 16.0), "middle", head);
    }
    let mut labels = Vec::new();
    for (index, (name, figures)) in series.iter().enumerate() {
        let class = format!("c{}", index % 12);
        let found = figures.iter().enumerate().filter_map(|(at, figure)| Some((at, (*figure)?)));
        let points: Vec<(f64, f64)> =
            found.clone().map(|(at, figure)| (x.at(at as f64), y.at(figure))).collect();
        svg.path(&format!("curve {class}"), &points);
        for ((at, figure), point) in found.zip(&points) {
            let head = heads.get(at).map_or("", String::as_str);
            svg.dot(&class, *point, 3.5, &format!("{name}, {head}: {figure:.2}"));
        }
        if let Some(last) = points.last() {
            labels.push((last.1, (name, class)));
        }
    }
    spread(&mut labels, 13.0);
    for (place, (name, class)) in labels {
        let at = (WIDTH - RIGHT + 8.0, place + 4.0);
        svg.text(&format!("name {class}-text"), at, "start", name);
    }
    figure(&svg.finish(), caption)
}

/// A figure for each pair of values: the larger, the stronger its colour.
pub(crate) fn map(caption: &str, heads: &[String], rows: &[(String, Vec<Option<f64>>)]) -> String {
    let most = rows.iter().flat_map(|(_, row)| row.iter().flatten()).copied().fold(0.0, f64::max);
    if heads.is_empty() || most <= 0.0 {
        return String::new();
    }
    let width = (WIDTH - NAMES) / heads.len() as f64;
    let height = TOP + ROW * rows.len() as f64 + BOTTOM;
    let mut svg = Svg::new(WIDTH, height, caption);
    for (down, (name, row)) in rows.iter().enumerate() {
        let top = TOP + ROW * down as f64;
        let middle = top + ROW / 2.0 + 4.0;
        svg.text("name", (NAMES - 10.0, middle), "end", name);
        for (across, figure) in row.iter().enumerate() {
            let left = NAMES + width * across as f64;
            let share = figure.unwrap_or(0.0) / most;
            let hint = format!("{name}, {}", heads.get(across).map_or("", String::as_str));
            let size = (width - 2.0, ROW - 2.0);
            svg.shade("c0", (left, top), size, FAINT + share * (STRONG - FAINT), &hint);
            let text = figure.map_or_else(|| "failed".to_owned(), |figure| format!("{figure:.1}"));
            svg.text("name", (left + width / 2.0, middle), "middle", &text);
        }
    }
    for (across, head) in heads.iter().enumerate() {
        let left = NAMES + width * (across as f64 + 0.5);
        svg.text("tick", (left, height - BOTTOM + 18.0), "middle", head);
    }
    figure(&svg.finish(), caption)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads() -> Vec<String> {
        ["1", "2", "4"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_line_has_a_dot_for_each_figure_and_none_for_what_failed() {
        let series = [
            ("a".to_owned(), vec![Some(1.0), Some(2.0), Some(3.0)]),
            ("b".to_owned(), vec![Some(2.0), None, Some(1.0)]),
        ];
        let plot = lines("streams", &heads(), &series);
        assert_eq!((plot.matches("<circle").count(), plot.matches("<polyline").count()), (5, 2));
        assert!(plot.contains("b, 4: 1.00"), "{plot}");
        assert!(lines("nothing", &heads(), &[("a".to_owned(), vec![None])]).is_empty());
    }

    #[test]
    fn the_largest_figure_of_a_map_is_the_strongest() {
        let rows = [("64 KiB".to_owned(), vec![Some(1.0), Some(10.0), None])];
        let plot = map("windows", &heads(), &rows);
        let at = |share: &str| plot.find(&format!("fill-opacity=\"{share}\"")).expect(share);
        assert!(at("0.12") < at("0.70") && at("0.70") < at("0.06"), "{plot}");
        assert!(plot.contains("failed") && plot.contains("10.0"));
        assert!(map("nothing", &heads(), &[]).is_empty());
    }
}
