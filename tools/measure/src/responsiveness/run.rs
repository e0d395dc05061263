//! The draft's loop: load grows until the goodput settles, then until the responsiveness does.

use std::time::{Duration, Instant};

use bolide_probe::plan::ServerAddress;
use bolide_probe::target::{ConnectTo, resolve};
use http::Method;

use super::config::Resources;
use super::statistics::{Confidence, Means, Settling, class, probe_rate, score, trimmed_mean};
use super::{Plan, Progress, Report, Scored};
use crate::carrier::{Carrier, Command, News, Task};
use crate::clock::Clock;
use crate::dialing::Route;
use crate::latency::{Fresh, Kind, Prober, ProberTask, Sample};
use crate::limits::DESCRIPTION_BYTES_MAX;
use crate::plan::{Amount, Connecting, Direction, Transfer, Version};
use crate::target;
use crate::transfer::PATIENCE;

/// Note on a measurement that Ctrl-C or SIGTERM ended.
const STOPPED: &str = "stopped early; the score covers the intervals up to then";

/// Carries it out, one direction after the other. `announce` is called with a sentence before load goes to another
/// place than the URL's, and `show` after each interval.
///
/// What goes wrong once the server has been asked stands in the report.
///
/// # Errors
///
/// What stands in the way before anything is sent, in a sentence.
pub fn run(
    plan: &Plan,
    announce: &mut dyn FnMut(&str),
    show: &mut dyn FnMut(&Progress),
) -> Result<Report, String> {
    let connecting = Connecting { version: Version::Http2, ..plan.connecting.clone() };
    let route = Route::new(&connecting)?;
    let mut report = Report { url: plan.url.clone(), download: None, upload: None, error: None };
    let found =
        resources(plan, &connecting, &route, announce).and_then(|(resources, connecting)| {
            for direction in [Direction::Download, Direction::Upload] {
                let scored = Some(measure(plan, &connecting, &resources, direction, show)?);
                match direction {
                    Direction::Download => report.download = scored,
                    Direction::Upload => report.upload = scored,
                }
                if plan.stop.is_asked() {
                    return Err(STOPPED.to_owned());
                }
            }
            Ok(())
        });
    report.error = found.err();
    Ok(report)
}

/// Asks the server what it has, and finds out how that is reached.
fn resources(
    plan: &Plan,
    connecting: &Connecting,
    route: &Route,
    announce: &mut dyn FnMut(&str),
) -> Result<(Resources, Connecting), String> {
    let carrier = Carrier::start(Task {
        route: route.clone(),
        transfer: transfer(Direction::Download, &plan.config_path, Amount::Whole),
        probe_path: None,
        look: plan.interval,
        patience: PATIENCE,
        kept_bytes: DESCRIPTION_BYTES_MAX,
        clock: Clock::start(),
    })?;
    let kept = loop {
        let latest = Instant::now() + 2 * PATIENCE;
        match carrier.news_or_stop(latest, &plan.stop).map_err(|_| STOPPED)? {
            Some(News::Ready(_)) => carrier.tell(Command::Begin),
            Some(News::Look(_)) => {}
            Some(News::Done(outcome)) => match outcome.error {
                Some(error) => return Err(error),
                None => break outcome.kept,
            },
            None => return Err(format!("{}: no response within the timeout", plan.url)),
        }
    };
    let subject = format!("{}://{}{}", route.scheme, route.authority, plan.config_path);
    let failed = |why: String| format!("{subject}: {why}");
    let resources = Resources::parse(&kept).map_err(failed)?;
    let mut connecting = connecting.clone();
    let target = &resources.small;
    let asked = target::parse(&plan.url)?;
    let Some(host) = resources.other_host(&asked) else { return Ok((resources, connecting)) };
    let place = format!("{}://{host}:{}", target.scheme.name(), target.port());
    if !plan.allows_other_hosts {
        return Err(failed(format!(
            "it directs the load to {place} instead of {}://{} (allow this with --allow-other-hosts)",
            route.scheme, route.authority
        )));
    }
    connecting.origin.is_https = target.scheme.is_tls();
    connecting.origin.authority = target.authority();
    let place_of = [ConnectTo::Host(host.to_owned(), target.port())];
    connecting.origin.addresses = resolve(target, &place_of, connecting.timeout)?.addresses;
    let addresses: Vec<String> = connecting
        .origin
        .addresses
        .iter()
        .map(|address| match address {
            ServerAddress::Inet(address) => address.ip().to_string(),
            ServerAddress::Unix(path) => path.display().to_string(),
        })
        .collect();
    let addresses = addresses.join(", ");
    announce(&format!("{subject} directs the load to {place} ({addresses})"));
    Ok((resources, connecting))
}

