//! Bars with ranges: what one response costs each server.

use super::colours::colour;
use super::markup;
use super::markup::Svg;
use super::reach::reach;
use super::scale::{Scale, tick_text};
use crate::catalogue::Kind;
use crate::cells::{lower_bound, ratio_text};
use crate::figures::{cost, count};
use crate::outcome::{CellOutcome, EntrantOutcome};
use crate::statistics::Interval;

const WIDTH: f64 = 560.0;
const ROW: f64 = 22.0;
const LEFT: f64 = 112.0;
/// How many times the shortest bar the longest may be on a linear scale: beyond it the shortest can't be seen.
const VANISHING: f64 = 30.0;
/// How far an interval is shown, as a multiple of the longest bar.
const REACH: f64 = 1.3;
/// Room for the figure behind the longest bar.
const RIGHT: f64 = 118.0;

/// The plot of one cell.
pub(super) fn bars(outcome: &CellOutcome, names: &[String]) -> String {
    let rows: Vec<(&EntrantOutcome, Interval)> = outcome
        .ranking()
        .into_iter()
        .filter_map(|entrant| Some((entrant, figure(outcome, entrant)?)))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let title = outcome.title();
    let height = ROW * rows.len() as f64 + 26.0;
    let most = rows.iter().map(|(_, figure)| figure.mid).fold(0.0, f64::max);
    // One run in trouble must not press all bars together.
    let highest = rows.iter().map(|(_, figure)| figure.high).fold(0.0, f64::max);
    let most = highest.min(most * REACH) * 1.02;
    let least = rows.iter().map(|(_, figure)| figure.mid).fold(f64::INFINITY, f64::min);
    let is_log = least > 0.0 && most > VANISHING * least;
    let scale = if is_log {
        Scale::log(least / 2.0, most, LEFT, WIDTH - RIGHT)
    } else {
        Scale::linear(0.0, most, LEFT, WIDTH - RIGHT)
    };
    let mut svg = Svg::new(WIDTH, height, &title);
    for tick in scale.ticks() {
        let x = scale.at(tick);
        svg.line("grid", (x, 0.0), (x, height - 20.0));
        svg.text("tick", (x, height - 7.0), "middle", &tick_text(tick));
    }
    for (index, (entrant, figure)) in rows.iter().enumerate() {
        let y = index as f64 * ROW;
        row(&mut svg, outcome, entrant, figure, names, &scale, y);
    }
    let scaled = if is_log { "; the scale is logarithmic" } else { "" };
    markup::figure(&svg.finish(), &format!("{title}: {}{scaled}", unit(outcome.cell.load)))
}

fn row(
    svg: &mut Svg,
    outcome: &CellOutcome,
    entrant: &EntrantOutcome,
    figure: &Interval,
    names: &[String],
    scale: &Scale,
    y: f64,
) {
    let label = entrant.label();
    let is_reference = entrant.name == outcome.reference && !entrant.is_twin;
    let class = if is_reference { "name strong" } else { "name" };
    svg.text(class, (LEFT - 8.0, y + 15.0), "end", &label);
    let shown = if outcome.cell.load == Kind::Idle { count(figure.mid) } else { cost(figure.mid) };
    let rate = entrant.median(|figures| Some(figures.rate));
    let rate = rate.map(|rate| format!("{}{}/s", lower_bound(entrant), count(rate)));
    let hint = format!(
        "{label}: {shown} ({}–{}); × reference: {}; {}",
        cost(figure.low),
        cost(figure.high),
        ratio_text(outcome, entrant),
        rate.clone().unwrap_or_default()
    );
    let faded = if entrant.is_twin { " twin" } else { "" };
    let class = format!("{}{faded}", colour(names, &entrant.name));
    let end = scale.at(figure.mid);
    svg.bar(&class, (LEFT, y + 4.0), (end - LEFT, ROW - 8.0), &hint);
    if !scale.is_log() {
        // Parts of a bar add up to it on a linear scale only.
        stages(svg, entrant, figure.mid, scale, y);
    }
    reach(svg, "whisker", scale, figure, y + ROW / 2.0);
    let (high, _) = scale.within(figure.high);
    let text = match rate {
        Some(rate) => format!("{shown}  ·  {rate}"),
        None => shown,
    };
    svg.text("figure", (high.max(end) + 7.0, y + 15.0), "start", &text);
}

