//! Limit of a transfer: from its figures to a verdict with its evidence.

#[cfg(test)]
mod tests;

use bolide_units::figures::{bytes, duration};
use serde::Serialize;

use crate::plan::Direction;

/// A thread is full from this share of its time on. What lacks to 1 is lost to the edges of the transfer
/// and to the moments in which two threads that work hand in hand wait for each other.
pub const FULL: f64 = 0.85;

/// The machine is full when this share of its cores is used.
pub const MACHINE_FULL: f64 = 0.95;

/// A side is idle below this share: it can't be what limits.
pub const IDLE: f64 = 0.7;

/// A window limits when a side waited for it this share of the time.
pub const STALLED: f64 = 0.3;

/// A transfer of fewer round trips than this is over before TCP knows the path.
pub const ROUND_TRIPS: f64 = 10.0;

/// One that is shorter than this is over before a thread is warm, in seconds.
pub const SHORT_S: f64 = 0.05;

/// Of a hundred segments of 1448 bytes, so many sent again tell of a path that loses.
pub const RETRANSMITTED: f64 = 0.001;

/// Limit of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A thread of ours was busy all the time.
    Client,
    /// A thread of the server's was.
    Server,
    /// Both together took all of the machine's cores.
    Machine,
    /// A window of flow control was used up.
    Window,
    /// The path between the two.
    Network,
    /// So little was asked for that it says nothing about speed.
    Asked,
    /// Nothing stands out.
    #[default]
    Unclear,
}

/// Limit of a transfer, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verdict {
    /// The limit.
    pub limit: Limit,
    /// One sentence each.
    pub evidence: Vec<String>,
}

/// For how long a side that had something to send waited for a window of HTTP/2 (RFC 9113 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stalls {
    /// We for the server's windows of streams, summed over streams.
    pub peer_stream_ns: u64,
    /// We for the server's windows of connections, summed over connections.
    pub peer_connection_ns: u64,
    /// The server for our windows of streams: nothing came after it had used one up. Summed over
    /// connections.
    pub own_stream_ns: u64,
    /// The server for our windows of connections, in the same way.
    pub own_connection_ns: u64,
}

/// The figures that a verdict is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Which way.
    pub direction: Direction,
    /// Payload.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
    /// Requests at a time on each connection.
    pub streams: usize,
    /// Connections.
    pub connections: usize,
    /// The share of the time that our busiest thread ran.
    pub client_busiest: f64,
    /// Cores that we used, on average.
    pub client_cores: f64,
    /// The same two of the server, if it is watched.
    pub server: Option<(f64, f64)>,
    /// The machine's cores, if they are known.
    pub cores: Option<usize>,
    /// Windows.
    pub stalls: Stalls,
    /// Segments that we sent again, if that is known.
    pub retransmits: Option<u64>,
    /// Segments that came to us out of order, if that is known.
    pub out_of_order: Option<u64>,
    /// For which share of the sender's time the receiver's TCP window held it back, if that is known.
    pub receive_window_limited: Option<f64>,
    /// The round trip, if it is known.
    pub round_trip_ns: Option<u64>,
}

/// Says what limited a transfer that came to its end.
pub fn judge(facts: &Facts) -> Verdict {
    if facts.bytes == 0 {
        return verdict(Limit::Unclear, vec!["Nothing was transferred.".into()]);
    }
    short(facts)
        .or_else(|| busy(facts))
        .or_else(|| windows(facts))
        .or_else(|| network(facts))
        .unwrap_or_else(|| {
            let mut evidence = sides(facts);
            evidence.push("Neither side was saturated, and no window was used up for long.".into());
            verdict(Limit::Unclear, evidence)
        })
}

fn verdict(limit: Limit, evidence: Vec<String>) -> Verdict {
    Verdict { limit, evidence }
}

/// `97.5 %`.
fn percent(share: f64) -> String {
    format!("{:.1} %", share.min(1.0) * 100.0)
}

/// How busy each side was.
fn sides(facts: &Facts) -> Vec<String> {
    let busiest = |who: &str, share: f64| {
        format!("{who} busiest thread was busy {} of the time.", percent(share))
    };
    let server = match facts.server {
        Some((share, _)) => busiest("The server's", share),
        None => "The server is not watched (--server-pid names a local one).".into(),
    };
    vec![busiest("Our", facts.client_busiest), server]
}

