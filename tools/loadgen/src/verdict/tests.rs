//! Each way to be bound, and what lies next to it.

use bolide_probe::report::{Bound, Sample};

use super::*;
use crate::fabricated::{OPEN_1000, cost, flat, latencies, quiet};

fn verdict(load: Load, change: impl FnOnce(&mut PhaseReport)) -> Verdict {
    let mut report = quiet(load);
    change(&mut report);
    judge(&report, Some(2))
}

fn closed(change: impl FnOnce(&mut PhaseReport)) -> Verdict {
    verdict(Load::Closed, change)
}

fn open(change: impl FnOnce(&mut PhaseReport)) -> Verdict {
    verdict(OPEN_1000, change)
}

#[test]
fn a_full_thread_decides_whose_bound_it_is() {
    for (generator, server, bound) in [
        (cost(0.99, 0.99), Some(cost(0.5, 0.5)), Bound::Client),
        (cost(0.5, 0.5), Some(cost(0.97, 0.97)), Bound::Server),
        // One thread of two cores: half of the utilisation, and full all the same.
        (cost(0.5, 0.25), Some(cost(0.98, 0.98)), Bound::Server),
        // Two half-full threads on each side fill two cores together.
        (cost(1.0, 0.5), Some(cost(0.95, 0.48)), Bound::Client),
        (cost(0.99, 0.99), Some(cost(0.99, 0.99)), Bound::Client),
        (cost(0.99, 0.99), None, Bound::Client),
        (cost(0.5, 0.5), None, Bound::Unclear),
        (cost(0.9, 0.9), Some(cost(0.9, 0.9)), Bound::Unclear),
    ] {
        let said = closed(|report| {
            report.cpu.generator = generator;
            report.cpu.server = server;
            report.times.connect.count = 0;
        });
        assert_eq!(said.bound, bound, "{generator:?} {server:?} {said:?}");
        assert!(!said.evidence.is_empty());
    }
}

#[test]
fn cores_are_shared_only_where_their_number_is_known() {
    let mut report = quiet(Load::Closed);
    (report.cpu.generator, report.cpu.server) = (cost(0.5, 0.5), Some(cost(0.46, 0.46)));
    assert_eq!(judge(&report, Some(1)).bound, Bound::Client);
    assert_eq!(judge(&report, None).bound, Bound::Unclear);
}

#[test]
fn a_rate_that_is_met_is_the_plans_bound() {
    let said = open(|_| ());
    assert_eq!(said.bound, Bound::Rate);
    assert!(said.evidence[0].contains("1000 of 1000 req/s"), "{said:?}");
    let last = open(|report| {
        report.elapsed_ns = 40_000_000;
        report.counts.completed = 39;
    });
    assert_eq!(last.bound, Bound::Rate, "one request of forty was still in flight: {last:?}");
    // An open loop that spins between two sends isn't full for that.
    assert_eq!(open(|report| report.cpu.generator = cost(1.0, 1.0)).bound, Bound::Rate);
}

#[test]
fn long_responses_that_the_end_cuts_off_are_no_rate_missed_unless_they_pile_up() {
    let said = |in_flight: fn(u64) -> u64| {
        open(|report| {
            report.counts.completed = 900;
            let sample = report.course.series[0];
            let samples = (0..40).map(|index| Sample { in_flight: in_flight(index), ..sample });
            report.course.series = samples.collect();
            report.cpu.server = Some(cost(0.99, 0.99));
        })
    };
    let steady = said(|_| 100);
    assert_eq!(steady.bound, Bound::Rate);
    assert!(steady.evidence[1].contains("100 more were in flight at the end"), "{steady:?}");
    assert_eq!(said(|index| 10 * index).bound, Bound::Server, "they pile up");
    assert_eq!(said(|_| 10).bound, Bound::Server, "the others waited for connections");
}

#[test]
fn a_clock_that_runs_late_is_said_and_binds_only_where_the_rate_is_missed_for_it() {
    let late = |report: &mut PhaseReport| report.times.pacing = flat(1000, 3_000_000);
    let met = open(late);
    assert_eq!(met.bound, Bound::Rate);
    assert!(met.evidence[1].contains("late by 3.00 ms"), "{met:?}");
    assert_eq!(open(|report| report.times.pacing = flat(1000, 90_000)).evidence.len(), 1);
    let missed = |lag_ns: u64| {
        open(|report| {
            late(report);
            report.counts.completed = 700;
            report.times.lag = flat(700, lag_ns);
            report.times.sent_to_first_byte_mean_ns = 5e7;
            report.cpu.server = Some(cost(0.01, 0.01));
        })
    };
    assert_eq!(missed(4_000_000).bound, Bound::Client);
    let full = missed(900_000_000);
    assert_eq!(full.bound, Bound::Server, "requests waited for connections: {full:?}");
    assert!(full.evidence.iter().any(|one| one.contains("late by 3.00 ms")), "{full:?}");
}

