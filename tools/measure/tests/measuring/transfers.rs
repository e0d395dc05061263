//! Transfers that succeed, over every version, both ways.

use std::time::Duration;

use bolide_measure::plan::{Amount, Direction};
use bolide_measure::transfer;
use bolide_measure::verdict::Limit;

use crate::planted::{Planted, measured, over_h1, over_h2, over_h3, plan, upload_plan};

const SIZE: u64 = 20_000_000;

#[test]
fn downloads_are_counted_to_the_byte_over_every_version() {
    let server = Planted::start();
    let path = format!("/{SIZE}");
    let http = || plan("http", server.http, &path);
    let https = || plan("https", server.https, &path);
    for (plan, protocol) in [
        (http(), "h1"),
        (over_h2(http()), "h2c"),
        (over_h1(https()), "h1s"),
        (https(), "h2"),
        (over_h3(https()), "h3"),
    ] {
        let report = measured(&plan);
        assert_eq!((report.protocol, report.volume.bytes), (protocol, SIZE));
        // What QUIC lost came again.
        let is_quic = protocol == "h3";
        assert!(report.volume.wire_bytes > SIZE, "{protocol}");
        assert!(is_quic || report.volume.wire_bytes < SIZE / 10 * 11, "{protocol}");
        assert_eq!(report.series.last().map(|point| point.bytes), Some(SIZE));
        assert!(report.volume.seconds > 0.0 && report.cpu.client.cpu_seconds > 0.0);
        // QUIC has no handshake but that of TLS.
        assert_eq!(report.setup.connect_us > 0.0, !is_quic, "{protocol}");
        let is_tls = matches!(protocol, "h1s" | "h2" | "h3");
        assert_eq!((report.tls.is_some(), report.setup.handshake_us.is_some()), (is_tls, is_tls));
        assert_eq!((report.direction, report.tcp.retransmits), (Direction::Download, None));
    }
}

#[test]
fn uploads_are_counted_to_the_byte_over_every_version() {
    let server = Planted::start();
    let path = format!("/{SIZE}");
    let http = || upload_plan("http", server.http, &path, Amount::Bytes(SIZE));
    let https = || upload_plan("https", server.https, &path, Amount::Bytes(SIZE));
    for (plan, protocol) in [
        (http(), "h1"),
        (over_h2(http()), "h2c"),
        (over_h1(https()), "h1s"),
        (https(), "h2"),
        (over_h3(https()), "h3"),
    ] {
        let report = measured(&plan);
        assert_eq!((report.protocol, report.volume.bytes), (protocol, SIZE));
        assert!(report.volume.wire_bytes > SIZE, "{protocol}");
        assert!(protocol == "h3" || report.volume.wire_bytes < SIZE / 10 * 11, "{protocol}");
    }
}

#[test]
fn streams_and_connections_share_the_work() {
    let server = Planted::start();
    let mut plan = over_h2(plan("http", server.http, "/1000000"));
    (plan.transfer.streams, plan.transfer.connections) = (5, 3);
    let report = measured(&plan);
    assert_eq!((report.volume.bytes, report.streams, report.connections), (15_000_000, 5, 3));
    let mut plan = over_h2(upload_plan("http", server.http, "/1", Amount::Bytes(300_000)));
    (plan.transfer.streams, plan.transfer.connections) = (4, 2);
    assert_eq!(measured(&plan).volume.bytes, 2_400_000);
    let mut plan = over_h3(self::plan("https", server.https, "/1000000"));
    (plan.transfer.streams, plan.transfer.connections) = (5, 3);
    assert_eq!(measured(&plan).volume.bytes, 15_000_000);
}

#[test]
fn time_ends_both_directions_and_requests_follow_each_other() {
    let server = Planted::start();
    let time = Amount::Time(Duration::from_millis(300));
    for path in ["/1000", "/1099511627776"] {
        let http = || plan("http", server.http, path);
        for mut plan in [http(), over_h2(http()), over_h3(plan("https", server.https, path))] {
            plan.transfer.amount = time;
            let mut looks = 0;
            let report = transfer::run(&plan, &mut |_| looks += 1).unwrap();
            let protocol = report.protocol;
            assert_eq!(report.end.error, None, "{path} {protocol}");
            assert!(
                report.volume.bytes > 1000 && looks >= 2,
                "{path} {protocol}: {}",
                report.volume.bytes
            );
            assert!((0.3..3.0).contains(&report.volume.seconds), "{}", report.volume.seconds);
        }
    }
    let path = "/1099511627776";
    let http = || upload_plan("http", server.http, path, time);
    let https = || upload_plan("https", server.https, path, time);
    for plan in [http(), over_h2(http()), over_h3(https())] {
        let report = measured(&plan);
        assert!(
            report.volume.bytes > 1_000_000 && report.volume.seconds >= 0.3,
            "{}",
            report.volume.bytes
        );
    }
}

#[test]
fn an_upload_into_small_windows_is_told_as_such() {
    let server = Planted::with_windows(65_535);
    let report = measured(&over_h2(upload_plan("http", server.http, "/1", Amount::Bytes(SIZE))));
    let stalls = report.stalls;
    assert!(stalls.peer_stream_ns + stalls.peer_connection_ns > 0, "{stalls:?}");
    assert_eq!((stalls.own_stream_ns, stalls.own_connection_ns), (0, 0));
}

#[test]
fn a_download_into_our_own_small_window_is_told_as_such() {
    let server = Planted::start();
    let mut plan = over_h2(plan("http", server.http, &format!("/{SIZE}")));
    plan.connecting.window_bytes = Some(65_535);
    let stalls = measured(&plan).stalls;
    assert!(stalls.own_stream_ns + stalls.own_connection_ns > 0, "{stalls:?}");
    assert_eq!((stalls.peer_stream_ns, stalls.peer_connection_ns), (0, 0));
}

#[test]
fn what_is_over_at_once_says_nothing_about_speed() {
    let server = Planted::start();
    let report = measured(&plan("http", server.http, "/100"));
    assert_eq!((report.verdict.limit, report.volume.bytes), (Limit::Asked, 100));
    assert_eq!(measured(&plan("http", server.http, "/0")).volume.bytes, 0);
    let page = measured(&plan("http", server.http, "/ping"));
    assert_eq!(page.volume.bytes, 4);
}

#[test]
fn what_is_ended_early_has_the_figures_until_then() {
    let server = Planted::start();
    let hours = Amount::Time(Duration::from_secs(10_000));
    for is_upload in [false, true] {
        for is_h2 in [false, true] {
            let path = "/1099511627776";
            let mut plan = upload_plan("http", server.http, path, hours);
            if !is_upload {
                plan = crate::planted::plan("http", server.http, path);
                plan.transfer.amount = hours;
            }
            let plan = if is_h2 { over_h2(plan) } else { plan };
            let stop = plan.stop.clone();
            let report = transfer::run(&plan, &mut |_| stop.ask()).unwrap();
            assert_eq!(
                (report.end.error, report.end.interrupted),
                (None, true),
                "{is_upload} {is_h2}"
            );
            assert!(
                report.volume.bytes > 0
                    && report.volume.seconds < 100.0
                    && !report.series.is_empty()
            );
        }
    }
}
