//! All workloads of a race together: the ratios, and sentences that follow from them.

use crate::cells::ratio_text;
use crate::contender::FLOOR;
use crate::figures::{aligned, percent, verdict_text};
use crate::generator::CpuOf;
use crate::outcome::{CellOutcome, DISTURBED_CORES, EntrantOutcome, Fate};
use crate::statistics::{
    Comparison, FALSE_SHARE, Interval, PAIRS_MIN, POWER, SHARED_WITHIN, Verdict,
};

/// Returns what a race ends with in the terminal: how far it can be trusted, a small table, and the verdict.
pub(crate) fn claims(reference: &str, outcomes: &[CellOutcome]) -> String {
    let mut said = sentences(reference, outcomes);
    let verdict = said.remove(0);
    let table = aligned(&mut verdicts(reference, outcomes));
    format!("\n{}\n\n{table}\n{verdict}\n", said.join("\n"))
}

/// One line for each workload: who comes nearest to the reference, and how the reference stands.
fn verdicts(reference: &str, outcomes: &[CellOutcome]) -> Vec<Vec<String>> {
    let heads = ["workload", "best other", "its CPU per request", "pairs", reference];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for outcome in outcomes {
        let compared = compared(outcome, reference);
        let nearest =
            compared.iter().min_by(|one, other| one.1.ratio.mid.total_cmp(&other.1.ratio.mid));
        let Some((name, found)) = nearest else { continue };
        let standing = standing(&compared);
        let stands = match standing {
            Standing::Leads => "leads".to_owned(),
            Standing::Shares => "shares the lead".to_owned(),
            Standing::Behind => "is behind".to_owned(),
            // It need not be the nearest.
            Standing::NotDecided => {
                let mut names = standing.decided_by(&compared).map(|(name, _)| *name);
                let first = names.next().unwrap_or_default();
                let more = match names.count() {
                    0 => String::new(),
                    count => format!(" and {count} more"),
                };
                format!("not decided against {first}{more}")
            }
        };
        let Interval { low, mid, high } = found.ratio;
        rows.push(vec![
            outcome.cell.short_title(),
            (*name).to_owned(),
            format!("× {mid:.2} ({low:.2}–{high:.2})"),
            found.pairs.to_string(),
            stands,
        ]);
    }
    rows
}

/// How the reference stands to the others in one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Every other one needs more.
    Leads,
    /// None needs less, and those that do not differ significantly are near.
    Shares,
    /// At least one needs less.
    Behind,
    /// None is known to need less, and not all are known to need as much.
    NotDecided,
}

impl Standing {
    /// The comparisons that don't let the reference lead.
    fn decided_by<'c, 'n>(
        self,
        compared: &'c [(&'n str, Comparison)],
    ) -> impl Iterator<Item = &'c (&'n str, Comparison)> {
        compared.iter().filter(move |(_, found)| match self {
            Self::Behind => found.verdict == Verdict::Less,
            _ => found.verdict != Verdict::More && !found.is_level(),
        })
    }
}

/// The comparisons of a workload that say how `reference` stands there.
fn compared<'o>(outcome: &'o CellOutcome, reference: &str) -> Vec<(&'o str, Comparison)> {
    if outcome.reference != reference {
        return Vec::new();
    }
    let others = outcome.entrants.iter().filter(|other| !other.is_twin && other.name != FLOOR);
    others.filter_map(|other| Some((other.name.as_str(), outcome.cpu_ratio(other)?))).collect()
}

fn standing(compared: &[(&str, Comparison)]) -> Standing {
    let all = |is: fn(&Comparison) -> bool| compared.iter().all(|(_, found)| is(found));
    if !all(|found| found.verdict != Verdict::Less) {
        Standing::Behind
    } else if all(|found| found.verdict == Verdict::More) {
        Standing::Leads
    } else if all(|found| found.verdict == Verdict::More || found.is_level()) {
        Standing::Shares
    } else {
        Standing::NotDecided
    }
}

