//! Statements about pairs that are given.

use super::*;

/// Pairs that scatter by so much around `ratio`.
fn pairs(count: usize, ratio: f64, noise: f64) -> LogRatios {
    let factor = |index: usize| (if index.is_multiple_of(2) { noise } else { -noise }).exp();
    let pairs: Vec<_> = (0..count).map(|index| (ratio * factor(index), 1.0)).collect();
    LogRatios::of(&pairs).unwrap()
}

/// Returns what a page says that has these comparisons.
fn judged(tested: &[LogRatios], twin: Option<LogRatios>) -> Vec<Comparison> {
    let all: Vec<Tested> = tested.iter().map(|found| (*found, twin)).collect();
    let twins: Vec<LogRatios> = twin.into_iter().collect();
    let rule = Rule::of(&all, &twins);
    tested.iter().map(|found| rule.judge(found, twin.as_ref())).collect()
}

#[test]
fn drift_of_the_machine_is_not_a_difference() {
    let pairs: Vec<(f64, f64)> = (0..12)
        .map(|round| {
            let speed = 1.0 + f64::from(round) / 10.0;
            (2.0 * speed, speed)
        })
        .collect();
    let found = judged(&[LogRatios::of(&pairs).unwrap()], None)[0];
    assert!((found.ratio.mid - 2.0).abs() < 1e-9, "{found:?}");
    assert_eq!((found.verdict, found.pairs), (Verdict::More, 12));
}

#[test]
fn below_six_pairs_there_is_a_range_and_no_claim() {
    for count in 1..PAIRS_MIN {
        let found = judged(&[pairs(count, 2.0, 0.001)], None)[0];
        assert_eq!((found.verdict, found.detectable), (Verdict::Range, None));
    }
    let found = judged(&[pairs(4, 2.0, 0.1)], None)[0];
    let [low, high] = [-0.1_f64, 0.1].map(|noise| 2.0 * noise.exp());
    assert!((found.ratio.low - low).abs() < 1e-9 && (found.ratio.high - high).abs() < 1e-9);
    assert_eq!(judged(&[pairs(PAIRS_MIN, 2.0, 0.001)], None)[0].verdict, Verdict::More);
    assert_eq!(LogRatios::of(&[(0.0, 1.0)]), None);
}

#[test]
fn the_noise_of_the_twin_widens_the_intervals_of_all() {
    let quiet = pairs(6, 1.05, 0.01);
    assert_eq!(judged(&[quiet], Some(pairs(6, 1.0, 0.01)))[0].verdict, Verdict::More);
    assert_eq!(judged(&[quiet], Some(pairs(6, 1.0, 0.1)))[0].verdict, Verdict::NotDecided);
    // A twin that differs by more than its noise shows how much starts differ.
    assert_eq!(judged(&[quiet], Some(pairs(6, 1.04, 0.01)))[0].verdict, Verdict::NotDecided);
}

#[test]
fn one_comparison_more_on_the_page_asks_for_more() {
    let close = pairs(6, 1.03, 0.02);
    let level = pairs(6, 1.0, 0.02);
    assert_eq!(judged(&[close], None)[0].verdict, Verdict::More);
    let many = judged(&[close, level, level, level, level, level], None);
    assert!(many.iter().all(|found| found.verdict == Verdict::NotDecided), "{many:?}");
    // Claims that hold anyway cost the others nothing.
    let clear = pairs(6, 2.0, 0.02);
    let with_clear = judged(&[close, clear, clear, clear, clear, clear], None);
    assert!(with_clear.iter().all(|found| found.verdict == Verdict::More), "{with_clear:?}");
}

#[test]
fn a_shared_lead_is_an_interval_near_1() {
    let of = |noise| judged(&[pairs(12, 1.0, noise)], None)[0];
    assert!(of(0.01).is_level());
    assert_eq!(of(0.2).verdict, Verdict::NotDecided);
    assert!(!of(0.2).is_level(), "a wide interval shares nothing");
    assert!(!judged(&[pairs(3, 1.0, 0.001)], None)[0].is_level());
}

#[test]
fn medians_and_ranges_are_those_of_the_values() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0, 1.0]), Some(2.0));
    let found = spread(&[5.0, 1.0, 2.0]).unwrap();
    assert_eq!((found.low, found.mid, found.high), (1.0, 2.0, 5.0));
    assert_eq!(spread(&[]), None);
}
