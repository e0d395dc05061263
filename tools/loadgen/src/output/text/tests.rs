//! The summary of made-up reports.

use bolide_probe::report::{QuicReport, TlsReport, Verdict};

use super::*;
use crate::fabricated::{OPEN_1000, flat, quiet, report};
use std::collections::BTreeMap;

#[test]
fn a_client_bound_run_says_so_first() {
    let mut capacity = quiet(Load::Closed);
    capacity.verdict = Verdict { bound: Bound::Client, evidence: vec!["Full.".into()] };
    let text = summary(&report(vec![capacity, quiet(OPEN_1000)]), &[]);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("CLIENT-BOUND in `measured`"), "{first}");
    assert!(first.contains("1,000 req/s is a lower bound"), "{first}");
    assert!(text.contains("req/s (a lower bound)"), "{text}");
    let fine = summary(&report(vec![quiet(Load::Closed)]), &[]);
    let first =
        "measured: 1,000 req/s; nothing was saturated.\n\nhttp://127.0.0.1:8080/ping: http/1.1\n";
    assert!(fine.starts_with(first), "{fine}");
    assert!(!fine.contains("lower bound"), "{fine}");
    assert!(fine.ends_with("unclear\n"), "nothing follows the verdict: {fine}");
}

#[test]
fn a_conclusion_says_the_latency_at_a_rate() {
    let mut met = quiet(OPEN_1000);
    met.verdict.bound = Bound::Rate;
    let mut missed = met.clone();
    missed.verdict.bound = Bound::Server;
    missed.counts.succeeded = 700;
    let text = summary(&report(vec![met, missed]), &[]);
    let lines: Vec<_> = text.lines().take(2).collect();
    let figures = "At 1,000 req/s: p50 1.00 ms, p95 1.00 ms, p99 1.00 ms";
    assert_eq!(lines[0], format!("{figures}; as requested."));
    let why = "700 req/s were served; the server was saturated.";
    assert_eq!(lines[1], format!("{figures}; {why}"));
}

#[test]
fn percentiles_are_shown_as_far_as_the_count_tells_them() {
    let line = |count| {
        let mut text = String::new();
        latency(&mut text, "latency", &flat(count, 1_000_000), "closed loop").unwrap();
        text
    };
    assert!(line(1).starts_with("  latency     mean 1.00 ms  p50 1.00 ms  max 1.00 ms"));
    assert!(line(99).contains("  p95 1.00 ms  max"), "{}", line(99));
    assert!(line(1000).contains("  p99.9 1.00 ms  max"), "{}", line(1000));
}

#[test]
fn a_search_is_a_table() {
    let mut held = quiet(OPEN_1000);
    held.verdict.bound = Bound::Rate;
    let mut slow = held.clone();
    slow.times.latency = flat(1000, 9_000_000);
    let mut report = report(vec![quiet(Load::Closed), held, slow]);
    report.knee =
        Some(KneeReport { limit_ns: 5_000_000, rate: Some(800.0), broken_at: Some(900.0) });
    let text = summary(&report, &[]);
    let found =
        "Knee: 800 req/s is the highest rate whose p99 stayed under 5.00 ms; 900 req/s did not.\n";
    assert!(text.starts_with(found), "{text}");
    let table: Vec<_> = text.lines().skip_while(|line| !line.contains("tried")).collect();
    assert_eq!(table.len(), 4, "{text}");
    let marks = [(1, "closed loop"), (2, "held"), (3, "too slow")];
    assert!(marks.iter().all(|(at, mark)| table[*at].ends_with(mark)), "{text}");
    assert!(table[3].contains("9.0"), "{text}");
}

#[test]
fn every_latency_names_its_model() {
    let mut open = quiet(OPEN_1000);
    open.times.lag = flat(5, 2_000_000);
    let text = summary(&report(vec![quiet(Load::Closed), open]), &[]);
    let labelled = |name: &str, label: &str| {
        text.lines().any(|line| line.trim_start().starts_with(name) && line.contains(label))
    };
    for line in text.lines().filter(|line| line.starts_with(' ') && line.contains(" p99 ")) {
        assert!(line.ends_with(']'), "{line}");
    }
    assert!(labelled("latency", "[closed loop, from the sending]"), "{text}");
    assert!(labelled("latency", "[open loop, from the intended time]"), "{text}");
    assert!(labelled("first byte", "[closed loop"), "{text}");
    assert!(labelled("lag", "[sent after the intended time]"), "{text}");
    assert!(!text.contains("pacing"), "what was not measured is not shown: {text}");
}

