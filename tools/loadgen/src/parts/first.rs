//! Part 1: leads the run, carries out its own share, and adds up what all parts counted.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::time::{Duration, Instant};

use bolide_probe::engine::{Counted, Engine, Look, Mistake, Series, Share, Watch};
use bolide_probe::plan::Phase;
use bolide_probe::progress::{Control, Progress, RecordSink, Runner};
use bolide_probe::report::{PartReport, PartsReport, PhaseReport, TlsReport};
use bolide_probe::stop::Stop;

use super::others::{News, Others};
use super::protocol::{Found, Message};
use super::ssh::Started;

/// From the order to begin to the beginning, besides the time that the order takes on its way.
const LEAD: Duration = Duration::from_millis(200);

/// How long a part may take for what takes no time, beyond what the plan allows.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often there is a look at whether to go on.
const LOOK: Duration = Duration::from_millis(100);

/// A part may be ahead of the clock by so many looks: its own clock may be wrong, and it may have been stopped.
const LOOKS_AHEAD: u64 = 100;

/// A phase while it runs.
struct Running {
    watch: Watch,
    series: Series,
    /// Counts of the others, by their places.
    found: BTreeMap<usize, Found>,
    ready: Vec<bool>,
    /// The last look of each.
    looked: Vec<u64>,
    began: Instant,
    /// The others know that it is to end.
    is_stopped: bool,
}

/// Carries phases out with other parts.
pub(super) struct Parts {
    engine: Engine,
    others: Others,
    host: String,
    connect_timeout: Duration,
    missing_ok: usize,
    stop: Stop,
    died_after_ns: Option<u64>,
    /// Ended with the run.
    ssh: Option<Started>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Parts").field("others", &self.others).finish_non_exhaustive()
    }
}

impl Parts {
    /// Has all others connect to the server. `engine` makes the own engine meanwhile.
    pub(super) fn prepare(
        mut others: Others,
        engine: impl FnOnce() -> Result<Engine, Mistake>,
        (host, connect_timeout, missing_ok): (String, Duration, usize),
        stop: Stop,
        ssh: Option<Started>,
    ) -> Result<Self, Mistake> {
        others.tell_all(&Message::Prepare);
        let engine = engine()?;
        let mut waiting: Vec<usize> = others.alive().collect();
        let latest = Instant::now() + connect_timeout + PATIENCE;
        while !waiting.is_empty() && !others.are_too_few() {
            if stop.is_asked() {
                return Err(Mistake::Parts("interrupted before the first request".into()));
            }
            match others.next(LOOK) {
                Some(News {
                    place,
                    message: Ok(Message::Prepared { connections, threads }),
                    ..
                }) => {
                    let part = &mut others.parts[place];
                    (part.connections, part.threads) = (connections, threads);
                    waiting.retain(|waiting| *waiting != place);
                }
                Some(News { place, message: Ok(Message::Failed { what, is_plan }), .. }) => {
                    let what =
                        format!("part {} on {}: {what}", place + 2, others.parts[place].host);
                    return Err(if is_plan {
                        Mistake::Plan(what)
                    } else {
                        Mistake::Connection(what)
                    });
                }
                Some(News { message: Ok(Message::Stop), .. }) => stop.ask(),
                Some(News { place, message, .. }) => others.lose(place, unexpected(message)),
                None if Instant::now() >= latest => {
                    waiting.drain(..).for_each(|place| {
                        others.lose(place, "it did not connect to the server in time".into());
                    });
                }
                None => {}
            }
            waiting.retain(|place| others.parts[*place].lost.is_none());
        }
        let died_after_ns = None;
        let parts =
            Self { engine, others, host, connect_timeout, missing_ok, stop, died_after_ns, ssh };
        match parts.others.are_too_few() {
            true => Err(Mistake::Parts(parts.lost().join("; "))),
            false => Ok(parts),
        }
    }

    /// A sentence for each part that is lost.
    fn lost(&self) -> Vec<String> {
        let parts = self.others.report().into_iter();
        parts.filter_map(|part| crate::output::text::lost_part(&part)).collect()
    }

