//! Plan of a measurement. Data only; a command line makes it.

use std::time::Duration;

use bolide_probe::plan::{Origin, ServerProcesses};
use bolide_probe::stop::Stop;
use bolide_semantics::Url;
use bytes::Bytes;
use http::Method;

/// Which way the bytes go that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the server to us.
    Download,
    /// From us to the server.
    Upload,
}

impl Direction {
    /// `download` or `upload`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// Which version of HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// `https`: what ALPN chooses of h2 and http/1.1. `http`: HTTP/1.1.
    #[default]
    Negotiated,
    /// HTTP/1.1; over TLS, it is all that ALPN offers.
    Http1,
    /// HTTP/2; over cleartext by prior knowledge, over TLS it is all that ALPN offers.
    Http2,
    /// HTTP/3, over `https`.
    Http3,
}

/// Which server certificates are believed.
#[derive(Debug, Clone, Default)]
pub enum Trusted {
    /// Those that the operating system trusts.
    #[default]
    Platform,
    /// Those that these roots (PEM) have signed.
    Roots(Bytes),
    /// Any: nothing is verified.
    Any,
}

/// How connections to a server are made.
#[derive(Debug, Clone)]
pub struct Connecting {
    /// Place of the server, resolved.
    pub origin: Origin,
    /// Protocol version.
    pub version: Version,
    /// Whom we believe.
    pub trusted: Trusted,
    /// The receive window of streams and connection in bytes, fixed. `None`: it grows with use.
    pub window_bytes: Option<u32>,
    /// The largest frame taken and sent, in bytes. `None`: 16 KiB, as browsers.
    pub frame_bytes: Option<u32>,
    /// How long a connection may take until it can be used.
    pub timeout: Duration,
}

/// How much is transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many bytes with each request; one request on each stream.
    Bytes(u64),
    /// Whatever the server sends in response to one request on each stream (downloads).
    Whole,
    /// For so long; requests that are complete before are followed by the next.
    Time(Duration),
}

/// The requests of a transfer.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// The method.
    pub method: Method,
    /// Path and query, as sent.
    pub path: String,
    /// The length that the response's body must have, where it is known (downloads).
    pub expected_bytes: Option<u64>,
    /// How much.
    pub amount: Amount,
    /// True if it is a subtest of ndt7, in a WebSocket.
    pub is_ndt7: bool,
    /// Requests at a time on each connection.
    pub streams: usize,
    /// Connections.
    pub connections: usize,
}

/// How latency is probed before and during the transfer.
#[derive(Debug, Clone)]
pub struct Probing {
    /// Path at the transfer's origin.
    pub path: String,
    /// Another origin, and its path.
    pub other: Option<(Connecting, String)>,
    /// Probes per second of each kind, at equal distances whatever becomes of those before.
    pub rate: f64,
    /// How long it is probed before the transfer.
    pub idle: Duration,
}

/// A whole measurement of a transfer.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The URL as it was given.
    pub target: Url,
    /// How the server is reached.
    pub connecting: Connecting,
    /// Transfer to be made.
    pub transfer: Transfer,
    /// Latency, if it is asked for.
    pub probing: Option<Probing>,
    /// Which processes are the server's.
    pub server: ServerProcesses,
    /// Ends it before its end.
    pub stop: Stop,
}