/// Returns what is claimed of `reference`, of how many workloads, and how far that can be trusted.
pub(crate) fn sentences(reference: &str, outcomes: &[CellOutcome]) -> Vec<String> {
    let stand: Vec<(&CellOutcome, Vec<(&str, Comparison)>)> = outcomes
        .iter()
        .map(|outcome| (outcome, compared(outcome, reference)))
        .filter(|(_, compared)| !compared.is_empty())
        .collect();
    let with =
        |wanted: Standing| stand.iter().filter(move |(_, compared)| standing(compared) == wanted);
    if stand.is_empty() {
        let what = format!("No workload compares CPU per request with that of {reference}.");
        return std::iter::once(what).chain(disturbed(outcomes)).collect();
    }
    let mut sentences = vec![format!(
        "{reference} needs the least CPU per request in {} of {} workloads, shares the lead in {}, is behind in {}, \
         and in {} it is not decided.",
        with(Standing::Leads).count(),
        stand.len(),
        with(Standing::Shares).count(),
        with(Standing::Behind).count(),
        with(Standing::NotDecided).count(),
    )];
    for (wanted, head) in [(Standing::Behind, "Behind"), (Standing::NotDecided, "Not decided")] {
        let named: Vec<String> = with(wanted)
            .map(|(outcome, compared)| {
                let names = wanted.decided_by(compared);
                let names: Vec<String> =
                    names.map(|(name, found)| format!("{name} {}", detail(found))).collect();
                format!("{} ({})", outcome.title(), names.join("; "))
            })
            .collect();
        if !named.is_empty() {
            sentences.push(format!("{head}: {}.", named.join("; ")));
        }
    }
    if with(Standing::Shares).next().is_some() {
        sentences.push(format!(
            "A lead is shared where none needs less, and the intervals of those that do not differ significantly are within \
             {:.0} % of 1.",
            SHARED_WITHIN * 100.0
        ));
    }
    if stand.len() < outcomes.len() {
        let count = outcomes.len() - stand.len();
        sentences
            .push(format!("{count} more workload(s) have nothing to compare with {reference}."));
    }
    let unchecked = outcomes.iter().filter(|outcome| outcome.is_unchecked).count();
    if unchecked > 0 {
        sentences.push(format!(
            "{unchecked} workload(s) are unchecked: their generator compares no bodies, so a server that sends wrong \
             ones under load is not caught."
        ));
    }
    sentences.extend(disturbed(outcomes));
    sentences.extend(trust(outcomes));
    sentences.extend(twins(reference, outcomes));
    sentences
}

/// How many runs are left out because of what others did.
pub(crate) fn disturbed(outcomes: &[CellOutcome]) -> Option<String> {
    let entrants = || outcomes.iter().flat_map(|outcome| &outcome.entrants);
    let disturbed: usize = entrants().map(EntrantOutcome::disturbed_count).sum();
    let all: usize = entrants().map(|entrant| entrant.figures().count()).sum();
    (disturbed > 0).then(|| {
        format!(
            "{disturbed} of {all} runs are left out, because other processes used at least {DISTURBED_CORES:.2} cores more \
             than in the median run of the same server."
        )
    })
}

/// Returns what CPU times were read from; `None` where there are none.
pub(crate) fn cpu_of(outcomes: &[CellOutcome]) -> Option<String> {
    let entrants = outcomes.iter().flat_map(|outcome| &outcome.entrants);
    let runs: Vec<CpuOf> =
        entrants.flat_map(EntrantOutcome::figures).map(|figures| figures.cpu_of).collect();
    let trees = runs.iter().filter(|of| **of == CpuOf::Tree).count();
    let missing = "work of processes that began and ended within a run may be missing";
    match (runs.len(), trees) {
        (0, _) => None,
        (_, 0) => Some("of control groups, processes that ended within a run included".to_owned()),
        (all, _) if all == trees => Some(format!("of process trees: {missing}")),
        (all, _) => Some(format!(
            "of control groups, but in {trees} of {all} runs of process trees, where {missing}"
        )),
    }
}

