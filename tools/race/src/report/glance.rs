//! Everything at a glance: each server's CPU per request against the reference's, workload by workload.

use super::colours::colour;
use super::markup::Svg;
use super::reach::reach;
use super::scale::{Scale, tick_text};
use crate::catalogue::{Cores, Kind, Route};
use crate::outcome::{CellOutcome, EntrantOutcome};
use crate::statistics::Interval;

const STYLE: &str = include_str!("style.css");

const WIDTH: f64 = 1000.0;
const ROW: f64 = 30.0;
const LEFT: f64 = 410.0;
const RIGHT: f64 = 44.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 34.0;
/// Ratios above this stand at the edge: one server in trouble must not press all others together.
const MOST: f64 = 60.0;
/// Gap between two names of the legend.
const LEGEND_GAP: f64 = 26.0;
/// How wide a letter of the legend is, about.
const LETTER: f64 = 6.6;

/// A server's place in a row.
struct Place<'o> {
    entrant: &'o EntrantOutcome,
    ratio: Interval,
}

/// The plot, if there is anything to compare. `is_page`: part of the page, whose style applies;
/// otherwise a file of its own.
pub(super) fn glance(
    outcomes: &[CellOutcome],
    names: &[String],
    reference: &str,
    is_page: bool,
) -> Option<String> {
    let rows: Vec<(&CellOutcome, Vec<Place<'_>>)> = chosen(outcomes)
        .into_iter()
        .filter(|outcome| outcome.reference == reference)
        .map(|outcome| (outcome, places(outcome)))
        .filter(|(_, places)| !places.is_empty())
        .collect();
    let ratios = || rows.iter().flat_map(|(_, places)| places).map(|place| place.ratio.mid);
    let low = ratios().fold(1.0, f64::min) * 0.85;
    let high = ratios().fold(1.0, f64::max).min(MOST) * 1.12;
    if rows.is_empty() {
        return None;
    }
    let title = format!("Server CPU per request at capacity, as a multiple of {reference}'s");
    let height = TOP + ROW * rows.len() as f64 + BOTTOM + 22.0;
    let mut svg = if is_page {
        Svg::new(WIDTH, height, &title)
    } else {
        Svg::file(WIDTH, height, &title, STYLE)
    };
    svg.text("strong", (10.0, 18.0), "start", &format!("{title}; right of the line costs more"));
    let scale = Scale::log(low, high, LEFT, WIDTH - RIGHT);
    let bottom = TOP + ROW * rows.len() as f64;
    for tick in scale.ticks() {
        svg.line("grid", (scale.at(tick), TOP), (scale.at(tick), bottom));
        svg.text("tick", (scale.at(tick), bottom + 15.0), "middle", &tick_text(tick));
    }
    for (index, (outcome, places)) in rows.iter().enumerate() {
        let middle = TOP + ROW * (index as f64 + 0.5);
        svg.text("name", (LEFT - 12.0, middle + 4.0), "end", &outcome.cell.short_title());
        svg.line("grid", (LEFT, middle), (WIDTH - RIGHT, middle));
        for place in places {
            dot(&mut svg, place, names, &scale, middle);
        }
    }
    svg.line("whisker", (scale.at(1.0), TOP), (scale.at(1.0), bottom));
    legend(&mut svg, &rows, names, reference, bottom + 38.0);
    Some(svg.finish())
}

fn dot(svg: &mut Svg, place: &Place<'_>, names: &[String], scale: &Scale, middle: f64) {
    let class = colour(names, &place.entrant.name);
    let Interval { low, mid, high } = place.ratio;
    reach(svg, &format!("{class} reach"), scale, &place.ratio, middle);
    let hint = format!("{}: {mid:.2} ({low:.2}–{high:.2})", place.entrant.name);
    let (x, is_shown) = scale.within(mid);
    if is_shown {
        svg.dot(&class, (x, middle), 5.5, &hint);
    } else {
        svg.text("figure", (x, middle - 6.0), "end", &hint);
    }
}

/// Draws the legend of colours.
fn legend(
    svg: &mut Svg,
    rows: &[(&CellOutcome, Vec<Place<'_>>)],
    names: &[String],
    reference: &str,
    y: f64,
) {
    let is_shown = |name: &&String| {
        let mut shown = rows.iter().flat_map(|(_, places)| places);
        shown.any(|place| place.entrant.name == **name)
    };
    let mut x = 14.0;
    for name in names.iter().filter(is_shown) {
        svg.dot(&colour(names, name), (x, y - 4.0), 5.0, name);
        svg.text("name", (x + 10.0, y), "start", name);
        x += LEGEND_GAP + name.chars().count() as f64 * LETTER;
    }
    svg.line("whisker", (x, y - 10.0), (x, y + 2.0));
    svg.text("name strong", (x + 8.0, y), "start", reference);
}

/// One cell of each protocol and route: the one that quick races take, if it was run.
fn chosen(outcomes: &[CellOutcome]) -> Vec<&CellOutcome> {
    let mut chosen: Vec<&CellOutcome> = Vec::new();
    let is_usual = |outcome: &CellOutcome| {
        let size = match outcome.cell.route {
            Route::Echo => 1024,
            Route::Post => 4096,
            _ => outcome.cell.size,
        };
        outcome.cell.connections == 100 && outcome.cell.size == size
    };
    for outcome in outcomes {
        let cell = &outcome.cell;
        if cell.load != Kind::Closed || cell.cores != Cores::One {
            continue;
        }
        let same = chosen
            .iter_mut()
            .find(|other| (other.cell.protocol, other.cell.route) == (cell.protocol, cell.route));
        match same {
            None => chosen.push(outcome),
            Some(place) if is_usual(outcome) && !is_usual(place) => *place = outcome,
            Some(_) => {}
        }
    }
    chosen
}

fn places(outcome: &CellOutcome) -> Vec<Place<'_>> {
    let others = outcome.entrants.iter().filter(|entrant| !entrant.is_twin);
    others
        .filter_map(|entrant| {
            let ratio = outcome.cpu_ratio(entrant)?.ratio;
            Some(Place { entrant, ratio })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_its_place_and_colour() {
        let outcome = crate::outcome::tests::outcome();
        let outcomes = [outcome];
        let names = super::super::names(&outcomes);
        let plot = glance(&outcomes, &names, "bolide", true).unwrap();
        assert!(plot.contains("go: 2.00"), "{plot}");
        assert!(!plot.contains("cheat"), "who was not timed has no place: {plot}");
        assert!(!plot.contains("<style>"));
        let file = glance(&outcomes, &names, "bolide", false).unwrap();
        assert!(file.contains("xmlns=") && file.contains("<style>"), "{file}");
        assert_eq!(glance(&outcomes, &names, "go", true), None, "nothing is held against go");
    }

    #[test]
    fn the_usual_cell_stands_for_its_kind() {
        let usual = crate::outcome::tests::outcome();
        let mut more = usual.clone();
        more.cell.connections = 500;
        let all = [more, usual];
        let chosen = chosen(&all);
        assert_eq!(chosen.len(), 1);
        assert_eq!(chosen[0].cell.connections, 100);
    }
}