/// The bar's parts by what the time was spent on, where it was told.
fn stages(svg: &mut Svg, entrant: &EntrantOutcome, total: f64, scale: &Scale, y: f64) {
    let sum: f64 = entrant.profile.iter().map(|stage| stage.us_per_request).sum();
    let mut begin = 0.0;
    for (index, stage) in entrant.profile.iter().enumerate() {
        let share = stage.us_per_request / sum.max(1e-9) * total;
        let (start, end) = (scale.at(begin), scale.at(begin + share));
        let class = if index % 2 == 0 { "stage even" } else { "stage odd" };
        let hint = format!("{}: {} µs", stage.stage, cost(share));
        svg.bar(class, (start, y + 4.0), (end - start, ROW - 8.0), &hint);
        begin += share;
    }
}

fn figure(outcome: &CellOutcome, entrant: &EntrantOutcome) -> Option<Interval> {
    match outcome.cell.load {
        Kind::Idle => {
            let bytes = entrant.idle_connection_bytes?;
            Some(Interval { low: bytes, mid: bytes, high: bytes })
        }
        _ => entrant.cpu_us(),
    }
}

/// Returns what the bars of such a cell measure.
pub(super) fn unit(load: Kind) -> &'static str {
    match load {
        Kind::Idle => "bytes of memory per idle connection; less is better",
        Kind::Handshake | Kind::HandshakeResumed => {
            "server CPU per connection in µs with the range of the runs, and connections per second; less \
             CPU is better"
        }
        Kind::Closed | Kind::Latency | Kind::Rate => {
            "server CPU per request in µs with the range of the runs, and requests per second; less CPU is \
             better"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::StageTime;

    #[test]
    fn the_best_comes_first_and_intervals_are_drawn() {
        let outcome = crate::outcome::tests::outcome();
        let plot = bars(&outcome, &super::super::names(std::slice::from_ref(&outcome)));
        assert_eq!(plot.matches("<rect").count(), 3);
        assert_eq!(plot.matches("class=\"whisker\"").count(), 9);
        let place = |name: &str| plot.find(&format!(">{name}</text>")).unwrap();
        assert!(place("bolide") < place("go") && place("bolide again") < place("go"));
        assert!(plot.contains("× reference: 2.00"), "{plot}");
    }

    #[test]
    fn bars_that_would_vanish_are_on_a_logarithmic_scale() {
        let mut outcome = crate::outcome::tests::outcome();
        let names = super::super::names(std::slice::from_ref(&outcome));
        assert!(!bars(&outcome, &names).contains("logarithmic"));
        let rounds = outcome.entrants.iter_mut().filter(|entrant| entrant.name == "go");
        for figures in rounds.flat_map(|entrant| entrant.rounds.iter_mut()).flatten() {
            figures.cpu_us *= 100.0;
        }
        assert!(bars(&outcome, &names).contains("logarithmic"));
    }

    #[test]
    fn stages_fill_the_bar_when_they_are_known() {
        let mut outcome = crate::outcome::tests::outcome();
        outcome.entrants[0].profile = [("kernel", 5.0), ("parsing", 1.0)]
            .map(|(stage, us_per_request)| StageTime { stage: stage.to_owned(), us_per_request })
            .to_vec();
        let plot = bars(&outcome, &["bolide".to_owned()]);
        assert!(plot.contains("kernel: 2.50 µs") && plot.contains("parsing: 0.50 µs"), "{plot}");
    }
}
