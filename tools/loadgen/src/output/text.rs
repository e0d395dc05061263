//! The summary that people read.

mod parts;

use std::fmt::Write;

use bolide_probe::plan::{Arrivals, Load};
use bolide_probe::report::{
    Bound, EventsReport, Failure, KneeReport, Latencies, PhaseReport, ProcessCost, QuicReport,
    Report, RequestReport, TlsReport, WebSocketReport,
};
use bolide_units::figures::{bytes, duration, grouped, memory, rate};
pub(crate) use parts::lost_part;

use crate::schedule::succeeded_rate;

/// The whole summary: what was found, then how. `broken` are the conditions of `--fail-if` that held, each with its
/// figure.
///
/// When the generator was the bottleneck of any phase, the first line says so.
pub fn summary(report: &Report, broken: &[String]) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_summary(&mut text, report, broken);
    text
}

fn write_summary(text: &mut String, report: &Report, broken: &[String]) -> std::fmt::Result {
    write_conclusion(text, report, broken)?;
    let protocol = if report.protocol.is_empty() { "nothing spoken" } else { &report.protocol };
    let tls = report.tls.as_ref().map_or_else(String::new, |tls| format!(" ({})", tls_agreed(tls)));
    writeln!(text, "\n{}: {protocol}{tls}", report.url)?;
    writeln!(
        text,
        "{}, {} in flight on each at most, {}",
        counted(report.connections as u64, "connection"),
        grouped(report.depth as u64),
        counted(report.threads as u64, "thread")
    )?;
    parts::write_parts(text, report)?;
    if report.knee.is_some() {
        writeln!(text)?;
        return write_search(text, report);
    }
    for phase in &report.phases {
        writeln!(text)?;
        write_phase(text, phase)?;
    }
    Ok(())
}

/// The version of TLS, and the cipher suite where that is known.
fn tls_agreed(tls: &TlsReport) -> String {
    match tls.cipher_suite.as_str() {
        "unknown" => tls.version.clone(),
        suite => format!("{}, {suite}", tls.version),
    }
}

/// Returns what was found, in sentences.
fn write_conclusion(text: &mut String, report: &Report, broken: &[String]) -> std::fmt::Result {
    parts::write_lost(text, report)?;
    if let Some(line) = client_bound(report) {
        writeln!(text, "{line}")?;
    }
    match &report.knee {
        Some(knee) => writeln!(text, "{}", knee_found(knee))?,
        None => {
            for phase in &report.phases {
                writeln!(text, "{}", phase_found(phase))?;
            }
        }
    }
    if let Some(after) = report.server_died_after_ns {
        writeln!(text, "The server went away {} after the start.", duration(after))?;
    }
    if report.interrupted {
        writeln!(text, "Interrupted: these are the figures up to then.")?;
    }
    for condition in broken {
        writeln!(text, "Broken: {condition}")?;
    }
    let failed: u64 = report.phases.iter().map(|phase| phase.counts.failed).sum();
    if failed > 0 {
        writeln!(text, "{} failed.", counted(failed, "request"))?;
    }
    Ok(())
}

fn knee_found(knee: &KneeReport) -> String {
    let limit = duration(knee.limit_ns);
    let found = match knee.rate {
        Some(held) => {
            format!("{} req/s is the highest rate whose p99 stayed under {limit}", rate(held))
        }
        None => format!("no rate kept its p99 under {limit}"),
    };
    match knee.broken_at {
        Some(broken_at) => format!("Knee: {found}; {} req/s did not.", rate(broken_at)),
        None => format!("Knee: {found}; no higher one was tried."),
    }
}

/// Returns what a rate is of.
fn unit(report: &PhaseReport) -> &'static str {
    let is_grpc = report.kinds.events.as_ref().is_some_and(|events| events.grpc_statuses.is_some());
    match &report.kinds.websocket {
        Some(_) => "messages/s",
        None if is_grpc => "calls/s",
        None => "req/s",
    }
}

