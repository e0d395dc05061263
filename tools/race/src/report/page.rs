//! The page itself.

use std::fmt::Write as _;

use bolide_semantics::in_markup;

use super::bars::bars;
use super::glance::glance;
use super::markup::{figure, table};
use super::seeds::section;
use super::spectrum::spectrum;
use super::stages::stages;
use super::throughput::throughput;
use super::{Part, Section, date, names};
use crate::catalogue::Table;
use crate::manifest::Manifest;
use crate::outcome::{CellOutcome, EntrantOutcome, Fate};
use crate::statistics::median;
use crate::summary::{cpu_of, fate_text, legend, overview, sentences};
use crate::table::remarks;

const STYLE: &str = include_str!("style.css");

/// The whole page; nothing is loaded from anywhere.
pub(super) fn page(
    manifest: &Manifest,
    tables: &[Table],
    outcomes: &[CellOutcome],
    bulk: Option<&Part>,
) -> String {
    let names = names(outcomes);
    let kind = if manifest.is_quick { "Quick race" } else { "Race" };
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{kind} of HTTP servers, {0}\
         </title>\n<style>\n{STYLE}</style></head><body><main>\n<h1>{kind} of HTTP servers</h1>\n\
         <p class=\"lead\">{0} · {1} · {2}</p>\n",
        date(manifest.started_unix_s),
        in_markup(&manifest.machine.cpu),
        in_markup(&manifest.machine.kernel)
    );
    text += &headline(manifest, outcomes);
    if let Some(plot) = glance(outcomes, &names, &manifest.reference, true) {
        let caption = "One workload of each kind. A dot is the geometric mean of the ratios within rounds, its \
                       line the interval, or with fewer than six pairs the range; the scale is logarithmic.";
        text += &figure(&plot, caption);
    }
    text += "<section id=\"overview\"><h2>CPU per request against the reference</h2>\n";
    let rows = overview(outcomes);
    if let Some((heads, rows)) = rows.split_first() {
        text += &table(heads, rows);
    }
    let _ = writeln!(text, "<p class=\"note\">{}</p>", in_markup(&legend()));
    text += "</section>\n<section id=\"cost\"><h2>What one response costs</h2>\n<div class=\"plots\">\n";
    for outcome in outcomes {
        text += &bars(outcome, &names);
    }
    text += "</div></section>\n";
    text += &stages(outcomes);
    let latency: String = outcomes
        .iter()
        .map(|outcome| throughput(outcome, &names) + &spectrum(outcome, &names))
        .collect();
    if !latency.is_empty() {
        let _ = write!(
            text,
            "<section id=\"latency\"><h2>Latency</h2>\n<div class=\"plots\">\n{latency}</div>\
             </section>\n"
        );
    }
    let sections: String = tables.iter().map(|table| section(table, outcomes)).collect();
    if !sections.is_empty() {
        let _ = write!(text, "<section id=\"tables\"><h2>Tables</h2>\n{sections}</section>\n");
    }
    text += &bulk.map(bulk_part).unwrap_or_default();
    text += &fallen(manifest, outcomes);
    text += &described(manifest, outcomes);
    text + "</main></body></html>\n"
}

/// A page of plots and tables, each table with its heads in the first row.
pub(super) fn plain(
    title: &str,
    lead: &str,
    notes: &[String],
    sections: &[Section],
    skipped: &[String],
) -> String {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n<style>\n{STYLE}</style>\
         </head><body><main>\n<h1>{0}</h1>\n<p class=\"lead\">{1}</p>\n",
        in_markup(title),
        in_markup(lead)
    );
    text += &parts("h2", notes, sections, skipped);
    text + "</main></body></html>\n"
}

/// Bulk transfers, as a section of a race's page.
fn bulk_part(part: &Part) -> String {
    let parts = parts("h3", &part.notes, &part.sections, &part.skipped);
    format!("<section id=\"bulk\"><h2>Bulk transfer</h2>\n{parts}</section>\n")
}

/// Sentences, then plots and tables, then what was left out; `head` is the element of the parts' heads.
fn parts(head: &str, notes: &[String], sections: &[Section], skipped: &[String]) -> String {
    let mut text = String::new();
    for note in notes {
        let _ = writeln!(text, "<p>{}</p>", in_markup(note));
    }
    for Section { head: title, plots, rows } in sections {
        if let Some((heads, rows)) = rows.split_first().filter(|(_, rows)| !rows.is_empty()) {
            let _ = writeln!(
                text,
                "<section><{head}>{}</{head}>\n<div class=\"plots\">{plots}</div>\n{}</section>",
                in_markup(title),
                table(heads, rows)
            );
        }
    }
    if !skipped.is_empty() {
        let items: String =
            skipped.iter().map(|line| format!("<li>{}</li>\n", in_markup(line))).collect();
        let _ = writeln!(text, "<section><{head}>Left out</{head}>\n<ul>\n{items}</ul></section>");
    }
    text
}

