//! A cell from its first start to its last round.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::catalogue::{Cell, Certificate, Cores, Kind};
use crate::contender::FLOOR;
use crate::entrant::{Ground, Present, Running};
use crate::figures::count;
use crate::generator::{Figures, Generator, Job, accounted};
use crate::idle;
use crate::outcome::{CellOutcome, EntrantOutcome, Fate, OpenLoop};
use crate::process::{distance_ns, peak_memory_bytes};
use crate::requests::Exchange;
use crate::rounds::{Pace, Settings, order};
use crate::verify::{Flaw, Subject};
use crate::workplace::Workplace;

/// The shares of the capacity at which latency is looked at.
const OPEN_LOOP_SHARES: [f64; 2] = [0.5, 0.8];

/// A rate that is one for all is this share of what the slowest of them does at capacity: no contender and no generator
/// is full.
const RATE_SHARE: f64 = 0.5;

/// A run by the clock that comes to less than this share of its rate is left out.
const RATE_MET_SHARE: f64 = 0.95;

/// Counted time of the run that finds what a contender does at capacity.
const PROBE: Duration = Duration::from_millis(500);

/// Time that each request that is in flight at once adds to the warm-up: the first ones come in a heap.
const HEAP: Duration = Duration::from_micros(20);

/// Said of a contender that serves nothing but the response that its cell repeats.
const KNOWN: &str = "all of its responses can be known beforehand";

/// A share of wrong responses above this disqualifies.
const FAILED_SHARE_MAX: f64 = 0.001;

/// Less CPU time for a request than this, in µs, is not possible: reading and writing its bytes takes more.
const CPU_US_MIN: f64 = 0.05;

/// A contender is disqualified in whose runs so many more cores were used by others than in the reference's.
const FOREIGN_CORES_MAX: f64 = 0.25;

/// Runs cells.
#[derive(Debug)]
pub(crate) struct Race<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) place: Workplace,
    pub(crate) generator: Generator,
    pub(crate) settings: Settings,
    pub(crate) reference: String,
    pub(crate) cores: Layout,
}

/// Which cores are whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) all: Vec<usize>,
    pub(crate) server: Vec<usize>,
    pub(crate) generator: Vec<usize>,
}

impl Layout {
    /// The first core is the server's, the others are the generator's.
    pub(crate) fn of(all: Vec<usize>) -> Self {
        let server = all.first().copied().into_iter().collect();
        let others = all.get(1..).unwrap_or_default().to_vec();
        let generator = if others.is_empty() { all.clone() } else { others };
        Self { all, server, generator }
    }

    /// How far the server's first core is from the generator's last one in `cell`.
    fn distance_ns(&self, cell: &Cell) -> Option<f64> {
        let (server, generator) = self.of_cell(cell);
        distance_ns(*server.first()?, *generator.last()?)
    }

    /// Those of the server in `cell`, and those of the generator.
    pub(crate) fn of_cell(&self, cell: &Cell) -> (&[usize], &[usize]) {
        match cell.cores {
            Cores::One => (&self.server, &self.generator),
            Cores::All => (&self.all, &self.all),
        }
    }
}

/// One server of a cell that runs.
struct Started<'a> {
    present: &'a Present,
    running: Running,
    /// Its place among the outcomes.
    index: usize,
    /// Server behind it. Each proxy has its own: some keep ten thousand connections open, and
    /// would take all that a common one accepts.
    backend: Option<Running>,
    /// Type of the responses to its cell's requests when it was verified.
    content_type: Option<String>,
}

/// Starts a server of the files behind a proxy on the cores of the generator: it is not measured. None: nothing is behind.
pub(crate) fn backend(
    before: &str,
    cell: &Cell,
    present: &[Present],
    cores: &[usize],
    place: &mut Workplace,
    ground: &Ground<'_>,
) -> Result<Option<Running>, String> {
    let Some(behind) = cell.behind() else { return Ok(None) };
    let mut why = "none of the contenders serves files over HTTP/1.1".to_owned();
    // h2o, as those had who published such tables; else what there is.
    let is_other = |present: &&Present| present.contender.name != "h2o";
    let mut ordered: Vec<&Present> = present.iter().collect();
    ordered.sort_by_key(is_other);
    for candidate in ordered.into_iter().filter(|present| present.contender.plays(&behind)) {
        match candidate.start(&format!("behind-{before}"), &behind, cores, None, place, ground) {
            Ok(running) => return Ok(Some(running)),
            Err(error) => why = error,
        }
    }
    Err(format!("no backend for the proxies: {why}"))
}