#[test]
fn several_requests_have_a_line_each() {
    let mut phase = quiet(Load::Closed);
    let request = RequestReport {
        name: None,
        method: "GET".to_owned(),
        target: "/a".to_owned(),
        completed: 1000,
        failed: 0,
        latency: flat(1000, 2_000_000),
    };
    let long =
        RequestReport { target: format!("/{}", "\u{e9}".repeat(90)), failed: 3, ..request.clone() };
    phase.kinds.requests = vec![request, long];
    let text = summary(&report(vec![phase]), &[]);
    assert!(text.contains("  by request  GET /a: 1,000, p50 2.00 ms, p99 2.00 ms\n"), "{text}");
    let cut = format!("              GET /{}\u{2026}: 1,000, 3 failed, p50", "\u{e9}".repeat(35));
    assert!(text.contains(&cut), "{text}");
}

#[test]
fn streams_of_events_have_three_lines() {
    let mut open = quiet(OPEN_1000);
    open.kinds.events = Some(EventsReport {
        events: 12_000,
        rate: 12_000.0,
        streams: 1000,
        events_per_stream: 12.0,
        stalls: 1,
        stall_ns: 1_000_000_000,
        tokens: Some(24_000),
        token_rate: Some(24_000.0),
        grpc_statuses: None,
        first: flat(1000, 5_000_000),
        gap: flat(11_000, 2_000_000),
    });
    let text = summary(&report(vec![open]), &[]);
    for line in [
        "events      12,000 (12,000 per second), 12.0 per stream, 1 gap above 1.00 s, 24,000 tokens (24,000 per second)",
        "first event mean 5.00 ms  p50 5.00 ms",
        "event gap   mean 2.00 ms  p50 2.00 ms",
        "[open loop, from the intended time]",
        "[between two of a stream]",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn websockets_have_messages_and_replies() {
    let mut phase = quiet(OPEN_1000);
    phase.statuses.clear();
    let (upgrade, closes) = (flat(10, 2_000_000), BTreeMap::from([(1001, 2), (1011, 1)]));
    let websocket = WebSocketReport { upgrade, compressed: 10, pushed: 3, closes, one_way: false };
    phase.kinds.websocket = Some(websocket.clone());
    let mut sent = phase.clone();
    sent.kinds.websocket = Some(WebSocketReport { one_way: true, ..websocket });
    let text = summary(&report(vec![phase, sent]), &[]);
    for line in [
        "At 1,000 messages/s: p50 1.00 ms",
        "  rate        1,000 messages/s of 1,000 requested\n",
        "  replies     1,000, all as expected",
        "  messages    1,000, all as expected",
        "[WebSocket, 10 with compression]",
        "  pushed      3 messages came that were no replies\n",
        "  closed      2 with code 1001, 1 with code 1011\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("req/s"), "{text}");
}

#[test]
fn quic_says_what_was_lost_and_how_far_the_server_is() {
    let mut phase = quiet(Load::Closed);
    phase.times.connect = flat(0, 0);
    phase.times.handshake = flat(10, 2_000_000);
    let rtt = flat(10, 300_000);
    let (packets_sent, packets_lost) = (12_345, 2);
    phase.quic = Some(QuicReport { packets_sent, packets_lost, rtt, ..QuicReport::default() });
    let mut report = report(vec![phase]);
    (report.url, report.protocol) = ("https://h/ping".into(), "h3".into());
    let (version, cipher_suite) = ("TLSv1.3".into(), "unknown".into());
    report.tls = Some(TlsReport { version, cipher_suite, group: None });
    let text = summary(&report, &[]);
    for line in [
        "https://h/ping: h3 (TLSv1.3)\n",
        "[QUIC and TLS]",
        "  network     2 packets lost of 12,345 sent, smoothed RTT 300 µs (mean), 300 µs (max)\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("[TCP]"), "{text}");
}

#[test]
fn failures_ends_and_conditions_are_told() {
    let mut phase = quiet(Load::Closed);
    phase.counts.failed = 3;
    phase.counts.succeeded = 997;
    phase.failures = BTreeMap::from([(Failure::Timeout, 2), (Failure::Body, 1)]);
    phase.stalls.stream_window_ns = 5_000_000;
    phase.traffic.retransmits = 1;
    let mut report = report(vec![phase]);
    report.interrupted = true;
    report.server_died_after_ns = Some(3_200_000_000);
    let broken = ["errors>0 (3)".to_owned()];
    let text = summary(&report, &broken);
    for line in [
        "997 as expected, 3 failed (2 timeout, 1 wrong body); 10 bodies compared",
        "5.00 ms for stream windows",
        "1 segment retransmitted",
        "The server went away 3.20 s after the start.",
        "Interrupted",
        "Broken: errors>0 (3)",
        "3 requests failed.",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
