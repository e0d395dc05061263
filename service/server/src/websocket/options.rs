//! How a WebSocket connection is accepted and kept.

use std::borrow::Cow;
use std::time::Duration;

use bolide_websocket::{DeflatePolicy, Limits};

use crate::limits::PeerLimits;

/// How a WebSocket connection is accepted and kept.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub(super) protocols: Vec<Cow<'static, str>>,
    pub(super) protocol_required: bool,
    pub(super) deflate: Option<DeflatePolicy>,
    pub(super) limits: Limits,
    pub(super) peer: PeerLimits,
}

impl Options {
    /// No subprotocol, no compression, and the limits' defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more subprotocol that is spoken. The first one that a client offers and that is
    /// spoken here is chosen.
    #[must_use]
    pub fn protocol(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.protocols.push(name.into());
        self
    }

    /// The same, but who offers none of the subprotocols is refused with 400.
    #[must_use]
    pub fn require_protocol(mut self) -> Self {
        self.protocol_required = true;
        self
    }

    /// The same with permessage-deflate (RFC 7692) where the client offers it.
    #[must_use]
    pub fn deflate(mut self, policy: DeflatePolicy) -> Self {
        self.deflate = Some(policy);
        self
    }

    /// The same with these limits on messages.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same with pings to a peer that was silent for so long; one that is silent for as long again is
    /// given up. [`Duration::ZERO`] turns it off. Default: 30 s.
    #[must_use]
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.peer.ping_interval = interval;
        self
    }

    /// The same with so much patience for the peer's close frame. Default: 5 s.
    #[must_use]
    pub fn close_timeout(mut self, timeout: Duration) -> Self {
        self.peer.close_timeout = timeout;
        self
    }

    /// The same, but a message may take only so long from its first frame to its last. [`Duration::ZERO`] turns it
    /// off. Default: 5 min.
    #[must_use]
    pub fn message_timeout(mut self, timeout: Duration) -> Self {
        self.peer.message_timeout = timeout;
        self
    }

    /// The same, but nothing more is received while more than so many bytes wait to be sent. Default:
    /// 256 KiB.
    #[must_use]
    pub fn output_bytes_max(mut self, bytes: usize) -> Self {
        self.peer.output_bytes = bytes;
        self
    }
}
