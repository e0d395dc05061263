//! The summary of a transfer, for people.

use std::fmt::Write as _;

use bolide_semantics::in_one_line;
use bolide_units::figures::{bytes, duration, memory};

use super::speed;
use crate::latency::Percentiles;
use crate::plan::Direction;
use crate::report::{Cost, Latency, Report};
use crate::verdict::Stalls;

/// Returns what was found, in lines.
pub fn summary(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = write(&mut text, report);
    text
}

fn write(text: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(text, "{}  {}{}", report.url, report.direction.name(), how(report))?;
    if report.volume.seconds > 0.0 && report.volume.bytes > 0 {
        writeln!(
            text,
            "  speed    {} of payload: {} in {:.3} s{}",
            speed(report.volume.goodput_bits_per_second),
            bytes(report.volume.bytes),
            report.volume.seconds,
            overhead(report),
        )?;
        writeln!(text, "  client   {}", cost(&report.cpu.client))?;
        match &report.cpu.server {
            Some(server) => writeln!(text, "  server   {}", cost(server))?,
            None => writeln!(text, "  server   not watched (--server-pid names a local one)")?,
        }
    }
    if let Some(tls) = &report.tls {
        let alpn = tls.alpn.map(|alpn| format!(", ALPN {alpn}")).unwrap_or_default();
        writeln!(text, "  TLS      {}, {}{alpn}", tls.version, tls.cipher_suite)?;
    }
    let transport = if report.protocol == "h3" { "QUIC" } else { "TCP" };
    writeln!(text, "  {transport:<8} {}", tcp(report))?;
    if let Some(told) = &report.told
        && let Some(speed) = told.goodput_bits_per_second.map(speed)
    {
        let again =
            told.retransmitted_bytes.map(|bytes| format!(", retransmitted {}", self::bytes(bytes)));
        writeln!(text, "  reported server counted {speed}{}", again.unwrap_or_default())?;
    }
    for line in stalls(&report.stalls) {
        writeln!(text, "  windows  {line}")?;
    }
    if let Some(latency) = &report.latency {
        probes(text, report, latency)?;
    }
    if let Some(error) = &report.end.error {
        return writeln!(text, "  failed   {}", in_one_line(error));
    }
    if report.end.interrupted {
        writeln!(text, "  stopped  early: figures up to then")?;
    }
    let limit = serde_json::to_value(report.verdict.limit).unwrap_or_default();
    writeln!(text, "  limit    {}", limit.as_str().unwrap_or_default())?;
    for evidence in &report.verdict.evidence {
        writeln!(text, "           {evidence}")?;
    }
    Ok(())
}

fn how(report: &Report) -> String {
    if report.protocol.is_empty() {
        return String::new();
    }
    let plural =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let connections = plural(report.connections, "connection");
    let streams = if report.streams > 1 {
        format!(" with {}", plural(report.streams, "stream"))
    } else {
        String::new()
    };
    format!(" over {}, {connections}{streams}", report.protocol)
}

/// Returns what framing and TLS add.
fn overhead(report: &Report) -> String {
    if report.volume.bytes == 0 || report.volume.wire_bytes < report.volume.bytes {
        return String::new();
    }
    let share =
        (report.volume.wire_bytes - report.volume.bytes) as f64 / report.volume.bytes as f64;
    let carried = if report.protocol == "h3" { "in datagrams" } else { "in TCP's streams" };
    format!(" ({} {carried}, {:+.2} %)", bytes(report.volume.wire_bytes), share * 100.0)
}

fn cost(cost: &Cost) -> String {
    let per_gib =
        cost.cpu_seconds_per_gib.map(|s| format!("{s:.3} CPU-s/GiB, ")).unwrap_or_default();
    format!(
        "{per_gib}{:.3} s of CPU, busiest thread {:.0} %, at most {}",
        cost.cpu_seconds,
        cost.busiest_thread * 100.0,
        memory(cost.peak_memory_bytes)
    )
}

fn tcp(report: &Report) -> String {
    let mut parts = Vec::new();
    match (&report.tcp.congestion_control, report.direction) {
        (Some(name), _) => parts.push(name.clone()),
        (None, Direction::Download) => parts.push("the server sends".to_owned()),
        (None, Direction::Upload) => {}
    }
    let us = |us: f64| duration((us * 1e3) as u64);
    if report.setup.connect_us > 0.0 {
        parts.push(format!("connected in {}", us(report.setup.connect_us)));
    }
    if let Some(handshake_us) = report.setup.handshake_us {
        let over = if report.protocol == "h3" { "QUIC and TLS" } else { "TLS" };
        parts.push(format!("{over} in {}", us(handshake_us)));
    }
    if let Some(again) = report.tcp.retransmits {
        let what = if report.protocol == "h3" { "packets lost" } else { "segments retransmitted" };
        parts.push(format!("{again} {what}"));
    }
    if let Some(count) = report.tcp.out_of_order {
        parts.push(format!("{count} segments received out of order"));
    }
    if parts.is_empty() { "no connection".to_owned() } else { parts.join(", ") }
}

/// Returns who waited on whose window, where one did for a millisecond at least.
fn stalls(stalls: &Stalls) -> Vec<String> {
    [
        ("we waited", "the server's streams", stalls.peer_stream_ns),
        ("we waited", "the server's connection", stalls.peer_connection_ns),
        ("the server waited", "our streams", stalls.own_stream_ns),
        ("the server waited", "our connection", stalls.own_connection_ns),
    ]
    .into_iter()
    .filter(|(_, _, ns)| *ns >= 1_000_000)
    .map(|(who, whose, ns)| format!("{who} {} for the window of {whose}", duration(ns)))
    .collect()
}

