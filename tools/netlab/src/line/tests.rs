use std::time::Duration;

use proptest::prelude::*;

use super::*;

const MS: Nanos = 1_000_000;

fn delay(ms: u64) -> Shape {
    Shape { delay: Duration::from_millis(ms), ..Shape::default() }
}

fn rate(bits: u64) -> Shape {
    Shape { rate: Some(bits), ..Shape::default() }
}

/// Pushes packets of 1,500 bytes at `every`, and gives the times at which they come out.
fn carried(line: &mut Line<u64>, count: u64, every: Nanos) -> Vec<(Nanos, u64)> {
    for number in 0..count {
        line.push(number * every, number, 1500);
    }
    std::iter::from_fn(|| line.pop(Nanos::MAX)).collect()
}

#[test]
fn an_empty_shape_carries_at_once() {
    let mut line = Line::new(Shape::default(), 1);
    assert_eq!(line.push(7, 'a', 1500), Fate::Due(7));
    assert_eq!(line.deadline(), Some(7));
    assert_eq!(line.pop(6), None);
    assert_eq!(line.pop(7), Some((7, 'a')));
    assert_eq!((line.deadline(), line.held_bytes()), (None, 0));
}

#[test]
fn a_delay_is_exact() {
    let out = carried(&mut Line::new(delay(10), 1), 100, MS);
    assert!(out.iter().all(|(due, number)| *due == number * MS + 10 * MS));
}

#[test]
fn a_rate_spaces_packets() {
    // 1,500 bytes at 12 Mbit/s take a millisecond.
    let out = carried(&mut Line::new(rate(12_000_000), 1), 20, 0);
    let times: Vec<Nanos> = out.iter().map(|(due, _)| *due).collect();
    assert_eq!(times, (1..=20).map(|number| number * MS).collect::<Vec<_>>());
}

#[test]
fn a_full_queue_drops_what_comes_last() {
    // 50 ms at 12 Mbit/s are 75,000 bytes: 50 packets, and the one that is being sent.
    let mut line = Line::new(rate(12_000_000), 1);
    let out = carried(&mut line, 100, 0);
    assert_eq!(out.len(), 50);
    assert_eq!(line.counts().queue_full, 50);
    assert!(out.iter().enumerate().all(|(place, (_, number))| place as u64 == *number));
}

#[test]
fn a_queue_of_packets_holds_so_many_behind_the_one_that_is_sent() {
    let shape = Shape { queue: Queue::Packets(3), ..rate(12_000_000) };
    let mut line = Line::new(shape, 1);
    assert_eq!(carried(&mut line, 10, 0).len(), 4);
    // Two milliseconds later two have left.
    let fates: Vec<Fate> = (0..3).map(|_| line.push(2 * MS, 0, 1500)).collect();
    assert_eq!(fates, [Fate::Due(5 * MS), Fate::Due(6 * MS), Fate::QueueFull]);
}

#[test]
fn loss_is_as_frequent_as_asked() {
    let mut line = Line::new(Shape { loss: 0.05, ..Shape::default() }, 3);
    carried(&mut line, 100_000, 10);
    let lost = line.counts().lost as f64 / 100_000.0;
    assert!((lost - 0.05).abs() < 0.003, "{lost}");
}

#[test]
fn reordered_packets_overtake_and_nothing_else_does() {
    let shape = Shape { reorder: 0.1, ..delay(10) };
    let out = carried(&mut Line::new(shape, 5), 10_000, MS);
    let overtaking = out.iter().filter(|(due, number)| *due == number * MS).count();
    assert!((800..1200).contains(&overtaking), "{overtaking}");
    let others: Vec<u64> =
        out.iter().filter(|(due, number)| *due != number * MS).map(|(_, n)| *n).collect();
    assert!(others.is_sorted() && !out.iter().map(|(_, n)| n).is_sorted());
}

#[test]
fn jitter_varies_within_its_bounds_and_keeps_the_order() {
    let shape = Shape { jitter: Duration::from_millis(2), ..delay(10) };
    let out = carried(&mut Line::new(shape, 5), 10_000, 5 * MS);
    let delays: Vec<Nanos> = out.iter().map(|(due, number)| due - number * 5 * MS).collect();
    let mean = delays.iter().sum::<Nanos>() / delays.len() as Nanos;
    assert!(delays.iter().all(|delay| (8 * MS..=12 * MS).contains(delay)));
    assert!(mean.abs_diff(10 * MS) < MS / 10, "{mean}");
    assert!(delays.iter().max() > delays.iter().min());
}

