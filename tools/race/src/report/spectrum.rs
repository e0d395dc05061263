//! Latency by percentile, with the rare ones given as much room as the common ones.

use super::colours::colour;
use super::markup;
use super::markup::Svg;
use super::scale::Scale;
use crate::figures::duration;
use crate::outcome::{CellOutcome, EntrantOutcome};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 8.0;
const RIGHT: f64 = 110.0;

/// Fewer points than this are no spectrum.
const POINTS_MIN: usize = 3;

/// The plot of one cell: under full load, and by the clock where that was run.
pub(super) fn spectrum(outcome: &CellOutcome, names: &[String]) -> String {
    let mut text = String::new();
    let closed: Vec<Curve> = outcome
        .ranking()
        .into_iter()
        .filter(|entrant| !entrant.is_twin)
        .filter_map(|entrant| Curve::of(entrant, names))
        .collect();
    let title = outcome.title();
    text += &plot(
        &closed,
        &format!("{title}: latency by percentile under full load (closed loop: queueing included)"),
    );
    for share in shares(outcome) {
        let curves: Vec<Curve> = outcome
            .ranking()
            .into_iter()
            .filter(|entrant| !entrant.is_twin)
            .filter_map(|entrant| Curve::open(entrant, share, names))
            .collect();
        let share = share * 100.0;
        let caption =
            format!("{title}: latency by percentile at {share:.0} % of capacity (open loop)");
        text += &plot(&curves, &caption);
    }
    text
}

fn shares(outcome: &CellOutcome) -> Vec<f64> {
    let all = outcome.entrants.iter().flat_map(|entrant| &entrant.open_loop);
    let mut shares: Vec<f64> = all.map(|open| open.share).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    shares
}

/// One server's line.
struct Curve {
    name: String,
    class: String,
    /// Percentile and latency in µs.
    points: Vec<(f64, f64)>,
}

impl Curve {
    fn of(entrant: &EntrantOutcome, names: &[String]) -> Option<Self> {
        let mut percentiles: Vec<&String> =
            entrant.figures().flat_map(|figures| figures.latencies_us.keys()).collect();
        percentiles.sort();
        percentiles.dedup();
        let points = percentiles.into_iter().filter_map(|name| {
            let percentile: f64 = name.parse().ok()?;
            let us = entrant.median(|figures| figures.latencies_us.get(name).copied())?;
            Some((percentile, us))
        });
        Self::new(entrant, names, points.collect())
    }

    fn open(entrant: &EntrantOutcome, share: f64, names: &[String]) -> Option<Self> {
        let open = entrant.open_loop.iter().find(|open| (open.share - share).abs() < 1e-9)?;
        let points = open
            .figures
            .latencies_us
            .iter()
            .filter_map(|(name, us)| Some((name.parse().ok()?, *us)));
        Self::new(entrant, names, points.collect())
    }

    fn new(
        entrant: &EntrantOutcome,
        names: &[String],
        mut points: Vec<(f64, f64)>,
    ) -> Option<Self> {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let class = colour(names, &entrant.name);
        (points.len() >= POINTS_MIN).then(|| Self { name: entrant.label(), class, points })
    }
}

/// How rare a percentile is: 50 → 2, 99 → 100.
fn rarity(percentile: f64) -> f64 {
    100.0 / (100.0 - percentile).max(1e-5)
}

fn plot(curves: &[Curve], caption: &str) -> String {
    if curves.is_empty() {
        return String::new();
    }
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let least = all().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let most = all().map(|point| point.1).fold(0.0, f64::max);
    let rarest = all().map(|point| rarity(point.0)).fold(10.0, f64::max);
    // The median and what is rarer: the first half hardly matters.
    let x = Scale::log(1.8, rarest, LEFT, WIDTH - RIGHT);
    let y = Scale::log(least * 0.9, most * 1.1, HEIGHT - BOTTOM, TOP);
    let mut svg = Svg::new(WIDTH, HEIGHT, caption);
    for tick in y.ticks() {
        svg.line("grid", (LEFT, y.at(tick)), (WIDTH - RIGHT, y.at(tick)));
        svg.text("tick", (LEFT - 6.0, y.at(tick) + 4.0), "end", &duration(tick));
    }
    for percentile in [50.0, 90.0, 99.0, 99.9, 99.99, 99.999] {
        if rarity(percentile) <= rarest * 1.01 {
            let place = x.at(rarity(percentile));
            svg.line("grid", (place, TOP), (place, HEIGHT - BOTTOM));
            svg.text("tick", (place, HEIGHT - BOTTOM + 16.0), "middle", &format!("{percentile} %"));
        }
    }
    let mut labels: Vec<(f64, &Curve)> = Vec::new();
    for curve in curves {
        let points: Vec<(f64, f64)> =
            curve.points.iter().map(|(p, us)| (x.at(rarity(*p)), y.at(*us))).collect();
        svg.path(&format!("curve {}", curve.class), &points);
        for ((percentile, us), point) in curve.points.iter().zip(&points) {
            let hint = format!("{}: {percentile} % within {}", curve.name, duration(*us));
            svg.dot(&curve.class, *point, 2.6, &hint);
        }
        labels.push((points.last().map_or(0.0, |point| point.1), curve));
    }
    spread(&mut labels, 13.0);
    for (place, curve) in labels {
        let at = (WIDTH - RIGHT + 8.0, place + 4.0);
        svg.text(&format!("name {}-text", curve.class), at, "start", &curve.name);
    }
    markup::figure(&svg.finish(), caption)
}

/// Moves labels apart that would cover each other, and keeps them in the picture.
pub(super) fn spread<T>(labels: &mut [(f64, T)], distance: f64) {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    for index in 1..labels.len() {
        labels[index].0 = labels[index].0.max(labels[index - 1].0 + distance);
    }
    let over = labels.last().map_or(0.0, |last| last.0 - (HEIGHT - BOTTOM));
    if over > 0.0 {
        let mut ceiling = HEIGHT - BOTTOM;
        for label in labels.iter_mut().rev() {
            label.0 = label.0.min(ceiling);
            ceiling = label.0 - distance;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_its_line_and_twins_have_none() {
        let outcome = crate::outcome::tests::outcome();
        let plot = spectrum(&outcome, &["bolide".to_owned(), "go".to_owned()]);
        assert_eq!(plot.matches("<polyline").count(), 2);
        assert!(plot.contains("99.9 %") && plot.contains("go: 99 % within 1.80 ms"), "{plot}");
        assert!(plot.contains("closed loop"));
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        let mut labels = vec![(225.0, 'a'), (224.0, 'b'), (226.0, 'c')];
        spread(&mut labels, 13.0);
        assert!(labels.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 13.0));
        assert!(labels[2].0 <= HEIGHT - BOTTOM);
    }

    #[test]
    fn a_generator_without_percentiles_gives_no_plot() {
        let mut outcome = crate::outcome::tests::outcome();
        for figures in
            outcome.entrants.iter_mut().flat_map(|entrant| entrant.rounds.iter_mut()).flatten()
        {
            figures.latencies_us.retain(|name, _| name == "50");
        }
        assert_eq!(spectrum(&outcome, &[]), "");
    }
}