fn transfer(direction: Direction, path: &str, amount: Amount) -> Transfer {
    Transfer {
        direction,
        method: if direction == Direction::Upload { Method::POST } else { Method::GET },
        path: path.to_owned(),
        expected_bytes: None,
        amount,
        is_ndt7: false,
        streams: 1,
        connections: 1,
    }
}

/// One direction that goes on.
struct Loaded<'a> {
    plan: &'a Plan,
    direction: Direction,
    goodput: Settling,
    responsiveness: Settling,
    has_goodput_settled: bool,
    has_settled: bool,
    connections: usize,
    /// Rate of each interval, in bits per second.
    carried: Vec<f64>,
    /// Times of its probes.
    samples: Vec<Vec<Sample>>,
    /// Round trips of a TLS handshake; 0: none.
    handshake_trips: f64,
}

fn measure(
    plan: &Plan,
    connecting: &Connecting,
    resources: &Resources,
    direction: Direction,
    show: &mut dyn FnMut(&Progress),
) -> Result<Scored, String> {
    let route = Route::new(connecting)?;
    let clock = Clock::start();
    let target = match direction {
        Direction::Download => &resources.large,
        Direction::Upload => &resources.upload,
    };
    // It is ended when it has settled; this is longer.
    let time = plan.interval * (plan.intervals_max as u32 + 2);
    let small = resources.small.path.clone();
    let carrier = Carrier::start(Task {
        route: route.clone(),
        transfer: transfer(direction, &target.path, Amount::Time(time)),
        probe_path: Some(small.clone()),
        look: plan.interval,
        patience: PATIENCE,
        kept_bytes: 0,
        clock,
    })?;
    let mut prober = Prober::start(ProberTask { route, path: small, fresh: Fresh::Yes, clock })?;
    let mut loaded = Loaded::new(plan, direction);
    let (mut before_ns, mut bytes) = (0, 0);
    loop {
        let latest = Instant::now() + plan.interval + 2 * PATIENCE;
        let Ok(news) = carrier.news_or_stop(latest, &plan.stop) else {
            return if loaded.carried.is_empty() {
                Err(STOPPED.to_owned())
            } else {
                loaded.scored(&prober)
            };
        };
        match news {
            Some(News::Ready(facts)) => {
                loaded.handshake_trips = handshake_trips(facts.tls.map(|tls| tls.version));
                carrier.tell(Command::Begin);
                let rate = probe_rate(0.0, &plan.parameters).max(1.0 / least(plan.interval));
                carrier.tell(Command::Probe(rate));
                prober.rate(rate);
            }
            Some(News::Look(look)) if look.at_ns > before_ns => {
                let seconds = (look.at_ns - before_ns) as f64 / 1e9;
                let carried = (look.bytes - bytes) as f64 * 8.0 / seconds;
                (before_ns, bytes) = (look.at_ns, look.bytes);
                let mut samples = look.samples;
                samples.extend(prober.samples());
                let is_over = loaded.interval(carried, samples, show);
                if is_over {
                    return loaded.scored(&prober);
                }
                let rate = probe_rate(carried, &plan.parameters);
                carrier.tell(Command::Probe(rate));
                prober.rate(rate);
                loaded.add(&carrier);
            }
            Some(News::Look(_)) => {}
            Some(News::Done(outcome)) => {
                return Err(outcome.error.unwrap_or_else(|| "the load ended early".to_owned()));
            }
            None => return Err(format!("{}: the load had no result", plan.url)),
        }
    }
}

