//! By clocks that stand still unless a test moves them.

use super::*;

thread_local! {
    static PASSED: Cell<u64> = const { Cell::new(0) };
    static USED: Cell<u64> = const { Cell::new(0) };
    static READING: Cell<u64> = const { Cell::new(0) };
}

const PARSE: Stage = Stage::of_service(0);

/// The thread works for so long.
fn work(nanos: u64) {
    PASSED.set(PASSED.get() + nanos);
    USED.set(USED.get() + nanos);
}

/// Others work for so long.
fn stand_still(nanos: u64) {
    PASSED.set(PASSED.get() + nanos);
}

fn meter(one_in: u32) -> Meter {
    let read = || {
        work(READING.get());
        PASSED.get()
    };
    Meter::new(Sampling::new(one_in), Clocks { passing: read, cpu: || USED.get() })
}

/// A turn in which `act` is done after the wait.
fn turn(meter: &Meter, act: impl FnOnce()) -> Option<Measured> {
    let is_measured = meter.turn_begins();
    stand_still(1_000_000);
    work(700);
    if is_measured {
        meter.woken();
    }
    act();
    is_measured.then(|| meter.turn_ended())
}

#[test]
fn time_belongs_to_the_stage_that_it_passes_in() {
    let meter = meter(1);
    let measured = turn(&meter, || {
        work(10);
        meter.enter(Stage::RECEIVE);
        work(2000);
        meter.enter(PARSE);
        work(300);
        let before = meter.enter(Stage::SEND);
        assert_eq!(before, PARSE);
        work(4000);
        meter.enter(before);
        work(50);
        meter.count();
        meter.count();
        meter.enter(Stage::LOOP);
        work(5);
    });
    let measured = measured.expect("every turn is sampled");
    let mut spent_ns = [0; STAGES_COUNT];
    spent_ns[Stage::LOOP.index()] = 715;
    spent_ns[Stage::RECEIVE.index()] = 2000;
    spent_ns[PARSE.index()] = 350;
    spent_ns[Stage::SEND.index()] = 4000;
    let expected = Measured { spent_ns, units: 2, cpu_ns: 7065, ..Measured::default() };
    assert_eq!(measured, expected);
}

#[test]
fn what_reading_the_clock_costs_is_taken_off_and_said() {
    READING.set(25);
    let meter = meter(1);
    let measured = turn(&meter, || {
        for _ in 0..100 {
            meter.enter(PARSE);
            work(40);
            meter.enter(Stage::LOOP);
            work(7);
        }
    });
    READING.set(0);
    let measured = measured.expect("every turn is sampled");
    assert_eq!(measured.spent_ns[PARSE.index()], 4000);
    assert_eq!(measured.spent_ns[Stage::LOOP.index()], 1400);
    assert_eq!(measured.reading_ns, 201 * 25);
    let sum = measured.spent_ns.iter().sum::<u64>() + measured.reading_ns;
    assert!(sum.abs_diff(measured.cpu_ns) <= 25, "{measured:?}");
}

#[test]
fn one_turn_in_sixty_four_is_sampled_and_not_always_at_the_same_beat() {
    let meter = meter(64);
    let sampled: Vec<u32> = (0..64_000).filter(|_| turn(&meter, || {}).is_some()).collect();
    assert!((900..1100).contains(&sampled.len()), "{}", sampled.len());
    let beats: std::collections::BTreeSet<u32> = sampled.iter().map(|turn| turn % 64).collect();
    assert_eq!(beats.len(), 64);
}

#[test]
fn nothing_is_sampled_when_it_is_off_and_all_when_it_is_told_so() {
    let sampling = Sampling::default();
    let meter = Meter::new(sampling.clone(), Clocks { passing: || 1, cpu: || 1 });
    assert!((0..1000).all(|_| turn(&meter, || meter.count()).is_none()));
    sampling.set(1);
    assert!((0..1000).all(|_| turn(&meter, || meter.count()).is_some()));
    sampling.set(0);
    assert!((0..1000).all(|_| turn(&meter, || assert!(!meter.is_on())).is_none()));
}

#[test]
fn time_in_which_others_had_the_core_counts_for_no_stage() {
    let meter = meter(1);
    let measured = turn(&meter, || {
        meter.enter(Stage::SEND);
        work(4000);
        stand_still(3_000_000);
        meter.enter(PARSE);
        work(900);
    });
    let measured = measured.expect("every turn is sampled");
    assert_eq!(measured.spent_ns[Stage::SEND.index()], 4000);
    assert_eq!(measured.spent_ns[PARSE.index()], 900);
    assert!(!measured.is_disturbed);
}

#[test]
fn a_turn_that_was_broken_twice_says_that_it_is_of_no_use() {
    let meter = meter(1);
    let measured = turn(&meter, || {
        meter.enter(Stage::SEND);
        work(4000);
        stand_still(3_000_000);
        meter.enter(PARSE);
        stand_still(1_000_000);
    });
    assert!(measured.expect("every turn is sampled").is_disturbed);
}
