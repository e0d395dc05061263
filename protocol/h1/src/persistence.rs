//! RFC 9112 §9.3, §9.6: whether the connection lives on after the messages that are open.

use std::time::Instant;

use crate::error::{Failure, LAST, LAST_BY_VERSION, SHUT_DOWN};

/// What has been said about the end of the connection.
#[derive(Debug)]
pub(crate) struct Persistence {
    /// Whether another request may follow the newest one.
    pub(crate) persists: bool,
    /// The peer's last message had the option `close`: it acts on nothing that was sent after.
    pub(crate) peer_closes: bool,
    /// Our owner wants an orderly end.
    pub(crate) draining: bool,
    /// Our owner wants an end that costs no request: since when.
    pub(crate) leaving: Option<Instant>,
    /// The peer has ended its side of the transport.
    pub(crate) ended: bool,
    /// It did not say so itself, where the transport has a way to: what it sent may have been cut off.
    pub(crate) is_cut: bool,
}

impl Persistence {
    pub(crate) fn new() -> Self {
        Self {
            persists: true,
            peer_closes: false,
            draining: false,
            leaving: None,
            ended: false,
            is_cut: false,
        }
    }

    /// Why the connection ends when the newest message was the last.
    #[cold]
    pub(crate) fn reason(&self) -> &'static Failure {
        match (self.draining || self.leaving.is_some(), self.peer_closes) {
            (_, true) => &LAST,
            (true, _) => &SHUT_DOWN,
            _ => &LAST_BY_VERSION,
        }
    }
}
