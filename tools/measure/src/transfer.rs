//! One measurement of a transfer, from the first connection to the report.

use std::time::{Duration, Instant};

use bolide_probe::accounting::online_cores;
use bolide_probe::stop::Stop;
use bolide_semantics::Scheme;
use http::Version;

use crate::carrier::{Carrier, Command, Facts as Established, Look, News, Outcome, Task};
use crate::clock::GLANCE;
use crate::clock::{Clock, nanoseconds};
use crate::costs::Costs;
use crate::dialing::Route;
use crate::latency::{Fresh, Prober, ProberTask, Sample, percentiles};
use crate::plan::{Amount, Plan, Probing};
use crate::raw;
use crate::report::End;
use crate::report::TcpFacts;
use crate::report::Volume;
use crate::report::{Latency, Point, Report, Setup};

use crate::verdict::{Facts, Stalls, judge};

/// How often there is a look at the speed.
pub const LOOK: Duration = Duration::from_millis(250);

/// How long nothing may move before a transfer is given up.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// How long responses of the last probes are waited for.
const LAST_PROBES: Duration = Duration::from_millis(500);

/// Progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// Latency is probed before the transfer.
    Idle,
    /// The transfer goes on.
    Moving {
        /// Since its beginning.
        elapsed: Duration,
        /// Payload so far.
        bytes: u64,
        /// Payload per second since the look before, in bits.
        instant: f64,
        /// The same since the beginning.
        average: f64,
        /// How much of it is done, from 0 to 1, where that is known.
        share: Option<f64>,
    },
}

/// Carries a plan out. `show` is called every [`LOOK`].
///
/// What goes wrong once the server has been asked stands in the report.
///
/// # Errors
///
/// What stands in the way before anything is sent, in a sentence.
pub fn run(plan: &Plan, show: &mut dyn FnMut(&Progress)) -> Result<Report, String> {
    let route = Route::new(&plan.connecting)?;
    let clock = Clock::start();
    let mut costs = Costs::new(plan.server.clone(), &plan.connecting.origin);
    let mut probers = match &plan.probing {
        None => None,
        Some(probing) => Some(Probers::start(probing, &route, clock)?),
    };
    if let Some(probers) = &mut probers {
        show(&Progress::Idle);
        if let Err(why) = probers.probe_idle(&plan.stop) {
            let subject = format!("GET {}://{}", route.scheme, route.authority);
            let path = &probers.probing.path;
            let why = format!("{subject}{path}: {why} (--probe-path sets the path)");
            return Ok(failed(plan, why));
        }
    }
    let carrier = start(plan, route, clock)?;
    let mut running = Running { plan, costs: &mut costs, series: Vec::new(), samples: Vec::new() };
    let Some((established, outcome)) = running.follow(&carrier, probers.as_ref(), show) else {
        let why = format!("{}: no response within the timeout", plan.target);
        return Ok(failed(plan, why));
    };
    let (series, samples) = (running.series, running.samples);
    let (client, server) = costs.end(outcome.bytes);
    let latency = probers.map(|probers| probers.finish(&samples, outcome.lost));
    let mut report = failed(plan, String::new());
    report.cpu.client = client;
    report.cpu.server = server;
    report.series = series;
    report.latency = latency;
    complete(&mut report, plan, established.as_ref(), outcome);
    Ok(report)
}

fn start(plan: &Plan, route: Route, clock: Clock) -> Result<Carrier, String> {
    if plan.target.scheme == Scheme::Raw {
        return raw::start(&route, &plan.transfer, LOOK, PATIENCE, clock);
    }
    Carrier::start(Task {
        route,
        transfer: plan.transfer.clone(),
        probe_path: plan.probing.as_ref().map(|probing| probing.path.clone()),
        look: LOOK,
        patience: PATIENCE,
        kept_bytes: 0,
        clock,
    })
}

/// A report of which nothing is known but why.
fn failed(plan: &Plan, why: String) -> Report {
    Report {
        url: plan.target.to_string(),
        protocol: "",
        direction: plan.transfer.direction,
        streams: plan.transfer.streams,
        connections: plan.transfer.connections,
        stalls: Stalls::default(),
        verdict: crate::verdict::Verdict::default(),
        series: Vec::new(),
        latency: None,
        tls: None,
        setup: Setup::default(),
        told: None,
        volume: Volume { bytes: 0, seconds: 0.0, goodput_bits_per_second: 0.0, wire_bytes: 0 },
        tcp: TcpFacts { retransmits: None, congestion_control: None, out_of_order: None },
        cpu: crate::report::CpuCosts { client: crate::report::Cost::default(), server: None },
        end: End { interrupted: false, error: (!why.is_empty()).then_some(why) },
    }
}