/// By how much the claims of this race are to be trusted.
fn trust(outcomes: &[CellOutcome]) -> Option<String> {
    let rule = outcomes.iter().find_map(|outcome| outcome.rule)?;
    let few = outcomes.iter().flat_map(|outcome| {
        let others = outcome.entrants.iter().filter(|entrant| !entrant.is_twin);
        others.filter_map(|entrant| outcome.cpu_ratio(entrant))
    });
    let few = few.filter(|found| found.verdict == Verdict::Range).count();
    let mut text = format!(
        "Of {} comparisons with at least {PAIRS_MIN} pairs of runs, {} are claims: by expectation at most {:.0} % of \
         the claims are false (Benjamini and Hochberg), and all intervals are at {:.1} %.",
        rule.comparisons,
        rule.claims,
        FALSE_SHARE * 100.0,
        rule.level * 100.0,
    );
    if few > 0 {
        text += &format!(" {few} have fewer pairs: their range is shown, and nothing is claimed.");
    }
    Some(text)
}

/// How the reference differs from itself.
fn twins(reference: &str, outcomes: &[CellOutcome]) -> Option<String> {
    let mut twins: Vec<Comparison> = outcomes.iter().filter_map(twin).collect();
    twins.retain(|found| found.verdict != Verdict::Range);
    let mids = || twins.iter().map(|found| found.ratio.mid);
    let (low, high) = (mids().reduce(f64::min)?, mids().reduce(f64::max)?);
    let apart = twins.iter().filter(|found| found.verdict.is_claim()).count();
    Some(format!(
        "{reference} runs twice in each workload, as two processes: by the same rule they differ significantly in {apart} of \
         {}; their ratios are from {} to {}.",
        twins.len(),
        percent(low),
        percent(high)
    ))
}

fn twin(outcome: &CellOutcome) -> Option<Comparison> {
    outcome.cpu_ratio(outcome.entrants.iter().find(|entrant| entrant.is_twin)?)
}

/// An interval with the pairs that it is of.
fn detail(found: &Comparison) -> String {
    let (low, high) = (found.ratio.low, found.ratio.high);
    format!("{low:.2}–{high:.2}, {}", pairs_text(found.pairs))
}

fn pairs_text(count: usize) -> String {
    if count == 1 { "1 pair".to_owned() } else { format!("{count} pairs") }
}

/// A ratio with its interval, its pairs, and what would have been found.
pub(crate) fn full_text(found: &Comparison) -> String {
    let mut text = format!("{} · {}", verdict_text(found), pairs_text(found.pairs));
    if let Some(detectable) = found.detectable {
        text += &format!(" · {:.1} %", detectable * 100.0);
    }
    text
}

/// Returns what [`overview`] shows.
pub(crate) fn legend() -> String {
    format!(
        "CPU per request as a multiple of the reference's (interval) · pairs of runs · the least difference that {:.0} \
         of 10 such races would have found.",
        POWER * 10.0
    )
}

/// Workloads against servers: the ratios. The heads are the first row; the longer of the two goes down the page.
pub(crate) fn overview(outcomes: &[CellOutcome]) -> Vec<Vec<String>> {
    let mut servers: Vec<&str> = Vec::new();
    for entrant in outcomes.iter().flat_map(|outcome| &outcome.entrants) {
        if !entrant.is_twin && !servers.contains(&entrant.name.as_str()) {
            servers.push(&entrant.name);
        }
    }
    let dash = || "–".to_owned();
    let cell = |outcome: &CellOutcome, name: &str| match outcome.entrant(name) {
        Some(entrant) if entrant.counts() => match outcome.cpu_ratio(entrant) {
            Some(found) => full_text(&found),
            None => ratio_text(outcome, entrant),
        },
        Some(entrant) => fate_text(entrant).to_owned(),
        None => dash(),
    };
    let again = |outcome: &CellOutcome| twin(outcome).map_or_else(dash, |found| full_text(&found));
    let mut rows = vec![vec!["workload".to_owned()]];
    rows[0].extend(servers.iter().map(|name| (*name).to_owned()));
    rows[0].push("reference again".to_owned());
    for outcome in outcomes {
        let mut row = vec![outcome.title()];
        row.extend(servers.iter().map(|name| cell(outcome, name)));
        row.push(again(outcome));
        rows.push(row);
    }
    if outcomes.len() > servers.len() { rows } else { transposed(&rows) }
}