#[test]
fn codel_ends_a_standing_queue_and_fifo_keeps_it() {
    let waits = |discipline| {
        let queue = Queue::Time(Duration::from_secs(1));
        let mut line = Line::new(Shape { discipline, queue, ..rate(12_000_000) }, 1);
        // 10 % more than the rate, for 5 seconds.
        let mut last = 0;
        for number in 0..5500_u64 {
            let now = number * MS * 10 / 11;
            if let Fate::Due(due) = line.push(now, number, 1500) {
                last = due - now;
            }
            while line.pop(now).is_some() {}
        }
        (last, line.counts())
    };
    let (fifo, codel) = (waits(Discipline::Fifo), waits(Discipline::Codel));
    assert!(fifo.0 > 400 * MS && fifo.1.codel == 0, "{fifo:?}");
    assert!(codel.0 < fifo.0 / 2 && codel.1.codel > 100, "{codel:?}");
}

#[test]
fn a_line_flood_is_dropped_beyond_what_the_line_may_hold() {
    let mut line = Line::new(delay(1000), 1);
    let packet = 64 * 1024;
    let room = LINE_HELD_BYTES / packet;
    for number in 0..room + 10 {
        line.push(0, number, packet);
    }
    assert!(line.held_bytes() <= LINE_HELD_BYTES);
    assert_eq!(line.counts().memory, 10);
}

#[test]
fn one_seed_has_one_story() {
    let shape = Shape { loss: 0.1, jitter: Duration::from_millis(1), ..delay(5) };
    let story = |seed| carried(&mut Line::new(shape.clone(), seed), 1000, MS);
    assert_eq!(story(4), story(4));
    assert_ne!(story(4), story(5));
}

fn shapes() -> impl Strategy<Value = Shape> {
    let queue = prop_oneof![
        (0_u64..500).prop_map(|ms| Queue::Time(Duration::from_millis(ms))),
        (1_u32..100).prop_map(Queue::Packets),
    ];
    let discipline = prop_oneof![Just(Discipline::Fifo), Just(Discipline::Codel)];
    (
        proptest::option::of(10_000_u64..10_000_000_000),
        queue,
        discipline,
        0_u64..200,
        0.0..1.0,
        0.0..0.3,
    )
        .prop_map(|(rate, queue, discipline, ms, part, share)| {
            let delay = Duration::from_millis(ms);
            let jitter = delay.mul_f64(part);
            Shape { rate, queue, discipline, delay, jitter, loss: share, reorder: share }
        })
}

proptest! {
    #[test]
    fn every_packet_has_one_fate_and_comes_out_in_time(
        shape in shapes(),
        seed in any::<u64>(),
        packets in proptest::collection::vec((0_u64..5_000_000, 40_usize..1500), 1..400),
    ) {
        let mut line = Line::new(shape.clone(), seed);
        let (mut now, mut expected, mut out) = (0, Vec::new(), Vec::new());
        for (number, (gap, bytes)) in packets.iter().enumerate() {
            now += gap;
            if let Fate::Due(due) = line.push(now, number, *bytes) {
                let wait = shape.rate.map_or(0, |rate| {
                    8_000_000_000 * (shape.queue.bytes(rate) + 1500) / rate
                });
                let most = now + wait + nanos(shape.delay) + nanos(shape.jitter) + 2;
                // What waits behind a packet that was delayed more is in order, and no later than it.
                prop_assert!(due >= now && due <= most.max(expected.iter().copied().max().unwrap_or(0)));
                expected.push(due);
            }
            while let Some((due, _)) = line.pop(now) {
                prop_assert!(due <= now);
                out.push(due);
            }
            prop_assert!(line.deadline().is_none_or(|due| due > now));
        }
        while let Some((due, _)) = line.pop(Nanos::MAX) {
            out.push(due);
        }
        expected.sort_unstable();
        prop_assert_eq!(&out, &expected);
        let counts = line.counts();
        let fates = counts.carried + counts.lost + counts.queue_full + counts.codel + counts.memory;
        prop_assert_eq!(fates, packets.len() as u64);
        prop_assert_eq!(line.held_bytes(), 0);
    }

    #[test]
    fn the_rate_is_never_exceeded(
        rate in 10_000_u64..1_000_000_000,
        packets in proptest::collection::vec((0_u64..2_000_000, 40_usize..1500), 2..400),
    ) {
        let mut line = Line::new(self::rate(rate), 1);
        let (mut now, mut sent, mut first, mut last) = (0, 0_u128, None, 0);
        for (gap, bytes) in packets {
            now += gap;
            if let Fate::Due(due) = line.push(now, (), bytes) {
                if first.is_some() {
                    sent += bytes as u128 * 8_000_000_000;
                }
                first.get_or_insert(due);
                last = due;
            }
        }
        let passed = u128::from(last - first.unwrap()) + 400;
        prop_assert!(sent <= passed * u128::from(rate));
    }
}
