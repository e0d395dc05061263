//! A cell as a table in the terminal.

use std::fmt::Write as _;

use crate::catalogue::{Kind, Route};
use crate::cells::{failed_text, lower_bound, ratio_text};
use crate::differing::{LARGE_FILE_BYTES, Requests};
use crate::figures::{aligned, bound_text, cost, count, dash, duration};
use crate::outcome::{CellOutcome, EntrantOutcome, Fate};
use crate::requests::contents;
use crate::statistics::median;
use crate::summary::{cpu_of, disturbed, full_text};

/// So many cores used by others are worth a line.
const FOREIGN_CORES_SHOWN: f64 = 0.10;

/// Different remarks of an entrant that are shown; all are in `results.json`.
const REMARKS_SHOWN: usize = 3;

/// Which columns a table in the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Those that fit into 100 characters.
    Main,
    /// Also ranges, pairs, memory and what each side used of the processors.
    All,
}

/// The table of one cell: the best first, then those that were not timed, with the reasons.
pub(crate) fn table(outcome: &CellOutcome, columns: Columns) -> String {
    let mut text = format!("\n{}\n", outcome.title());
    if outcome.cell.requests == Requests::Same && outcome.cell.load != Kind::Idle {
        text += match outcome.cell.route {
            Route::Post | Route::Grpc if !outcome.is_unchecked => {
                "  one request, repeated with bodies that differ\n"
            }
            Route::Echo if !outcome.is_unchecked => {
                "  one request, repeated; 1 in 100 is for another size\n"
            }
            Route::SiteRedirect => "  one request, repeated\n",
            _ if outcome.is_unchecked => "  one request, repeated\n",
            _ => {
                "  one request, repeated; 1 in 2,000 asks for what the server can't know beforehand\n"
            }
        };
    }
    if outcome.is_unchecked {
        text += "  unchecked: the generator compares no bodies\n";
    }
    let mut rows = match (outcome.cell.load, columns) {
        (Kind::Idle, _) => idle_rows(outcome),
        (_, Columns::All) => timed_rows(outcome),
        (_, Columns::Main) => main_columns(&timed_rows(outcome)),
    };
    text += &aligned(&mut rows);
    for entrant in &outcome.entrants {
        let label = entrant.label();
        let _ = match &entrant.fate {
            Fate::Timed => Ok(()),
            Fate::NotStarted(why) => writeln!(text, "  {label}: did not start: {why}"),
            Fate::Disqualified(why) => writeln!(text, "  {label}: disqualified: {why}"),
            Fate::Died(words) => writeln!(text, "  {label}: died; its last output:\n{words}"),
        };
        for (remark, times) in remarks(entrant) {
            let _ = writeln!(text, "  {label}: {remark}{times}");
        }
        for open in &entrant.open_loop {
            let latency = |name: &str| {
                open.figures.latencies_us.get(name).map_or_else(dash, |us| duration(*us))
            };
            let _ = writeln!(
                text,
                "  {label} at {:.0} % of its capacity ({} req/s, open loop): p50 {}, p99 {}",
                open.share * 100.0,
                count(open.rate),
                latency("50"),
                latency("99")
            );
        }
    }
    text + &footer(outcome)
}

/// Returns what was remarked of an entrant, each once, and how often if that was more.
pub(crate) fn remarks(entrant: &EntrantOutcome) -> Vec<(&str, String)> {
    let mut remarks: Vec<(&str, usize)> = Vec::new();
    for remark in &entrant.remarks {
        match remarks.iter_mut().find(|(known, _)| known == remark) {
            Some((_, count)) => *count += 1,
            None => remarks.push((remark, 1)),
        }
    }
    let times = |count| if count > 1 { format!(" ({count} times)") } else { String::new() };
    let shown = remarks.into_iter().take(REMARKS_SHOWN);
    shown.map(|(remark, count)| (remark, times(count))).collect()
}

/// Returns what disturbed the runs, and what contenders cost that differ only in how they are run.
fn footer(outcome: &CellOutcome) -> String {
    let mut text = String::new();
    let foreign: Vec<f64> = outcome
        .entrants
        .iter()
        .flat_map(EntrantOutcome::figures)
        .map(|figures| figures.foreign_cores)
        .collect();
    if let Some(foreign) = median(&foreign).filter(|cores| *cores > FOREIGN_CORES_SHOWN) {
        let _ = writeln!(text, "  other processes used {foreign:.2} cores during the runs");
    }
    if let Some(disturbed) = disturbed(std::slice::from_ref(outcome)) {
        let _ = writeln!(text, "  {disturbed}");
    }
    text += &distances(outcome);
    text += &per_gib(outcome);
    text += &compressed(outcome);
    if let Some(of) = cpu_of(std::slice::from_ref(outcome)) {
        let _ = writeln!(text, "  CPU time {of}");
    }
    for entrant in outcome.ranking() {
        if let Some((other, found)) = outcome.cpu_against(entrant) {
            let label = entrant.label();
            let _ = writeln!(text, "  {label} against {other}: {}", full_text(&found));
        }
    }
    text
}

