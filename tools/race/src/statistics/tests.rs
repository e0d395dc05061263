//! Races that are simulated: what is said of servers whose truth is known.

use super::*;

/// The fewest rounds of a full race.
const ROUNDS: usize = crate::rounds::AUTO_ROUNDS_MIN;

/// A machine as we have seen them: it drifts by tens of per cent within minutes, each start of a
/// server has a bias of its own, each round its noise, and now and then one is disturbed.
struct Machine {
    random: Random,
    speed: f64,
}

impl Machine {
    fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), speed: 1.0 }
    }

    fn start(&mut self) -> f64 {
        1.0 + 0.002 * self.random.normal()
    }

    fn round(&mut self, truth: f64) -> f64 {
        self.speed *= (0.01 * self.random.normal()).exp();
        let disturbed = if self.random.unit() < 0.04 { 1.1 } else { 1.0 };
        truth * self.speed * disturbed * (0.012 * self.random.normal()).exp()
    }

    /// Runs a reference, its twin, and a contender that needs `slower` times as much, for as many
    /// rounds as the default settings of a full race ask for.
    fn race(seed: u64, slower: f64) -> Comparison {
        let settings = crate::rounds::Settings::full();
        let mut machine = Self::new(seed);
        let truths = [machine.start(), machine.start(), slower * machine.start()];
        let (mut own, mut twin) = (Vec::new(), Vec::new());
        let mut found: Vec<Comparison> = Vec::new();
        while settings.goes_on(own.len(), std::time::Duration::ZERO, &found) {
            let mut order = [0, 1, 2];
            machine.random.shuffle(&mut order);
            let mut figures = [0.0; 3];
            for entrant in order {
                figures[entrant] = machine.round(truths[entrant]);
            }
            twin.push((figures[1], figures[0]));
            own.push((figures[2], figures[0]));
            if own.len() >= ROUNDS {
                let floor = compare(&twin, None, seed).map(|twins| twins.ratio.mid);
                found = compare(&own, floor, seed).into_iter().collect();
            }
        }
        found[0]
    }
}

#[test]
fn the_same_server_twice_differs_in_at_most_five_of_a_hundred_races() {
    let wrong =
        (0..100).filter(|seed| Machine::race(*seed, 1.0).verdict != Verdict::NoDifference).count();
    assert!(wrong <= 5, "{wrong} of 100 races saw a difference that is not there");
}

#[test]
fn the_interval_alone_is_honest_without_the_twin() {
    let mut wrong = 0;
    for seed in 0..400_u64 {
        let mut machine = Machine::new(seed);
        let pairs: Vec<_> = (0..ROUNDS).map(|_| (machine.round(1.0), machine.round(1.0))).collect();
        let found = compare(&pairs, None, seed).unwrap();
        wrong += u32::from(found.verdict != Verdict::NoDifference);
    }
    assert!(wrong <= 20, "{wrong} of 400");
}

#[test]
fn a_slow_down_of_three_per_cent_is_found() {
    let found =
        (0..100).filter(|seed| Machine::race(1000 + seed, 1.03).verdict == Verdict::More).count();
    assert!(found >= 90, "only {found} of 100 races found it");
    let faster =
        (0..100).filter(|seed| Machine::race(2000 + seed, 1.03).verdict == Verdict::Less).count();
    assert_eq!(faster, 0);
}

#[test]
fn the_detectable_difference_is_about_right() {
    let stated: f64 = (0..50).map(|seed| Machine::race(seed, 1.0).detectable).sum::<f64>() / 50.0;
    assert!((0.01..0.035).contains(&stated), "{stated}");
    let found =
        (0..100).filter(|seed| Machine::race(*seed, 1.0 + stated).verdict == Verdict::More).count();
    assert!((55..=98).contains(&found), "{found} of 100 at {stated}");
}

#[test]
fn drift_of_the_machine_is_no_difference() {
    let pairs: Vec<(f64, f64)> = (0..12)
        .map(|round| {
            let speed = 1.0 + f64::from(round) / 10.0;
            (2.0 * speed, speed)
        })
        .collect();
    let found = compare(&pairs, None, 1).unwrap();
    assert!((found.ratio.mid - 2.0).abs() < 1e-9, "{found:?}");
    assert_eq!(found.verdict, Verdict::More);
}

#[test]
fn one_disturbed_round_moves_nothing() {
    let mut pairs = vec![(1.0, 1.0); 11];
    pairs.push((3.0, 1.0));
    let found = compare(&pairs, None, 1).unwrap();
    assert!((found.ratio.mid - 1.0).abs() < 1e-9);
    assert_eq!(found.verdict, Verdict::NoDifference);
}

#[test]
fn few_rounds_say_nothing_and_none_has_no_median() {
    assert_eq!(compare(&[(2.0, 1.0), (2.0, 1.0)], None, 1).unwrap().verdict, Verdict::TooFew);
    assert_eq!(compare(&[(0.0, 1.0)], None, 1), None);
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0, 1.0]), Some(2.0));
    let one = summarise(&[5.0], 1).unwrap();
    assert_eq!((one.low, one.mid, one.high), (5.0, 5.0, 5.0));
}

#[test]
fn an_interval_of_a_median_holds_the_truth() {
    let mut inside = 0;
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let values: Vec<f64> = (0..10).map(|_| 100.0 + random.normal()).collect();
        let found = summarise(&values, seed).unwrap();
        inside += u32::from(found.low <= 100.0 && 100.0 <= found.high);
    }
    assert!(inside >= 185, "{inside} of 200");
}

#[test]
fn the_tails_are_those_of_the_books() {
    assert!((normal_tail(1.96) - 0.025).abs() < 1e-4);
    assert!((normal_tail(2.576) - 0.005).abs() < 1e-4);
    assert!((student(9) - 2.262).abs() < 1e-9 && (student(30) - 2.042).abs() < 5e-3);
    assert!(tail(10) < 0.02 && tail(1000) > 0.018 && tail(1) == 0.0);
}