impl Race<'_> {
    /// Runs one cell with everybody in `present` that can play it. `say` is told about each round.
    pub(crate) fn run(
        &mut self,
        cell: &Cell,
        present: &[Present],
        say: &mut dyn FnMut(&str),
    ) -> Result<Option<CellOutcome>, String> {
        let players = players(cell, self.cores.of_cell(cell).0.len(), present);
        if players.all.is_empty() || !self.generator.can(cell) {
            return Ok(None);
        }
        let begun = Instant::now();
        let mut outcome = CellOutcome {
            cell: cell.clone(),
            entrants: Vec::new(),
            reference: self.reference_of(&players.all),
            same_as: players.same_as,
            rule: None,
            is_unchecked: !self.generator.is_checking(),
            rate: None,
            elapsed_s: 0.0,
        };
        let mut started = Vec::new();
        for player in players.all {
            let name = &player.contender.name;
            let twins: &[bool] = if *name == outcome.reference { &[false, true] } else { &[false] };
            for is_twin in twins {
                say(&format!("starting and verifying {name}"));
                let mut entrant = EntrantOutcome::new(name, *is_twin);
                entrant.against.clone_from(&player.contender.against);
                if !player.contender.can_be_surprised(cell) {
                    entrant.remarks.push(KNOWN.to_owned());
                }
                let label = entrant.label().replace(' ', "-");
                let cores = &self.cores.of_cell(cell).1;
                let backend = backend(&label, cell, present, cores, &mut self.place, &self.ground)?;
                let behind = backend.as_ref().map(|backend| backend.address);
                match self.start(player, &label, cell, behind) {
                    Ok((running, content_type)) => started.push(Started {
                        present: player,
                        running,
                        index: outcome.entrants.len(),
                        backend,
                        content_type,
                    }),
                    Err(fate) => entrant.fate = fate,
                }
                self.ground.interrupt.check()?;
                outcome.entrants.push(entrant);
            }
        }
        match cell.load {
            Kind::Idle => self.idle(&mut outcome, &mut started, say)?,
            Kind::Rate => {
                outcome.rate = self.rate_for_all(&mut outcome, &mut started, say)?;
                if outcome.rate.is_some() {
                    self.rounds(&mut outcome, &mut started, begun, say)?;
                }
            }
            _ => self.rounds(&mut outcome, &mut started, begun, say)?,
        }
        if cell.load == Kind::Latency {
            self.open_loops(&mut outcome, &mut started, say)?;
        }
        self.profiles(&mut outcome, &mut started, say)?;
        outcome.elapsed_s = begun.elapsed().as_secs_f64();
        Ok(Some(outcome))
    }

    /// The asked-for reference if it plays, else the first.
    fn reference_of(&self, players: &[&Present]) -> String {
        let mut names = players.iter().map(|player| &player.contender.name);
        // The floor reads nothing of what is asked: others can't be held against it.
        let first = names.clone().find(|name| **name != FLOOR).or_else(|| names.clone().next());
        let first = first.cloned().unwrap_or_default();
        names.find(|name| **name == self.reference).cloned().unwrap_or(first)
    }

    fn start(
        &mut self,
        player: &Present,
        label: &str,
        cell: &Cell,
        backend: Option<SocketAddr>,
    ) -> Result<(Running, Option<String>), Fate> {
        let cores = self.cores.of_cell(cell).0.to_vec();
        let mut running = player
            .start(label, cell, &cores, backend, &mut self.place, &self.ground)
            .map_err(Fate::NotStarted)?;
        let subject = Subject { contender: &player.contender, cell, address: running.address };
        let content_type = subject.verify(self.ground.seed).map_err(|evidence| {
            if running.process.ended().is_some() {
                return Fate::Died(running.process.last_lines());
            }
            Fate::Disqualified(evidence)
        })?;
        Ok((running, content_type))
    }

    fn rounds(
        &mut self,
        outcome: &mut CellOutcome,
        started: &mut [Started<'_>],
        begun: Instant,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        let key = outcome.cell.key();
        let (mut done, mut pace) = (0, Pace::new(self.settings));
        let rate = outcome.rate;
        while pace.goes_on(done, begun.elapsed(), &|| outcome.comparisons())
            && outcome.entrants.iter().any(|entrant| entrant.fate == Fate::Timed)
        {
            for place in order(self.ground.seed, &key, done, started.len()) {
                let server = &mut started[place];
                let entrant = &mut outcome.entrants[server.index];
                if entrant.fate != Fate::Timed {
                    continue;
                }
                say(&format!("round {}, {}", done + 1, entrant.label()));
                self.round(server, entrant, &outcome.cell, rate)?;
            }
            done += 1;
        }
        for server in &*started {
            let processes = accounted(server.running.process.id(), true);
            outcome.entrants[server.index].peak_memory_bytes = peak_memory_bytes(&processes);
        }
        for server in &*started {
            let entrant = &outcome.entrants[server.index];
            if entrant.fate != Fate::Timed {
                continue;
            }
            let why = complaint(entrant, outcome.reference());
            let remarks = remarks(&outcome.cell, entrant);
            let entrant = &mut outcome.entrants[server.index];
            entrant.remarks.splice(..0, remarks);
            if let Some(why) = why {
                entrant.fate = Fate::Disqualified(why);
            }
        }
        Ok(())
    }

    /// One run against one server.
    fn round(
        &self,
        server: &mut Started<'_>,
        entrant: &mut EntrantOutcome,
        cell: &Cell,
        rate: Option<f64>,
    ) -> Result<(), String> {
        let seed = self.seed_of(entrant.rounds.len());
        let job = self.job(server, cell, rate, seed)?;
        let contender = &server.present.contender;
        let subject = Subject { contender, cell, address: server.running.address };
        let mut flaw = None;
        let before = self.cores.distance_ns(cell);
        let outside = server.running.process.outside();
        let ran = self.generator.run(&job, self.ground.interrupt, &mut || {
            flaw = subject.sample(seed).and_then(|()| subject.surprise(seed)).err();
        });
        self.ground.interrupt.check()?;
        if server.running.process.ended().is_some() {
            entrant.fate = Fate::Died(server.running.process.last_lines());
            return Ok(());
        }
        match flaw {
            Some(Flaw::Wrong(evidence)) => {
                entrant.fate = Fate::Disqualified(format!("in the middle of a run: {evidence}"));
                return Ok(());
            }
            Some(Flaw::Silent(what)) => entrant.remarks.push(format!("under load, {what}")),
            None => {}
        }
        let escape = server.running.process.escape(&outside);
        if let Some(evidence) = escape.or_else(|| server.running.empty_files().err()) {
            entrant.fate = Fate::Disqualified(evidence);
            return Ok(());
        }
        match ran.and_then(|figures| met(rate, figures)) {
            Ok(mut figures) => {
                let after = self.cores.distance_ns(cell);
                figures.distance_ns = before.zip(after).map(Into::into);
                entrant.rounds.push(Some(figures));
            }
            Err(error) => {
                entrant.rounds.push(None);
                entrant.remarks.push(error);
            }
        }
        Ok(())
    }

    /// The seed of a round: each has requests of its own, the same for all contenders.
    fn seed_of(&self, round: usize) -> u64 {
        Rng::with_seed(self.ground.seed ^ (round as u64) << 32).u64(..)
    }

    fn job<'c>(
        &self,
        server: &Started<'_>,
        cell: &'c Cell,
        rate: Option<f64>,
        seed: u64,
    ) -> Result<Job<'c>, String> {
        let (server_cores, generator_cores) = self.cores.of_cell(cell);
        let contender = &server.present.contender;
        let directory: PathBuf = self.place.directory("generator")?;
        Ok(Job {
            cell,
            address: server.running.address,
            path: contender.path(cell),
            exchanges: Exchange::all(
                contender,
                cell,
                server.content_type.as_deref(),
                &mut Rng::with_seed(seed),
            ),
            duration: self.settings.duration,
            warm_up: self.settings.warm_up + connecting(cell),
            rate,
            cores: generator_cores.to_vec(),
            server: accounted(server.running.process.id(), contender.account.tree),
            group: server.running.process.group().filter(|_| contender.account.tree),
            server_cores: server_cores.len(),
            directory,
            program: self.ground.program.clone(),
            seed,
        })
    }

    /// The rate of all runs: from a short run of each contender at capacity; `None` if none came to figures.
    fn rate_for_all(
        &self,
        outcome: &mut CellOutcome,
        started: &mut [Started<'_>],
        say: &mut dyn FnMut(&str),
    ) -> Result<Option<f64>, String> {
        let mut capacities = Vec::new();
        for server in started {
            let entrant = &mut outcome.entrants[server.index];
            say(&format!("what {} does at capacity", entrant.label()));
            let job = self.job(server, &outcome.cell, None, self.seed_of(0))?;
            let job = Job { duration: PROBE.min(self.settings.duration), ..job };
            match self.generator.run(&job, self.ground.interrupt, &mut || {}) {
                Ok(figures) => capacities.push(figures.rate),
                Err(error) => entrant.remarks.push(error),
            }
            self.ground.interrupt.check()?;
        }
        Ok(rate_below(&capacities))
    }

    fn open_loops(
        &self,
        outcome: &mut CellOutcome,
        started: &mut [Started<'_>],
        say: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        for server in started {
            let entrant = &mut outcome.entrants[server.index];
            let capacity = entrant.median(|figures| Some(figures.rate));
            let Some(capacity) = capacity.filter(|_| entrant.fate == Fate::Timed) else { continue };
            for share in OPEN_LOOP_SHARES {
                let rate = capacity * share;
                say(&format!("{} at {:.0} % of its capacity", entrant.label(), share * 100.0));
                let job = self.job(server, &outcome.cell, Some(rate), self.seed_of(0))?;
                match self.generator.run(&job, self.ground.interrupt, &mut || {}) {
                    Ok(figures) => entrant.open_loop.push(OpenLoop { share, rate, figures }),
                    Err(error) => entrant.remarks.push(error),
                }
                self.ground.interrupt.check()?;
            }
        }
        Ok(())
    }

    fn idle(
        &self,
        outcome: &mut CellOutcome,
        started: &mut [Started<'_>],
        say: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        for server in started {
            let entrant = &mut outcome.entrants[server.index];
            say(&format!("{} holds {} connections", entrant.label(), outcome.cell.connections));
            let contender = &server.present.contender;
            let subject =
                Subject { contender, cell: &outcome.cell, address: server.running.address };
            let processes = accounted(server.running.process.id(), contender.account.tree);
            match idle::hold(&subject, &processes, self.ground.seed, self.ground.interrupt) {
                Ok(bytes) => entrant.idle_connection_bytes = Some(bytes),
                Err(error) if server.running.process.ended().is_some() => {
                    let said = server.running.process.last_lines();
                    entrant.fate = Fate::Died(format!("{error}; it said\n{said}"));
                }
                Err(error) => entrant.fate = Fate::Disqualified(error),
            }
            self.ground.interrupt.check()?;
            entrant.peak_memory_bytes = peak_memory_bytes(&processes);
        }
        Ok(())
    }
}

/// Those who run in a cell, and those who would be the same as one of them.
#[derive(Debug, Default)]
pub(crate) struct Players<'p> {
    pub(crate) all: Vec<&'p Present>,
    same_as: BTreeMap<String, String>,
}

/// Returns who can play `cell` on so many cores. Two that come to the same command then are one.
pub(crate) fn players<'p>(cell: &Cell, cores: usize, present: &'p [Present]) -> Players<'p> {
    let mut players = Players::default();
    let mut seen: Vec<(String, &str)> = Vec::new();
    for player in present.iter().filter(|present| present.contender.plays(cell)) {
        let name = &player.contender.name;
        let command = player.contender.command_on(cell, cores);
        if let Some((_, first)) = seen.iter().find(|(known, _)| *known == command) {
            players.same_as.insert(name.clone(), (*first).to_owned());
        } else {
            seen.push((command, name));
            players.all.push(player);
        }
    }
    players
}

