//! RFC 9114 §5.2: the orderly end of a connection, in two steps.

/// The identifier that refuses no request: the greatest of a client's bidirectional streams.
pub(crate) const LAST_OF_ALL: u64 = (1 << 62) - 4;

/// How far our own shutdown has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Not begun.
    No,
    /// To be announced after the handshake: a client that learns it before has nothing that it may send.
    Asked,
    /// The first GOAWAY has been sent, at this time: requests that are on their way are still served.
    Announced { since_ms: u32 },
    /// The GOAWAY with the first stream that is not served has been sent.
    Final { first_refused: u64 },
}

/// Both directions of a shutdown.
#[derive(Debug)]
pub(crate) struct Goaway {
    pub(crate) leaving: Leaving,
    /// The peer's last identifier.
    received: Option<u64>,
}

impl Goaway {
    pub(crate) fn new() -> Self {
        Self { leaving: Leaving::No, received: None }
    }

    /// Returns whether a request on this stream is still served.
    #[inline]
    pub(crate) fn serves(&self, stream: u64) -> bool {
        match self.leaving {
            Leaving::No | Leaving::Asked | Leaving::Announced { .. } => true,
            Leaving::Final { first_refused } => stream < first_refused,
        }
    }

    /// Returns whether requests may be sent.
    #[inline]
    pub(crate) fn may_open(&self) -> bool {
        self.leaving == Leaving::No && self.received.is_none()
    }

    pub(crate) fn is_final(&self) -> bool {
        matches!(self.leaving, Leaving::Final { .. })
    }

    /// The peer is leaving. Its identifier may only become lower: false when it does not.
    pub(crate) fn receive(&mut self, identifier: u64) -> bool {
        let lowers = self.received.is_none_or(|before| identifier <= before);
        if lowers {
            self.received = Some(identifier);
        }
        lowers
    }

    /// Returns whether the peer is leaving.
    pub(crate) fn is_received(&self) -> bool {
        self.received.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_from_the_first_refused_on_are_not_served() {
        let mut goaway = Goaway::new();
        assert!(goaway.serves(8) && goaway.may_open());
        goaway.leaving = Leaving::Announced { since_ms: 0 };
        assert!(goaway.serves(8) && !goaway.may_open());
        goaway.leaving = Leaving::Final { first_refused: 8 };
        assert!(goaway.serves(4) && !goaway.serves(8));
    }

    #[test]
    fn the_identifier_never_rises() {
        let mut goaway = Goaway::new();
        assert!(goaway.receive(LAST_OF_ALL) && goaway.receive(4) && goaway.receive(4));
        assert!(!goaway.receive(8));
    }
}
