//! RFC 9000: what an endpoint is made of, and what is counted.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use thiserror::Error;

/// Why an endpoint or a connection can't be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuicError {
    /// The TLS settings can't be used with QUIC.
    #[error("these TLS settings can't be used with QUIC: {0}")]
    Tls(String),
    /// The connection can't be begun.
    #[error("no connection to {0} can be begun: {1}")]
    Connect(SocketAddr, String),
}

/// How a connection finds out how much may be on its way (RFC 9002 §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion {
    /// The algorithm.
    pub control: CongestionControl,
    /// Initial congestion window, in packets of 1,200 bytes. Default: 10, which RFC 9002 §7.2 recommends; who has
    /// more gets a page of small objects across in fewer round trips, and more lost where the path takes less.
    pub initial_packets: u16,
}

impl Default for Congestion {
    fn default() -> Self {
        Self { control: CongestionControl::default(), initial_packets: 10 }
    }
}

/// The algorithm that limits how much of a connection may be in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CongestionControl {
    /// CUBIC (RFC 9438): it grows until something is lost, and whatever is lost makes it smaller. The default.
    #[default]
    Cubic,
    /// BBR, version 1: it follows the rate at which the path delivers. Losses that have other causes than congestion don't
    /// slow it down; where a bottleneck has a short queue it makes others lose more. quinn-proto calls its own experimental.
    Bbr,
}

/// The role of an endpoint among those of other workers and processes that have the same UDP port.
#[derive(Debug, Clone)]
pub struct Membership {
    /// The number of its worker, and how many those are.
    pub worker: (usize, usize),
    /// The number of its process among those that follow one another.
    pub process: u8,
    /// The number of the process that it has taken over from, which may be in handshakes with clients.
    pub follows: Option<u8>,
    /// Secret from which the keys of tokens and of stateless resets are derived; none: they are random.
    pub secret: Option<Secret>,
}

impl Default for Membership {
    fn default() -> Self {
        Self { worker: (0, 1), process: 0, follows: None, secret: None }
    }
}

/// A secret that processes which follow one another share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

/// Counters of a connection, both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicStats {
    /// UDP datagrams that were sent.
    pub datagrams_sent: u64,
    /// UDP datagrams that came.
    pub datagrams_received: u64,
    /// Packets that were sent: a datagram has several in the handshake.
    pub packets_sent: u64,
    /// Of these, those that were declared lost (RFC 9002 §6).
    pub packets_lost: u64,
    /// The smoothed round-trip time (RFC 9002 §5.3).
    pub rtt: Duration,
}