/// Returns what disqualifies a contender after all of its runs: a wrong body or header field, too many responses that are wrong or
/// missing, or CPU time that can't be all that it took.
fn complaint(entrant: &EntrantOutcome, reference: Option<&EntrantOutcome>) -> Option<String> {
    let median = |entrant: &EntrantOutcome, figure: fn(&Figures) -> f64| {
        entrant.median(|figures| Some(figure(figures))).unwrap_or_default()
    };
    let cost = median(entrant, |figures| figures.cpu_us);
    if let Some(reference) = reference {
        // Where the system doesn't tell CPU times, the reference has none either.
        if cost < CPU_US_MIN && median(reference, |figures| figures.cpu_us) >= CPU_US_MIN {
            return Some(format!(
                "{cost:.2} µs of CPU per request can't be all that it takes: less than {CPU_US_MIN} µs"
            ));
        }
        let [own, usual] =
            [entrant, reference].map(|one| median(one, |figures| figures.foreign_cores));
        if own > usual + FOREIGN_CORES_MAX {
            return Some(format!(
                "{own:.2} cores were in use outside of its processes during its runs, {usual:.2} during the reference's"
            ));
        }
    }
    let bodies = entrant.failures().get("body").copied().unwrap_or_default();
    if bodies > 0 {
        return Some(format!(
            "{bodies} bodies under load were wrong, of {} responses",
            entrant.completed()
        ));
    }
    let fields = entrant.failures().get("fields").copied().unwrap_or_default();
    if fields > 0 {
        return Some(format!(
            "{fields} of its {} responses under load had other header fields than before",
            entrant.completed()
        ));
    }
    (entrant.failed_share() > FAILED_SHARE_MAX).then(|| {
        let share = entrant.failed_share() * 100.0;
        format!(
            "{share:.2} % of its responses under load were wrong or missing: {}",
            kinds(entrant)
        )
    })
}