/// Returns what is claimed, in sentences, and what the machine was warned of.
fn headline(manifest: &Manifest, outcomes: &[CellOutcome]) -> String {
    let mut text = String::new();
    for (index, sentence) in sentences(&manifest.reference, outcomes).iter().enumerate() {
        let class = if index == 0 { "verdict" } else { "note" };
        let _ = writeln!(text, "<p class=\"{class}\">{}</p>", in_markup(sentence));
    }
    for warning in &manifest.warnings {
        let _ = writeln!(text, "<p class=\"warning\">{}</p>", in_markup(warning));
    }
    text
}

/// Those that were not timed, with the evidence, and those that were not here.
fn fallen(manifest: &Manifest, outcomes: &[CellOutcome]) -> String {
    let mut items = String::new();
    for outcome in outcomes {
        for entrant in &outcome.entrants {
            let (Fate::NotStarted(why) | Fate::Disqualified(why) | Fate::Died(why)) = &entrant.fate
            else {
                continue;
            };
            let _ = writeln!(
                items,
                "<li><b>{}</b> {} in {}:<pre>{}</pre></li>",
                in_markup(&entrant.label()),
                fate_text(entrant),
                in_markup(&outcome.title()),
                in_markup(why)
            );
        }
    }
    for (outcome, entrant) in entrants(outcomes).filter(|(_, entrant)| entrant.counts()) {
        for (remark, times) in remarks(entrant) {
            let (label, title) = (in_markup(&entrant.label()), in_markup(&outcome.title()));
            let remark = in_markup(remark);
            let _ =
                writeln!(items, "<li><b>{label}</b> was timed in {title}: {remark}{times}</li>");
        }
    }
    for entry in &manifest.contenders {
        if let Some(why) = &entry.skipped {
            let name = in_markup(&entry.contender.name);
            let _ = writeln!(items, "<li><b>{name}</b> was not available: {}</li>", in_markup(why));
        }
    }
    if items.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"fallen\"><h2>Not timed, or with remarks</h2>\n<ul>\n{items}</ul></section>\n"
    )
}

fn entrants(outcomes: &[CellOutcome]) -> impl Iterator<Item = (&CellOutcome, &EntrantOutcome)> {
    outcomes.iter().flat_map(|outcome| outcome.entrants.iter().map(move |one| (outcome, one)))
}

/// Returns what the race itself took from the generator's cores.
fn own_use(outcomes: &[CellOutcome]) -> String {
    let entrants = outcomes.iter().flat_map(|outcome| &outcome.entrants);
    let shares: Vec<f64> =
        entrants.flat_map(EntrantOutcome::figures).map(|figures| figures.own_cores).collect();
    let most = shares.iter().copied().fold(0.0, f64::max);
    match median(&shares) {
        Some(middle) if most > 0.0 => format!(
            "{:.2} % of a core of the generator's (median of the runs; {:.2} % at the most)",
            middle * 100.0,
            most * 100.0
        ),
        _ => String::new(),
    }
}

/// Returns what other processes, the host, and work of the kernel that no process is charged with took while servers ran.
fn others_use(outcomes: &[CellOutcome]) -> String {
    let cores: Vec<f64> = entrants(outcomes)
        .flat_map(|(_, entrant)| entrant.figures())
        .map(|figures| figures.foreign_cores)
        .collect();
    let most = cores.iter().copied().fold(0.0, f64::max);
    match median(&cores) {
        Some(middle) if most > 0.0 => format!(
            "{middle:.2} cores in the median of the runs, {most:.2} at the most: other processes, the host, and work of the kernel \
             that is charged to no process"
        ),
        _ => String::new(),
    }
}

/// How far the server's core was from the generator's, and what that left out.
fn between(outcomes: &[CellOutcome]) -> String {
    let figures = outcomes.iter().flat_map(|outcome| &outcome.entrants);
    let figures = figures.flat_map(EntrantOutcome::figures);
    let found: Vec<f64> = figures.filter_map(|figures| figures.distance_ns).flatten().collect();
    let Some(middle) = median(&found) else { return String::new() };
    let least = found.iter().copied().fold(f64::INFINITY, f64::min);
    let most = found.iter().copied().fold(0.0, f64::max);
    let (all, unlike) = outcomes
        .iter()
        .map(CellOutcome::pairs_and_unlike)
        .fold((0, 0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1));
    format!(
        "a cache line took {least:.0} to {most:.0} ns there and back (median {middle:.0}); {unlike} of \
         {all} runs have no run of the reference with a similar distance, and are left out of the ratios"
    )
}

