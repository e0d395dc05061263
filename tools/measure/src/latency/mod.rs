//! Latency: small requests in an open loop, during a transfer or without one.

mod prober;
mod pulse;
mod summary;

pub(crate) use prober::{Fresh, Prober, ProberTask};
pub(crate) use pulse::Pulse;
pub use summary::{Percentiles, percentiles};

/// Way of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    /// On a connection of the transfer.
    #[default]
    SameConnection,
    /// On a connection of its own, which stands.
    Standing,
    /// On a connection that was made for it.
    Fresh,
}

/// A probe that was answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// When it was to be sent.
    pub(crate) due_ns: u64,
    pub(crate) kind: Kind,
    /// From then, or from when its connection was ready, to the end of its response.
    pub(crate) took_ns: u64,
    /// Time to make its connection: TCP's handshake, and TLS's.
    pub(crate) tcp_ns: u64,
    pub(crate) tls_ns: u64,
}