/// Returns what a large file costs by its bytes: server CPU in seconds per GiB.
fn per_gib(outcome: &CellOutcome) -> String {
    if outcome.cell.route != Route::Static16m {
        return String::new();
    }
    let files = (1 << 30) as f64 / LARGE_FILE_BYTES as f64;
    let costs = outcome.ranking().into_iter().filter_map(|entrant| {
        let seconds = entrant.cpu_us()?.mid * files / 1e6;
        Some(format!("{} {seconds:.2}", entrant.label()))
    });
    format!("  CPU seconds per GiB: {}\n", costs.collect::<Vec<_>>().join(", "))
}

/// How much smaller content became, and what a MiB of it cost, with everything around it.
fn compressed(outcome: &CellOutcome) -> String {
    if outcome.cell.route != Route::SiteApi {
        return String::new();
    }
    let plain = contents(Route::SiteApi, None).len() as f64;
    let line = |entrant: &EntrantOutcome| {
        let content = entrant.median(|figures| Some(figures.content_bytes))?;
        let cpu_ms = entrant.cpu_us()?.mid / 1e3 / (plain / f64::from(1 << 20));
        let (label, share) = (entrant.label(), content / plain * 100.0);
        Some(format!(
            "  {label}: {} of {} bytes of content sent ({share:.1} %), {cpu_ms:.2} ms of CPU for each MiB of JSON\n",
            count(content),
            count(plain)
        ))
    };
    outcome.ranking().into_iter().filter_map(line).collect()
}

/// How far apart the cores were, if that changed.
fn distances(outcome: &CellOutcome) -> String {
    let figures = outcome.entrants.iter().flat_map(EntrantOutcome::figures);
    let found: Vec<f64> = figures.filter_map(|figures| figures.distance_ns).flatten().collect();
    let (all, unlike) = outcome.pairs_and_unlike();
    let least = found.iter().copied().fold(f64::INFINITY, f64::min);
    let most = found.iter().copied().fold(0.0, f64::max);
    if unlike == 0 {
        return String::new();
    }
    format!(
        "  the cores moved: a cache line took {least:.0} to {most:.0} ns there and back; {unlike} of {all} \
         runs have no run of the reference with a similar distance\n"
    )
}

fn timed_rows(outcome: &CellOutcome) -> Vec<Vec<String>> {
    let unit = match outcome.cell.load {
        Kind::Handshake | Kind::HandshakeResumed => "conn",
        _ => "req",
    };
    let heads = [
        "server",
        &format!("CPU µs/{unit}"),
        "range",
        "× reference",
        "pairs",
        "would be found",
        &format!("{unit}/s"),
        "p50",
        "p99",
    ];
    let mut heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    heads
        .extend(["failed", "peak MiB", "server / load / other CPU", "bound by"].map(str::to_owned));
    let mut rows = vec![heads];
    for entrant in outcome.ranking() {
        let cpu = entrant.cpu_us();
        let found = outcome.cpu_ratio(entrant);
        let detectable = found.and_then(|found| found.detectable);
        let rate = entrant.median(|figures| Some(figures.rate));
        let latency = |name: &str| {
            entrant
                .median(|figures| figures.latencies_us.get(name).copied())
                .map_or_else(dash, duration)
        };
        let cores = |part: fn(&crate::generator::Figures) -> f64| {
            entrant.median(|figures| Some(part(figures))).unwrap_or_default() * 100.0
        };
        rows.push(vec![
            entrant.label(),
            cpu.map_or_else(dash, |cpu| cost(cpu.mid)),
            cpu.map_or_else(dash, |cpu| format!("{}–{}", cost(cpu.low), cost(cpu.high))),
            ratio_text(outcome, entrant),
            found.map_or_else(dash, |found| found.pairs.to_string()),
            detectable.map_or_else(dash, |share| format!("{:.1} %", share * 100.0)),
            rate.map_or_else(dash, |rate| lower_bound(entrant) + &count(rate)),
            latency("50"),
            latency("99"),
            failed_text(entrant),
            format!("{:.1}", entrant.peak_memory_bytes as f64 / f64::from(1 << 20)),
            format!(
                "{:.0} / {:.0} / {:.0} %",
                cores(|figures| figures.server_cores),
                cores(|figures| figures.generator_cores),
                cores(|figures| figures.foreign_cores)
            ),
            bound_text(entrant.bound()).to_owned(),
        ]);
    }
    rows
}

/// The columns of [`timed_rows`] that fit into a terminal; failures only where there are some.
fn main_columns(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    const DETAILS: [&str; 5] =
        ["range", "pairs", "would be found", "peak MiB", "server / load / other CPU"];
    let Some((heads, lines)) = rows.split_first() else { return Vec::new() };
    let none_failed = lines
        .iter()
        .all(|line| heads.iter().zip(line).any(|(head, cell)| head == "failed" && cell == "0"));
    let is_left_out = |head: &str| DETAILS.contains(&head) || none_failed && head == "failed";
    let shown = |row: &Vec<String>| {
        let cells = row.iter().zip(heads).filter(|(_, head)| !is_left_out(head));
        cells.map(|(cell, _)| cell.clone()).collect()
    };
    rows.iter().map(shown).collect()
}

