//! How hard and how long: from the arguments to a schedule.

use std::time::Duration;

use bolide_probe::plan::{Arrivals, Load, Phase, Until};

use super::arguments::LoadArguments;
use crate::schedule::{DEFAULT_SHARES, Knee, Schedule, ramp, steps_of};

/// How long a phase lasts, by default.
const PHASE: Duration = Duration::from_secs(10);

/// How long each phase of a search, and of a run with nothing but a URL, lasts, by default.
const SHORT_PHASE: Duration = Duration::from_secs(5);

/// How long a ramp lasts, by default.
const RAMP: Duration = Duration::from_secs(30);

/// Time that is not counted at the beginning by default: connections, caches and clock speeds
/// settle.
const WARM_UP: Duration = Duration::from_secs(1);

impl LoadArguments {
    /// The schedule, when the options don't contradict each other.
    /// `users`: of a scenario, and how many at a time, if the clock does not make them begin.
    pub(super) fn schedule(
        &self,
        connections: u64,
        depth: u64,
        users: Option<Option<u64>>,
    ) -> Result<Schedule, String> {
        self.check_contradictions()?;
        if let Some(requests) = self.requests
            && requests < connections
        {
            return Err(format!(
                "-n {requests}, but -c {connections} connections: some would have nothing to do"
            ));
        }
        let arrivals = if self.poisson { Arrivals::Poisson } else { Arrivals::Constant };
        let warm_up = self.warm_up();
        if let Some(text) = &self.ramp {
            let (from, to) = ramp_rates(text)?;
            let whole = self.duration.unwrap_or(RAMP);
            return Ok(Schedule::Fixed(ramp(from, to, whole, warm_up, arrivals)));
        }
        if !self.steps.is_empty() {
            let each = self.duration.unwrap_or(PHASE);
            return Ok(Schedule::Fixed(steps_of(&self.steps, each, warm_up, arrivals)));
        }
        if self.find_knee {
            let limit = self.slo.ok_or("--find-knee needs --slo, such as --slo 5ms")?;
            let each = self.duration.unwrap_or(SHORT_PHASE);
            let start = self.rate;
            return Ok(Schedule::FindKnee(Knee { limit, each, warm_up, arrivals, start }));
        }
        let phase = |name: &str, load| {
            let time = self.duration.or_else(|| self.requests.is_none().then_some(PHASE));
            let until = Until { requests: self.requests, time };
            Phase { name: name.into(), load, warm_up, until }
        };
        if let Some(rate) = self.rate {
            let load = Load::Open { rate, arrivals };
            return Ok(Schedule::Fixed(vec![phase(&format!("{rate:.0}/s"), load)]));
        }
        if self.new_connections {
            let name = format!("{connections} at a time");
            return Ok(Schedule::Fixed(vec![phase(&name, Load::Connect)]));
        }
        if let Some(users) = users.flatten() {
            return Ok(Schedule::Fixed(vec![phase(&format!("{users} users"), Load::Closed)]));
        }
        if self.requests.is_some() || (self.duration.is_some() && !self.poisson) {
            let name = format!("{} in flight", connections.saturating_mul(depth));
            return Ok(Schedule::Fixed(vec![phase(&name, Load::Closed)]));
        }
        let time = Some(self.duration.unwrap_or(SHORT_PHASE));
        let until = Until { requests: None, time };
        let capacity = Phase { name: "capacity".into(), load: Load::Closed, warm_up, until };
        Ok(Schedule::CapacityThenLatency { capacity, shares: DEFAULT_SHARES.to_vec(), arrivals })
    }

    fn warm_up(&self) -> Duration {
        let is_short = self.duration.is_some_and(|duration| duration < SHORT_PHASE);
        let default = if self.requests.is_some() || is_short { Duration::ZERO } else { WARM_UP };
        self.warm_up.unwrap_or(default)
    }

    /// Requests at these times, which are counted from the start, in nanoseconds.
    pub(super) fn replay(&self, times: &[u64]) -> Phase {
        let seconds = times.last().map_or(0.0, |last| *last as f64 / 1e9);
        let rate = times.len() as f64 / seconds.max(1e-3);
        Phase {
            name: "replay".into(),
            load: Load::Open { rate, arrivals: Arrivals::Constant },
            warm_up: Duration::ZERO,
            until: Until { requests: Some(times.len() as u64), time: self.duration },
        }
    }

    /// The option that makes requests, or users, begin by the clock.
    pub(super) fn rates(&self) -> Option<&'static str> {
        let rates = [
            ("--rate", self.rate.is_some()),
            ("--ramp", self.ramp.is_some()),
            ("--steps", !self.steps.is_empty()),
            ("--find-knee", self.find_knee),
        ];
        rates.iter().find(|(_, is_set)| *is_set).map(|(name, _)| *name)
    }

    /// Checks the options that say how hard; at most one of them may be given, but --rate with --find-knee.
    fn check_contradictions(&self) -> Result<(), String> {
        let models = [
            ("--rate", self.rate.is_some() && !self.find_knee),
            ("--ramp", self.ramp.is_some()),
            ("--steps", !self.steps.is_empty()),
            ("--find-knee", self.find_knee),
            ("--new-connections", self.new_connections),
        ];
        let said: Vec<&str> =
            models.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
        if let [first, second, ..] = said[..] {
            return Err(format!(
                "{first} and {second} contradict each other: each says how requests begin"
            ));
        }
        if self.requests.is_some()
            && let Some(searches) =
                said.iter().find(|name| ["--ramp", "--steps", "--find-knee"].contains(name))
        {
            return Err(format!(
                "-n and {searches} contradict each other: -D says how long each rate lasts"
            ));
        }
        if self.poisson
            && (self.new_connections || (self.requests.is_some() && self.rate.is_none()))
        {
            return Err("--poisson spreads the times of an open loop: it needs --rate, --ramp, \
                        --steps or --find-knee"
                .into());
        }
        if self.slo.is_some() && !self.find_knee {
            return Err(
                "--slo is the limit of --find-knee; --fail-if 'p99>5ms' checks a run".into()
            );
        }
        Ok(())
    }
}

fn ramp_rates(text: &str) -> Result<(f64, f64), String> {
    let wrong = |why: &str| format!("--ramp: {why}use FROM..TO, such as 100..10k");
    let (from, to) = text.split_once("..").ok_or_else(|| wrong(""))?;
    let rate = |text: &str| bolide_units::rate(text).map_err(|why| wrong(&format!("{why}; ")));
    Ok((rate(from)?, rate(to)?))
}
