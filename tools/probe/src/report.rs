//! Report of a run: data that texts, pages, JSON and verdicts are made from.
//!
//! Durations are in nanoseconds, sizes in bytes. The JSON of `bolide load --json` is [`Report`].

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::plan::Phase;

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The first URL.
    pub url: String,
    /// Protocol: `http/1.1`, `h2c`, `h2`, `h3`; empty when nothing was.
    pub protocol: String,
    /// Version and cipher suite, over TLS.
    pub tls: Option<TlsReport>,
    /// Connections, requests in flight on each, threads.
    pub connections: usize,
    /// Requests in flight on each connection at most.
    pub depth: usize,
    /// Worker threads.
    pub threads: usize,
    /// One entry for each phase, in order.
    pub phases: Vec<PhaseReport>,
    /// When it started, in seconds since 1970.
    pub started_unix_s: f64,
    /// The server went away in the middle: when, after the start of the run.
    pub server_died_after_ns: Option<u64>,
    /// The user stopped it before its end.
    pub interrupted: bool,
    /// Result of a search for the knee.
    #[serde(default)]
    pub knee: Option<KneeReport>,
    /// The parts of the run, where several processes carried it out together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartsReport>,
}

/// The parts of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PartsReport {
    /// How far the clocks of two parts may be apart after correction: the largest of all parts' bounds.
    pub clock_bound_ns: u64,
    /// So many lost parts were allowed.
    pub missing_ok: usize,
    /// One entry for each part, in order.
    pub parts: Vec<PartReport>,
}

impl PartsReport {
    /// Returns whether more parts were lost than were allowed: the figures are not of the load that was asked for.
    pub fn has_lost_too_many(&self) -> bool {
        self.parts.iter().filter(|part| part.lost.is_some()).count() > self.missing_ok
    }
}

/// One part of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PartReport {
    /// Its number, from 1.
    pub part: usize,
    /// The name of its host.
    pub host: String,
    /// Its connections.
    pub connections: usize,
    /// Its threads.
    pub threads: usize,
    /// Its clock was corrected with at most this error: half of the fastest round trip to the first part.
    pub clock_bound_ns: u64,
    /// How much its clock gained on the first part's during the run. `None`: it was not measured again.
    pub clock_drift_ns: Option<i64>,
    /// Why it was lost before the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// Result of one part of a run in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartPhase {
    /// Its number, from 1.
    pub part: usize,
    /// From the end of the warm-up to the end.
    pub elapsed_ns: u64,
    /// Its requests and responses.
    pub counts: Counts,
    /// As the phase's.
    pub latency: Latencies,
    /// As the phase's.
    pub lag: Latencies,
    /// As the phase's.
    pub pacing: Latencies,
    /// A round trip of its path, in nanoseconds: the least time to establish a TCP connection, or QUIC's least.
    #[serde(default)]
    pub round_trip_ns: u64,
    /// CPU of its process.
    pub generator: ProcessCost,
}

/// The highest rate whose latency stayed under a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KneeReport {
    /// Limit that the 99th percentile had to stay under.
    pub limit_ns: u64,
    /// The highest rate that held, in requests per second. `None`: none did.
    pub rate: Option<f64>,
    /// The lowest rate that was tried and did not hold. `None`: all that were tried held.
    pub broken_at: Option<f64>,
}

/// Results of TLS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsReport {
    /// `TLSv1.3` …
    pub version: String,
    /// The cipher suite by its registered name; `unknown` over QUIC, which does not tell.
    pub cipher_suite: String,
    /// The group that the keys were agreed on in, by its registered name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// Report of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseReport {
    /// Phase that was carried out.
    pub phase: Phase,
    /// From the end of the warm-up to the end.
    pub elapsed_ns: u64,
    /// Requests and responses.
    pub counts: Counts,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures by kind; only kinds that occurred.
    pub failures: BTreeMap<Failure, u64>,
    /// Why the first connection ended that ended before its responses were complete. `None`: none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_loss: Option<String>,
    /// Bytes and field compression.
    pub traffic: Traffic,
    /// Durations.
    #[serde(flatten)]
    pub times: Times,
    /// Handshakes that were shortened.
    #[serde(flatten)]
    pub handshakes: Handshakes,
    /// Figures that only some kinds of requests have.
    #[serde(flatten)]
    pub kinds: Kinds,
    /// Bounds of the senders.
    pub stalls: Stalls,
    /// Counts of QUIC, over HTTP/3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicReport>,
    /// Requests per second of each connection that answered any.
    #[serde(default)]
    pub connection_rates: Option<Spread>,
    /// CPU of both sides.
    #[serde(flatten)]
    pub cpu: Costs,
    /// The course of the phase, and its parts.
    #[serde(flatten)]
    pub course: Course,
    /// Verdict about the phase.
    pub verdict: Verdict,
}