fn idle_rows(outcome: &CellOutcome) -> Vec<Vec<String>> {
    let heads = ["server", "bytes per idle connection", "peak MiB"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(outcome.ranking().into_iter().map(|entrant| {
        vec![
            entrant.label(),
            entrant.idle_connection_bytes.map_or_else(dash, count),
            format!("{:.1}", entrant.peak_memory_bytes as f64 / f64::from(1 << 20)),
        ]
    }));
    rows
}

#[cfg(test)]
mod tests {
    use bolide_probe::report::Bound;

    use super::*;

    #[test]
    fn a_cell_is_shown_with_its_pairs_and_those_that_fell_out() {
        let text = table(&crate::outcome::tests::outcome(), Columns::All);
        assert!(text.contains("HTTP/1.1 GET /ping, 100 connections"), "{text}");
        assert!(text.contains("2.00 (1.98–2.02)     12 "), "{text}");
        assert!(text.contains("not decided (0.99–1.01)     12 "), "{text}");
        assert!(text.contains("would be found") && text.contains(" %  "), "{text}");
        assert!(text.contains("cheat: disqualified: GET /echo?size=7"), "{text}");
        assert!(text.contains("dead: died") && text.contains("<out of memory>"), "{text}");
        assert!(!text.contains("per GiB"), "{text}");
        let mut outcome = crate::outcome::tests::outcome();
        outcome.cell.route = Route::Static16m;
        let large = table(&outcome, Columns::Main);
        assert!(large.contains("  CPU seconds per GiB: bolide 0.00, "), "{large}");
        let widths: Vec<usize> = text
            .lines()
            .filter(|line| line.contains(" server") && line.contains("300 µs"))
            .map(|line| line.chars().count())
            .collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
    }

    #[test]
    fn the_main_columns_fit_into_a_terminal_and_failures_are_shown_where_there_are_some() {
        let mut outcome = crate::outcome::tests::outcome();
        for entrant in &mut outcome.entrants {
            entrant.remarks.clear();
            entrant.fate = Fate::Timed;
        }
        let text = table(&outcome, Columns::Main);
        let rows = || text.lines().filter(|line| line.contains(" µs"));
        assert!(rows().count() > 1 && rows().all(|line| line.chars().count() <= 100), "{text}");
        assert!(!text.contains("failed") && !text.contains("peak MiB"), "{text}");
        let figures = outcome.entrants[0].rounds.iter_mut().flatten();
        figures.for_each(|figures| (figures.completed, figures.failed) = (99_920, 80));
        let text = table(&outcome, Columns::Main);
        assert!(text.contains("failed") && text.contains(" 0.080 % "), "{text}");
    }

    #[test]
    fn a_rate_that_the_client_limited_is_a_lower_bound() {
        let mut outcome = crate::outcome::tests::outcome();
        for figures in outcome.entrants[0].rounds.iter_mut().flatten() {
            figures.bound = Bound::Client;
        }
        let text = table(&outcome, Columns::All);
        let line = text.lines().find(|line| line.starts_with("  bolide  ")).unwrap();
        assert!(line.contains("≥ 83,"), "{text}");
    }

    #[test]
    fn what_repeats_is_said() {
        let mut outcome = crate::outcome::tests::outcome();
        assert!(table(&outcome, Columns::All).contains(
            "one request, repeated; 1 in 2,000 asks for what the server can't know beforehand\n"
        ));
        outcome.cell.route = Route::Post;
        assert!(
            table(&outcome, Columns::All)
                .contains("one request, repeated with bodies that differ\n")
        );
        outcome.is_unchecked = true;
        assert!(table(&outcome, Columns::All).contains("one request, repeated\n"));
    }

    #[test]
    fn what_a_foreign_generator_measures_is_marked() {
        let mut outcome = crate::outcome::tests::outcome();
        assert!(!table(&outcome, Columns::All).contains("unchecked"));
        outcome.is_unchecked = true;
        assert!(
            table(&outcome, Columns::All).contains("unchecked: the generator compares no bodies")
        );
        let said = crate::summary::sentences("bolide", &[outcome]).join(" ");
        assert!(said.contains("1 workload(s) are unchecked"), "{said}");
    }

    #[test]
    fn failed_responses_are_shown_however_few_they_are() {
        let mut outcome = crate::outcome::tests::outcome();
        assert_eq!(failed_text(&outcome.entrants[0]), "0");
        for figures in outcome.entrants[0].rounds.iter_mut().flatten() {
            (figures.completed, figures.failed) = (99_920, 80);
        }
        assert!(
            table(&outcome, Columns::All).contains(" 0.080 % "),
            "{}",
            table(&outcome, Columns::All)
        );
        outcome.entrants[0].rounds[0].as_mut().unwrap().completed = 1_000_000_000;
        assert_eq!(failed_text(&outcome.entrants[0]), "< 0.001 %");
    }
}
