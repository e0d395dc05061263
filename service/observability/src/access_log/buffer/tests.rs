use http::Version;

use super::super::calendar::CalendarTime;
use super::super::ended::{Outcome, RoutePiece};
use super::super::entry::Asked;
use super::*;
use crate::limits::LogLimits;

fn buffer(format: LogFormat, queue: SyncSender<Order>) -> LogBuffer {
    LogBuffer::new(format, &LogLimits::default(), queue, Arc::default())
}

fn outcome(began: Instant) -> Outcome {
    Outcome { status: 200, received_bytes: 0, sent_bytes: 4, began, abort: None }
}

fn write_line(buffer: &mut LogBuffer, now: Instant) {
    write_line_of(buffer, now, None);
}

fn write_line_of(buffer: &mut LogBuffer, began: Instant, abort: Option<&'static str>) {
    let mut prefix = LinePrefix::new(&buffer.format, "unix", None);
    let outcome = Outcome { abort, ..outcome(began) };
    let asked = Asked::unread(Version::HTTP_11);
    let route = RoutePiece::new("/a");
    buffer.line(
        &mut prefix,
        &Ended { asked: &asked, route: &route, outcome: &outcome, stages: None },
    );
}

/// Returns the number of lines that were handed over, and their text in the file.
fn handed_over(orders: &Receiver<Order>) -> Option<(u64, String)> {
    let Order::Write(batch) = orders.try_recv().ok()? else { panic!("another order") };
    let mut out = Vec::new();
    batch.spell(&mut CalendarTime::new(), &mut out);
    let count = batch.count();
    batch.give_back();
    Some((count, String::from_utf8(out).unwrap()))
}

#[test]
fn a_line_waits_no_longer_than_it_may() {
    let (queue, orders) = sync_channel(4);
    let mut buffer = buffer(LogFormat::Common, queue);
    let now = Instant::now();
    assert_eq!(buffer.turn_ended(now, false), None);
    write_line(&mut buffer, now);
    buffer.settle(now);
    assert_eq!(buffer.turn_ended(now, false), Some(now + LogLimits::DEFAULT.delay));
    assert_eq!(handed_over(&orders), None);
    assert_eq!(buffer.turn_ended(now + LogLimits::DEFAULT.delay, false), None);
    assert_eq!(handed_over(&orders).map(|(count, _)| count), Some(1));
}

#[test]
fn log_flood_beyond_the_queue_is_dropped_and_counted() {
    let (queue, orders) = sync_channel(2);
    let counts = Arc::<Counts>::default();
    let limits = LogLimits::default();
    let mut buffer = LogBuffer::new(LogFormat::Common, &limits, queue, Arc::clone(&counts));
    let now = Instant::now();
    let mut lines = 0;
    while counts.stats().dropped == 0 {
        write_line(&mut buffer, now);
        lines += 1;
    }
    let waiting: u64 = std::iter::from_fn(|| handed_over(&orders)).map(|(count, _)| count).sum();
    assert_eq!(waiting + counts.stats().dropped, lines);
    assert_eq!(buffer.batch.count(), 0);
    // It goes on once there is room.
    write_line(&mut buffer, now);
    drop(buffer);
    assert_eq!(handed_over(&orders).map(|(count, _)| count), Some(1));
}

#[test]
fn log_flood_by_one_request_fills_a_sheet() {
    let (queue, orders) = sync_channel(2);
    let mut buffer = buffer(LogFormat::Json, queue);
    let now = Instant::now();
    let mut prefix = LinePrefix::new(&LogFormat::Json, "unix", None);
    let (asked, outcome) = (Asked::unread(Version::HTTP_2), outcome(now));
    let ended =
        Ended { asked: &asked, route: &RoutePiece::new("/a"), outcome: &outcome, stages: None };
    let (count, text) = loop {
        buffer.line(&mut prefix, &ended);
        if let Some(handed_over) = handed_over(&orders) {
            break handed_over;
        }
    };
    let bytes_max = LogLimits::default().block_bytes;
    assert!((bytes_max / 2..=2 * bytes_max).contains(&text.len()), "{}", text.len());
    assert_eq!(text.lines().count() as u64, count);
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    assert!(lines.all(|line| line == first));
}

#[test]
fn lines_are_told_how_long_their_requests_took() {
    let (queue, orders) = sync_channel(2);
    let mut buffer = buffer(LogFormat::Json, queue);
    let now = Instant::now();
    buffer.set_time(Duration::from_secs(784_111_777), now);
    let earlier = now.checked_sub(Duration::from_secs(5)).unwrap();
    for (began, abort) in [(now, None), (now, Some("gone")), (earlier, None)] {
        write_line_of(&mut buffer, began, abort);
    }
    assert!(buffer.has_waiting());
    buffer.settle(now + Duration::from_micros(1234));
    assert!(!buffer.has_waiting());
    drop(buffer);
    let (count, text) = handed_over(&orders).expect("lines");
    let line = |duration: &str, abort: &str| {
        format!(
            "{{\"time\":\"1994-11-06T08:49:37.001Z\",\"duration_us\":{duration},\"peer\":\"unix\",\
             \"version\":\"HTTP/1.1\",\"route\":\"/a\",\"status\":200,\"received_bytes\":0,\"sent_bytes\":4{abort}}}\n"
        )
    };
    let wanted = line("1234", "") + &line("1234", ",\"abort\":\"gone\"") + &line("5001234", "");
    assert_eq!((count, text), (3, wanted));
}

