//! Verdict about the bottleneck: from the figures of a phase to a verdict with its evidence.

mod facts;
mod parts;
#[cfg(test)]
mod tests;

use bolide_probe::plan::Load;
use bolide_probe::report::{Bound, Counts, PhaseReport, Sample, Verdict};
use facts::{Facts, duration, percent};

/// A thread or a set of cores is full from this share of its time on. What lacks to 1 is lost to
/// the other threads of the machine and to the edges of the phase.
pub const FULL: f64 = 0.95;

/// A side is idle below this share: it can't be what limits, whatever else is not known.
pub const IDLE: f64 = 0.6;

/// The rate asked for counts as met from this share on: a phase of a second loses the responses of
/// its last milliseconds.
pub const RATE_MET: f64 = 0.99;

/// A generator whose clock is late by more than this in one of a hundred requests says so, in nanoseconds: ten times
/// the pacing error that an idle core shows.
pub const PACING_LATE_NS: u64 = 1_000_000;

/// Requests that wait this long for a free connection, in nanoseconds, wait for the server and not
/// for the clock.
pub const QUEUED_NS: u64 = 1_000_000;

/// Windows limit when requests spend at least this share of their time waiting for one.
pub const STALLED_SHARE: f64 = 0.3;

/// Or when the server used our receive window up this often per response.
pub const WINDOWS_USED_UP_PER_RESPONSE: f64 = 0.5;

/// Sockets limit when they were full this often per request.
pub const SOCKETS_FULL_PER_REQUEST: f64 = 0.1;

/// Of a hundred segments of 1448 bytes, or packets of QUIC, so many sent again or lost tell of a path that loses.
pub const RETRANSMITTED_SHARE: f64 = 0.01;

/// A path whose connections take this long to establish, in nanoseconds, is longer than loopback
/// and a local network, and its round trips may be what takes the time.
pub const LONG_PATH_NS: u64 = 500_000;

/// Exchanges that move at least this many bytes each are limited by what carries them, when no core
/// is busy: 64 KiB are more than a first flight of TCP and more than most windows' first size.
pub const LARGE_EXCHANGE_BYTES: f64 = 65_536.0;

/// An idle server whose first byte takes so much longer than a round trip, in nanoseconds, waits
/// for something of its own.
pub const SERVER_WAITS_NS: u64 = 1_000_000;

/// Says who was the bottleneck of a phase. `online_cores` is how many cores the machine has, if that
/// is known. The verdict that stands in `report` is not looked at.
pub fn judge(report: &PhaseReport, online_cores: Option<usize>) -> Verdict {
    let facts = Facts::of(report);
    if report.counts.completed == 0 {
        return unclear("No request got a response.");
    }
    if facts.failed_share > 0.5 {
        let share = percent(facts.failed_share);
        return unclear(format!("{share} of the requests failed, so the limit is uncertain."));
    }
    // Parts have cores of their own.
    let online_cores = online_cores.filter(|_| report.course.parts.is_empty());
    let verdict = match report.phase.load {
        Load::Open { rate, .. } => judge_open(report, &facts, rate, online_cores),
        // Users pause: what they do is a plan, too, unless a side was full.
        Load::Closed if report.kinds.users.is_some() => busy(report, &facts, online_cores)
            .unwrap_or_else(|| judge_open(report, &facts, 0.0, online_cores)),
        Load::Closed | Load::Connect => bottleneck(report, &facts, online_cores),
    };
    parts::with_parts(report, verdict)
}