/// Returns what went wrong under load, by kind.
fn kinds(entrant: &EntrantOutcome) -> String {
    let failures = entrant.failures();
    let kinds = failures.iter().map(|(kind, count)| format!("{kind} {count}"));
    kinds.collect::<Vec<_>>().join(", ")
}

/// Returns what is said of a contender that is timed all the same: that it closed connections which could have been kept, and
/// failures that are too few to disqualify it.
fn remarks(cell: &Cell, entrant: &EntrantOutcome) -> Vec<String> {
    let needed = (cell.connections * entrant.figures().count()) as u64;
    let made: u64 = entrant.figures().map(|figures| figures.connections).sum();
    let is_kept = matches!(cell.load, Kind::Closed | Kind::Latency | Kind::Rate);
    let closed = (is_kept && made > needed)
        .then(|| format!("it closed connections under load: {made} were made for {needed}"));
    let failed: u64 = entrant.figures().map(|figures| figures.failed).sum();
    let failed = (failed > 0).then(|| {
        let all = count(entrant.completed() as f64);
        format!(
            "{failed} of its {all} responses under load were wrong or missing: {}",
            kinds(entrant)
        )
    });
    closed.into_iter().chain(failed).collect()
}

/// The rate for contenders of these capacities, rounded down to two digits.
fn rate_below(capacities: &[f64]) -> Option<f64> {
    let slowest = capacities.iter().copied().fold(f64::INFINITY, f64::min);
    let rate = slowest * RATE_SHARE;
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    (rate.is_finite() && rate > 0.0).then(|| (rate / unit).floor() * unit)
}

/// The figures of a run by the clock, if it came to its rate.
fn met(rate: Option<f64>, figures: Figures) -> Result<Figures, String> {
    match rate {
        Some(rate) if figures.rate < rate * RATE_MET_SHARE => {
            let [came, asked] = [figures.rate, rate].map(count);
            Err(format!("a run came to {came} requests/s, not to {asked}, and is left out"))
        }
        _ => Ok(figures),
    }
}

/// How long the connections of a cell take to be made, and its first heap of requests to be
/// answered: part of the warm-up.
fn connecting(cell: &Cell) -> Duration {
    let each = Duration::from_micros(match (cell.protocol.is_tls(), cell.certificate) {
        (true, Certificate::Rsa2048) => 1500,
        (true, Certificate::EcdsaP256) => 800,
        (false, _) => 100,
    });
    (each + HEAP * cell.depth as u32) * cell.connections as u32
}

mod profile;
#[cfg(test)]
mod tests;
