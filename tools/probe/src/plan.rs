//! Plan of a run: whom to ask, what, how hard, how long. Data only; command lines make it and
//! the engine carries it out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde::{Deserialize, Serialize};

pub use crate::origin::{Origin, ServerAddress};
use crate::scenario::{Scenario, StepPlan};

/// Bytes that a server may send on one stream of HTTP/3 before they are read: everything is read at once.
pub const RESPONSE_WINDOW_BYTES: u32 = 16 << 20;

/// A whole run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Place of the server whose processes are watched, and to which everything goes but some steps of a scenario.
    pub origin: Origin,
    /// Which version of HTTP is spoken.
    pub version: Version,
    /// TLS settings; used when the origin's scheme is https.
    pub tls: TlsPlan,
    /// HTTP/2 settings that are announced to the server.
    pub http2: Http2Plan,
    /// Requests; at least one.
    pub requests: Vec<RequestPlan>,
    /// Connections in all; dealt to the threads so that none is lost.
    pub connections: usize,
    /// Requests in flight on each connection at most: streams of HTTP/2 or HTTP/3, pipelining depth of HTTP/1.1.
    pub depth: usize,
    /// Worker threads.
    pub threads: usize,
    /// The cores that the threads are pinned to, in turn. Empty: not pinned.
    pub cores: Vec<usize>,
    /// Times that connections and requests may take.
    pub timeouts: Timeouts,
    /// How responses are judged.
    pub expect: Expectations,
    /// Kind of requests and responses.
    pub kind: RequestKind,
    /// Users who take the requests in order. `None`: requests are taken in turn or by weight.
    pub scenario: Option<Arc<Scenario>>,
    /// The share of the requests of which a record is made each. `None`: of none.
    pub recorded_share: Option<f64>,
    /// The seed of Poisson arrivals, sampling and weighted choice.
    pub seed: u64,
    /// Which processes are the server's, for its CPU time and memory.
    pub server: ServerProcesses,
}

/// Times that connections and requests may take.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// How long a connection may take to be established, with TLS.
    pub connect_timeout: Duration,
    /// How long a response may take, from its request's start. A response that takes longer counts as
    /// a timeout, and its connection is replaced.
    pub request_timeout: Duration,
}

impl Plan {
    /// How many servers requests go to.
    pub fn servers_count(&self) -> usize {
        self.scenario.as_ref().map_or(1, |scenario| scenario.servers_count())
    }
}

/// Which version of HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Version {
    /// https: what ALPN chooses of h2 and http/1.1. http: HTTP/1.1.
    Negotiated,
    /// HTTP/1.1; over TLS, it is all that ALPN offers.
    Http1,
    /// HTTP/2; over cleartext by prior knowledge, over TLS it is all that ALPN offers.
    Http2,
    /// HTTP/3, over QUIC: UDP at the port of https.
    Http3,
}

/// TLS settings of a client.
#[derive(Debug, Clone, Default)]
pub struct TlsPlan {
    /// The name for SNI and for the certificate, if it is not the URL's host.
    pub server_name: Option<String>,
    /// Trust in the server's certificate.
    pub trust: TlsTrust,
    /// The client's own certificate chain and key, in PEM.
    pub identity: Option<(Bytes, Bytes)>,
    /// Sessions are resumed where the server offers tickets. Otherwise each handshake is a full one.
    pub resume: bool,
    /// HTTP/3: connections that resume a session send requests before their handshake is complete.
    pub early_data: bool,
}

/// Which server certificates are believed.
#[derive(Debug, Clone, Default)]
pub enum TlsTrust {
    /// Those that the operating system trusts.
    #[default]
    Platform,
    /// Those that these roots (PEM) have signed.
    Roots(Bytes),
    /// Any: nothing is verified.
    Any,
}

/// Settings that are announced to an HTTP/2 server. `None`: the engine's own default, windows that grow with use.
#[derive(Debug, Clone, Copy, Default)]
pub struct Http2Plan {
    /// SETTINGS_INITIAL_WINDOW_SIZE, in bytes.
    pub stream_window_bytes: Option<u32>,
    /// The connection's window, in bytes.
    pub connection_window_bytes: Option<u32>,
    /// SETTINGS_MAX_FRAME_SIZE, in bytes.
    pub max_frame_bytes: Option<u32>,
    /// SETTINGS_HEADER_TABLE_SIZE, in bytes.
    pub header_table_bytes: Option<u32>,
}

