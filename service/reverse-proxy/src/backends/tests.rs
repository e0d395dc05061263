//! Whose turn it is.

use super::*;
use crate::Upstream;

fn backends(balance: Balance, weights: &[u32]) -> Backends {
    let upstreams = weights
        .iter()
        .map(|weight| Upstream::parse("http://127.0.0.1:1").unwrap().weight(*weight))
        .collect();
    Backends::new(&ProxySettings::new(upstreams).unwrap().balance(balance))
}

fn counts(backends: &mut Backends, rounds: usize) -> Vec<usize> {
    let now = Instant::now();
    let mut counts = vec![0; backends.list.len()];
    for _ in 0..rounds {
        counts[backends.pick(None, now).unwrap()] += 1;
    }
    counts
}

#[test]
fn round_robin_goes_by_weight_and_spreads_turns() {
    let mut three = backends(Balance::RoundRobin, &[1, 2, 1]);
    let now = Instant::now();
    let turns: Vec<_> = (0..4).map(|_| three.pick(None, now).unwrap()).collect();
    assert_eq!(turns, [1, 0, 2, 1]);
    assert_eq!(counts(&mut three, 400), [100, 200, 100]);
}

#[test]
fn the_least_busy_is_asked_by_weight() {
    let mut three = backends(Balance::LeastRequests, &[1, 4, 1]);
    for (at, outstanding) in [(0, 3), (1, 8), (2, 4)] {
        three[at].outstanding = outstanding;
    }
    assert_eq!(counts(&mut three, 10), [0, 10, 0]);
    three[1].outstanding = 13;
    assert_eq!(counts(&mut three, 10), [10, 0, 0]);
}

#[test]
fn of_two_drawn_at_random_the_less_busy_is_asked() {
    let mut three = backends(Balance::PowerOfTwo, &[1, 1, 1]);
    for (at, outstanding) in [(0, 1), (1, 2), (2, 3)] {
        three[at].outstanding = outstanding;
    }
    let counts = counts(&mut three, 3000);
    assert_eq!(counts[2], 0, "the busiest never wins");
    assert!(counts[0].abs_diff(2000) < 150, "{counts:?}");
}

#[test]
fn an_outstanding_flood_goes_elsewhere_and_then_nowhere() {
    let mut two = backends(Balance::RoundRobin, &[1, 1]);
    two[0].outstanding = two.outstanding_count;
    assert_eq!(counts(&mut two, 5), [0, 5]);
    two[1].outstanding = two.outstanding_count;
    assert_eq!(two.pick(None, Instant::now()), None);
}

#[test]
fn who_fails_is_left_alone_for_longer_each_time() {
    let mut two = backends(Balance::RoundRobin, &[1, 1]);
    let (limits, now) = (ProxyLimits::default(), Instant::now());
    assert_eq!(two[0].health.failed(&limits, now), None);
    two[0].health.succeeded();
    for (at, ejects) in [(0, false), (1, false), (2, true), (3, false)] {
        assert_eq!(two[0].health.failed(&limits, now).is_some(), ejects, "failure {at}");
    }
    assert_eq!(counts(&mut two, 4), [0, 4]);
    let later = now + limits.ejection_time;
    assert!(!two[0].health.is_left_alone(later));
    let twice = Some(limits.ejection_time * 2);
    assert_eq!(two[0].health.failed(&limits, later), twice, "one more failure is enough");
    assert!(two[0].health.is_left_alone(later + limits.ejection_time));
    assert!(!two[0].health.is_left_alone(later + limits.ejection_time * 2));
    for _ in 0..3 {
        two[1].health.failed(&limits, later);
    }
    let soonest = two.pick(None, later);
    assert_eq!(soonest, Some(1), "somebody is asked, whatever happened");
}

#[test]
fn a_repetition_avoids_who_failed() {
    let mut two = backends(Balance::RoundRobin, &[1, 1]);
    let now = Instant::now();
    assert!((0..4).all(|_| two.pick(Some(1), now) == Some(0)));
}

#[test]
fn repetitions_add_nothing_to_what_may_be_repeated() {
    let upstreams = vec![Upstream::parse("http://127.0.0.1:1").unwrap()];
    let mut one = Backends::new(&ProxySettings::new(upstreams).unwrap());
    while one.may_repeat() {}
    for _ in 0..100 {
        one.pick(Some(0), Instant::now());
    }
    assert!(!one.may_repeat());
    for _ in 0..5 {
        one.requested();
    }
    assert!(one.may_repeat(), "five requests pay for one repetition");
    assert!(!one.may_repeat());
}

#[test]
fn a_retry_storm_runs_out_of_budget() {
    let mut budget = RetryBudget::new(20);
    let granted = (0..1000)
        .filter(|_| {
            budget.requested();
            budget.spend()
        })
        .count();
    assert!((200..=215).contains(&granted), "{granted}");
}