    fn running(&self) -> Running {
        let others = self.others.parts.len();
        let mut watch = Watch::new(1 + others);
        for (place, part) in self.others.parts.iter().enumerate() {
            if part.lost.is_some() {
                watch.ended(1 + place);
            }
        }
        Running {
            watch,
            series: Series::default(),
            found: BTreeMap::new(),
            ready: vec![false; others],
            looked: vec![0; others],
            began: Instant::now(),
            is_stopped: false,
        }
    }

    /// Waits until all have made their connections.
    fn wait_for_connections(&mut self, running: &mut Running) -> Control {
        let latest = Instant::now() + self.connect_timeout + PATIENCE;
        loop {
            let missing: Vec<usize> =
                self.others.alive().filter(|place| !running.ready[*place]).collect();
            if missing.is_empty() {
                return Control::Continue;
            }
            if self.others.are_too_few() || self.stop.is_asked() {
                return Control::Stop;
            }
            if let Some(news) = self.others.next(LOOK) {
                heard(&mut self.others, &self.stop, running, news);
            } else if Instant::now() >= latest {
                for place in missing {
                    lose(&mut self.others, running, place, "it was not ready in time".into());
                }
            }
        }
    }

    /// Waits for what the others counted.
    fn wait_for_counts(
        &mut self,
        phase: &Phase,
        running: &mut Running,
        observer: &mut dyn FnMut(&Progress) -> Control,
    ) {
        let time = phase.until.time.map(|time| phase.warm_up + time + PATIENCE);
        let latest = time.map(|time| running.began + time);
        loop {
            let missing: Vec<usize> =
                self.others.alive().filter(|place| !running.found.contains_key(place)).collect();
            if missing.is_empty() {
                break;
            }
            if let Some(news) = self.others.next(LOOK) {
                heard(&mut self.others, &self.stop, running, news);
            } else if latest.is_some_and(|latest| Instant::now() >= latest) {
                for place in missing {
                    lose(&mut self.others, running, place, "it did not end the phase".into());
                }
            }
            let control = show(running, &self.others, &self.stop, observer);
            end_if_asked(&mut self.others, running, control);
        }
        show(running, &self.others, &self.stop, observer);
    }

    /// Adds up what all parts counted.
    fn report(&mut self, phase: &Phase, mut sum: Counted, running: Running) -> PhaseReport {
        let mut parts = vec![sum.of_part(1)];
        for (place, Found { counted, died_after_ns }) in running.found {
            parts.push(counted.of_part(place + 2));
            sum.add(&counted);
            self.died_after_ns = self.died_after_ns.or(died_after_ns);
        }
        let mut report = self.engine.report(phase, sum, running.series);
        report.course.parts = parts;
        report
    }
}

impl Runner for Parts {
    fn run(
        &mut self,
        phase: &Phase,
        observer: &mut dyn FnMut(&Progress) -> Control,
    ) -> PhaseReport {
        let mut running = self.running();
        self.others.tell_all(&Message::Begin(Box::new(phase.clone())));
        let idle = Progress::default();
        let mut control = self.engine.connect(phase, &mut || observer(&idle));
        if control == Control::Continue {
            control = self.wait_for_connections(&mut running);
        }
        let on_the_way = Duration::from_nanos(self.others.clock_bound_ns()) * 8;
        let start = (control == Control::Continue).then(|| Instant::now() + LEAD + on_the_way);
        match start {
            Some(start) => {
                running.began = start;
                self.others.start(start);
            }
            None => {
                end_if_asked(&mut self.others, &mut running, Control::Stop);
            }
        }
        let Self { engine, others, stop, .. } = self;
        let sum = engine.count(phase, start, &mut |look| {
            if let Some(look) = look {
                running.watch.look(0, &look);
            }
            while let Some(news) = others.next(Duration::ZERO) {
                heard(others, stop, &mut running, news);
            }
            let control = show(&mut running, others, stop, observer);
            end_if_asked(others, &mut running, control)
        });
        running.watch.ended(0);
        if self.engine.server_died_after_ns().is_some() {
            end_if_asked(&mut self.others, &mut running, Control::Stop);
        }
        self.wait_for_counts(phase, &mut running, observer);
        // What came after the last sample.
        observer(running.series.progress());
        self.report(phase, sum, running)
    }

