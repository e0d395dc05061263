//! Pages of races that are simulated: what is claimed of servers whose truth is known.

use std::time::Duration;

use fastrand::Rng;

use super::*;
use crate::rounds::{Pace, Rounds, Settings};

/// Noise of a ratio of two runs, as it was measured on machines from quiet to busy (standard deviation of its
/// logarithm).
const NOISES: [f64; 3] = [0.02, 0.05, 0.1];

/// Noise of every other contender, as a multiple of the reference's.
const LOUD: f64 = 1.7;

/// A page: this many workloads, and in each this many contenders besides the reference and its twin.
const PAGES: [(usize, usize); 3] = [(1, 2), (3, 6), (20, 6)];

/// A machine as we have seen them: it drifts by tens of per cent within minutes, each start of a server has a bias of
/// its own, each run its noise, and one in 25 runs is disturbed.
struct Machine {
    random: Rng,
    speed: f64,
    noise: f64,
    start: f64,
}

/// Outcomes of the claims of a page.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Tally {
    comparisons: usize,
    claims: usize,
    wrong: usize,
}

/// A number from the standard normal distribution.
fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

impl Machine {
    /// `noise` is that of a ratio: each of its two runs has half of the variance.
    fn new(seed: u64, noise: f64, start: f64) -> Self {
        let random = Rng::with_seed(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        Self { random, speed: 1.0, noise: noise / 2_f64.sqrt(), start }
    }

    fn run(&mut self, truth: f64, loud: f64) -> f64 {
        self.speed *= (0.01 * normal(&mut self.random)).exp();
        let disturbed = if self.random.f64() < 0.04 { 1.1 } else { 1.0 };
        truth * self.speed * disturbed * (loud * self.noise * normal(&mut self.random)).exp()
    }

    /// A workload with a reference, its twin and contenders that need so many times as much; the twin's comparison and
    /// theirs.
    fn workload(&mut self, settings: Settings, truths: &[f64]) -> (LogRatios, Vec<LogRatios>) {
        let all: Vec<f64> = [1.0, 1.0].iter().chain(truths).copied().collect();
        let starts: Vec<f64> =
            all.iter().map(|truth| truth * (self.start * normal(&mut self.random)).exp()).collect();
        let mut pairs = vec![Vec::new(); all.len() - 1];
        let mut pace = Pace::new(settings);
        let compared = |pairs: &[Vec<(f64, f64)>]| -> Vec<LogRatios> {
            pairs.iter().filter_map(|pairs| LogRatios::of(pairs)).collect()
        };
        while pace.goes_on(pairs[0].len(), Duration::ZERO, &|| compared(&pairs)) {
            let mut order: Vec<usize> = (0..all.len()).collect();
            self.random.shuffle(&mut order);
            let mut figures = vec![0.0; all.len()];
            for entrant in order {
                // Every other contender has more noise than the reference.
                let loud = if entrant > 1 && entrant % 2 == 0 { LOUD } else { 1.0 };
                figures[entrant] = self.run(starts[entrant], loud);
            }
            for (pairs, own) in pairs.iter_mut().zip(&figures[1..]) {
                pairs.push((*own, figures[0]));
            }
        }
        let mut found = compared(&pairs);
        (found.remove(0), found)
    }

    /// A page on which the contenders of every workload need so many times as much as the reference.
    fn page(
        &mut self,
        settings: Settings,
        workloads: usize,
        truths: &[f64],
    ) -> (Tally, Vec<Comparison>) {
        let raced: Vec<_> = (0..workloads).map(|_| self.workload(settings, truths)).collect();
        let tested: Vec<Tested> = raced
            .iter()
            .flat_map(|(twin, others)| others.iter().map(|other| (*other, Some(*twin))))
            .collect();
        let twins: Vec<LogRatios> = raced.iter().map(|(twin, _)| *twin).collect();
        let rule = Rule::of(&tested, &twins);
        let judged: Vec<Comparison> =
            tested.iter().map(|(found, twin)| rule.judge(found, twin.as_ref())).collect();
        let mut tally = Tally { comparisons: judged.len(), ..Tally::default() };
        for (found, truth) in judged.iter().zip(truths.iter().cycle()) {
            let is_right = match found.verdict {
                Verdict::More => *truth > 1.0,
                Verdict::Less => *truth < 1.0,
                Verdict::NotDecided | Verdict::Range => continue,
            };
            tally.claims += 1;
            tally.wrong += usize::from(!is_right);
        }
        assert_eq!(tally.claims, rule.claims, "a claim is an interval that excludes 1");
        (tally, judged)
    }
}

fn of_rounds(rounds: Rounds) -> Settings {
    Settings { rounds, ..Settings::full() }
}

/// Percentages of comparisons and of pages with a false claim, of pages on which nothing differs.
fn false_claims(settings: Settings, noise: f64, start: f64, shape: (usize, usize)) -> (f64, f64) {
    let pages = if shape.0 > 3 { 80 } else { 200 };
    let (mut comparisons, mut wrong, mut bad) = (0, 0, 0);
    for seed in 0..pages {
        let mut machine = Machine::new(seed, noise, start);
        let (tally, _) = machine.page(settings, shape.0, &vec![1.0; shape.1]);
        comparisons += tally.comparisons;
        wrong += tally.wrong;
        bad += u32::from(tally.wrong > 0);
    }
    (100.0 * wrong as f64 / comparisons as f64, 100.0 * f64::from(bad) / pages as f64)
}

/// Percentage of races of three workloads and six contenders that find one that needs `slower` times as much.
fn found(settings: Settings, noise: f64, slower: f64) -> f64 {
    let (mut found, mut all) = (0, 0);
    for seed in 0..60 {
        let truths = [1.0, slower, 1.5, 2.0, 0.5, 1.0];
        let (_, judged) = Machine::new(1000 + seed, noise, 0.002).page(settings, 3, &truths);
        let planted: Vec<_> = judged.iter().skip(1).step_by(truths.len()).collect();
        all += planted.len();
        found += planted.iter().filter(|found| found.verdict == Verdict::More).count();
        assert!(!planted.iter().any(|found| found.verdict == Verdict::Less));
    }
    100.0 * found as f64 / all as f64
}

#[test]
fn servers_that_do_not_differ_are_seldom_told_apart_at_any_number_of_rounds() {
    let fixed = [1, 5, 6, 7, 9, 12, 30, 100].map(Rounds::Fixed);
    let mut all: Vec<Settings> = fixed.into_iter().map(of_rounds).collect();
    all.extend([Settings::full(), Settings::quick(27, 3, false)]);
    for settings in all {
        for noise in NOISES {
            for shape in PAGES {
                let (comparisons, pages) = false_claims(settings, noise, 0.002, shape);
                println!(
                    "{:?}, {noise}, {shape:?}: {comparisons:.2} % of comparisons, {pages:.1} % of pages",
                    settings.rounds
                );
                assert!(comparisons <= 5.0 && pages <= 10.0, "{settings:?} {noise} {shape:?}");
                let is_few = matches!(settings.rounds, Rounds::Fixed(count) if count < PAIRS_MIN);
                assert!(!is_few || pages == 0.0, "few pairs carry no claim");
            }
        }
    }
}

#[test]
fn starts_that_differ_more_than_usual_are_seldom_told_apart() {
    for rounds in [6, 12, 60] {
        let (comparisons, pages) =
            false_claims(of_rounds(Rounds::Fixed(rounds)), 0.02, 0.01, (20, 6));
        assert!(comparisons <= 5.0 && pages <= 10.0, "{rounds}: {comparisons} %, {pages} %");
    }
}

#[test]
fn of_many_claims_at_most_one_in_twenty_is_false() {
    for rounds in [Rounds::Fixed(6), Rounds::Fixed(12), Rounds::Auto] {
        let shares: Vec<f64> = (0..60)
            .map(|seed| {
                let truths = [1.0, 1.0, 1.3, 2.0, 0.6, 1.1];
                let mut machine = Machine::new(seed, 0.04, 0.002);
                let (tally, _) = machine.page(of_rounds(rounds), 10, &truths);
                tally.wrong as f64 / tally.claims.max(1) as f64
            })
            .collect();
        let share = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!(share <= FALSE_SHARE, "{rounds:?}: {share}");
    }
}

#[test]
fn what_would_have_been_found_is_found_in_nine_of_ten_races() {
    for rounds in [6, 7, 12, 30] {
        for noise in [0.02, 0.1] {
            let settings = of_rounds(Rounds::Fixed(rounds));
            let truths = [1.0, 1.0, 1.5, 2.0, 0.5, 1.0];
            let stated: Vec<f64> = (0..20)
                .map(|seed| Machine::new(seed, noise, 0.002).page(settings, 3, &truths).1[1])
                .filter_map(|found| found.detectable)
                .collect();
            let stated = stated.iter().sum::<f64>() / stated.len() as f64;
            let found = found(settings, noise, 1.0 + stated);
            assert!((83.0..=99.0).contains(&found), "{rounds}, {noise}: {found} % at {stated}");
        }
    }
}

/// The figures of `docs/RACING.md`.
#[test]
fn a_slow_down_of_three_per_cent_needs_a_quiet_machine_and_many_rounds() {
    let quick = Settings::quick(27, 3, false);
    for (settings, noise, slower, range) in [
        (Settings::full(), 0.02, 1.03, 85.0..=100.0),
        (Settings::full(), 0.04, 1.05, 90.0..=100.0),
        (Settings::full(), 0.1, 1.1, 95.0..=100.0),
        (Settings::full(), 0.1, 1.03, 0.0..=30.0),
        (quick, 0.02, 1.1, 90.0..=100.0),
        (quick, 0.02, 1.03, 0.0..=40.0),
        (quick, 0.1, 1.2, 85.0..=100.0),
    ] {
        let found = found(settings, noise, slower);
        println!("{:?}, {noise}: {slower} is found in {found:.0} %", settings.rounds);
        assert!(range.contains(&found), "{:?}, {noise}, {slower}: {found} %", settings.rounds);
    }
}

/// CPU time of a request, in µs, on a server that takes 3 µs to wake up and `work` µs for each request; `pause` is the
/// time from one request to the next, in µs.
fn cpu_us(work: f64, mut pause: impl FnMut() -> f64) -> f64 {
    const WAKING: f64 = 3.0;
    const REQUESTS: usize = 20_000;
    let (mut now, mut free, mut used) = (0.0, 0.0, 0.0);
    for _ in 0..REQUESTS {
        now += pause();
        // It sleeps when there is nothing to do.
        let waking = if now > free { WAKING } else { 0.0 };
        free = f64::max(free, now) + waking + work;
        used += waking + work;
    }
    used / REQUESTS as f64
}

#[test]
fn a_slow_down_that_a_full_generator_hides_is_found_at_half_of_its_rate() {
    // A generator that is full sends one request each 2.5 µs: what work takes more, waking up takes less.
    let full = |work| cpu_us(work, || 2.5);
    let at_capacity = full(2.25) / full(2.0);
    assert!((1.015..1.025).contains(&at_capacity), "{at_capacity}");
    let half = |work| {
        let mut random = Rng::with_seed(1);
        cpu_us(work, || -5.0 * (1.0 - random.f64()).ln())
    };
    let at_a_rate = half(2.25) / half(2.0);
    assert!((1.045..1.055).contains(&at_a_rate), "{at_a_rate}");
    let found = [at_capacity, at_a_rate].map(|shown| found(Settings::full(), 0.02, shown));
    println!("{at_capacity} and {at_a_rate} are found in {found:?} %");
    assert!(found[1] >= 95.0 && found[1] >= found[0] + 10.0, "{found:?}");
}