/// Over before anything could limit it.
fn short(facts: &Facts) -> Option<Verdict> {
    let round_trip_s = facts.round_trip_ns.unwrap_or(0) as f64 / 1e9;
    let trips = facts.seconds / round_trip_s;
    if facts.seconds >= SHORT_S && !(round_trip_s > 0.0 && trips < ROUND_TRIPS) {
        return None;
    }
    let took = duration((facts.seconds * 1e9) as u64);
    let mut evidence = vec![format!("{} took {took}.", bytes(facts.bytes))];
    if round_trip_s > 0.0 {
        evidence.push(format!(
            "A round trip takes {}, so this was {trips:.1} round trips: more bytes (-n) or time (-t) \
             would show the speed.",
            duration(facts.round_trip_ns.unwrap_or(0))
        ));
    } else {
        evidence.push("More bytes (-n) or time (-t) would show the speed.".into());
    }
    Some(verdict(Limit::Asked, evidence))
}

/// A side whose busiest thread was full, or a machine that was.
fn busy(facts: &Facts) -> Option<Verdict> {
    let client = facts.client_busiest >= FULL;
    let server = facts.server.is_some_and(|(share, _)| share >= FULL);
    let mut evidence = sides(facts);
    match (client, server) {
        (true, false) => return Some(verdict(Limit::Client, evidence)),
        (false, true) => return Some(verdict(Limit::Server, evidence)),
        (true, true) => {
            evidence.push("Both were saturated: either may be the slower one.".into());
            return Some(verdict(Limit::Machine, evidence));
        }
        (false, false) => {}
    }
    let cores = facts.cores? as f64;
    let used = facts.client_cores + facts.server?.1;
    (used >= MACHINE_FULL * cores).then(|| {
        evidence.push(format!("Together they used {used:.2} of the machine's {cores:.0} cores."));
        verdict(Limit::Machine, evidence)
    })
}

/// Windows of HTTP/2, or TCP's own.
fn windows(facts: &Facts) -> Option<Verdict> {
    let Stalls { peer_stream_ns, peer_connection_ns, own_stream_ns, own_connection_ns } =
        facts.stalls;
    let connections = facts.connections.max(1) as f64;
    let streams = facts.streams.max(1) as f64;
    let share = |ns: u64, of: f64| ns as f64 / 1e9 / (facts.seconds * of);
    let mut evidence = Vec::new();
    for (who, whose, ns, of) in [
        ("We", "the server's stream window", peer_stream_ns, connections * streams),
        ("We", "the server's connection window", peer_connection_ns, connections),
        ("The server", "our stream window (--window)", own_stream_ns, connections),
        ("The server", "our connection window (--window)", own_connection_ns, connections),
    ] {
        let share = share(ns, of);
        if share >= STALLED {
            evidence.push(format!("{who} waited for {whose} {} of the time.", percent(share)));
        }
    }
    if let Some(share) = facts.receive_window_limited.filter(|share| *share >= STALLED) {
        let share = percent(share);
        evidence
            .push(format!("The receiver's TCP window held the sender back {share} of the time."));
    }
    if evidence.is_empty() {
        return None;
    }
    evidence.extend(sides(facts));
    Some(verdict(Limit::Window, evidence))
}

/// The path, when no core was busy.
fn network(facts: &Facts) -> Option<Verdict> {
    let idle = |share: f64| share < IDLE;
    if !idle(facts.client_busiest) || !facts.server.is_none_or(|(share, _)| idle(share)) {
        return None;
    }
    let mut evidence = vec![format!(
        "{:.1} Mbit/s, and no side is busy.",
        facts.bytes as f64 * 8.0 / facts.seconds / 1e6
    )];
    let segments = (facts.bytes as f64 / 1448.0).max(1.0);
    let share = |count: Option<u64>| {
        count.map(|count| count as f64 / segments).filter(|share| *share >= RETRANSMITTED)
    };
    if let Some(again) = share(facts.retransmits) {
        evidence.push(format!("{} of our segments were retransmitted.", percent(again)));
    }
    if let Some(disordered) = share(facts.out_of_order) {
        evidence.push(format!(
            "{} of the segments arrived out of order: earlier ones were lost or delayed.",
            percent(disordered)
        ));
    }
    if let Some(ns) = facts.round_trip_ns {
        evidence.push(format!("A round trip takes {}.", duration(ns)));
    }
    evidence.extend(sides(facts));
    Some(verdict(Limit::Network, evidence))
}
