//! RFC 9110 §7.3.4 and limits of our own: when a connection wants to be woken, and why.

use std::time::Instant;

/// The earliest time at which a connection must be polled even if nothing happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// When.
    pub at: Instant,
    /// The event that will have failed to happen.
    pub reason: DeadlineReason,
}

/// The event that a deadline waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineReason {
    /// The TLS handshake to finish.
    Handshake,
    /// A request's head, or a connection preface, to be complete.
    Head,
    /// The next bytes of a body.
    Body,
    /// The peer to take bytes of ours, or to open a window.
    Write,
    /// The next request.
    Idle,
    /// A graceful shutdown to finish.
    Drain,
    /// An acknowledgement (of SETTINGS or PING).
    Acknowledgement,
}

impl Deadline {
    /// The earlier of two deadlines.
    #[must_use]
    pub fn earlier(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}
