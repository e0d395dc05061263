//! RFC 9112 §9.3, §9.6: whether the connection lives on after the messages that are open.

use std::time::Instant;

use crate::error::{Failure, LAST, LAST_BY_VERSION, SHUT_DOWN};

/// Wish of our owner for the connection. It goes down this list only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// That it goes on.
    Stay,
    /// An end that costs no request: since when.
    Leave(Instant),
    /// An orderly end.
    Drain,
}

/// The peer's side of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerSide {
    Open,
    /// The peer has ended it.
    Ended,
    /// It ended, and not as the transport has a peer say so: what came may have been cut off.
    Cut,
}

/// Statements about the end of the connection.
#[derive(Debug)]
pub(crate) struct Persistence {
    /// True if another request may follow the newest one.
    pub(crate) persists: bool,
    /// The peer's last message had the option `close`: it acts on nothing that was sent after.
    pub(crate) peer_closes: bool,
    pub(crate) wish: Wish,
    pub(crate) peer_side: PeerSide,
}

impl Persistence {
    pub(crate) fn new() -> Self {
        let (wish, peer_side) = (Wish::Stay, PeerSide::Open);
        Self { persists: true, peer_closes: false, wish, peer_side }
    }

    /// Returns whether the peer sends nothing more.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.peer_side != PeerSide::Open
    }

    /// Why the connection ends when the newest message was the last.
    #[cold]
    pub(crate) fn reason(&self) -> &'static Failure {
        match self.wish {
            _ if self.peer_closes => &LAST,
            Wish::Leave(_) | Wish::Drain => &SHUT_DOWN,
            Wish::Stay => &LAST_BY_VERSION,
        }
    }
}