#[test]
fn a_line_of_the_common_format_has_its_time_after_the_address() {
    let (queue, orders) = sync_channel(2);
    let mut buffer = buffer(LogFormat::Common, queue);
    let now = Instant::now();
    buffer.set_time(Duration::from_secs(784_111_777), now);
    write_line(&mut buffer, now);
    drop(buffer);
    let wanted = "unix - - [06/Nov/1994:08:49:37 +0000] \"-\" 200 4\n";
    assert_eq!(handed_over(&orders), Some((1, wanted.to_owned())));
}

#[test]
fn a_clock_that_jumps_stops_no_line() {
    let (queue, orders) = sync_channel(2);
    let mut buffer = buffer(LogFormat::Common, queue);
    let mut now = Instant::now();
    for day in [784_111_777, 0, u64::from(u32::MAX), 784_111_000] {
        now += Duration::from_secs(1);
        buffer.set_time(Duration::from_secs(day), now);
        write_line(&mut buffer, now);
        buffer.settle(now);
        assert_eq!(
            buffer.turn_ended(now, false),
            Some(now + LogLimits::DEFAULT.delay),
            "its delay is no time of day"
        );
        assert_eq!(buffer.turn_ended(now + LogLimits::DEFAULT.delay, false), None);
        assert_eq!(handed_over(&orders).map(|(count, _)| count), Some(1));
    }
}

#[test]
fn a_sheet_that_came_back_is_used_again() {
    let (queue, orders) = sync_channel(2);
    let mut buffer = buffer(LogFormat::Common, queue);
    let mut now = Instant::now();
    let mut places = Vec::new();
    for _ in 0..3 {
        write_line(&mut buffer, now);
        places.push(buffer.batch.place());
        buffer.settle(now);
        now += LogLimits::DEFAULT.delay;
        buffer.turn_ended(now, false);
        assert!(handed_over(&orders).is_some());
    }
    assert_eq!(places[0], places[2]);
}

/// A measured turn in which so many requests began; a stage of the loop took 90 ns in it, the sending 30 ns.
fn measured(units: u32) -> Measured {
    let mut spent_ns = [0; bolide_eventloop::STAGES_COUNT];
    spent_ns[bolide_eventloop::Stage::LOOP.index()] = 90;
    spent_ns[bolide_eventloop::Stage::SEND.index()] = 30;
    Measured { spent_ns, units, ..Measured::default() }
}

#[test]
fn lines_of_a_measured_turn_have_its_split_and_no_others() {
    let (queue, orders) = sync_channel(2);
    let mut buffer = buffer(LogFormat::Json, queue);
    let start = Instant::now();
    let turn = |buffer: &mut LogBuffer, at: u64, begins: &[u64], measured: Option<Measured>| {
        let now = start + Duration::from_micros(at);
        for begin in begins {
            write_line(buffer, start + Duration::from_micros(*begin));
        }
        buffer.settle(now + Duration::from_micros(1));
        buffer.turn_ended(now, measured.is_some());
        if let Some(measured) = measured {
            buffer.split(&measured, now);
        }
    };
    turn(&mut buffer, 0, &[0], None);
    // Of three requests that began in this turn two end in it, with one of a turn before.
    turn(&mut buffer, 10, &[10, 0, 10], Some(measured(3)));
    // One of them ends later; and nothing is said of turns that say nothing.
    turn(&mut buffer, 20, &[10, 20], None);
    turn(&mut buffer, 30, &[30], Some(Measured { is_disturbed: true, ..measured(1) }));
    turn(&mut buffer, 40, &[0], Some(measured(0)));
    turn(&mut buffer, 50, &[50], Some(measured(1)));
    drop(buffer);
    let (_, text) = handed_over(&orders).expect("lines");
    let splits: Vec<_> = text
        .lines()
        .map(|line| line.split_once(",\"stages_ns\":").map(|(_, split)| split))
        .collect();
    let shared = Some("{\"send\":10,\"loop\":30}}");
    let whole = Some("{\"send\":30,\"loop\":90}}");
    assert_eq!(splits, [None, shared, None, shared, None, None, None, None, whole], "{text}");
    assert!(text.lines().all(|line| line.ends_with('}')), "{text}");
}

#[test]
fn lines_of_a_measured_turn_wait_for_what_it_took() {
    let (queue, orders) = sync_channel(2);
    let mut buffer = buffer(LogFormat::Json, queue);
    let now = Instant::now();
    write_line(&mut buffer, now);
    buffer.settle(now);
    let later = now + LogLimits::DEFAULT.delay;
    write_line(&mut buffer, later);
    buffer.settle(later);
    assert_eq!(buffer.turn_ended(later, true), None);
    assert_eq!(handed_over(&orders), None);
    buffer.split(&measured(1), later);
    let (_, text) = handed_over(&orders).expect("lines");
    assert!(text.contains("stages_ns"), "{text}");
}