fn transposed(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).map(|column| rows.iter().map(|row| row[column].clone()).collect()).collect()
}

/// Returns what became of an entrant without a ratio, in few words.
pub(crate) fn fate_text(entrant: &EntrantOutcome) -> &'static str {
    match entrant.fate {
        Fate::Timed => "no figures",
        Fate::NotStarted(_) => "did not start",
        Fate::Disqualified(_) => "disqualified",
        Fate::Died(_) => "died",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::settle;
    use crate::outcome::tests::{entrant, outcome};

    const COSTS: [f64; 8] = [3.0, 3.03, 2.97, 3.01, 2.99, 3.02, 3.0, 2.98];

    /// A workload in which `other` costs so many times what bolide costs, give or take `noise`, in so many rounds.
    fn workload(factor: f64, noise: f64, rounds: usize) -> CellOutcome {
        let costs = &COSTS[..rounds];
        let noise = |index: usize| if index.is_multiple_of(2) { 1.0 + noise } else { 1.0 - noise };
        let other: Vec<f64> =
            costs.iter().enumerate().map(|(index, cost)| cost * factor * noise(index)).collect();
        let twin: Vec<f64> = costs.iter().rev().copied().collect();
        CellOutcome {
            entrants: vec![
                entrant("bolide", false, costs),
                entrant("bolide", true, &twin),
                entrant("other", false, &other),
            ],
            ..outcome()
        }
    }

    fn said(mut outcomes: Vec<CellOutcome>) -> String {
        settle(&mut outcomes);
        sentences("bolide", &outcomes).join("\n")
    }

    #[test]
    fn a_run_in_which_others_used_the_machine_is_left_out() {
        let mut outcome = outcome();
        let set = |outcome: &mut CellOutcome, round: usize, foreign: f64| {
            let figures = outcome.entrants[2].rounds[round].as_mut().unwrap();
            (figures.completed, figures.foreign_cores) = (figures.rate as u64, foreign);
            figures.cpu_us *= 1.5;
        };
        set(&mut outcome, 3, 0.11);
        set(&mut outcome, 8, 0.5);
        let go = outcome.entrant("go").unwrap();
        assert_eq!(go.disturbed_count(), 2);
        let found = outcome.cpu_ratio(go).unwrap();
        assert!(found.pairs == 10 && found.ratio.high < 2.1, "{found:?}");
        let said = sentences("bolide", std::slice::from_ref(&outcome)).join(" ");
        assert!(said.contains("2 of 36 runs are left out"), "{said}");
        // A machine that is always as busy disturbs no run more than the others.
        for round in (0..12).filter(|round| ![3, 8].contains(round)) {
            set(&mut outcome, round, 0.5);
        }
        assert_eq!(outcome.entrant("go").unwrap().disturbed_count(), 0);
    }

    #[test]
    fn every_workload_is_counted_once() {
        let lead = workload(2.0, 0.01, 8);
        let shared = workload(1.0, 0.005, 8);
        let behind = workload(0.5, 0.01, 8);
        let wide = workload(1.05, 0.2, 8);
        let few = workload(2.0, 0.01, 4);
        let text = said(vec![lead, shared, behind, wide, few]);
        let first = "bolide needs the least CPU per request in 1 of 5 workloads, shares the lead in 1, is behind in 1, \
                     and in 2 it is not decided.";
        assert!(text.starts_with(first), "{text}");
        let title = outcome().title();
        assert!(text.contains(&format!("Behind: {title} (other 0.49–0.51, 8 pairs).")), "{text}");
        assert!(text.contains(&format!("Not decided: {title} (other 0.")), "{text}");
        assert!(text.contains(&format!("{title} (other 1.98–2.02, 4 pairs).")), "{text}");
        assert!(text.contains("within 5 % of 1"), "{text}");
        assert!(
            text.contains("Of 4 comparisons with at least 6 pairs of runs, 2 are claims"),
            "{text}"
        );
        assert!(text.contains("1 have fewer pairs"), "{text}");
        assert!(text.contains("differ significantly in 0 of 4"), "{text}");
    }

    #[test]
    fn the_terminal_ends_with_a_small_table_and_the_verdict() {
        let mut outcomes = vec![workload(2.0, 0.01, 8), workload(0.5, 0.01, 8)];
        settle(&mut outcomes);
        let text = claims("bolide", &outcomes);
        let last: Vec<&str> = text.trim_end().lines().rev().take(4).collect();
        assert!(last[0].starts_with("bolide needs the least CPU per request in 1 of 2"), "{text}");
        assert!(last[2].contains("× 0.50 (0.49–0.51)") && last[2].ends_with("is behind"), "{text}");
        assert!(last[3].contains("× 2.00 (1.98–2.02)") && last[3].ends_with("leads"), "{text}");
        assert!(last[2..].iter().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn the_table_names_the_servers_that_decide_nothing() {
        let mut outcomes = vec![workload(2.0, 0.01, 8)];
        let costs: Vec<f64> = COSTS[..4].iter().map(|cost| 3.0 * cost).collect();
        outcomes[0].entrants.push(entrant("far", false, &costs));
        settle(&mut outcomes);
        let text = claims("bolide", &outcomes);
        let line = text.lines().find(|line| line.contains("× 2.00")).unwrap();
        assert!(line.ends_with("not decided against far"), "{text}");
        outcomes[0].entrants.push(entrant("farther", false, &costs));
        settle(&mut outcomes);
        let text = claims("bolide", &outcomes);
        let line = text.lines().find(|line| line.contains("× 2.00")).unwrap();
        assert!(line.ends_with("not decided against far and 1 more"), "{text}");
    }

    #[test]
    fn before_the_race_is_settled_nothing_is_claimed() {
        let outcomes = [CellOutcome { rule: None, ..workload(2.0, 0.01, 8) }];
        let text = sentences("bolide", &outcomes).join("\n");
        assert!(text.contains("in 0 of 1 workloads") && text.contains("in 1 it is not decided"));
        assert!(!text.contains("claims"), "{text}");
    }

    #[test]
    fn a_workload_without_a_comparison_is_named_and_not_counted() {
        let mut alone = workload(2.0, 0.01, 8);
        alone.entrants.truncate(2);
        let text = said(vec![workload(2.0, 0.01, 8), alone]);
        assert!(text.contains("in 1 of 1 workloads"), "{text}");
        assert!(text.contains("1 more workload(s) have nothing to compare with bolide."), "{text}");
        let mut alone = workload(2.0, 0.01, 8);
        alone.entrants.truncate(2);
        assert_eq!(said(vec![alone]), "No workload compares CPU per request with that of bolide.");
    }

    #[test]
    fn the_overview_has_a_pair_count_and_a_power_for_every_ratio() {
        let mut outcomes = vec![outcome(), workload(1.0, 0.03, 8), workload(2.0, 0.01, 4)];
        settle(&mut outcomes);
        let rows = overview(&outcomes);
        let text = aligned(&mut rows.clone());
        assert!(text.contains("2.00 (1.98–2.02) · 12 pairs · 1."), "{text}");
        assert!(text.contains("not decided (0.9") && text.contains(" · 8 pairs · "), "{text}");
        assert!(text.contains("2.00, range 1.98–2.02 · 4 pairs"), "{text}");
        assert!(text.contains("disqualified") && text.contains("reference again"), "{text}");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    }
}
