//! The output, byte for byte.

use bolide_probe::plan::Load;
use bolide_probe::report::TlsReport;

use super::*;
use crate::fabricated::{flat, latencies, quiet, report};
use std::collections::BTreeMap;

fn text(requests: u64, clients: u64, threads: u64, duration: Option<Duration>) -> Text {
    Text {
        requests,
        clients,
        threads,
        duration,
        warm_up: Duration::ZERO,
        progressed: 0,
        has_warmed_up: false,
        has_named_protocol: false,
    }
}

/// The figures of a run of h2load 1.52 against nginx, as far as they are ours to choose.
fn measured() -> PhaseReport {
    let mut phase = quiet(Load::Closed);
    phase.elapsed_ns = 6_875_000;
    phase.traffic.wire_received_bytes = 71_490;
    phase.traffic.head_wire_bytes = 48_000;
    phase.traffic.head_decoded_bytes = 98_000;
    phase.traffic.payload_received_bytes = 5_000;
    phase.times.latency = Latencies {
        mean_ns: 208_000.0,
        deviation_ns: 77_000.0,
        min_ns: 13_000,
        max_ns: 355_000,
        ..latencies(&[vec![200_000; 758], vec![13_000; 242]].concat())
    };
    phase.times.connect = Latencies {
        mean_ns: 147_900.0,
        deviation_ns: 83_000.0,
        min_ns: 56_000,
        max_ns: 1_338_000,
        ..latencies(&[100_000, 100_000, 100_000, 100_000, 900_000])
    };
    phase.times.first_byte = flat(10, 557_000);
    phase.connection_rates = Some(Spread {
        min: 15_069.02,
        max: 18_408.95,
        mean: 16_110.54,
        deviation: 1_038.16,
        within_deviation: 0.8,
    });
    phase
}