#[test]
fn a_rate_that_is_missed_asks_who_was_full() {
    let said = open(|report| {
        report.counts.completed = 700;
        report.cpu.server = Some(cost(0.99, 0.99));
        report.times.lag = flat(700, 20_000_000);
    });
    assert_eq!(said.bound, Bound::Server);
    assert!(said.evidence.iter().any(|one| one.contains("free connection")), "{said:?}");
}

#[test]
fn windows_bind_when_requests_wait_for_them() {
    let upload = closed(|report| report.stalls.stream_window_ns = 600_000_000);
    assert_eq!(upload.bound, Bound::Window);
    assert!(upload.evidence[0].contains("60.0 %"), "{upload:?}");
    let whole = closed(|report| report.stalls.connection_window_ns = 4_000_000_000);
    assert_eq!(whole.bound, Bound::Window);
    let download = closed(|report| report.stalls.receive_window_used_up = 2_000);
    assert_eq!(download.bound, Bound::Window);
    assert!(download.evidence[0].contains("--stream-window"), "{download:?}");
    assert_ne!(closed(|report| report.stalls.stream_window_ns = 50_000_000).bound, Bound::Window);
    // A full server is the reason, whatever the windows do then.
    let full = closed(|report| {
        report.stalls.stream_window_ns = 600_000_000;
        report.cpu.server = Some(cost(1.0, 1.0));
    });
    assert_eq!(full.bound, Bound::Server);
}

#[test]
fn the_path_binds_when_it_is_full_lossy_or_long() {
    for change in [
        (|report| report.stalls.socket_full = 500) as fn(&mut PhaseReport),
        |report| report.traffic.retransmits = 30,
        |report| {
            report.times.connect = flat(10, 20_000_000);
            report.times.sent_to_first_byte_mean_ns = 21_000_000.0;
        },
        |report| report.traffic.wire_received_bytes = 200_000_000,
    ] {
        let said = closed(change);
        assert_eq!(said.bound, Bound::Network, "{said:?}");
    }
    // Connections that were opened in one burst say nothing about the path.
    let burst = closed(|report| {
        report.times.connect = latencies(&[40_000, 700_000, 700_000, 700_000]);
        report.times.sent_to_first_byte_mean_ns = 300_000.0;
    });
    assert_eq!(burst.bound, Bound::Unclear, "{burst:?}");
    let busy = closed(|report| {
        report.traffic.wire_received_bytes = 200_000_000;
        report.cpu.server = Some(cost(0.8, 0.8));
    });
    assert_eq!(busy.bound, Bound::Unclear);
}

#[test]
fn a_long_path_binds_an_open_loop_whatever_requests_waited_for_connections() {
    let said = open(|report| {
        report.counts.completed = 700;
        report.times.connect = flat(8, 80_000_000);
        report.times.lag = flat(700, 1_800_000_000);
        report.times.sent_to_first_byte_mean_ns = 8.1e7;
    });
    assert_eq!(said.bound, Bound::Network, "{said:?}");
    assert!(said.evidence[1].contains("and the first byte 81.0 ms (mean)"), "{said:?}");
}

#[test]
fn a_server_that_sleeps_binds_without_any_cpu() {
    let said = closed(|report| {
        report.cpu.server = Some(cost(0.01, 0.01));
        report.times.sent_to_first_byte_mean_ns = 50_000_000.0;
    });
    assert_eq!(said.bound, Bound::Server);
    assert!(said.evidence[0].contains("50.0 ms"), "{said:?}");
}

#[test]
fn a_run_that_failed_says_nothing_about_bounds() {
    assert_eq!(closed(|report| report.counts.completed = 0).bound, Bound::Unclear);
    let failed = closed(|report| {
        report.counts.failed = 800;
        report.cpu.generator = cost(1.0, 1.0);
    });
    assert_eq!(failed.bound, Bound::Unclear);
    assert!(failed.evidence[0].contains("80.0 %"), "{failed:?}");
}
