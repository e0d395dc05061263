//! Results of a cell: every round of every entrant, and what was said about them.

use std::collections::BTreeMap;

use bolide_probe::report::Bound;
use serde::{Deserialize, Serialize};

use crate::catalogue::{Cell, Kind};
use crate::figures::count;
use crate::generator::Figures;
use crate::statistics::{Comparison, Interval, LogRatios, Rule, Tested, median, spread};

/// A run is disturbed in which others used so many more cores of the machine than in the median run of the same server.
pub(crate) const DISTURBED_CORES: f64 = 0.10;

/// How far the machine's totals may be off, in CPU seconds: five ticks of 10 ms. Short runs need more to be disturbed.
const TOTALS_ERROR_S: f64 = 0.05;

/// A cell that has been run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellOutcome {
    /// Cell that was run.
    pub cell: Cell,
    /// Everybody who could have taken part, in the order of the tables.
    pub entrants: Vec<EntrantOutcome>,
    /// The name of the one that the others are compared with.
    pub reference: String,
    /// Contenders that come to the same as another one in this cell, and which.
    #[serde(default)]
    pub same_as: BTreeMap<String, String>,
    /// Rule that decides about claims; `None` until all workloads of the race are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// The generator compared no bodies.
    #[serde(default)]
    pub is_unchecked: bool,
    /// Requests per second that all runs asked for; `None`: as fast as the responses came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// How long it took, in seconds.
    pub elapsed_s: f64,
}

/// One entrant of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntrantOutcome {
    /// The contender's name.
    pub name: String,
    /// It is the reference once more, to show what noise looks like.
    pub is_twin: bool,
    /// The contender that it is, but for how it is run.
    #[serde(default)]
    pub against: Option<String>,
    /// Fate of the entrant.
    pub fate: Fate,
    /// One entry for each round; `None`: the run failed.
    #[serde(with = "crate::columns")]
    pub rounds: Vec<Option<Figures>>,
    /// The most memory that its processes had, in bytes.
    pub peak_memory_bytes: u64,
    /// Bytes of memory for each idle connection.
    pub idle_connection_bytes: Option<f64>,
    /// Latencies by the clock, at shares of the capacity found.
    pub open_loop: Vec<OpenLoop>,
    /// CPU time by stage, in the order of a request, where it could tell: of a run of its own.
    #[serde(default)]
    pub profile: Vec<StageTime>,
    /// Remarks about single runs.
    pub remarks: Vec<String>,
}

/// A part of a contender's work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// Its name.
    pub stage: String,
    /// The CPU time that it takes for each request, in µs.
    pub us_per_request: f64,
}

/// A run by the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// The share of the capacity: 0.5, 0.8.
    pub share: f64,
    /// Rate in requests per second.
    pub rate: f64,
    /// Figures of the run.
    pub figures: Figures,
}

/// Fate of an entrant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "why")]
pub enum Fate {
    /// It was timed.
    Timed,
    /// It didn't come up.
    NotStarted(String),
    /// It answered wrong: the evidence.
    Disqualified(String),
    /// It died on the way: its last words.
    Died(String),
}