/// One sentence: the rate or the latency that a phase was about, and what limited it.
fn phase_found(report: &PhaseReport) -> String {
    let (served, unit) = (rate(succeeded_rate(report)), unit(report));
    let limited = match report.verdict.bound {
        Bound::Server => "the server was saturated",
        Bound::Client => "the generator was saturated: a lower bound",
        Bound::Network => "the network was saturated",
        Bound::Window => "flow-control windows limited it",
        Bound::Rate => "as requested",
        Bound::Unclear => "nothing was saturated",
    };
    match &report.phase.load {
        Load::Closed => format!("{}: {served} {unit}; {limited}.", report.phase.name),
        Load::Connect => {
            format!("{}: {served} new connections per second; {limited}.", report.phase.name)
        }
        Load::Open { rate: asked, .. } => {
            let figures = ["p50", "p95", "p99"].map(|name| {
                let ns = report.times.latency.percentiles_ns.get(name).copied().unwrap_or(0);
                format!("{name} {}", duration(ns))
            });
            let (asked, of) =
                (rate(*asked), if report.kinds.users.is_some() { "users/s" } else { unit });
            let served = if report.verdict.bound == Bound::Rate {
                limited.to_owned()
            } else {
                format!("{served} {unit} were served; {limited}")
            };
            format!("At {asked} {of}: {}; {served}.", figures.join(", "))
        }
    }
}

/// A search for the knee: a line for each rate that was tried.
fn write_search(text: &mut String, report: &Report) -> std::fmt::Result {
    let limit_ns = report.knee.map_or(u64::MAX, |knee| knee.limit_ns);
    let head = ["rate tried", "served", "failed", "p50", "p99", "p99.9"].map(str::to_owned);
    line_of_search(text, &head, "")?;
    for phase in &report.phases {
        let at = |name: &str| phase.times.latency.percentiles_ns.get(name).copied().unwrap_or(0);
        let tried = match &phase.phase.load {
            Load::Open { rate: tried, .. } => rate(*tried),
            Load::Closed | Load::Connect => phase.phase.name.clone(),
        };
        let mark = match &phase.phase.load {
            Load::Closed | Load::Connect => "closed loop",
            Load::Open { .. } if at("p99") > limit_ns => "too slow",
            Load::Open { .. } if phase.verdict.bound == Bound::Rate => "held",
            Load::Open { .. } => "rate not met",
        };
        let cells = [
            tried,
            rate(succeeded_rate(phase)),
            grouped(phase.counts.failed),
            duration(at("p50")),
            duration(at("p99")),
            duration(at("p99.9")),
        ];
        line_of_search(text, &cells, mark)?;
    }
    Ok(())
}

fn line_of_search(text: &mut String, cells: &[String; 6], mark: &str) -> std::fmt::Result {
    let cells: String = cells.iter().map(|cell| format!("{cell:>13}")).collect();
    writeln!(text, "{}", format!("{cells}  {mark}").trim_end())
}

/// The line that comes first when a rate is only a lower bound.
pub fn client_bound(report: &Report) -> Option<String> {
    let bound: Vec<&PhaseReport> =
        report.phases.iter().filter(|phase| phase.verdict.bound == Bound::Client).collect();
    let fastest = bound.iter().map(|phase| succeeded_rate(phase)).fold(0.0, f64::max);
    let names: Vec<String> = bound.iter().map(|phase| format!("`{}`", phase.phase.name)).collect();
    (!bound.is_empty()).then(|| {
        format!(
            "CLIENT-BOUND in {}: the generator was the bottleneck, so {} req/s is a lower bound of \
             what the server can do.",
            names.join(", "),
            rate(fastest)
        )
    })
}

/// The model, for every figure that depends on it.
pub fn model(load: &Load) -> &'static str {
    match load {
        Load::Closed => "closed loop",
        Load::Open { arrivals: Arrivals::Constant, .. } => "open loop",
        Load::Open { arrivals: Arrivals::Poisson, .. } => "open loop, Poisson",
        Load::Connect => "new connections",
    }
}

/// The bound in words.
pub fn bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Server => "server-bound",
        Bound::Client => "client-bound",
        Bound::Network => "network-bound",
        Bound::Window => "window-bound",
        Bound::Rate => "rate-limited, as planned",
        Bound::Unclear => "unclear",
    }
}

/// Returns what a failure is called.
pub fn failure(kind: Failure) -> &'static str {
    match kind {
        Failure::Connect => "connect",
        Failure::Tls => "TLS",
        Failure::Timeout => "timeout",
        Failure::Reset => "reset",
        Failure::Goaway => "GOAWAY",
        Failure::Protocol => "protocol error",
        Failure::Status => "wrong status",
        Failure::Body => "wrong body",
        Failure::Fields => "wrong header fields",
        Failure::Trailers => "wrong trailers",
        Failure::Events => "failed stream of events",
        Failure::Grpc => "failed call",
        Failure::Upgrade => "refused WebSocket connection",
        Failure::Closed => "closed by the server",
        Failure::Capture => "lacks what the next steps need",
        Failure::Redirect => "redirect elsewhere",
    }
}

fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(count))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Returns what the phase was, and how long.
fn write_duration(text: &mut String, report: &PhaseReport) -> std::fmt::Result {
    let model = model(&report.phase.load);
    write!(text, "{}: {model}, {}", report.phase.name, duration(report.elapsed_ns))?;
    if report.phase.warm_up.is_zero() {
        writeln!(text)
    } else {
        let warm_up = u64::try_from(report.phase.warm_up.as_nanos()).unwrap_or(u64::MAX);
        writeln!(text, " after {} of warm-up", duration(warm_up))
    }
}

/// Responses per second, and how many were asked for.
fn write_rate(text: &mut String, report: &PhaseReport) -> std::fmt::Result {
    let asked = match &report.phase.load {
        Load::Open { rate: asked, .. } if report.kinds.users.is_some() => {
            format!(" by {} users/s", rate(*asked))
        }
        Load::Open { rate: asked, .. } => format!(" of {} requested", rate(*asked)),
        Load::Closed | Load::Connect => String::new(),
    };
    let mark = if report.verdict.bound == Bound::Client { " (a lower bound)" } else { "" };
    let (served, unit) = (rate(succeeded_rate(report)), unit(report));
    row(text, "rate", &format!("{served} {unit}{asked}{mark}"))
}

/// How many users did all their steps, and how long they took.
fn write_users(text: &mut String, report: &PhaseReport) -> std::fmt::Result {
    let Some(users) = &report.kinds.users else { return Ok(()) };
    let gave_up = match users.gave_up {
        0 => String::new(),
        count => format!(", {} gave up", grouped(count)),
    };
    row(text, "users", &format!("{} did all their steps{gave_up}", grouped(users.finished)))?;
    latency(text, "all steps", &users.duration, "of a user, with pauses")
}

fn write_phase(text: &mut String, report: &PhaseReport) -> std::fmt::Result {
    let load = &report.phase.load;
    let (counts, model) = (&report.counts, model(load));
    write_duration(text, report)?;
    write_rate(text, report)?;
    let answered = match &report.kinds.websocket {
        None => "responses",
        Some(websocket) if websocket.one_way => "messages",
        Some(_) => "replies",
    };
    row(text, answered, &responses(report))?;
    if let Some(what) = &report.first_loss {
        row(text, "", &format!("The first connection that was lost: {what}."))?;
    }
    if !report.statuses.is_empty() {
        let statuses: Vec<String> = report
            .statuses
            .iter()
            .map(|(status, count)| format!("{status}: {}", grouped(*count)))
            .collect();
        row(text, "statuses", &statuses.join(", "))?;
    }
    let from = match load {
        _ if report.kinds.users.is_some() => "from when the user had it due",
        Load::Open { .. } => "from the intended time",
        Load::Closed | Load::Connect => "from the sending",
    };
    latency(text, "latency", &report.times.latency, &format!("{model}, {from}"))?;
    latency(text, "first byte", &report.times.first_byte, &format!("{model}, {from}"))?;
    if let Some(events) = &report.kinds.events {
        write_events(text, events, &format!("{model}, {from}"))?;
    }
    write_users(text, report)?;
    write_requests(text, &report.kinds.requests)?;
    latency(text, "connect", &report.times.connect, "TCP")?;
    write_handshakes(text, report)?;
    if let Some(websocket) = &report.kinds.websocket {
        write_websocket(text, websocket)?;
    }
    latency(text, "lag", &report.times.lag, "sent after the intended time")?;
    latency(text, "pacing", &report.times.pacing, "of that, the generator's own clock")?;
    traffic(text, report)?;
    stalls(text, report)?;
    row(text, "generator", &cost(&report.cpu.generator))?;
    if let Some(server) = &report.cpu.server {
        row(text, "server", &cost(server))?;
    }
    if let Some(residual) = report.course.littles_law_residual {
        row(text, "consistency", &format!("{} off Little's law", percent(residual.abs())))?;
    }
    parts::write_shares(text, report)?;
    row(text, "verdict", bound(report.verdict.bound))?;
    for evidence in &report.verdict.evidence {
        row(text, "", evidence)?;
    }
    if matches!(load, Load::Open { .. }) && counts.due > counts.started {
        let late = counted(counts.due - counts.started, "request");
        row(text, "", &format!("{late} due and never sent: no connection was free."))?;
    }
    Ok(())
}

