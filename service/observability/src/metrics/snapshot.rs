//! Counters of a server at one moment, as plain values.

use std::time::Duration;

use bolide_eventloop::Stats;

use super::counter::HistogramSnapshot;
use super::place::{Place, Protocol, Standing};
use crate::access_log::AccessLogStats;
use crate::profile::ProfileSnapshot;

/// State of a server: whether it takes requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerState {
    /// It does not listen yet.
    #[default]
    Starting,
    /// It does.
    Ready,
    /// It was told to end: what is open is completed, nothing new should be sent to it.
    Draining,
}

/// How many connections are open, of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCount {
    /// The protocol.
    pub protocol: Protocol,
    /// Their state.
    pub standing: Standing,
    /// True if they are encrypted.
    pub tls: bool,
    /// How many there are.
    pub count: u64,
}

/// The requests of one route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSnapshot {
    /// The pattern as it was routed, such as `/users/{id}`; `(fallback)`, `(none)` for paths without a
    /// route, `(refused)` for requests that could not be read.
    pub name: String,
    /// Requests by the first digit of the status; at 0 those that ended without one.
    pub statuses: [u64; 6],
    /// From the head's arrival to the turn that gave the last byte of the response to the connection.
    pub durations: HistogramSnapshot,
}

impl RouteSnapshot {
    /// A route of which nothing was counted.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), statuses: [0; 6], durations: HistogramSnapshot::default() }
    }

    /// All requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.statuses.iter().sum()
    }
}

/// TLS handshakes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsSnapshot {
    /// Complete ones that began from nothing.
    pub full: u64,
    /// Complete ones that resumed a session.
    pub resumed: u64,
    /// Those that failed, by the kind of failure.
    pub failed: Vec<(&'static str, u64)>,
}

/// Counters of the HTTP/2 connections; those that are open, up to a second ago.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Http2Snapshot {
    /// Streams that were refused at the limit.
    pub streams_refused: u64,
    /// RST_STREAM frames received for open streams, by the name of their error code (RFC 9113 §7).
    pub resets_received: Vec<(&'static str, u64)>,
    /// RST_STREAM frames sent, by the name of their error code.
    pub resets_sent: Vec<(&'static str, u64)>,
    /// Times a peer used up a receive window and may have waited for us.
    pub receive_windows_used_up: u64,
    /// How long streams waited for their window, in milliseconds.
    pub stream_window_stall_ms: u64,
    /// How long connections waited for their window, in milliseconds.
    pub connection_window_stall_ms: u64,
    /// How long connections waited for their socket, in milliseconds.
    pub socket_stall_ms: u64,
}

/// Counters of a server, summed over its workers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// State of the server: whether it takes requests.
    pub state: ServerState,
    /// For how long the metrics exist.
    pub uptime: Duration,
    /// How many workers there are.
    pub workers: usize,
    /// Connections that are open, by kind.
    pub connections: Vec<ConnectionCount>,
    /// Counters of the event loops: connections, bytes, turns. What the loop counts of closed connections
    /// is in [`EndCounts::closes`].
    pub event_loop: Stats,
    /// Requests by route.
    pub routes: Vec<RouteSnapshot>,
    /// Requests that are under way and were not answered at once.
    pub in_flight: u64,
    /// Counts of what ended early, or was refused.
    pub ends: EndCounts,
    /// HTTP/2.
    pub http2: Http2Snapshot,
    /// TLS handshakes.
    pub tls: TlsSnapshot,
    /// Panics in handlers.
    pub handler_panics: u64,
    /// How long turns of the event loops took, without the wait.
    pub turns: HistogramSnapshot,
    /// Turns that took more than a second.
    pub long_turns: u64,
    /// The access log, if there is one.
    pub access_log: Option<AccessLogStats>,
    /// Profile of the CPU time, if the server has one.
    pub profile: Option<ProfileSnapshot>,
}

/// Counts of what ended early, or was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndCounts {
    /// Connections that ended, by reason.
    pub closes: Vec<(&'static str, u64)>,
    /// Exchanges that ended before they were complete, by reason.
    pub aborts: Vec<(&'static str, u64)>,
    /// Limits that were hit, by name.
    pub limits: Vec<(&'static str, u64)>,
    /// Abuse budgets that a peer has spent, by the attack that they answer.
    pub abuse: Vec<(&'static str, u64)>,
}

impl Default for Snapshot {
    fn default() -> Self {
        let connection =
            |(protocol, standing, tls)| ConnectionCount { protocol, standing, tls, count: 0 };
        Self {
            state: ServerState::default(),
            uptime: Duration::ZERO,
            workers: 0,
            connections: Place::all().map(connection).collect(),
            event_loop: Stats::default(),
            routes: Vec::new(),
            in_flight: 0,
            http2: Http2Snapshot::default(),
            tls: TlsSnapshot::default(),
            handler_panics: 0,
            turns: HistogramSnapshot::default(),
            long_turns: 0,
            access_log: None,
            profile: None,
            ends: EndCounts {
                closes: Vec::new(),
                aborts: Vec::new(),
                limits: Vec::new(),
                abuse: Vec::new(),
            },
        }
    }
}
