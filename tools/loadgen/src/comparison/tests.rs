//! Runs that are the same but for noise, and runs that are not.

use fastrand::Rng;

use super::*;
use crate::fabricated::{OPEN_1000, quiet, report};

/// A random number of a mean of 0 and a deviation of 1, nearly normal.
fn noise(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// A run of `count` samples whose figures are `factor` times what they are, with noise that lasts for some samples.
fn run(load: Load, random: &mut Rng, factor: f64, count: u64) -> Report {
    let mut phase = quiet(load);
    let mut drift = 0.0;
    phase.course.series = (1..=count)
        .map(|index| {
            drift = 0.5 * drift + 0.05 * noise(random);
            let at = |base: f64, random: &mut Rng| {
                base * factor * (1.0_f64 + drift + 0.05 * noise(random)).max(0.1)
            };
            Sample {
                at_ns: index * 100_000_000,
                rate: at(1000.0, random),
                p50_ns: at(1e6, random) as u64,
                p99_ns: at(5e6, random) as u64,
                failed: 0,
                in_flight: 1,
                generator_cores: 0.1,
                server_cores: Some(0.3),
            }
        })
        .collect();
    report(vec![phase])
}

fn differences(first: &Report, second: &Report, tolerance: f64) -> Vec<(Metric, Difference)> {
    let found = compare(first, second, tolerance).unwrap().into_iter();
    found
        .filter(|of| of.difference != Difference::None)
        .map(|of| (of.metric, of.difference))
        .collect()
}

#[test]
fn of_a_hundred_pairs_of_equal_runs_at_most_five_differ() {
    for load in [Load::Closed, OPEN_1000] {
        let mut random = Rng::with_seed(7);
        let different = (0..100).filter(|_| {
            let [first, second] = [1.0, 1.0].map(|factor| run(load, &mut random, factor, 100));
            !differences(&first, &second, 0.0).is_empty()
        });
        let count = different.count();
        assert!(count <= 5, "{count} of {load:?}");
    }
}

#[test]
fn a_real_difference_is_found_and_has_a_direction() {
    let mut random = Rng::with_seed(3);
    let [one, more] = [1.0, 1.2].map(|factor| run(Load::Closed, &mut random, factor, 100));
    assert!(differences(&one, &more, 0.05).contains(&(Metric::Rate, Difference::Better)));
    assert!(differences(&more, &one, 0.05).contains(&(Metric::Rate, Difference::Worse)));
    assert!(differences(&one, &more, 0.5).is_empty(), "less than what is tolerated");
    let [one, more] = [1.0, 1.2].map(|factor| run(OPEN_1000, &mut random, factor, 100));
    let found = differences(&one, &more, 0.05);
    assert!(found.contains(&(Metric::Median, Difference::Worse)), "{found:?}");
    assert!(found.contains(&(Metric::P99, Difference::Worse)), "{found:?}");
    let told = text(&compare(&one, &more, 0.05).unwrap());
    assert!(told.starts_with("Worse: p50 in `measured` by +"), "{told}");
    assert!(told.contains("server CPU") && told.contains(" to +"), "{told}");
}

#[test]
fn failures_are_compared_as_counts() {
    let (random, load) = (&mut Rng::with_seed(1), Load::Closed);
    let [one, mut other] = [1.0, 1.0].map(|factor| run(load, random, factor, 40));
    other.phases[0].counts.failed = 1;
    assert!(differences(&one, &other, 0.2).is_empty(), "one may be chance");
    other.phases[0].counts.failed = 50;
    assert_eq!(differences(&one, &other, 0.2), [(Metric::Failures, Difference::Worse)]);
    assert_eq!(differences(&other, &one, 0.2), [(Metric::Failures, Difference::Better)]);
}

#[test]
fn what_is_not_one_load_is_not_compared() {
    let random = &mut Rng::with_seed(1);
    let closed = run(Load::Closed, random, 1.0, 40);
    let open = run(OPEN_1000, random, 1.0, 40);
    let mut faster = open.clone();
    faster.phases[0].phase.load =
        Load::Open { rate: 1100.0, arrivals: bolide_probe::plan::Arrivals::Constant };
    let mut none = open.clone();
    none.phases.clear();
    let brief = run(Load::Closed, random, 1.0, 19);
    for (first, second, expected) in [
        (&closed, &open, "`measured` and `measured` are different kinds of load"),
        (&open, &faster, "have different rates: repeat the second run with --rate 1000"),
        (&open, &none, "the runs have 1 and 0 phases"),
        (&closed, &brief, "`measured` is too short to be compared"),
    ] {
        let why = compare(first, second, 0.05).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
}
