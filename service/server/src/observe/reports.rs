//! How many events a worker may report about its clients.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bolide_connection::TlsFailure;

use crate::limits::EVENTS_PER_SECOND;

/// A budget of events for each second.
#[derive(Debug)]
pub(super) struct Reports {
    second: Instant,
    left: u32,
    suppressed: u64,
}

impl Reports {
    pub(super) fn new(now: Instant) -> Self {
        Self { second: now, left: EVENTS_PER_SECOND, suppressed: 0 }
    }

    /// Returns whether an event may be reported, and then how many were not since the one before.
    pub(super) fn may(&mut self, now: Instant) -> Option<u64> {
        if now.saturating_duration_since(self.second) >= Duration::from_secs(1) {
            self.second = now;
            self.left = EVENTS_PER_SECOND;
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Some(std::mem::take(&mut self.suppressed))
            }
            None => {
                self.suppressed += 1;
                None
            }
        }
    }

    /// Reports that TLS failed. A certificate that is missing is the operator's matter, all else the peer's.
    pub(super) fn tls_failed(&mut self, now: Instant, peer: &Peer, failure: &TlsFailure) {
        let TlsFailure { what, kind, in_handshake } = failure;
        let is_own = *kind == TlsFailure::NO_CERTIFICATE;
        if !is_own && !tracing::enabled!(target: "bolide::tls", tracing::Level::DEBUG) {
            return;
        }
        let Some(suppressed) = self.may(now) else { return };
        let (what, peer) = (what.as_str(), peer.to_string());
        if is_own {
            tracing::warn!(target: "bolide::tls", peer, kind, what, suppressed, "a TLS handshake failed");
        } else {
            tracing::debug!(target: "bolide::tls", peer, kind, what, in_handshake, suppressed, "TLS failed");
        }
    }
}

/// A client's address, in words.
pub(super) struct Peer(pub(super) Option<SocketAddr>);

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(peer) => write!(formatter, "{peer}"),
            None => formatter.write_str("unix"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_flood_is_counted_instead() {
        let start = Instant::now();
        let mut reports = Reports::new(start);
        for _ in 0..EVENTS_PER_SECOND {
            assert_eq!(reports.may(start), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(reports.may(start), None);
        }
        let later = start + Duration::from_secs(1);
        assert_eq!(reports.may(later), Some(7));
        assert_eq!(reports.may(later), Some(0));
    }
}