/// The course of the phase, and its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Mean requests in flight minus rate times mean latency, over the former (Little's law): 0 when
    /// the figures agree with each other.
    pub littles_law_residual: Option<f64>,
    /// One entry each 100 ms or so, in order.
    pub series: Vec<Sample>,
    /// One entry for each part of the run that came to the end of the phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartPhase>,
}

/// CPU of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// CPU of the generator.
    pub generator: ProcessCost,
    /// CPU and memory of the server, where it is local and was found.
    pub server: Option<ProcessCost>,
}

/// Handshakes that were shortened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Handshakes {
    /// Handshakes that resumed a session.
    pub resumed_count: u64,
    /// Connections over HTTP/3 that sent requests before their handshake was complete; it is not among the others.
    pub early_count: u64,
}

/// Figures that only some kinds of requests have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kinds {
    /// Of responses that are streams of events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsReport>,
    /// Of WebSocket connections. Requests are their messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<WebSocketReport>,
    /// Of users who carry out a scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<UsersReport>,
    /// One entry for each request of the plan, where there are 2 to 64 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestReport>,
}

/// Durations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// From the start (closed loop) or the intended start (open loop) to the end of the response.
    pub latency: Latencies,
    /// From the same start to the first byte of the response's head.
    pub first_byte: Latencies,
    /// The mean time from when a request was handed to its connection to the first byte of its response's head, in
    /// nanoseconds: without what an open loop's requests waited before.
    #[serde(default)]
    pub sent_to_first_byte_mean_ns: f64,
    /// From `connect` to the established connection; none over QUIC.
    pub connect: Latencies,
    /// From the established connection to the finished TLS handshake; over QUIC, from the first datagram on.
    pub handshake: Latencies,
    /// How late requests were handed to a connection after their intended time (open loop): what the
    /// generator itself, or full connections, added.
    pub lag: Latencies,
    /// As `lag`, but only what the generator's own clock was late by: its pacing error.
    pub pacing: Latencies,
}

/// Users of a scenario, each of which does its steps once.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UsersReport {
    /// Did all their steps.
    pub finished: u64,
    /// Gave up at a step that failed.
    pub gave_up: u64,
    /// From the begin of the first step to the end of the last one, of those who did all.
    pub duration: Latencies,
}

/// Result of one of several requests, or steps. A step ends with its last redirect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestReport {
    /// Of a step: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its method.
    pub method: String,
    /// Path and query, with placeholders as given.
    pub target: String,
    /// Answered to the end, right or wrong.
    pub completed: u64,
    /// Answered wrong, or never.
    pub failed: u64,
    /// As the phase's.
    pub latency: Latencies,
}

/// Requests and responses of a phase, without the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Requests that were due: begun, or (open loop) intended and never handed to a connection.
    pub due: u64,
    /// Handed to a connection.
    pub started: u64,
    /// Answered to the end, right or wrong.
    pub completed: u64,
    /// Answered as expected.
    pub succeeded: u64,
    /// Answered wrong, or never; and connections that had no request and could not be made, or broke the
    /// protocol. The failures by kind add up to this.
    pub failed: u64,
    /// Bodies that were compared byte for byte.
    pub compared: u64,
    /// Connections that were established.
    pub connections: u64,
}

/// Kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No connection.
    Connect,
    /// No TLS: handshake, certificate, ALPN.
    Tls,
    /// No response in time.
    Timeout,
    /// The connection, or the stream, was reset or ended before the response did.
    Reset,
    /// The server said GOAWAY and did not process the request.
    Goaway,
    /// The server broke the protocol, or responded to a request that had not been written.
    Protocol,
    /// The status is not one of those expected.
    Status,
    /// The body has a wrong length or wrong bytes.
    Body,
    /// Header fields that are expected are missing or have other values.
    Fields,
    /// The trailers that are expected are missing or have other values.
    Trailers,
    /// The stream of events reported an error, ended before its end mark, or had no event.
    Events,
    /// A gRPC call ended with another status than OK, or without one.
    Grpc,
    /// The server refused a WebSocket connection, or accepted it in a wrong way.
    Upgrade,
    /// The server closed the WebSocket connection before it replied.
    Closed,
    /// The response lacks what the user's next steps need, or what it must contain.
    Capture,
    /// A redirect leads to another server, or there were too many.
    Redirect,
}

/// Streams of events of a phase. Events count when they come, also those of streams that end later; streams count
/// when they have ended as they should.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EventsReport {
    /// Events that came.
    pub events: u64,
    /// The same per second, over all streams.
    pub rate: f64,
    /// Streams that ended as they should.
    pub streams: u64,
    /// The mean of their events.
    pub events_per_stream: f64,
    /// Gaps between two events of a stream that were longer than `stall_ns`.
    pub stalls: u64,
    /// The longest gap that is no stall.
    pub stall_ns: u64,
    /// Tokens, as the server counted them at the end of streams.
    pub tokens: Option<u64>,
    /// The same per second.
    pub token_rate: Option<f64>,
    /// Of calls of gRPC, whose messages the events are: how many ended with which status, by its name. `missing`: they
    /// ended without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc_statuses: Option<BTreeMap<String, u64>>,
    /// From the start of the request (closed loop) or its intended start (open loop) to its first event.
    pub first: Latencies,
    /// Between two events of a stream.
    pub gap: Latencies,
}

