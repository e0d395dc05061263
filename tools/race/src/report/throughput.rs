//! Throughput against latency: how much a server does, and how long its clients wait for it.

use super::colours::colour;
use super::markup;
use super::markup::Svg;
use super::scale::{Scale, tick_text};
use super::spectrum::spread;
use crate::cells::lower_bound;
use crate::figures::{count, duration};
use crate::generator::Figures;
use crate::outcome::{CellOutcome, EntrantOutcome};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 8.0;
const RIGHT: f64 = 110.0;

/// One run's place.
struct Point {
    rate: f64,
    p50: f64,
    p99: f64,
    what: String,
}

/// The plot of one cell: a dot is the median latency, its line reaches up to the 99th percentile.
pub(super) fn throughput(outcome: &CellOutcome, names: &[String]) -> String {
    let servers: Vec<(&EntrantOutcome, Vec<Point>)> = outcome
        .ranking()
        .into_iter()
        .filter(|entrant| !entrant.is_twin)
        .map(|entrant| (entrant, points(entrant)))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    // At a fixed rate all do the same.
    if servers.is_empty() || outcome.rate.is_some() {
        return String::new();
    }
    let caption = format!(
        "{}: requests per second against latency (dot: median, line: up to the 99th percentile); \
         right and down is better",
        outcome.title()
    );
    let all = || servers.iter().flat_map(|(_, points)| points);
    let most = all().map(|point| point.rate).fold(0.0, f64::max);
    let low = all().map(|point| point.p50).fold(f64::INFINITY, f64::min);
    let high = all().map(|point| point.p99).fold(0.0, f64::max);
    let x = Scale::linear(0.0, most * 1.05, LEFT, WIDTH - RIGHT);
    let y = Scale::log(low * 0.8, high * 1.2, HEIGHT - BOTTOM, TOP);
    let mut svg = Svg::new(WIDTH, HEIGHT, &caption);
    for tick in y.ticks() {
        svg.line("grid", (LEFT, y.at(tick)), (WIDTH - RIGHT, y.at(tick)));
        svg.text("tick", (LEFT - 6.0, y.at(tick) + 4.0), "end", &duration(tick));
    }
    for tick in x.ticks() {
        svg.line("grid", (x.at(tick), TOP), (x.at(tick), HEIGHT - BOTTOM));
        svg.text("tick", (x.at(tick), HEIGHT - BOTTOM + 16.0), "middle", &tick_text(tick));
    }
    let mut labels = Vec::new();
    for (entrant, points) in &servers {
        let class = colour(names, &entrant.name);
        let line: Vec<(f64, f64)> =
            points.iter().map(|point| (x.at(point.rate), y.at(point.p50))).collect();
        if line.len() > 1 {
            svg.path(&format!("curve {class}"), &line);
        }
        for (point, at) in points.iter().zip(&line) {
            svg.line(&format!("curve {class}"), *at, (at.0, y.at(point.p99)));
            svg.dot(&class, *at, 4.5, &format!("{}, {}", entrant.label(), point.what));
        }
        labels.push((line.last().map_or(0.0, |at| at.1), (entrant.label(), class)));
    }
    spread(&mut labels, 13.0);
    for (place, (label, class)) in labels {
        let at = (WIDTH - RIGHT + 8.0, place + 4.0);
        svg.text(&format!("name {class}-text"), at, "start", &label);
    }
    markup::figure(&svg.finish(), &caption)
}

/// By the clock where that was run, then under full load.
fn points(entrant: &EntrantOutcome) -> Vec<Point> {
    let latency = |figures: &Figures, name: &str| {
        figures.latencies_us.get(name).copied().filter(|us| *us > 0.0)
    };
    let mut points: Vec<Point> = Vec::new();
    for open in &entrant.open_loop {
        if let (Some(p50), Some(p99)) = (latency(&open.figures, "50"), latency(&open.figures, "99"))
        {
            let what = format!("at {:.0} % of capacity", open.share * 100.0);
            points.push(Point { rate: open.figures.rate, p50, p99, what });
        }
    }
    let median = |name: &'static str| entrant.median(|figures| latency(figures, name));
    let rate = entrant.median(|figures| Some(figures.rate));
    if let (Some(rate), Some(p50), Some(p99)) = (rate, median("50"), median("99")) {
        let what = format!(
            "full load: {}{}/s, p50 {}, p99 {}",
            lower_bound(entrant),
            count(rate),
            duration(p50),
            duration(p99)
        );
        points.push(Point { rate, p50, p99, what });
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::OpenLoop;

    #[test]
    fn runs_by_the_clock_lie_on_a_line_with_the_full_load() {
        let mut outcome = crate::outcome::tests::outcome();
        let plot = throughput(&outcome, &["bolide".to_owned()]);
        assert_eq!((plot.matches("<circle").count(), plot.matches("<polyline").count()), (2, 0));
        let figures = outcome.entrants[0].figures().next().unwrap().clone();
        outcome.entrants[0].open_loop.push(OpenLoop { share: 0.5, rate: 40_000.0, figures });
        let plot = throughput(&outcome, &["bolide".to_owned()]);
        assert_eq!((plot.matches("<circle").count(), plot.matches("<polyline").count()), (3, 1));
        assert!(plot.contains("bolide, at 50 % of capacity"), "{plot}");
    }
}