/// How it was done, so that it can be judged and done again.
fn described(manifest: &Manifest, outcomes: &[CellOutcome]) -> String {
    let machine = &manifest.machine;
    let settings = &manifest.settings;
    let cores = |cores: &[usize]| {
        let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
        cores.join(", ")
    };
    let mut rows = vec![
        ("CPU", machine.cpu.clone()),
        ("cores of the server", cores(&machine.server_cores)),
        ("cores of the generator", cores(&machine.generator_cores)),
        ("memory", format!("{} GiB", machine.memory_bytes >> 30)),
        ("kernel", machine.kernel.clone()),
        ("system", machine.system.clone()),
        ("CPU governor", machine.governor.clone()),
        (
            "load",
            format!("{} ({})", manifest.generator.name(), manifest.generator_versions.join(", ")),
        ),
        (
            "rounds",
            format!(
                "{} of {} ms after {} ms, interleaved in random order",
                settings.rounds,
                settings.duration.as_millis(),
                settings.warm_up.as_millis()
            ),
        ),
        (
            "requests",
            "rows repeat one request unless they say that each request or each connection is different; posted bodies \
             differ, and so do 1 in 100 sizes of an echo; in the other rows 1 in 2,000 asks for what the server can't know beforehand"
                .to_owned(),
        ),
        ("seed of the order", manifest.seed.to_string()),
        ("tables", manifest.tables.join(", ")),
        ("program", format!("bolide {}", manifest.program)),
        ("contenders", manifest.sources.clone()),
        ("CPU time", cpu_of(outcomes).unwrap_or_default()),
        ("the race's own use", own_use(outcomes)),
        ("the use of others", others_use(outcomes)),
        ("between the cores", between(outcomes)),
    ];
    rows.retain(|(_, value)| !value.is_empty());
    let mut lines: Vec<Vec<String>> =
        rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    for entry in manifest.contenders.iter().filter(|entry| entry.skipped.is_none()) {
        let version = if entry.version.is_empty() { "here" } else { &entry.version };
        let shown = format!("{} ({version})", entry.contender.shown());
        lines.push(vec![entry.contender.name.clone(), shown]);
    }
    format!(
        "<section id=\"manifest\"><h2>How it was done</h2>\n{}<p class=\"note\">`bolide race replay \
         manifest.json` repeats the race; results.json has every round.</p></section>\n",
        table(&["what".to_owned(), "how".to_owned()], &lines)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> String {
        let tables = crate::catalogue::tables().unwrap();
        page(&crate::store::tests::manifest(), &tables, &[crate::outcome::tests::outcome()], None)
    }

    #[test]
    fn the_page_says_who_leads_and_how_far_that_is_to_be_trusted() {
        let page = made();
        for expected in [
            "needs the least CPU per request in 1 of 1 workloads",
            "Of 1 comparisons with at least 6 pairs of runs, 1 are claims",
            "2.00 (1.98–2.02) · 12 pairs",
            "differ significantly in 0 of 1",
            "others use 0.70 cores",
            "id=\"T20\"",
            "<b>cheat</b> disqualified in",
            "GET /echo?size=7",
            "seed of the order",
            "bolide &lt;1&gt;",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
    }

    #[test]
    fn the_page_needs_nothing_from_anywhere() {
        let page = made();
        for word in ["http://", "https://", "src=", "@import", "url(", "<script", "<link"] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.contains("&lt;out of memory&gt;") && !page.contains("<out of memory>"));
    }

    #[test]
    fn every_element_that_opens_closes() {
        let page = made();
        for element in
            ["section", "figure", "table", "svg", "div", "p", "ul", "li", "main", "text", "title"]
        {
            let opened = page.matches(&format!("<{element}>")).count()
                + page.matches(&format!("<{element} ")).count();
            assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
        }
    }

    #[test]
    fn the_use_of_others_is_said() {
        let mut outcome = crate::outcome::tests::outcome();
        assert_eq!(others_use(std::slice::from_ref(&outcome)), "");
        for (index, figures) in outcome.entrants[2].rounds.iter_mut().flatten().enumerate() {
            figures.foreign_cores = if index == 0 { 0.75 } else { 0.25 };
        }
        outcome.entrants.retain(|entrant| entrant.name == "go");
        let said = others_use(&[outcome]);
        assert!(
            said.starts_with("0.25 cores in the median of the runs, 0.75 at the most"),
            "{said}"
        );
    }

    #[test]
    fn where_the_reference_is_behind_is_said() {
        let mut outcome = crate::outcome::tests::outcome();
        for figures in outcome.entrants[2].rounds.iter_mut().flatten() {
            figures.cpu_us /= 4.0;
        }
        crate::outcome::settle(std::slice::from_mut(&mut outcome));
        let page = page(&crate::store::tests::manifest(), &[], &[outcome], None);
        assert!(page.contains("is behind in 1, and in 0 it is not decided."), "{page}");
        let behind =
            "Behind: HTTP/1.1 GET /ping, 100 connections, at capacity (go 0.50–0.50, 12 pairs)";
        assert!(page.contains(behind), "{page}");
    }
}