impl EntrantOutcome {
    /// Before anything has happened.
    pub(crate) fn new(name: &str, is_twin: bool) -> Self {
        Self {
            name: name.to_owned(),
            is_twin,
            against: None,
            fate: Fate::Timed,
            rounds: Vec::new(),
            peak_memory_bytes: 0,
            idle_connection_bytes: None,
            open_loop: Vec::new(),
            profile: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Returns what tables call it.
    pub fn label(&self) -> String {
        if self.is_twin { format!("{} again", self.name) } else { self.name.clone() }
    }

    /// The rounds that came to figures.
    pub fn figures(&self) -> impl Iterator<Item = &Figures> {
        self.rounds.iter().flatten()
    }

    /// Returns whether there is anything to compare.
    pub fn counts(&self) -> bool {
        self.fate == Fate::Timed
            && (self.figures().next().is_some() || self.idle_connection_bytes.is_some())
    }

    /// Median of one figure over the rounds.
    pub fn median(&self, figure: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
        median(&self.figures().filter_map(figure).collect::<Vec<f64>>())
    }

    /// The server's CPU per response, in µs, with the range of the runs.
    pub fn cpu_us(&self) -> Option<Interval> {
        spread(&self.figures().map(|figures| figures.cpu_us).collect::<Vec<_>>())
    }

    /// Responses that came, right or wrong.
    pub fn completed(&self) -> u64 {
        self.figures().map(|figures| figures.completed).sum()
    }

    /// Returns what went wrong under load, by kind.
    pub fn failures(&self) -> BTreeMap<&str, u64> {
        let mut failures = BTreeMap::new();
        for (kind, count) in self.figures().flat_map(|figures| &figures.failures) {
            *failures.entry(kind.as_str()).or_default() += count;
        }
        failures
    }

    /// The share of responses that were wrong or never came.
    pub fn failed_share(&self) -> f64 {
        let failed: u64 = self.figures().map(|figures| figures.failed).sum();
        failed as f64 / (failed + self.completed()).max(1) as f64
    }

    /// Returns what most of the rounds were bound by.
    pub fn bound(&self) -> Bound {
        let mut bounds: Vec<Bound> = self.figures().map(|figures| figures.bound).collect();
        bounds.sort_by_key(|bound| *bound as u8);
        let mut most = (0, Bound::Unclear);
        for group in bounds.chunk_by(|a, b| a == b) {
            if group.len() > most.0 {
                most = (group.len(), group[0]);
            }
        }
        most.1
    }

    /// The rounds that came to figures and were not disturbed. What this depends on is not the server's: it is measured
    /// with the machine's totals, less the server, the generator and the race.
    fn quiet_runs(&self) -> Vec<Option<&Figures>> {
        let usual = self.median(|figures| Some(figures.foreign_cores)).unwrap_or_default();
        let is_quiet = |figures: &&Figures| {
            let seconds = figures.completed as f64 / figures.rate.max(1e-9);
            let error = TOTALS_ERROR_S / seconds.max(1e-9);
            figures.foreign_cores <= usual + DISTURBED_CORES.max(error)
        };
        self.rounds.iter().map(|run| run.as_ref().filter(is_quiet)).collect()
    }

    /// Runs that are left out because they were disturbed.
    pub fn disturbed_count(&self) -> usize {
        self.figures().count() - self.quiet_runs().into_iter().flatten().count()
    }

    /// One figure of each run, next to the same of the run of `other` that is nearest in time of those in which the
    /// cores lay alike: of the same round, else of one before or after. No run is in two pairs.
    fn pairs(&self, other: &Self, figure: impl Fn(&Figures) -> f64) -> Vec<(f64, f64)> {
        let mut free = other.quiet_runs();
        let runs = self.quiet_runs().into_iter().enumerate();
        let mut left: Vec<(usize, &Figures)> =
            runs.filter_map(|(round, run)| Some((round, run?))).collect();
        let mut pairs = Vec::new();
        for apart in 0..free.len().max(self.rounds.len()) {
            left.retain(|(round, run)| {
                let rounds = [round.checked_sub(apart), round.checked_add(apart)];
                let found = rounds.into_iter().flatten().find_map(|at| {
                    let place = free.get_mut(at)?;
                    place.take_if(|other| run.is_as_far_as(other))
                });
                pairs.extend(found.map(|other| (figure(run), figure(other))));
                found.is_none()
            });
        }
        pairs
    }
}

impl CellOutcome {
    /// Returns what people read: the cell, and at what load its figures were taken.
    pub fn title(&self) -> String {
        let load = match (self.rate, self.cell.load) {
            (Some(rate), _) => format!(", at {} requests/s", count(rate)),
            (None, Kind::Rate) => ", at a fixed rate".to_owned(),
            (None, Kind::Latency) => ", at capacity and by the clock".to_owned(),
            (None, Kind::Idle) => String::new(),
            (None, _) => ", at capacity".to_owned(),
        };
        self.cell.title_with(&load)
    }

    /// The entrant that the others are compared with.
    pub fn reference(&self) -> Option<&EntrantOutcome> {
        let mut own = self.entrants.iter().filter(|entrant| !entrant.is_twin);
        own.find(|entrant| entrant.name == self.reference && entrant.counts())
    }

    /// CPU per response of the reference's twin over the reference's.
    pub fn twins(&self) -> Option<LogRatios> {
        let twin = self.entrants.iter().find(|entrant| entrant.is_twin)?;
        self.log_ratios(twin, self.reference()?)
    }

    /// An entrant's CPU per response over the reference's.
    pub fn cpu_ratio(&self, entrant: &EntrantOutcome) -> Option<Comparison> {
        self.judged(entrant, self.reference()?)
    }

    /// An entrant's CPU per response over that of the contender that it is but for how it is run, with its name.
    pub fn cpu_against(&self, entrant: &EntrantOutcome) -> Option<(&str, Comparison)> {
        let other = self.entrant(entrant.against.as_deref()?)?;
        Some((&other.name, self.judged(entrant, other)?))
    }

    fn judged(&self, entrant: &EntrantOutcome, other: &EntrantOutcome) -> Option<Comparison> {
        let found = self.log_ratios(entrant, other)?;
        Some(match &self.rule {
            // The twin is what noise looks like: it is not judged by itself.
            Some(rule) if entrant.is_twin => rule.judge(&found, None),
            Some(rule) => rule.judge(&found, self.twins().as_ref()),
            None => found.range(),
        })
    }

    fn log_ratios(&self, entrant: &EntrantOutcome, other: &EntrantOutcome) -> Option<LogRatios> {
        if std::ptr::eq(entrant, other) || !entrant.counts() || !other.counts() {
            return None;
        }
        LogRatios::of(&entrant.pairs(other, |figures| figures.cpu_us))
    }

    /// How many runs there are to compare with the reference's, and how many of them are left out
    /// because the cores lay otherwise in each that the reference had left.
    pub fn pairs_and_unlike(&self) -> (usize, usize) {
        let Some(reference) = self.reference() else { return (0, 0) };
        let others = self.entrants.iter().filter(|other| !std::ptr::eq(*other, reference));
        others.fold((0, 0), |(all, unlike), other| {
            let both = other.quiet_runs().into_iter().zip(reference.quiet_runs());
            let both = both.filter(|(own, other)| own.is_some() && other.is_some()).count();
            (
                all + both,
                unlike
                    + both.saturating_sub(other.pairs(reference, |figures| figures.cpu_us).len()),
            )
        })
    }

    /// The pairs of all comparisons, the twin's included.
    pub(crate) fn comparisons(&self) -> Vec<LogRatios> {
        self.twins().into_iter().chain(self.tested().into_iter().map(|(found, _)| found)).collect()
    }

    /// Everything of which something may be claimed.
    fn tested(&self) -> Vec<Tested> {
        let twins = self.twins();
        let others = || self.entrants.iter().filter(|entrant| !entrant.is_twin);
        let to_reference =
            others().filter_map(|entrant| self.log_ratios(entrant, self.reference()?));
        let to_like = others().filter_map(|entrant| {
            self.log_ratios(entrant, self.entrant(entrant.against.as_deref()?)?)
        });
        to_reference.chain(to_like).map(|found| (found, twins)).collect()
    }

    /// Those that count, the best first: least CPU per response, or least memory.
    pub fn ranking(&self) -> Vec<&EntrantOutcome> {
        let mut ranked: Vec<(f64, &EntrantOutcome)> = self
            .entrants
            .iter()
            .filter(|entrant| entrant.counts())
            .map(|entrant| {
                let key = if self.cell.load == Kind::Idle {
                    entrant.idle_connection_bytes
                } else {
                    entrant.median(|figures| Some(figures.cpu_us))
                };
                (key.unwrap_or(f64::INFINITY), entrant)
            })
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        ranked.into_iter().map(|(_, entrant)| entrant).collect()
    }

    /// The entrant of this name that is no twin, or the one that it would be the same as.
    pub fn entrant(&self, name: &str) -> Option<&EntrantOutcome> {
        let name = self.same_as.get(name).map_or(name, String::as_str);
        self.entrants.iter().find(|entrant| entrant.name == name && !entrant.is_twin)
    }
}

/// Decides about the claims of all workloads of a race together.
pub(crate) fn settle(outcomes: &mut [CellOutcome]) {
    let tested: Vec<Tested> = outcomes.iter().flat_map(CellOutcome::tested).collect();
    let twins: Vec<LogRatios> = outcomes.iter().filter_map(CellOutcome::twins).collect();
    let rule = Rule::of(&tested, &twins);
    for outcome in outcomes {
        outcome.rule = Some(rule);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::catalogue::{Certificate, Cores, Protocol, Route};
    use crate::differing::Requests;

    /// An entrant whose rounds cost these µs; 250,000 / cost requests per second.
    pub(crate) fn entrant(name: &str, is_twin: bool, costs: &[f64]) -> EntrantOutcome {
        let rounds = costs.iter().map(|cost| {
            let mut figures = Figures {
                completed: 1000,
                rate: 250_000.0 / cost,
                cpu_us: *cost,
                server_cores: 0.99,
                generator_cores: 0.6,
                bound: Bound::Server,
                ..Figures::default()
            };
            for (percentile, factor) in
                [("50", 100.0), ("90", 150.0), ("99", 300.0), ("99.9", 700.0)]
            {
                figures.latencies_us.insert(percentile.to_owned(), cost * factor);
            }
            Some(figures)
        });
        let rounds = rounds.collect();
        EntrantOutcome { rounds, peak_memory_bytes: 9 << 20, ..EntrantOutcome::new(name, is_twin) }
    }

    /// bolide twice, go at twice the cost, one that cheats and one that died; settled.
    pub(crate) fn outcome() -> CellOutcome {
        let costs = [3.0, 3.03, 2.97, 3.01, 2.99, 3.02, 3.0, 2.98, 3.0, 3.01, 3.02, 2.99];
        let twin: Vec<f64> = costs.iter().rev().copied().collect();
        let go: Vec<f64> = costs.iter().map(|cost| cost * 2.0).collect();
        let mut cheat = EntrantOutcome::new("cheat", false);
        cheat.fate = Fate::Disqualified("GET /echo?size=7: the body has 4 bytes, not 7".to_owned());
        let mut dead = EntrantOutcome::new("dead", false);
        dead.fate = Fate::Died("    <out of memory>".to_owned());
        let mut outcome = CellOutcome {
            cell: Cell {
                protocol: Protocol::H1,
                route: Route::Ping,
                connections: 100,
                depth: 1,
                size: 0,
                window: None,
                load: Kind::Closed,
                cores: Cores::One,
                certificate: Certificate::default(),
                requests: Requests::default(),
            },
            entrants: vec![
                entrant("bolide", false, &costs),
                entrant("bolide", true, &twin),
                entrant("go", false, &go),
                cheat,
                dead,
            ],
            reference: "bolide".to_owned(),
            same_as: BTreeMap::from([("bolide-all".to_owned(), "bolide".to_owned())]),
            rule: None,
            is_unchecked: false,
            rate: None,
            elapsed_s: 12.0,
        };
        settle(std::slice::from_mut(&mut outcome));
        outcome
    }

    #[test]
    fn ratios_are_taken_within_rounds_and_claimed_when_all_are_known() {
        use crate::statistics::Verdict;
        let mut outcome = outcome();
        let twin = outcome.cpu_ratio(&outcome.entrants[1]).unwrap();
        assert_eq!(twin.verdict, Verdict::NotDecided);
        let go = outcome.cpu_ratio(outcome.entrant("go").unwrap()).unwrap();
        assert!((go.ratio.mid - 2.0).abs() < 1e-9 && go.verdict == Verdict::More, "{go:?}");
        assert_eq!(go.pairs, 12);
        assert_eq!(outcome.cpu_ratio(outcome.reference().unwrap()), None);
        let rule = outcome.rule.take().unwrap();
        assert_eq!((rule.comparisons, rule.claims), (1, 1), "the twin is not one of them");
        let go = outcome.cpu_ratio(outcome.entrant("go").unwrap()).unwrap();
        assert_eq!(go.verdict, Verdict::Range);
    }

    #[test]
    fn a_contender_is_compared_with_what_it_is_but_for_how_it_is_run() {
        let mut outcome = outcome();
        assert_eq!(outcome.cpu_against(outcome.entrant("go").unwrap()), None);
        let costs: Vec<f64> = outcome.entrants[2].figures().map(|own| own.cpu_us * 1.5).collect();
        let logged = EntrantOutcome {
            against: Some("go".to_owned()),
            ..entrant("go-logged", false, &costs)
        };
        outcome.entrants.push(logged);
        let logged = outcome.entrant("go-logged").unwrap();
        let (other, found) = outcome.cpu_against(logged).unwrap();
        assert!(other == "go" && (found.ratio.mid - 1.5).abs() < 1e-9, "{found:?}");
        assert!((outcome.cpu_ratio(logged).unwrap().ratio.mid - 3.0).abs() < 1e-9);
    }

    #[test]
    fn runs_whose_cores_lay_otherwise_are_not_compared() {
        let mut outcome = outcome();
        assert_eq!(outcome.pairs_and_unlike(), (24, 0));
        for entrant in &mut outcome.entrants {
            for figures in entrant.rounds.iter_mut().flatten() {
                figures.distance_ns = Some([74.0, 80.0]);
            }
        }
        assert_eq!(outcome.pairs_and_unlike(), (24, 0));
        // Two of go's runs were expensive because the cores were far apart at their end, or all the time; and one of the
        // reference's, in another round.
        for (entrant, round, distance) in
            [(2, 3, [75.0, 350.0]), (2, 7, [349.0, 350.0]), (0, 9, [355.0, 350.0])]
        {
            let figures = outcome.entrants[entrant].rounds[round].as_mut().unwrap();
            figures.distance_ns = Some(distance);
            figures.cpu_us *= 3.0;
        }
        // The twin finds no partner for one run, nor does go for the one whose cores moved.
        assert_eq!(outcome.pairs_and_unlike(), (24, 2));
        let go = outcome.cpu_ratio(outcome.entrant("go").unwrap()).unwrap();
        assert!(go.ratio.low > 1.9 && go.ratio.high < 2.1, "{go:?}");
    }

    #[test]
    fn those_that_were_not_timed_are_not_ranked() {
        let outcome = outcome();
        let names: Vec<String> = outcome.ranking().into_iter().map(EntrantOutcome::label).collect();
        assert_eq!(names.len(), 3);
        assert_eq!(names[2], "go");
        assert_eq!(outcome.ranking()[0].bound(), Bound::Server);
        assert_eq!(outcome.entrant("bolide-all"), outcome.entrant("bolide"));
    }

    #[test]
    fn outcomes_survive_storing() {
        let outcome = outcome();
        let text = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<CellOutcome>(&text).unwrap(), outcome);
    }
}