/// With a plan, the question comes first whether it was kept.
fn judge_open(
    report: &PhaseReport,
    facts: &Facts,
    rate: f64,
    online_cores: Option<usize>,
) -> Verdict {
    let Counts { completed, due, .. } = report.counts;
    let (asked, said) = if report.kinds.users.is_some() {
        let share = percent(completed as f64 / due.max(1) as f64);
        (
            due as f64,
            format!("{completed} of {due} requests that users had due were served ({share})."),
        )
    } else {
        let share = percent(facts.rate / rate);
        let said = format!("{:.0} of {rate:.0} req/s were served ({share}).", facts.rate);
        (rate * report.elapsed_ns as f64 / 1e9, said)
    };
    let pacing_p99 = facts::p99(&report.times.pacing);
    let is_late = pacing_p99 > PACING_LATE_NS;
    // The last request may be in flight for no more reason than where the phase was cut.
    let is_complete = (completed + 1) as f64 >= RATE_MET * asked;
    let in_flight = steadily_in_flight(report);
    let is_met = is_complete || (completed + in_flight) as f64 >= RATE_MET * asked;
    let lateness = is_late.then(|| {
        let late = duration(pacing_p99);
        format!("The generator's own clock was late by {late} (p99), which latencies include.")
    });
    if is_met {
        let cut = (!is_complete).then(|| {
            let median = duration(facts::median(&report.times.latency));
            format!(
                "{in_flight} more were in flight at the end, as many as all the time: responses take {median} (median)."
            )
        });
        let said = std::iter::once(said).chain(cut);
        let evidence = said.chain(queued(report)).chain(lateness).collect();
        return Verdict { bound: Bound::Rate, evidence };
    }
    // Most of what requests waited for before they left was the generator itself, not a free connection.
    if let Some(lateness) = lateness.clone()
        && 2 * pacing_p99 >= facts::p99(&report.times.lag)
    {
        return Verdict {
            bound: Bound::Client,
            evidence: vec![said, lateness, facts.generator_said()],
        };
    }
    let mut verdict = bottleneck(report, facts, online_cores);
    verdict.evidence.insert(0, said);
    verdict.evidence.extend(queued(report).into_iter().chain(lateness));
    verdict
}

/// Requests that were in flight at the end of a phase, if they were no more than in its second quarter: the server keeps up with
/// what comes, and long responses are cut off by the end. Otherwise 0.
fn steadily_in_flight(report: &PhaseReport) -> u64 {
    let samples = &report.course.series;
    let quarter = samples.len() / 4;
    if quarter < 2 {
        return 0;
    }
    let mean = |samples: &[Sample]| {
        samples.iter().map(|sample| sample.in_flight as f64).sum::<f64>() / samples.len() as f64
    };
    let before = mean(&samples[quarter..2 * quarter]);
    let end = mean(&samples[samples.len() - quarter..]);
    if end <= 1.05 * before + 1.0 { end.round() as u64 } else { 0 }
}

fn queued(report: &PhaseReport) -> Option<String> {
    let lag = facts::p99(&report.times.lag);
    (lag > QUEUED_NS).then(|| {
        format!("Requests waited for a free connection: p99 {}; raise -c or -m.", duration(lag))
    })
}

/// The first thing that was full, from the surest sign to the weakest.
fn bottleneck(report: &PhaseReport, facts: &Facts, online_cores: Option<usize>) -> Verdict {
    busy(report, facts, online_cores)
        .or_else(|| windows(report, facts))
        .or_else(|| path(report, facts))
        .or_else(|| waiting(report, facts))
        .unwrap_or_else(|| nothing(report, facts))
}

/// A side whose threads or cores were full.
fn busy(report: &PhaseReport, facts: &Facts, online_cores: Option<usize>) -> Option<Verdict> {
    // An open loop may spin while it waits for the next intended time: its CPU says nothing, its
    // pacing does.
    let spins = matches!(report.phase.load, Load::Open { .. }) || report.kinds.users.is_some();
    let client_is_full = !spins && facts.generator_fullness >= FULL;
    let server_is_full = facts.server_fullness.is_some_and(|fullness| fullness >= FULL);
    let both = || facts.generator_said_and_server();
    if client_is_full && !server_is_full {
        return Some(Verdict { bound: Bound::Client, evidence: both() });
    }
    if server_is_full && !client_is_full {
        return Some(Verdict { bound: Bound::Server, evidence: both() });
    }
    if client_is_full {
        let mut evidence = both();
        evidence.push("Both sides were saturated, so the server might do more.".into());
        return Some(Verdict { bound: Bound::Client, evidence });
    }
    // Two programs that compete for the same cores fill none of their threads.
    let cores = online_cores? as f64;
    let used = facts.generator_cores + facts.server_cores?;
    (used >= FULL * cores && !spins).then(|| {
        let mut evidence = both();
        evidence.push(format!(
            "Together they used {used:.2} of the machine's {cores:.0} cores: the server might do \
             more on separate cores."
        ));
        Verdict { bound: Bound::Client, evidence }
    })
}

