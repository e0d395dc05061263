//! Choice of a backend.

use super::*;
use crate::ProxyLimits;
use crate::{HashKey, Upstream, limits};

fn backends(balance: Balance, weights: &[u32]) -> Backends {
    with(balance, weights, ProxyLimits::default())
}

fn with(balance: Balance, weights: &[u32], limits: ProxyLimits) -> Backends {
    let upstream = |(at, weight): (usize, &u32)| {
        Upstream::parse(&format!("http://127.0.0.1:{}", at + 1)).unwrap().weight(*weight)
    };
    let upstreams = weights.iter().enumerate().map(upstream).collect();
    Backends::new(&ProxySettings::new(upstreams).unwrap().balance(balance).limits(limits))
}

/// Returns what a request with this hash is.
fn hashed(of: u32) -> Leaning {
    Leaning { hash: hash(&of.to_be_bytes()), ..Leaning::default() }
}

fn counts(backends: &mut Backends, rounds: usize) -> Vec<usize> {
    let now = Instant::now();
    let mut counts = vec![0; backends.list.len()];
    for _ in 0..rounds {
        counts[backends.pick(Leaning::default(), None, now).unwrap()] += 1;
    }
    counts
}

#[test]
fn round_robin_goes_by_weight_and_spreads_turns() {
    let mut three = backends(Balance::RoundRobin, &[1, 2, 1]);
    let now = Instant::now();
    let turns: Vec<_> =
        (0..4).map(|_| three.pick(Leaning::default(), None, now).unwrap()).collect();
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
    assert_eq!(two.pick(Leaning::default(), None, Instant::now()), None);
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
    let later = now + limits.choice.ejection_time;
    assert!(!two[0].health.is_left_alone(later));
    let twice = Some(limits.choice.ejection_time * 2);
    assert_eq!(two[0].health.failed(&limits, later), twice, "one more failure is enough");
    assert!(two[0].health.is_left_alone(later + limits.choice.ejection_time));
    assert!(!two[0].health.is_left_alone(later + limits.choice.ejection_time * 2));
    for _ in 0..3 {
        two[1].health.failed(&limits, later);
    }
    let soonest = two.pick(Leaning::default(), None, later);
    assert_eq!(soonest, Some(1), "somebody is asked, whatever happened");
}

#[test]
fn a_repetition_avoids_who_failed() {
    let mut two = backends(Balance::RoundRobin, &[1, 1]);
    let now = Instant::now();
    assert!((0..4).all(|_| two.pick(Leaning::default(), Some(1), now) == Some(0)));
}

#[test]
fn repetitions_add_nothing_to_what_may_be_repeated() {
    let upstreams = vec![Upstream::parse("http://127.0.0.1:1").unwrap()];
    let mut one = Backends::new(&ProxySettings::new(upstreams).unwrap());
    while one.may_repeat() {}
    for _ in 0..100 {
        one.pick(Leaning::default(), Some(0), Instant::now());
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

#[test]
fn a_busy_proxy_saves_up_for_the_end_of_an_upstream_and_a_quiet_one_does_not() {
    for (requests, expected) in [(0, 10), (100, 30), (1000, 100)] {
        let mut budget = RetryBudget::new(20);
        (0..requests).for_each(|_| budget.requested());
        assert_eq!((0..1000).filter(|_| budget.spend()).count(), expected);
    }
}

#[test]
fn the_upstream_that_a_cookie_names_is_asked_as_long_as_it_takes_requests() {
    let mut two = backends(Balance::RoundRobin, &[1, 1]);
    let now = Instant::now();
    let named = Leaning { named: Some(1), ..Leaning::default() };
    assert!((0..4).all(|_| two.pick(named, None, now) == Some(1)));
    assert_eq!(two.pick(named, Some(1), now), Some(0), "a retry goes elsewhere");
    for _ in 0..3 {
        two[1].health.failed(&ProxyLimits::default(), now);
    }
    assert_eq!(two.pick(named, None, now), Some(0), "it is ejected");
    let mut full = backends(Balance::RoundRobin, &[1, 1]);
    full[1].outstanding = full.outstanding_count;
    assert_eq!(full.pick(named, None, now), Some(0), "it is full");
}

#[test]
fn a_hash_goes_by_weight_and_moves_only_what_it_must() {
    let mut four = backends(Balance::Hash(HashKey::Client), &[1, 1, 2, 1]);
    let now = Instant::now();
    let picks = |four: &mut Backends| -> Vec<usize> {
        (0..5000).map(|of| four.pick(hashed(of), None, now).unwrap()).collect()
    };
    let before = picks(&mut four);
    assert_eq!(picks(&mut four), before, "the same key, the same upstream");
    for (at, share) in [(0, 1000_usize), (1, 1000), (2, 2000), (3, 1000)] {
        let count = before.iter().filter(|pick| **pick == at).count();
        assert!(count.abs_diff(share) < 120, "{at}: {count}");
    }
    for _ in 0..3 {
        four[1].health.failed(&ProxyLimits::default(), now);
    }
    let after = picks(&mut four);
    for (before, after) in before.iter().zip(&after) {
        assert!(after == before || *before == 1, "{before} became {after}");
    }
    assert!(!after.contains(&1));
}

#[test]
fn a_chosen_hash_that_many_requests_have_fills_no_upstream_beyond_its_share() {
    let mut three = backends(Balance::Hash(HashKey::Target), &[1, 2, 1]);
    let now = Instant::now();
    for sent in 1..=1000_u32 {
        let at = three.pick(hashed(7), None, now).unwrap();
        three[at].outstanding += 1;
        for (at, weight) in [(0, 1), (1, 2), (2, 1)] {
            let most = (f64::from(sent) * 1.25 * f64::from(weight) / 4.0).ceil();
            assert!(f64::from(three[at].outstanding) <= most, "{at} of {sent}");
        }
    }
}

#[test]
fn an_upstream_that_is_back_gets_its_share_slowly() {
    let slow_start = Duration::from_secs(10);
    let limits = ProxyLimits {
        choice: limits::Choice { slow_start, ..limits::Choice::DEFAULT },
        ..ProxyLimits::default()
    };
    let count = |two: &mut Backends, now| {
        (0..1000).filter(|_| two.pick(Leaning::default(), None, now) == Some(1)).count()
    };
    for balance in [Balance::RoundRobin, Balance::LeastRequests, Balance::PowerOfTwo] {
        let mut two = with(balance.clone(), &[1, 1], limits.clone());
        let now = Instant::now();
        assert!(count(&mut two, now).abs_diff(500) < 80, "{balance:?}: nothing has happened");
        (0..3).for_each(|_| _ = two[1].health.failed(&limits, now));
        let back = now + limits.choice.ejection_time;
        assert_eq!(count(&mut two, back), 0, "{balance:?}");
        let early = count(&mut two, back + slow_start / 5);
        assert!((40..200).contains(&early), "{balance:?}: {early}");
        two[1].health.succeeded();
        let middle = count(&mut two, back + slow_start / 2);
        assert!((180..400).contains(&middle), "{balance:?}: {middle}");
        assert!(count(&mut two, back + slow_start).abs_diff(500) < 80, "{balance:?}");
        // Alone, it gets everything.
        (0..3).for_each(|_| _ = two[0].health.failed(&limits, back));
        assert_eq!(count(&mut two, back), 1000, "{balance:?}");
    }
}