fn ended(text: &mut Text, phase: PhaseReport) -> String {
    let mut whole = report(vec![phase.clone()]);
    whole.protocol = "h2c".into();
    let mut out = Vec::new();
    text.begin(&mut out, "").unwrap();
    text.end(&mut out, &whole, &phase).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_counted_run_prints_what_h2load_prints() {
    let mut phase = measured();
    phase.times.first_byte = Latencies {
        mean_ns: 557_050.0,
        min_ns: 472_000,
        max_ns: 735_000,
        ..phase.times.first_byte
    };
    let mut said = text(1000, 10, 1, None);
    let printed = ended(&mut said, phase);
    let expected = "\
starting benchmark...
spawning thread #0: 10 total client(s). 1000 total requests
Application protocol: h2c
progress: 10% done
progress: 20% done
progress: 30% done
progress: 40% done
progress: 50% done
progress: 60% done
progress: 70% done
progress: 80% done
progress: 90% done
progress: 100% done

finished in 6.88ms, 145454.55 req/s, 9.92MB/s
requests: 1000 total, 1000 started, 1000 done, 1000 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 1000 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 69.81KB (71490) total, 46.88KB (48000) headers (space savings 51.02%), 4.88KB (5000) data
                     min         max         mean         sd        +/- sd
time for request:       13us       355us       208us        77us    75.80%
time for connect:       56us      1.34ms       147us        83us    80.00%
time to 1st byte:      472us       735us       557us         0us   100.00%
req/s           :   15069.02    18408.95    16110.54     1038.16    80.00%
";
    assert_eq!(printed, expected);
}

#[test]
fn a_timed_run_divides_by_its_duration() {
    let mut said = text(1, 3, 1, Some(Duration::from_secs(2)));
    said.warm_up = Duration::from_secs(1);
    let mut phase = measured();
    phase.elapsed_ns = 2_000_000_000;
    phase.failures = BTreeMap::from([(Failure::Reset, 2), (Failure::Timeout, 1)]);
    phase.statuses = BTreeMap::from([(200, 900), (302, 40), (404, 50), (500, 10)]);
    let mut out = Vec::new();
    said.begin(&mut out, "h2").unwrap();
    let progress = |ms| Progress { elapsed: Duration::from_millis(ms), ..Progress::default() };
    said.progress(&mut out, &progress(900)).unwrap();
    let until_now = String::from_utf8(out.clone()).unwrap();
    assert!(!until_now.contains("Warm-up phase is over"), "{until_now}");
    said.progress(&mut out, &progress(1_100)).unwrap();
    let mut whole = report(vec![phase.clone()]);
    whole.tls = Some(TlsReport {
        version: "TLSv1.3".into(),
        cipher_suite: "A".into(),
        group: Some("X25519".into()),
    });
    said.end(&mut out, &whole, &phase).unwrap();
    let expected = "\
starting benchmark...
spawning thread #0: 3 total client(s). Timing-based test with 1s of warm-up time and 2s of main duration for measurements.
Warm-up started for thread #0.
progress: 33% of clients started
progress: 66% of clients started
progress: 100% of clients started
Application protocol: h2
Warm-up phase is over for thread #0.
Main benchmark duration is started for thread #0.
TLS Protocol: TLSv1.3
Cipher: A
Server Temp Key: X25519 253 bits
Main benchmark duration is over for thread #0. Stopping all clients.
Stopped all clients for thread #0

finished in 3.00s, 500.00 req/s, 34.91KB/s
requests: 1003 total, 1003 started, 1003 done, 940 succeeded, 63 failed, 3 errored, 1 timeout
status codes: 900 2xx, 40 3xx, 50 4xx, 10 5xx
";
    let printed = String::from_utf8(out).unwrap();
    assert!(printed.starts_with(expected), "{printed}");
}

#[test]
fn a_run_that_nobody_answered_fails_every_request() {
    let mut out = Vec::new();
    text(10, 2, 1, None).refused(&mut out).unwrap();
    let expected = "
finished in 0us, 0.00 req/s, 0B/s
requests: 10 total, 0 started, 0 done, 0 succeeded, 10 failed, 10 errored, 0 timeout
status codes: 0 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 0B (0) total, 0B (0) headers (space savings 0.00%), 0B (0) data
                     min         max         mean         sd        +/- sd
time for request:        0us         0us         0us         0us     0.00%
time for connect:        0us         0us         0us         0us     0.00%
time to 1st byte:        0us         0us         0us         0us     0.00%
req/s           :       0.00        0.00        0.00        0.00   100.00%
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_run_that_was_cut_short_counts_the_rest_as_errors() {
    let mut phase = measured();
    phase.counts.completed = 600;
    phase.counts.started = 610;
    phase.statuses = BTreeMap::from([(200, 600)]);
    phase.failures = BTreeMap::from([(Failure::Reset, 10)]);
    let printed = ended(&mut text(1000, 10, 1, None), phase);
    let line = "requests: 1000 total, 610 started, 610 done, 600 succeeded, 400 failed, 400 \
                errored, 0 timeout";
    assert!(printed.contains(line), "{printed}");
    assert!(printed.contains("progress: 60% done") && !printed.contains("70% done"), "{printed}");
}

#[test]
fn progress_follows_the_first_threads_share() {
    let lines = |total| steps(total).collect::<Vec<_>>();
    assert_eq!(lines(100), [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
    assert_eq!(lines(13), [7, 15, 23, 30, 38, 46, 53, 61, 69, 76, 84, 92, 100]);
    assert_eq!(lines(3), [33, 66, 100]);
    assert_eq!((dealt(25, 2, 0), dealt(25, 2, 1)), (13, 12));
    let mut said = text(25, 3, 2, None);
    let mut out = Vec::new();
    let progress =
        Progress { completed: 9, failures: [(Failure::Reset, 1)].into(), ..Progress::default() };
    said.progress(&mut out, &progress).unwrap();
    said.progress(&mut out, &progress).unwrap();
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 5);
}

#[test]
fn a_handshake_belongs_to_the_connect_time() {
    let both = joined(&flat(1, 1_000_000), &flat(1, 2_000_000));
    assert_eq!((both.min_ns, both.max_ns), (3_000_000, 3_000_000));
    assert!((both.mean_ns - 3e6).abs() < 3e3);
}

#[test]
fn units_follow_h2load() {
    assert_eq!(duration(0.000_999_9), "999us");
    assert_eq!(duration(0.001), "1.00ms");
    assert_eq!(duration(61.239), "61.24s");
    assert_eq!(bytes_with_unit(1_023), "1023");
    assert_eq!(bytes_with_unit(1_048_576), "1.00M");
    assert_eq!(bytes_with_unit(3 << 30), "3.00G");
}
