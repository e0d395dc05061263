//! CPU time of a request by stage: a table, and a bar for each contender that said it.

use bolide_semantics::in_markup;

use super::markup::{Svg, figure, table};
use super::scale::{Scale, tick_text};
use crate::figures::cost;
use crate::outcome::{CellOutcome, EntrantOutcome, StageTime};

const WIDTH: f64 = 760.0;
const ROW: f64 = 26.0;
const LEFT: f64 = 112.0;
const RIGHT: f64 = 20.0;

/// A stage whose part of the bar is narrower has no name in it.
const NAMED_WIDTH: f64 = 52.0;

/// Those of a cell that said it.
fn profiled(outcome: &CellOutcome) -> impl Iterator<Item = &EntrantOutcome> {
    outcome.entrants.iter().filter(|entrant| !entrant.profile.is_empty())
}

fn sum(stages: &[StageTime]) -> f64 {
    stages.iter().map(|stage| stage.us_per_request).sum()
}

/// The section; empty when no contender said anything.
pub(super) fn stages(outcomes: &[CellOutcome]) -> String {
    let cells: Vec<&CellOutcome> =
        outcomes.iter().filter(|outcome| profiled(outcome).next().is_some()).collect();
    let Some(first) = cells.first().and_then(|outcome| profiled(outcome).next()) else {
        return String::new();
    };
    let names: Vec<&str> = first.profile.iter().map(|stage| stage.stage.as_str()).collect();
    let mut heads = vec!["workload".to_owned(), "server".to_owned()];
    heads.extend(names.iter().map(|name| (*name).to_owned()));
    heads.push("sum".to_owned());
    let mut rows = Vec::new();
    for outcome in &cells {
        for entrant in profiled(outcome) {
            let mut row = vec![outcome.title(), entrant.name.clone()];
            row.extend(names.iter().map(|name| {
                let stage = entrant.profile.iter().find(|stage| stage.stage == *name);
                stage.map_or_else(|| "–".to_owned(), |stage| cost(stage.us_per_request))
            }));
            row.push(cost(sum(&entrant.profile)));
            rows.push(row);
        }
    }
    let plots: String = cells.iter().map(|outcome| bars(outcome)).collect();
    format!(
        "<section id=\"stages\"><h2>Where the CPU time of a request goes</h2>\n<p class=\"note\">Of runs of \
         their own after the timed rounds, in µs per request; only servers that measure it themselves \
         are here.</p>\n<div class=\"plots\">\n{plots}</div>\n{}</section>\n",
        table(&heads, &rows)
    )
}

/// The stacked bars of one cell.
fn bars(outcome: &CellOutcome) -> String {
    let title = outcome.title();
    let rows: Vec<&EntrantOutcome> = profiled(outcome).collect();
    let most = rows.iter().map(|entrant| sum(&entrant.profile)).fold(0.0, f64::max);
    let height = rows.len() as f64 * ROW + 24.0;
    let scale = Scale::linear(0.0, most, LEFT, WIDTH - RIGHT);
    let mut svg = Svg::new(WIDTH, height, &format!("{title}, by stage"));
    for tick in scale.ticks() {
        let x = scale.at(tick);
        svg.line("grid", (x, 0.0), (x, height - 20.0));
        svg.text("tick", (x, height - 7.0), "middle", &tick_text(tick));
    }
    for (index, entrant) in rows.iter().enumerate() {
        let y = index as f64 * ROW;
        svg.text("name", (LEFT - 8.0, y + 17.0), "end", &entrant.name);
        let mut begin = 0.0;
        for (number, stage) in entrant.profile.iter().enumerate() {
            let (start, end) = (scale.at(begin), scale.at(begin + stage.us_per_request));
            begin += stage.us_per_request;
            if end - start < 0.1 {
                continue;
            }
            let share = stage.us_per_request / sum(&entrant.profile).max(1e-9) * 100.0;
            let hint = format!("{}: {} µs, {share:.1} %", stage.stage, cost(stage.us_per_request));
            let class = format!("split s{number}");
            svg.bar(&class, (start, y + 3.0), (end - start, ROW - 6.0), &hint);
            if end - start > NAMED_WIDTH {
                svg.text("split", ((start + end) / 2.0, y + 17.0), "middle", &stage.stage);
            }
        }
    }
    figure(&svg.finish(), &format!("{}: µs of CPU per request by stage", in_markup(&title)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_part_of_the_bar_and_its_column() {
        let mut outcome = crate::outcome::tests::outcome();
        assert_eq!(stages(std::slice::from_ref(&outcome)), "");
        let stage = |name: &str, us_per_request| StageTime { stage: name.into(), us_per_request };
        outcome.entrants[0].profile =
            vec![stage("receive", 1.0), stage("tls-open", 0.0), stage("send", 3.0)];
        let page = stages(&[outcome]);
        assert_eq!(page.matches("<rect").count(), 2, "{page}");
        assert!(page.contains("receive: 1.00 µs, 25.0 %"), "{page}");
        assert!(page.contains("send: 3.00 µs, 75.0 %") && page.contains("tls-open"), "{page}");
        assert!(page.contains("4.00"), "{page}");
    }
}