fn row(text: &mut String, name: &str, content: &str) -> std::fmt::Result {
    writeln!(text, "  {name:<12}{content}")
}

fn responses(report: &PhaseReport) -> String {
    let counts = &report.counts;
    let mut said = if counts.failed == 0 {
        format!("{}, all as expected", grouped(counts.completed))
    } else {
        let kinds: Vec<String> = report
            .failures
            .iter()
            .map(|(kind, count)| format!("{} {}", grouped(*count), failure(*kind)))
            .collect();
        format!(
            "{} as expected, {} failed ({})",
            grouped(counts.succeeded),
            grouped(counts.failed),
            kinds.join(", ")
        )
    };
    if counts.compared > 0 {
        let _ = write!(said, "; {} bodies compared", grouped(counts.compared));
    }
    said
}

/// Two lines: percentiles, and what they are of.
fn latency(text: &mut String, name: &str, all: &Latencies, model: &str) -> std::fmt::Result {
    if all.count == 0 {
        return Ok(());
    }
    let mut figures = vec![format!("mean {}", duration(all.mean_ns as u64))];
    // One value alone says nothing of the slowest in a thousand.
    let percentiles = [("p50", 1), ("p95", 20), ("p99", 100), ("p99.9", 1000), ("p99.99", 10_000)];
    for (percentile, _) in percentiles.into_iter().filter(|(_, least)| all.count >= *least) {
        if let Some(ns) = all.percentiles_ns.get(percentile) {
            figures.push(format!("{percentile} {}", duration(*ns)));
        }
    }
    figures.push(format!("max {}", duration(all.max_ns)));
    row(text, name, &format!("{}  [{model}]", figures.join("  ")))
}

/// A line for each request of several.
fn write_requests(text: &mut String, requests: &[RequestReport]) -> std::fmt::Result {
    /// Longer names are cut.
    const NAME_CHARS: usize = 40;

    for (index, request) in requests.iter().enumerate() {
        let target = || format!("{} {}", request.method, request.target);
        let name = request.name.clone().unwrap_or_else(target);
        let name = match name.char_indices().nth(NAME_CHARS) {
            None => name,
            Some((end, _)) => format!("{}…", &name[..end]),
        };
        let at = |name: &str| request.latency.percentiles_ns.get(name).copied().unwrap_or(0);
        let failed = match request.failed {
            0 => String::new(),
            failed => format!(", {} failed", grouped(failed)),
        };
        let content = format!(
            "{name}: {}{failed}, p50 {}, p99 {}",
            grouped(request.completed),
            duration(at("p50")),
            duration(at("p99"))
        );
        let title = if request.name.is_some() { "by step" } else { "by request" };
        row(text, if index == 0 { title } else { "" }, &content)?;
    }
    Ok(())
}

fn write_events(text: &mut String, events: &EventsReport, model: &str) -> std::fmt::Result {
    let names = match &events.grpc_statuses {
        None => ["events", "first event", "event gap"],
        Some(statuses) => {
            let counts = statuses.iter();
            let counts: Vec<String> =
                counts.map(|(status, count)| format!("{status}: {}", grouped(*count))).collect();
            row(text, "grpc-status", &counts.join(", "))?;
            // Unary calls have nothing to say beyond their latency.
            if events.gap.count == 0 {
                return Ok(());
            }
            ["messages", "first one", "message gap"]
        }
    };
    let stalls = match events.stalls {
        0 => format!("no gap above {}", duration(events.stall_ns)),
        count => format!("{} above {}", counted(count, "gap"), duration(events.stall_ns)),
    };
    let tokens = match (events.tokens, events.token_rate) {
        (Some(tokens), Some(per_s)) => {
            format!(", {} tokens ({} per second)", grouped(tokens), rate(per_s))
        }
        _ => String::new(),
    };
    let said = format!(
        "{} ({} per second), {:.1} per stream, {stalls}{tokens}",
        grouped(events.events),
        rate(events.rate),
        events.events_per_stream
    );
    row(text, names[0], &said)?;
    latency(text, names[1], &events.first, model)?;
    latency(text, names[2], &events.gap, "between two of a stream")
}

