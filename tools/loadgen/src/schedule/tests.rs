//! Schedules against a server that is a formula.

use super::*;
use crate::fabricated::{flat, quiet};

/// A queue with one server that does `service_rate` requests a second: M/M/1, whose time in the
/// system is exponential with mean 1/(µ − λ), so that p99 = ln 100/(µ − λ).
struct Queue {
    service_rate: f64,
    seen: Vec<Phase>,
}

impl Queue {
    fn new(service_rate: f64) -> Self {
        Self { service_rate, seen: Vec::new() }
    }

    fn run(&mut self, phase: &Phase) -> PhaseReport {
        self.seen.push(phase.clone());
        let asked = match phase.load {
            Load::Open { rate, .. } => rate,
            Load::Closed | Load::Connect => f64::INFINITY,
        };
        let answered = asked.min(self.service_rate);
        let headroom = self.service_rate - answered;
        let p99_s = if headroom > 0.0 { 100f64.ln() / headroom } else { 10.0 };
        let mut report = quiet(phase.load);
        report.elapsed_ns = 10_000_000_000;
        report.counts.due = (answered * 10.0) as u64;
        report.counts.succeeded = report.counts.due;
        report.times.latency = flat(1, (p99_s.min(10.0) * 1e9) as u64);
        report
    }

    fn rates(&self) -> Vec<f64> {
        let rate = |phase: &Phase| match phase.load {
            Load::Open { rate, .. } => rate,
            Load::Closed | Load::Connect => 0.0,
        };
        self.seen.iter().map(rate).collect()
    }
}

fn knee(limit: Duration, start: Option<f64>) -> Schedule {
    let each = Duration::from_secs(5);
    let arrivals = Arrivals::Constant;
    Schedule::FindKnee(Knee { limit, each, warm_up: Duration::ZERO, arrivals, start })
}

#[test]
fn the_knee_is_found_within_its_precision_from_anywhere() {
    for service_rate in [40.0, 1_000.0, 12_345.0, 900_000.0] {
        for start in [None, Some(service_rate / 50.0), Some(service_rate * 30.0)] {
            let limit_s: f64 = 200.0 / service_rate;
            let truth = service_rate - 100f64.ln() / limit_s;
            let mut queue = Queue::new(service_rate);
            let found = knee(Duration::from_secs_f64(limit_s), start)
                .carry_out(|phase| Some(queue.run(phase)));
            let Outcome::Knee { rate: Some(rate), broken_at: Some(broken) } = found else {
                panic!("{service_rate} {start:?}: {found:?}")
            };
            assert!(rate <= truth && truth <= broken, "{rate} {truth} {broken}");
            assert!((truth - rate) / truth <= PRECISION, "{rate} of {truth}");
            assert!(queue.seen.len() < 60, "{}", queue.seen.len());
        }
    }
}

#[test]
fn one_disturbance_does_not_move_the_knee() {
    let limit = Duration::from_millis(100);
    let truth = 1_000.0 - 100f64.ln() / 0.1;
    let mut queue = Queue::new(1_000.0);
    let found = knee(limit, Some(400.0)).carry_out(|phase| {
        let mut report = queue.run(phase);
        if queue.seen.len() == 1 {
            report.times.latency = flat(1, 5_000_000_000);
        }
        Some(report)
    });
    let Outcome::Knee { rate: Some(rate), .. } = found else { panic!("{found:?}") };
    assert!((truth * 0.95..=truth).contains(&rate), "{rate} of {truth}");
}

#[test]
fn a_limit_that_no_rate_keeps_has_no_knee() {
    let mut queue = Queue::new(100.0);
    // Even an idle server takes ln 100/100 s = 46 ms.
    let found = knee(Duration::from_millis(10), None).carry_out(|phase| Some(queue.run(phase)));
    assert!(matches!(found, Outcome::Knee { rate: None, broken_at: Some(_) }), "{found:?}");
}

#[test]
fn failures_break_a_rate_as_latency_does() {
    let mut queue = Queue::new(1e9);
    let found = knee(Duration::from_secs(1), Some(100.0)).carry_out(|phase| {
        let mut report = queue.run(phase);
        let Load::Open { rate, .. } = phase.load else { unreachable!() };
        report.counts.failed = if rate > 500.0 { 20 } else { 0 };
        Some(report)
    });
    let Outcome::Knee { rate: Some(rate), .. } = found else { panic!("{found:?}") };
    assert!((475.0..=500.0).contains(&rate), "{rate}");
}

#[test]
fn a_url_alone_measures_capacity_and_then_latency_below_it() {
    let capacity = Phase {
        name: "capacity".into(),
        load: Load::Closed,
        warm_up: Duration::from_secs(1),
        until: Until { requests: None, time: Some(Duration::from_secs(5)) },
    };
    let schedule = Schedule::CapacityThenLatency {
        capacity,
        shares: DEFAULT_SHARES.to_vec(),
        arrivals: Arrivals::Poisson,
    };
    let mut queue = Queue::new(2_000.0);
    assert_eq!(schedule.carry_out(|phase| Some(queue.run(phase))), Outcome::Done);
    assert_eq!(queue.rates(), [0.0, 1_000.0, 1_600.0]);
    assert_eq!(queue.seen[1].name, "50 % of capacity");
    assert_eq!(queue.seen[2].until, queue.seen[0].until);
    // A server that answers nothing right leaves nothing to take a share of.
    let mut dead = Queue::new(0.0);
    assert_eq!(schedule.carry_out(|phase| Some(dead.run(phase))), Outcome::Done);
    assert_eq!(dead.seen.len(), 1);
}

#[test]
fn a_ramp_goes_from_one_rate_to_the_other() {
    let phases = ramp(100.0, 1_000.0, Duration::from_secs(19), Duration::ZERO, Arrivals::Constant);
    assert_eq!(phases.len(), 19);
    let mut queue = Queue::new(1e9);
    let fixed = Schedule::Fixed(phases);
    assert_eq!(fixed.carry_out(|phase| Some(queue.run(phase))), Outcome::Done);
    let rates = queue.rates();
    assert_eq!((rates[0], rates[9], rates[18]), (100.0, 550.0, 1_000.0));
    let whole: Duration = queue.seen.iter().filter_map(|phase| phase.until.time).sum();
    assert_eq!(whole, Duration::from_secs(19));
}

#[test]
fn a_run_that_is_stopped_begins_no_further_phase() {
    let second = Duration::from_secs(1);
    let phases = steps_of(&[1.0, 2.0, 3.0], second, second, Arrivals::Constant);
    assert_eq!(phases[0].warm_up, second);
    assert_eq!(phases[1].warm_up, Duration::ZERO);
    let mut count = 0;
    let outcome = Schedule::Fixed(phases).carry_out(|phase| {
        count += 1;
        (count < 2).then(|| quiet(phase.load))
    });
    assert_eq!((outcome, count), (Outcome::Stopped, 2));
    let stopped = knee(second, None).carry_out(|_| None);
    assert_eq!(stopped, Outcome::Stopped);
}