/// Puts what came of the transfer into the report.
fn complete(report: &mut Report, plan: &Plan, established: Option<&Established>, outcome: Outcome) {
    let seconds = outcome.elapsed_ns as f64 / 1e9;
    report.volume.bytes = outcome.bytes;
    report.volume.seconds = seconds;
    report.volume.goodput_bits_per_second =
        if seconds > 0.0 { outcome.bytes as f64 * 8.0 / seconds } else { 0.0 };
    report.volume.wire_bytes = outcome.wire_bytes;
    report.tcp.retransmits = outcome.tcp.retransmits;
    report.tcp.out_of_order = outcome.tcp.out_of_order;
    report.stalls = outcome.stalls;
    report.tcp.congestion_control = outcome.tcp.congestion_control;
    if let Some(facts) = established {
        report.protocol = protocol(plan.target.scheme, facts.version);
        report.tls.clone_from(&facts.tls);
        report.setup = Setup {
            connect_us: facts.connect_ns as f64 / 1e3,
            handshake_us: facts.handshake_ns.map(|ns| ns as f64 / 1e3),
        };
    }
    let round_trip_ns = established.map(|facts| facts.connect_ns).filter(|ns| *ns > 0);
    report.verdict = judge(&Facts {
        direction: plan.transfer.direction,
        bytes: outcome.bytes,
        seconds,
        streams: plan.transfer.streams,
        connections: plan.transfer.connections,
        client_busiest: report.cpu.client.busiest_thread,
        client_cores: if seconds > 0.0 { report.cpu.client.cpu_seconds / seconds } else { 0.0 },
        server: report.cpu.server.map(|cost| (cost.busiest_thread, cost.cpu_seconds / seconds)),
        cores: online_cores(),
        stalls: outcome.stalls,
        retransmits: outcome.tcp.retransmits,
        out_of_order: outcome.tcp.out_of_order,
        receive_window_limited: outcome.told.and_then(|told| told.receive_window_limited),
        round_trip_ns,
    });
    report.told = outcome.told;
    report.end.interrupted = plan.stop.is_asked();
    report.end.error = outcome.error;
}

fn protocol(scheme: Scheme, version: Version) -> &'static str {
    match (scheme, version) {
        (Scheme::Http, Version::HTTP_2) => "h2c",
        (Scheme::Http, _) => "h1",
        (Scheme::Https, Version::HTTP_3) => "h3",
        (Scheme::Https, Version::HTTP_2) => "h2",
        (Scheme::Https, _) => "h1s",
        (other, _) => other.name(),
    }
}

/// A transfer that goes on.
struct Running<'a> {
    plan: &'a Plan,
    costs: &'a mut Costs,
    series: Vec<Point>,
    samples: Vec<Sample>,
}