/// A part of an interval in which a probe should be answered, in seconds: each interval needs some.
fn least(interval: Duration) -> f64 {
    interval.as_secs_f64() / 10.0
}

/// Round trips of a TLS handshake of this version.
fn handshake_trips(version: Option<&str>) -> f64 {
    match version {
        None => 0.0,
        Some("TLSv1.3") => 1.0,
        Some(_) => 2.0,
    }
}

impl<'a> Loaded<'a> {
    fn new(plan: &'a Plan, direction: Direction) -> Self {
        Self {
            plan,
            direction,
            goodput: Settling::new(&plan.parameters),
            responsiveness: Settling::new(&plan.parameters),
            has_goodput_settled: false,
            has_settled: false,
            connections: 1,
            carried: Vec::new(),
            samples: Vec::new(),
            handshake_trips: 0.0,
        }
    }

    /// An interval is over; whether it was the last.
    fn interval(
        &mut self,
        carried: f64,
        samples: Vec<Sample>,
        show: &mut dyn FnMut(&Progress),
    ) -> bool {
        self.carried.push(carried);
        self.samples.push(samples);
        let rpm = self.means(1).map(|means| score(&means).rpm);
        show(&Progress {
            direction: self.direction,
            interval: self.carried.len(),
            goodput: carried,
            connections: self.connections,
            rpm,
        });
        if !self.has_goodput_settled {
            self.has_goodput_settled = self.goodput.settles_with(carried);
        } else if let Some(rpm) = rpm {
            self.has_settled = self.responsiveness.settles_with(rpm);
        }
        self.has_settled || self.carried.len() >= self.plan.intervals_max
    }

    /// More load, as long as the goodput may grow.
    fn add(&mut self, carrier: &Carrier) {
        if self.has_goodput_settled {
            return;
        }
        let parameters = &self.plan.parameters;
        let wanted = (self.connections + parameters.added_count).min(parameters.connections_max);
        for _ in self.connections..wanted {
            carrier.tell(Command::Add);
        }
        self.connections = wanted;
    }

    /// Trimmed means of the last intervals' probes, where there were some of both kinds.
    fn means(&self, intervals: usize) -> Option<Means> {
        let last = &self.samples[self.samples.len().saturating_sub(intervals)..];
        let mean = |kind: Kind, of: fn(&Sample) -> u64| {
            let taken = last.iter().flatten().filter(|sample| sample.kind == kind);
            let ms: Vec<f64> = taken.map(|sample| of(sample) as f64 / 1e6).collect();
            trimmed_mean(&ms, self.plan.parameters.kept_share)
        };
        let tls = mean(Kind::Fresh, |sample| sample.tls_ns)?;
        Some(Means {
            tcp_foreign_ms: mean(Kind::Fresh, |sample| sample.tcp_ns)?,
            tls_foreign_ms: (self.handshake_trips > 0.0).then(|| tls / self.handshake_trips),
            http_foreign_ms: mean(Kind::Fresh, |sample| sample.took_ns)?,
            http_loaded_ms: mean(Kind::SameConnection, |sample| sample.took_ns)?,
        })
    }

    fn scored(&self, prober: &Prober) -> Result<Scored, String> {
        let count = self.plan.parameters.moving_count;
        let means = self.means(count).ok_or_else(|| {
            let why =
                prober.trouble().unwrap_or("their responses took longer than the measurement");
            format!("{}: the probes of the last intervals got no response: {why}", self.plan.url)
        })?;
        let score = score(&means);
        let last = &self.carried[self.carried.len().saturating_sub(count)..];
        let probes = self.samples[self.samples.len().saturating_sub(count)..].iter().map(Vec::len);
        Ok(Scored {
            score,
            class: class(score.rpm),
            confidence: Confidence::of(self.has_goodput_settled, self.has_settled),
            means,
            goodput_bits_per_second: last.iter().sum::<f64>() / last.len() as f64,
            connections: self.connections,
            intervals: self.carried.len(),
            probes: probes.sum(),
        })
    }
}