/// TLS's handshakes, or QUIC's.
fn write_handshakes(text: &mut String, report: &PhaseReport) -> std::fmt::Result {
    let over = if report.quic.is_some() { "QUIC and TLS" } else { "TLS" };
    let resumed = match report.handshakes.resumed_count {
        0 => over.to_owned(),
        count => format!("{over}, {} resumed", grouped(count)),
    };
    latency(text, "handshake", &report.times.handshake, &resumed)?;
    if report.handshakes.early_count > 0 {
        let early = grouped(report.handshakes.early_count);
        row(
            text,
            "early data",
            &format!("sent on {early} connections, before their handshakes were complete"),
        )?;
    }
    Ok(())
}

/// Returns what is known of WebSocket connections besides their messages.
fn write_websocket(text: &mut String, websocket: &WebSocketReport) -> std::fmt::Result {
    let compressed = match websocket.compressed {
        0 => "WebSocket".to_owned(),
        count => format!("WebSocket, {} with compression", grouped(count)),
    };
    latency(text, "upgrade", &websocket.upgrade, &compressed)?;
    if websocket.pushed > 0 {
        let pushed = counted(websocket.pushed, "message");
        row(text, "pushed", &format!("{pushed} came that were no replies"))?;
    }
    let codes = websocket.closes.iter();
    let codes: Vec<String> =
        codes.map(|(code, count)| format!("{} with code {code}", grouped(*count))).collect();
    if codes.is_empty() { Ok(()) } else { row(text, "closed", &codes.join(", ")) }
}

fn traffic(text: &mut String, report: &PhaseReport) -> std::fmt::Result {
    let traffic = &report.traffic;
    row(
        text,
        "traffic",
        &format!(
            "{} in, {} out; of that bodies {} in, {} out",
            bytes(traffic.wire_received_bytes),
            bytes(traffic.wire_sent_bytes),
            bytes(traffic.payload_received_bytes),
            bytes(traffic.payload_sent_bytes)
        ),
    )?;
    if traffic.head_decoded_bytes > traffic.head_wire_bytes {
        let saved = 1.0 - traffic.head_wire_bytes as f64 / traffic.head_decoded_bytes as f64;
        let heads = bytes(traffic.head_wire_bytes);
        row(text, "heads", &format!("{heads} in, compression saved {}", percent(saved)))?;
    }
    if traffic.retransmits > 0 {
        row(
            text,
            "network",
            &format!("{} retransmitted", counted(traffic.retransmits, "segment")),
        )?;
    }
    report.quic.as_ref().map_or(Ok(()), |quic| write_quic(text, quic))
}

/// Returns what QUIC counted, where TCP has its segments.
fn write_quic(text: &mut String, quic: &QuicReport) -> std::fmt::Result {
    let lost = counted(quic.packets_lost, "packet");
    let mut said = format!("{lost} lost of {} sent", grouped(quic.packets_sent));
    if quic.rtt.count > 0 {
        let mean = duration(quic.rtt.mean_ns as u64);
        let _ = write!(said, ", smoothed RTT {mean} (mean), {} (max)", duration(quic.rtt.max_ns));
    }
    row(text, "network", &said)
}

fn stalls(text: &mut String, report: &PhaseReport) -> std::fmt::Result {
    let stalls = &report.stalls;
    let mut said = Vec::new();
    for (ns, what) in [
        (stalls.stream_window_ns, "for stream windows"),
        (stalls.connection_window_ns, "for connection windows"),
    ] {
        if ns > 0 {
            said.push(format!("{} {what}", duration(ns)));
        }
    }
    for (times, what) in [
        (stalls.socket_full, "sockets saturated"),
        (stalls.receive_window_used_up, "receive windows used up"),
    ] {
        if times > 0 {
            said.push(format!("{what} {}", counted(times, "time")));
        }
    }
    if said.is_empty() { Ok(()) } else { row(text, "stalls", &said.join(", ")) }
}

fn cost(cost: &ProcessCost) -> String {
    let each = cost.cpu_per_request_ns.map_or_else(String::new, |ns| {
        format!("{} of CPU per request, ", duration(ns.max(0.0) as u64))
    });
    format!(
        "{each}busiest thread {} busy, {} of memory at its peak",
        percent(cost.busiest_thread.min(1.0)),
        memory(cost.peak_memory_bytes)
    )
}

#[cfg(test)]
mod tests;
