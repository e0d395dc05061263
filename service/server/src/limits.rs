//! The limits of a server, layer by layer.

use std::time::Duration;

/// The largest request body of a route that says nothing else. Default: 1 MiB. Unit: bytes. Reason:
/// nginx's default; enough for forms, too little to fill memory with. Answers: slow-body,
/// large-body.
pub const BODY_BYTES_MAX: u64 = 1024 * 1024;

/// How long the answer to a request may take to begin, from the last byte of the request that has
/// arrived; beyond it the answer is 503. 0 turns it off. Default: 60 s. Unit: time. Reason: a handler that
/// never answers must not hold its exchange for ever; nginx waits as long for a backend. Answers:
/// silent-handler.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an exchange may take in all, from its head to its last byte; beyond it the answer is 503, or
/// breaks off. Default: 0 s, which is off. Unit: time. Reason: a download, an event stream or a tunnel may
/// last; who serves none of these sets it. Answers: endless-exchange.
pub const EXCHANGE_TIMEOUT: Duration = Duration::ZERO;

/// How long a WebSocket peer may be silent before it is pinged, and then again before it is given up; 0 turns
/// both off. Default: 30 s. Unit: time. Reason: NAT gateways forget a silent connection after a minute or
/// more. Answers: silent-websocket.
pub const WEBSOCKET_PING_INTERVAL: Duration = Duration::from_secs(30);

/// How long a WebSocket peer may take to answer a close frame. Default: 5 s. Unit: time. Reason: a few round
/// trips of the slowest path. Answers: unanswered-close.
pub const WEBSOCKET_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How much may wait to be sent on a WebSocket connection before nothing more is received on it. Default: 256
/// KiB. Unit: bytes. Reason: an echo to a client that doesn't read must not fill memory. Answers:
/// unread-websocket.
pub const WEBSOCKET_OUTPUT_BYTES: usize = 256 * 1024;

/// Every limit of a server: those of its own and those of its connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// [`BODY_BYTES_MAX`].
    pub body_bytes_max: u64,
    /// [`ANSWER_TIMEOUT`].
    pub answer_timeout: Duration,
    /// [`EXCHANGE_TIMEOUT`].
    pub exchange_timeout: Duration,
    /// The limits of the protocols.
    pub connection: bolide_connection::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: BODY_BYTES_MAX,
            answer_timeout: ANSWER_TIMEOUT,
            exchange_timeout: EXCHANGE_TIMEOUT,
            connection: bolide_connection::Limits::default(),
        }
    }
}