    fn record_to(&mut self, sink: RecordSink) {
        self.engine.record_to(sink);
    }

    fn protocol(&self) -> String {
        self.engine.protocol()
    }

    fn tls(&self) -> Option<TlsReport> {
        self.engine.tls()
    }

    fn server_died_after_ns(&self) -> Option<u64> {
        self.engine.server_died_after_ns().or(self.died_after_ns)
    }

    fn is_over(&self) -> bool {
        self.others.are_too_few()
    }

    fn finish(&mut self) -> Option<PartsReport> {
        self.others.compare_clocks();
        self.others.end();
        if let Some(ssh) = self.ssh.take() {
            ssh.end();
        }
        let first = PartReport {
            part: 1,
            host: self.host.clone(),
            connections: self.engine.connections_count(),
            threads: self.engine.threads_count(),
            ..PartReport::default()
        };
        Some(PartsReport {
            clock_bound_ns: self.others.clock_bound_ns(),
            missing_ok: self.missing_ok,
            parts: std::iter::once(first).chain(self.others.report()).collect(),
        })
    }
}

/// Shows each interval that all parts have spoken of.
fn show(
    running: &mut Running,
    others: &Others,
    stop: &Stop,
    observer: &mut dyn FnMut(&Progress) -> Control,
) -> Control {
    let mut control = None;
    while let Some(look) = running.watch.next_complete() {
        if let Some(progress) = running.series.add(&look) {
            let parts = (1 + others.alive().count(), 1 + running.ready.len());
            let progress = Progress { parts: Some(parts), ..progress.clone() };
            control = Some(observer(&progress)).max(control);
        }
    }
    control.unwrap_or_else(|| stop.control())
}

/// Ends the phase in all parts, once, if that is wanted or too few parts are left.
fn end_if_asked(others: &mut Others, running: &mut Running, control: Control) -> Control {
    if control == Control::Continue && !others.are_too_few() {
        return Control::Continue;
    }
    if !mem::replace(&mut running.is_stopped, true) {
        others.tell_all(&Message::Stop);
    }
    Control::Stop
}

/// A message has come from one of the others in a phase.
fn heard(others: &mut Others, stop: &Stop, running: &mut Running, news: News) {
    let News { place, message, .. } = news;
    match message {
        Ok(Message::Ready) => running.ready[place] = true,
        Ok(Message::Look(look)) if is_in_order(&look, running, place) => {
            running.looked[place] = look.index();
            running.watch.look(1 + place, &look);
        }
        Ok(Message::Found(found)) if !running.found.contains_key(&place) => {
            running.watch.ended(1 + place);
            running.found.insert(place, *found);
        }
        Ok(Message::Stop) => stop.ask(),
        // It is late: the clocks have been compared without it.
        Ok(Message::Pong { .. }) => {}
        other => lose(others, running, place, unexpected(other)),
    }
}

/// Returns whether a look may be of this phase: what waits for the others' looks is bounded.
fn is_in_order(look: &Look, running: &Running, place: usize) -> bool {
    let passed = running.began.elapsed().as_millis() / LOOK.as_millis();
    let latest = u64::try_from(passed).unwrap_or(u64::MAX).saturating_add(LOOKS_AHEAD);
    look.index() > running.looked[place]
        && look.index() <= latest
        && !running.found.contains_key(&place)
}

fn lose(others: &mut Others, running: &mut Running, place: usize, why: String) {
    others.lose(place, why);
    running.watch.ended(1 + place);
}

/// Why a part is lost that said this, or nothing any more.
fn unexpected(message: Result<Message, String>) -> String {
    match message {
        Ok(message) => format!("it said `{}` when that was not expected", message.name()),
        Err(why) => why,
    }
}

/// The number of a part as it is shown, of so many.
pub(super) fn shown(share: Share) -> String {
    format!("part {}/{}", share.number() + 1, share.count())
}