/// One request, and how often it is taken.
#[derive(Debug, Clone)]
pub struct RequestPlan {
    /// The method.
    pub method: Method,
    /// Path and query, as sent.
    pub target: String,
    /// Fields, without Host and Content-Length.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// In the target and in field values, `{connection}` stands for the number of the connection and
    /// `{request}` for that of the request on its connection; both count from 0. `{random:1..100}` stands for a
    /// random number from 1 to 100, and `{uuid}` for a random UUID.
    pub has_placeholders: bool,
    /// The body; empty: none, unless the method calls for `Content-Length: 0`.
    pub body: Bytes,
    /// How often it is taken, relative to the others. All 1: in turn.
    pub weight: u32,
    /// The body that the response must have, where it is known.
    pub response: Option<ExpectedBody>,
    /// Header fields that the response must have, with these values.
    pub response_fields: Vec<(HeaderName, HeaderValue)>,
    /// Plan that makes it a step of a scenario.
    pub step: Option<Arc<StepPlan>>,
}

impl RequestPlan {
    /// A request without fields and content, of weight 1, any of whose responses is right.
    pub fn new(method: Method, target: String) -> Self {
        Self {
            method,
            target,
            fields: Vec::new(),
            has_placeholders: false,
            body: Bytes::new(),
            weight: 1,
            response: None,
            response_fields: Vec::new(),
            step: None,
        }
    }
}

/// How responses are judged.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    /// Statuses that are right. Empty: 200 to 399.
    pub statuses: Vec<StatusCode>,
    /// Each body must have this length, in bytes.
    pub length: Option<u64>,
    /// Share of the responses whose bodies are compared byte for byte, where what is right is known.
    pub sampled_share: f64,
    /// Fields that the trailers of each response must have, with these values.
    pub trailers: Vec<(HeaderName, HeaderValue)>,
}

/// Kind of requests and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestKind {
    /// HTTP's own.
    #[default]
    Requests,
    /// Responses are streams of events or messages; a request's timeout counts from the last one.
    Events(EventsPlan),
    /// Messages on WebSocket connections (RFC 6455): the bodies of the plan's requests. Connections are asked for
    /// with the target and the fields of the first one.
    WebSocket(WebSocketPlan),
}

/// How messages on WebSocket connections are sent and judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebSocketPlan {
    /// No message has a reply: it is complete when the socket has taken it.
    pub one_way: bool,
    /// A reply must be of its message's kind.
    pub echo: bool,
    /// All messages are binary. Otherwise those that are UTF-8 are text.
    pub binary: bool,
    /// Compression (RFC 7692) is offered.
    pub deflate: bool,
}

/// How streams of events, or of messages, are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventsPlan {
    /// A longer time between two events of a stream is a stall, in nanoseconds.
    pub stall_ns: u64,
    /// Format of the streams.
    pub format: StreamFormat,
}

/// Format of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFormat {
    /// Server-Sent Events (HTML §9.2).
    Events,
    /// The same, of a language model: each ends with `[DONE]`, and events may report errors and tokens.
    OpenAi,
    /// Messages of gRPC; each call ends with its `grpc-status`.
    Grpc,
}

/// A body that is known beforehand.
#[derive(Debug, Clone)]
pub enum ExpectedBody {
    /// These bytes.
    Exact(Bytes),
    /// These bytes, when the response's `Content-Encoding: gzip` is undone. A response without that coding, or one that it makes no smaller, is wrong.
    Gzip(Bytes),
    /// Any bytes with this SHA-256.
    Sha256([u8; 32]),
    /// The first response's bytes: all others must be the same.
    SameAsFirst,
}

/// How the server's processes are found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ServerProcesses {
    /// By who listens on the port, if that is on this machine.
    #[default]
    ByPort,
    /// The tree of this process.
    Pid(u32),
    /// The same, with the CPU time of the control group (cgroup v2) in this directory: every process that is or was in
    /// it counts.
    Group(u32, PathBuf),
    /// Not looked for.
    Unwatched,
}

/// A part of a run under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name in the report.
    pub name: String,
    /// How requests begin.
    pub load: Load,
    /// Runs before anything is counted.
    pub warm_up: Duration,
    /// When it ends: at whichever comes first.
    pub until: Until,
}

/// When a phase ends. At least one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Until {
    /// So many requests have begun; it ends when all are answered.
    pub requests: Option<u64>,
    /// So much time has passed after the warm-up; requests in flight then are not counted.
    pub time: Option<Duration>,
}

/// Cause that makes a request begin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "model")]
pub enum Load {
    /// The response to the one before: as fast as the server and the connections allow. Latency counts
    /// from when the request was handed to its connection.
    Closed,
    /// The clock. Latency counts from the intended time, whether or not a connection was free.
    Open {
        /// Requests per second, over all connections.
        rate: f64,
        /// How the intended times are spread.
        arrivals: Arrivals,
    },
    /// New connections, one request on each: for the cost of a handshake. As fast as `connections`
    /// at a time allow. Latency counts from when the connection is asked for.
    Connect,
}

/// How intended times are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    Constant,
    /// With exponentially distributed distances, as of many independent users.
    Poisson,
}