fn probes(text: &mut String, report: &Report, latency: &Latency) -> std::fmt::Result {
    writeln!(
        text,
        "  latency  {} probes per second, counted from when each was due",
        latency.rate
    )?;
    let without = |why: &'static str| why;
    let same = if matches!(report.protocol, "h1" | "h1s") {
        without("none: HTTP/1.1 can't interleave probes")
    } else {
        without("no response")
    };
    for (name, found, otherwise) in [
        ("idle", latency.idle, "no response"),
        ("same connection", latency.same_connection, same),
        ("separate connection", latency.separate_connection, "no response"),
        ("separate origin", latency.separate_origin, "not requested (--probe-origin)"),
    ] {
        let shown = found.as_ref().map_or_else(|| otherwise.to_owned(), percentiles);
        writeln!(text, "           {name:<20} {shown}")?;
    }
    if latency.lost > 0 {
        let (lost, were) = (latency.lost, if latency.lost == 1 { "probe" } else { "probes" });
        writeln!(text, "           {lost} {were} got no response")?;
    }
    Ok(())
}

fn percentiles(found: &Percentiles) -> String {
    let us = |us: f64| duration((us * 1e3) as u64);
    format!(
        "p50 {}  p95 {}  p99 {}  ({} probes)",
        us(found.p50_us),
        us(found.p95_us),
        us(found.p99_us),
        found.count
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{CpuCosts, End, TcpFacts, Volume};
    use crate::report::{Setup, TlsReport};
    use crate::verdict::{Limit, Verdict};

    fn report() -> Report {
        Report {
            url: "https://a/1000000".into(),
            protocol: "h2",
            direction: Direction::Download,
            streams: 2,
            connections: 1,
            stalls: Stalls { own_stream_ns: 5_000_000, ..Stalls::default() },
            verdict: Verdict { limit: Limit::Window, evidence: vec!["So it is.".into()] },
            series: Vec::new(),
            latency: Some(Latency { rate: 20.0, lost: 3, ..Latency::default() }),
            tls: Some(TlsReport {
                version: "TLSv1.3",
                cipher_suite: "TLS_AES_128_GCM_SHA256".into(),
                alpn: Some("h2"),
            }),
            setup: Setup { connect_us: 100.0, handshake_us: Some(1500.0) },
            told: None,
            volume: Volume {
                bytes: 1_000_000,
                seconds: 0.5,
                goodput_bits_per_second: 16e6,
                wire_bytes: 1_010_000,
            },
            tcp: TcpFacts { retransmits: None, congestion_control: None, out_of_order: Some(7) },
            cpu: CpuCosts {
                client: Cost {
                    cpu_seconds: 0.25,
                    cpu_seconds_per_gib: Some(1.5),
                    ..Cost::default()
                },
                server: None,
            },
            end: End { interrupted: false, error: None },
        }
    }

    #[test]
    fn the_summary_says_what_matters() {
        let text = summary(&report());
        for said in [
            "https://a/1000000  download over h2, 1 connection with 2 streams\n",
            "16.0 Mbit/s of payload: 1.00 MB in 0.500 s (1.01 MB in TCP's streams, +1.00 %)",
            "client   1.500 CPU-s/GiB, 0.250 s of CPU",
            "server   not watched",
            "TLS      TLSv1.3, TLS_AES_128_GCM_SHA256, ALPN h2",
            "the server sends, connected in 100 µs, TLS in 1.50 ms, 7 segments received out of order",
            "the server waited 5.00 ms for the window of our streams",
            "separate origin      not requested",
            "3 probes got no response",
            "limit    window\n           So it is.\n",
        ] {
            assert!(text.contains(said), "{said}\n{text}");
        }
    }

    #[test]
    fn a_failure_takes_the_place_of_the_verdict() {
        let text = summary(&Report {
            end: End { error: Some("it broke".into()), ..report().end },
            ..report()
        });
        assert!(text.contains("  failed   it broke\n") && !text.contains("limit"), "{text}");
    }

    #[test]
    fn what_a_server_says_is_no_order_to_the_terminal() {
        let error = Some("closed with 1011 \x1b[2J\nlimit \u{9b}31m\u{202e}".into());
        let text = summary(&Report { end: End { error, ..report().end }, ..report() });
        let line = "  failed   closed with 1011 \\u{1b}[2J\\u{a}limit \\u{9b}31m\\u{202e}\n";
        assert!(text.ends_with(line), "{text:?}");
    }

    #[test]
    fn what_was_ended_early_says_so_and_has_its_figures() {
        let text = summary(&Report { end: End { interrupted: true, ..report().end }, ..report() });
        assert!(text.contains("  stopped  early") && text.contains("16.0 Mbit/s"), "{text}");
    }

    #[test]
    fn the_json_has_the_keys_that_others_read() {
        let json = serde_json::to_value(report()).unwrap();
        for key in [
            "url",
            "protocol",
            "direction",
            "bytes",
            "seconds",
            "goodput_bits_per_second",
            "wire_bytes",
            "streams",
            "connections",
            "retransmits",
            "out_of_order",
            "congestion_control",
            "client",
            "server",
            "stalls",
            "verdict",
            "series",
            "latency",
            "interrupted",
            "error",
        ] {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert_eq!(json["direction"], "download");
        assert_eq!(json["client"]["cpu_seconds_per_gib"], 1.5);
        assert_eq!(json["latency"]["idle"], serde_json::Value::Null);
    }
}