/// Flow-control windows, ours or the server's.
fn windows(report: &PhaseReport, facts: &Facts) -> Option<Verdict> {
    let stalls = &report.stalls;
    let mut evidence = Vec::new();
    for (which, ns, out_of) in [
        ("stream", stalls.stream_window_ns, facts.in_flight_ns),
        ("connection", stalls.connection_window_ns, facts.connections_ns),
    ] {
        let share = if out_of > 0.0 { ns as f64 / out_of } else { 0.0 };
        if share >= STALLED_SHARE {
            evidence.push(format!(
                "Uploads waited for the server's {which} windows {} of the time.",
                percent(share.min(1.0))
            ));
        }
    }
    let used_up = stalls.receive_window_used_up as f64 / report.counts.completed as f64;
    if used_up >= WINDOWS_USED_UP_PER_RESPONSE {
        evidence.push(format!(
            "The server used up the generator's receive windows {used_up:.1} times per response; raise \
             --stream-window and --connection-window."
        ));
    }
    facts.confirmed(Bound::Window, evidence)
}

/// The path between the two.
fn path(report: &PhaseReport, facts: &Facts) -> Option<Verdict> {
    let mut evidence = Vec::new();
    let started = report.counts.started.max(1) as f64;
    let full = report.stalls.socket_full as f64 / started;
    if full >= SOCKETS_FULL_PER_REQUEST {
        evidence
            .push(format!("The generator's sockets were saturated {full:.1} times per request."));
    }
    let segments = (report.traffic.wire_sent_bytes as f64 / 1448.0).max(started);
    let again = report.traffic.retransmits as f64 / segments;
    if again >= RETRANSMITTED_SHARE {
        evidence
            .push(format!("{} of the generator's segments were retransmitted.", percent(again)));
    }
    let lost = report
        .quic
        .as_ref()
        .map_or(0.0, |quic| quic.packets_lost as f64 / (quic.packets_sent as f64).max(started));
    if lost >= RETRANSMITTED_SHARE {
        evidence.push(format!("{} of the generator's packets were lost.", percent(lost)));
    }
    let round_trip = facts.round_trip_ns;
    if round_trip >= LONG_PATH_NS && facts.first_byte_ns < 2 * round_trip && facts.nobody_is_busy()
    {
        evidence.push(format!(
            "A round trip takes {} and the first byte {} (mean): the network path limits the rate; more \
             requests in flight (-c, -m) would raise it.",
            duration(round_trip),
            duration(facts.first_byte_ns)
        ));
    }
    if evidence.is_empty()
        && facts.bytes_per_exchange >= LARGE_EXCHANGE_BYTES
        && facts.nobody_is_busy()
    {
        evidence.push(format!(
            "{:.0} kB per exchange, {:.1} Mbit/s, and no side is busy.",
            facts.bytes_per_exchange / 1e3,
            facts.wire_bits_per_second / 1e6
        ));
    }
    facts.confirmed(Bound::Network, evidence)
}

/// A server that is idle and takes its time.
fn waiting(report: &PhaseReport, facts: &Facts) -> Option<Verdict> {
    let own = facts.first_byte_ns.saturating_sub(facts.round_trip_ns);
    if report.times.connect.count == 0 && facts.server_fullness.is_none() {
        return None;
    }
    if own < SERVER_WAITS_NS || facts.generator_fullness >= FULL {
        return None;
    }
    let mut evidence = vec![format!(
        "The first byte takes {} (mean) and a round trip {}: the server limits the rate.",
        duration(facts.first_byte_ns),
        duration(facts.round_trip_ns)
    )];
    evidence.extend(facts.generator_said_and_server());
    Some(Verdict { bound: Bound::Server, evidence })
}

fn nothing(report: &PhaseReport, facts: &Facts) -> Verdict {
    let mut evidence = facts.generator_said_and_server();
    evidence.push(if report.cpu.server.is_none() {
        "The server is not watched (--server-pid names a local one), so its CPU is unknown."
            .into()
    } else {
        "Neither side was saturated: more requests in flight (-c, -m) or more threads (-t) may raise the rate."
            .to_owned()
    });
    Verdict { bound: Bound::Unclear, evidence }
}

fn unclear(evidence: impl Into<String>) -> Verdict {
    Verdict { bound: Bound::Unclear, evidence: vec![evidence.into()] }
}