/// WebSocket connections of a phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WebSocketReport {
    /// Messages have no replies: latency ends when the socket has taken a message.
    pub one_way: bool,
    /// From the end of TCP's or TLS's handshake to the server's acceptance.
    pub upgrade: Latencies,
    /// Connections with compression.
    pub compressed: u64,
    /// Messages that came and were no replies.
    pub pushed: u64,
    /// Connections that the server closed, by the code of its close frame (1005: it had none).
    pub closes: BTreeMap<u16, u64>,
}

/// Bytes of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// Read from sockets.
    pub wire_received_bytes: u64,
    /// Written to sockets.
    pub wire_sent_bytes: u64,
    /// Bodies of responses.
    pub payload_received_bytes: u64,
    /// Bodies of requests.
    pub payload_sent_bytes: u64,
    /// Heads of responses, as HPACK, QPACK or HTTP/1.1 put them on the wire.
    pub head_wire_bytes: u64,
    /// The same heads, decoded: names and values.
    pub head_decoded_bytes: u64,
    /// TCP segments that were sent again (both directions cannot be told: ours only).
    pub retransmits: u64,
}

/// Counts of QUIC on the connections of a phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct QuicReport {
    /// UDP datagrams that the generator sent.
    pub datagrams_sent: u64,
    /// UDP datagrams that it received.
    pub datagrams_received: u64,
    /// QUIC packets that it sent.
    pub packets_sent: u64,
    /// Of these, the ones that were declared lost (both directions cannot be told: ours only).
    pub packets_lost: u64,
    /// The smoothed round-trip times of the connections at the end of the phase, one for each.
    pub rtt: Latencies,
}

/// Causes that kept senders waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stalls {
    /// Our uploads waited for the server's stream windows, summed over streams.
    pub stream_window_ns: u64,
    /// Our uploads waited for the server's connection windows, summed over connections.
    pub connection_window_ns: u64,
    /// Our sockets took no more bytes, times.
    pub socket_full: u64,
    /// Our receive windows were used up by the server, times: it may have waited for us.
    pub receive_window_used_up: u64,
}

/// How a figure is spread over connections.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// The share of the connections that lie within one standard deviation of the mean.
    pub within_deviation: f64,
}

/// Cost of processes during a phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessCost {
    /// User and system time of all threads (and children).
    pub cpu_ns: u64,
    /// The same per completed request.
    pub cpu_per_request_ns: Option<f64>,
    /// CPU time over elapsed time over the cores that it may use: 1 is a full core each.
    pub utilisation: f64,
    /// The busiest single thread: the time for which it ran, or was ready and had no core, over elapsed
    /// time. 1: it could do no more.
    pub busiest_thread: f64,
    /// Peak resident memory, in bytes.
    pub peak_memory_bytes: u64,
}

/// A moment of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// After the start of the phase (warm-up included).
    pub at_ns: u64,
    /// Since the sample before: responses per second.
    pub rate: f64,
    /// Of the responses since the sample before.
    pub p50_ns: u64,
    /// Of the responses since the sample before.
    pub p99_ns: u64,
    /// Failures since the sample before.
    pub failed: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// The generator's CPU since the sample before: cores.
    pub generator_cores: f64,
    /// The server's.
    pub server_cores: Option<f64>,
}

/// Verdict about a phase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The bottleneck.
    pub bound: Bound,
    /// Why that is said: one sentence for each piece of evidence, with its figure.
    pub evidence: Vec<String>,
}

/// The bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The server's CPU, or the server's waiting.
    Server,
    /// The generator: its rate is a lower bound of what the server can do.
    Client,
    /// The path: sockets were full, segments were lost.
    Network,
    /// Flow-control windows.
    Window,
    /// The plan: the rate asked for was met.
    Rate,
    /// The evidence does not say.
    #[default]
    Unclear,
}

/// Durations as counted: an HdrHistogram from 1 µs to 10 minutes with three digits, and its sums.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Latencies {
    /// How many.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub deviation_ns: f64,
    /// The least.
    pub min_ns: u64,
    /// Percentiles by their name: `p50`, `p75`, `p90`, `p95`, `p99`, `p99.9`, `p99.99`, `p99.999`.
    pub percentiles_ns: BTreeMap<String, u64>,
    /// The greatest.
    pub max_ns: u64,
    /// HdrHistogram V2 with DEFLATE, in base64, in nanoseconds: everything, for merging and plotting.
    pub hdr_v2: String,
    /// The histogram itself; from `hdr_v2` when a report is read back.
    #[serde(skip)]
    pub histogram: Option<Histogram<u64>>,
}