impl Running<'_> {
    /// Follows the carrier to its end. `None`: it did not come to one.
    fn follow(
        &mut self,
        carrier: &Carrier,
        probers: Option<&Probers>,
        show: &mut dyn FnMut(&Progress),
    ) -> Option<(Option<Established>, Outcome)> {
        let mut established = None;
        // Connecting and patience have limits of their own, well below this one.
        let silence = self.plan.connecting.timeout + 2 * PATIENCE;
        let mut is_stopping = false;
        loop {
            let latest = Instant::now() + silence;
            let news = if is_stopping {
                carrier.news(latest)
            } else {
                carrier.news_or_stop(latest, &self.plan.stop).unwrap_or_else(|_| {
                    is_stopping = true;
                    carrier.tell(Command::Stop);
                    carrier.news(latest)
                })
            };
            match news? {
                News::Ready(_) if is_stopping => {}
                News::Ready(facts) => {
                    self.costs.begin();
                    carrier.tell(Command::Begin);
                    if let Some(probers) = probers {
                        // Over HTTP/1.1 nothing overtakes a body.
                        if facts.version >= Version::HTTP_2 {
                            carrier.tell(Command::Probe(probers.probing.rate));
                        }
                        probers.load();
                    }
                    established = Some(facts);
                }
                News::Look(look) => self.look(look, show),
                News::Done(outcome) => return Some((established, *outcome)),
            }
        }
    }

    fn look(&mut self, look: Look, show: &mut dyn FnMut(&Progress)) {
        self.costs.look();
        self.samples.extend(look.samples);
        let before = self.series.last().copied().unwrap_or(Point { at_ms: 0, bytes: 0 });
        let point = Point { at_ms: look.at_ns / 1_000_000, bytes: look.bytes };
        if point.at_ms > before.at_ms || self.series.is_empty() {
            self.series.push(point);
        }
        let seconds = look.at_ns as f64 / 1e9;
        let since = seconds - before.at_ms as f64 / 1e3;
        let speed = |bytes: u64, seconds: f64| {
            if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
        };
        show(&Progress::Moving {
            elapsed: Duration::from_nanos(look.at_ns),
            bytes: look.bytes,
            instant: speed(look.bytes.saturating_sub(before.bytes), since),
            average: speed(look.bytes, seconds),
            share: self.share(look.bytes, look.at_ns),
        });
    }

    fn share(&self, bytes: u64, at_ns: u64) -> Option<f64> {
        let transfer = &self.plan.transfer;
        let requests = (transfer.streams * transfer.connections) as u64;
        let (done, all) = match transfer.amount {
            Amount::Time(time) => (at_ns, nanoseconds(time)),
            Amount::Bytes(each) => (bytes, each * requests),
            Amount::Whole => (bytes, transfer.expected_bytes? * requests),
        };
        (all > 0).then(|| (done as f64 / all as f64).min(1.0))
    }
}

/// The probes during a transfer.
struct Probers {
    probing: Probing,
    own: Prober,
    other: Option<Prober>,
    idle: Vec<u64>,
}

impl Probers {
    fn start(probing: &Probing, route: &Route, clock: Clock) -> Result<Self, String> {
        let start = |route: Route, path: &str| {
            Prober::start(ProberTask { route, path: path.to_owned(), fresh: Fresh::No, clock })
        };
        let other = match &probing.other {
            None => None,
            Some((connecting, path)) => Some(start(Route::new(connecting)?, path)?),
        };
        let own = start(route.clone(), &probing.path)?;
        Ok(Self { probing: probing.clone(), own, other, idle: Vec::new() })
    }

    /// Probes while nothing else goes on.
    fn probe_idle(&mut self, stop: &Stop) -> Result<(), String> {
        self.own.rate(self.probing.rate);
        let until = Instant::now() + self.probing.idle;
        while !stop.is_asked()
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            std::thread::sleep(left.min(GLANCE));
        }
        self.own.rate(0.0);
        let latest = Instant::now() + LAST_PROBES;
        loop {
            self.idle.extend(self.own.samples().iter().map(|sample| sample.took_ns));
            let enough =
                self.idle.len() as f64 + 1.0 >= self.probing.rate * self.probing.idle.as_secs_f64();
            if enough || stop.is_asked() || Instant::now() >= latest {
                break;
            }
            std::thread::sleep(LAST_PROBES / 50);
        }
        match self.own.trouble() {
            Some(why) => Err(why.to_owned()),
            None if self.idle.is_empty() && !stop.is_asked() => {
                Err("no probe got a response".to_owned())
            }
            None => Ok(()),
        }
    }

    /// The transfer begins.
    fn load(&self) {
        for prober in std::iter::once(&self.own).chain(&self.other) {
            prober.rate(self.probing.rate);
        }
    }

    /// The transfer is over.
    fn finish(mut self, same: &[Sample], lost: u64) -> Latency {
        for prober in std::iter::once(&self.own).chain(&self.other) {
            prober.rate(0.0);
        }
        std::thread::sleep(LAST_PROBES);
        let took = |samples: &[Sample]| {
            let times: Vec<u64> = samples.iter().map(|sample| sample.took_ns).collect();
            percentiles(&times)
        };
        let own = self.own.samples();
        let other = self.other.as_mut().map(Prober::samples);
        let other_lost = self.other.as_ref().map_or(0, Prober::lost);
        Latency {
            rate: self.probing.rate,
            idle: percentiles(&self.idle),
            same_connection: took(same),
            separate_connection: took(&own),
            separate_origin: other.and_then(|samples| took(&samples)),
            lost: lost + self.own.lost() + other_lost,
        }
    }
}
