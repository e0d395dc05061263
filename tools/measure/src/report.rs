//! Report of a measurement: the figures as they are written to JSON.

use serde::{Serialize, Serializer};

use crate::latency::Percentiles;
use crate::plan::Direction;
use crate::verdict::{Stalls, Verdict};

/// Everything that is known of a transfer when it is over. Its JSON is read by `bolide net bulk`.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// As it was given.
    pub url: String,
    /// `h1`, `h1s`, `h2c`, `h2`, `ws`, `wss` or `raw`; empty when no connection was made.
    pub protocol: &'static str,
    /// Which way the counted bytes went.
    #[serde(serialize_with = "by_name")]
    pub direction: Direction,
    /// Bytes that were carried, and their rate.
    #[serde(flatten)]
    pub volume: Volume,
    /// Requests at a time on each connection.
    pub streams: usize,
    /// Connections.
    pub connections: usize,
    /// Facts from TCP.
    #[serde(flatten)]
    pub tcp: TcpFacts,
    /// CPU of both sides.
    #[serde(flatten)]
    pub cpu: CpuCosts,
    /// Waits for windows.
    pub stalls: Stalls,
    /// Limit of the transfer.
    pub verdict: Verdict,
    /// Looks at what had been transferred.
    pub series: Vec<Point>,
    /// Latency, if it was asked for.
    pub latency: Option<Latency>,
    /// Results of the TLS handshake.
    pub tls: Option<TlsReport>,
    /// Time to make the first connection.
    pub setup: Setup,
    /// The server's figures of its side, where its protocol has it do so (ndt7).
    pub told: Option<Told>,
    /// An end before the transfer was complete.
    #[serde(flatten)]
    pub end: End,
}

/// An end before the transfer was complete.
#[derive(Debug, Clone, Serialize)]
pub struct End {
    /// The user ended it before its end (Ctrl-C): the figures are of what was done until then.
    pub interrupted: bool,
    /// The first thing that went wrong, in a sentence.
    pub error: Option<String>,
}

/// CPU of both sides.
#[derive(Debug, Clone, Serialize)]
pub struct CpuCosts {
    /// Cost on this side.
    pub client: Cost,
    /// Cost of the server, if it is on this machine and was found.
    pub server: Option<Cost>,
}

/// Facts from TCP.
#[derive(Debug, Clone, Serialize)]
pub struct TcpFacts {
    /// Segments that this side sent again, or packets of QUIC that it declared lost: uploads only.
    pub retransmits: Option<u64>,
    /// Segments that arrived here out of order: downloads only.
    pub out_of_order: Option<u64>,
    /// TCP's congestion control on the side that sends, where that is ours or tells us.
    pub congestion_control: Option<String>,
}

/// Bytes that were carried, and their rate.
#[derive(Debug, Clone, Serialize)]
pub struct Volume {
    /// Payload, in bytes.
    pub bytes: u64,
    /// From the first request to the last byte; of an upload, to the response.
    pub seconds: f64,
    /// Payload per second.
    pub goodput_bits_per_second: f64,
    /// Bytes of TCP's streams in the direction of the transfer: payload, framing and TLS. Over HTTP/3 those of the
    /// datagrams.
    pub wire_bytes: u64,
}

fn by_name<S: Serializer>(direction: &Direction, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(direction.name())
}

/// Cost of one side, over the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Cost {
    /// User and system time of all threads.
    pub cpu_seconds: f64,
    /// The same for each GiB of payload; `None` without any.
    pub cpu_seconds_per_gib: Option<f64>,
    /// The most memory that was resident.
    pub peak_memory_bytes: u64,
    /// For which share of the time the thread that was busiest ran, or was ready and had no core.
    pub busiest_thread: f64,
}

/// Amount that had been transferred at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Since the first request, in milliseconds.
    pub at_ms: u64,
    /// Payload until then.
    pub bytes: u64,
}

/// Results of the TLS handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TlsReport {
    /// `TLSv1.3` …
    pub version: &'static str,
    /// The cipher suite by its registered name.
    pub cipher_suite: String,
    /// The protocol that ALPN chose.
    pub alpn: Option<&'static str>,
}

impl TlsReport {
    pub(crate) fn of(facts: &bolide_connection::HandshakeFacts) -> Self {
        let alpn = facts.alpn.map(|alpn| match alpn {
            bolide_client::Alpn::H2 => "h2",
            bolide_client::Alpn::Http11 => "http/1.1",
            bolide_client::Alpn::H3 => "h3",
        });
        Self { version: facts.version, cipher_suite: facts.cipher.clone(), alpn }
    }
}

/// Time to make the first connection.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Setup {
    /// TCP's handshake: one round trip.
    pub connect_us: f64,
    /// TLS's.
    pub handshake_us: Option<f64>,
}

/// Percentiles of probes, by where they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Latency {
    /// Probes per second, of each kind.
    pub rate: f64,
    /// Before the transfer, on a connection of its own.
    pub idle: Option<Percentiles>,
    /// During the transfer, on its connections.
    pub same_connection: Option<Percentiles>,
    /// During the transfer, on a connection of its own to the same server.
    pub separate_connection: Option<Percentiles>,
    /// During the transfer, to another origin.
    pub separate_origin: Option<Percentiles>,
    /// Probes of which nothing came.
    pub lost: u64,
}

/// A server's figures of its side.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Told {
    /// Payload that it counted, per second.
    pub goodput_bits_per_second: Option<f64>,
    /// The least round trip that its kernel saw.
    pub min_rtt_us: Option<f64>,
    /// Bytes that its kernel sent again.
    pub retransmitted_bytes: Option<u64>,
    /// For which share of its time the receiver's TCP window held it back.
    pub receive_window_limited: Option<f64>,
}
